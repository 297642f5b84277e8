# SPDX-License-Identifier: BSD-3-Clause
# Written by make completions.
_gf_plan() {
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
	--gpu) words='b200 h200 h100-pcie h100 a100-40gb a100
		l40s l4 a10 v100 t4 p100 rtx2080ti mi300x mi250x' ;;
	--precision) words='f32 tf32 f16' ;;
	--over) list=1 words='policies systems codecs selections' ;;
	--emit) words='ddp horovod nccl-env' ;;
	--policy) words='auto sequential single wfbp threshold
		mg-wfbp asc-wfbp ddp horovod optimal dear' ;;
	--system) words='auto gradientflow pipe-sgd gtopk
		asc-wfbp blueconnect ddp horovod' ;;
	--algorithm) words='ring rhd butterfly tree linear
		hierarchical blueconnect direct ps library' ;;
	--codecs) list=1 words='f32 f16 bf16 trunc16 q8 fp8 fp4' ;;
	--servers) words='0 1' ;;
	--release) words='ready backward_end' ;;
	--selection) words='dense csc topk gtopk dgc onebit
		powersgd randomk' ;;
	--decay) words='momentum' ;;
	--warmup-densities) list=1 words='none' ;;
	--putback) words='paper conserve naive' ;;
	--momentum) words='optimizer' ;;
	--masking) words='off on' ;;
	--warm-start) words='off on' ;;
	--refine | --plot | --output | -o) paths=-f ;;
	--flops | --batch | --ranks | --accumulate | --plot-columns | --lanes | \
		--tolerance | --threshold | --factors | --staleness | \
		--pipeline-warmup | --chunk | --keep | --csc-warmup | \
		--density | --local-clip | --powersgd-rank | \
		--powersgd-warmup | --min-compression | --seed) return ;;
	*)
		case $cur in
		-*) words='--model --gpu --precision --flops --batch --ranks
		--accumulate --refine --compare --over --strict --json --table
		--explain --emit --plot --plot-columns --list --policy --system
		--lanes --tolerance --threshold --algorithm --factors --codecs
		--servers --release --halves --staleness --pipeline-warmup
		--selection --chunk --keep --csc-warmup --decay --density
		--warmup-densities --putback --local-clip --momentum --masking
		--powersgd-rank --powersgd-warmup --warm-start
		--min-compression --seed --output --quiet --verbose --help
		--usage --version' ;;
		*) paths=-f ;;
		esac ;;
	esac
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gf_plan gf-plan
