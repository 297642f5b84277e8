# SPDX-License-Identifier: BSD-3-Clause
_gf_profile() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--device) mapfile -t COMPREPLY < <(compgen -W 'cpu cuda auto' -- "$cur"); return ;;
	--backend) mapfile -t COMPREPLY < <(compgen -W 'auto onednn ref cuda' -- "$cur"); return ;;
	--model) mapfile -t COMPREPLY < <(compgen -f -W 'digits-mlp digits-cnn resnet20' -- "$cur"); return ;;
	--format) mapfile -t COMPREPLY < <(compgen -W 'csv nccl-tests kineto' -- "$cur"); return ;;
	--import | --params) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	--name | --ranks | --flops | --forward | --backward | --batch | --threads | --warmup | --repeats | --lanes | --time | --budget | --timeout | \
		--algorithms | -a | --min-bytes | --max-bytes) return ;;
	--output | -o) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	[[ $cur == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return; }
	mapfile -t COMPREPLY < <(compgen -W '--model --batch --device --backend --threads
		--warmup --repeats --no-network --algorithms --min-bytes --max-bytes
		--lanes --time --budget --timeout --pairs --json --progress --import --format --params --name --ranks
		--estimate --flops --forward --backward --output --quiet --verbose --help --usage
		--version' -- "$cur")
}
complete -F _gf_profile gf-profile
