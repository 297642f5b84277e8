# SPDX-License-Identifier: BSD-3-Clause
# Written by make completions.
_gf_profile() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words='' paths='' list='' before=''
	# an option, = and its word are three words
	if [[ $cur == = ]]; then cur=''
	elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
	--model) paths=-f words='alexnet-bn bert-base cifar100-cnn
		cifar100-convex densenet201 digits-cnn-plain digits-cnn
		digits-mlp gpt-text gpt2-small inception-v4 lstm-ptb lstm-text
		mnist-mlp resnet152 resnet18 resnet20 resnet50 vgg16' ;;
	--device) words='auto cpu cuda' ;;
	--backend) words='auto onednn ref cuda' ;;
	--algorithms | -a) list=1 words='ring rhd butterfly tree linear
		hierarchical blueconnect direct ps library' ;;
	--transport) words='auto mpi ucx' ;;
	--join) words='localhost:29600' ;;
	--format) words='csv gf-allreduce nccl-tests osu
		inspector kineto' ;;
	--gpu) words='b200 h200 h100-pcie h100 a100-40gb a100
		l40s l4 a10 v100 t4 p100 rtx2080ti mi300x mi250x' ;;
	--precision) words='f32 tf32 f16' ;;
	--import | --params | --output | -o) paths=-f ;;
	--batch | --threads | --warmup | --repeats | --min-bytes | \
		--max-bytes | --lanes | --time | --rank | --ranks | --budget | \
		--timeout | --name | --flops | --forward | --backward) return ;;
	*)
		case $cur in
		-*) words='--model --batch --device --backend --threads --warmup
		--repeats --no-network --algorithms --min-bytes --max-bytes
		--lanes --callers-memory --time --transport --join --rank
		--ranks --budget --timeout --pairs --json --progress --import
		--format --params --name --estimate --gpu --precision --flops
		--forward --backward --table --output --quiet --verbose --help
		--usage --version' ;;
		*) paths=-f ;;
		esac ;;
	esac
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gf_profile gf-profile
