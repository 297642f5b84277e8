# SPDX-License-Identifier: BSD-3-Clause
_gf_profile() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--backend) mapfile -t COMPREPLY < <(compgen -W 'auto onednn ref' -- "$cur"); return ;;
	--model) mapfile -t COMPREPLY < <(compgen -f -W 'digits-mlp digits-cnn resnet20' -- "$cur"); return ;;
	--batch | --threads | --warmup | --repeats | --lanes | --time | --timeout | \
		--algorithms | -a | --min-bytes | -b | --max-bytes | -e) return ;;
	--output | -o) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	[[ $cur == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return; }
	mapfile -t COMPREPLY < <(compgen -W '--model --batch --backend --threads
		--warmup --repeats --no-network --algorithms --min-bytes --max-bytes
		--lanes --time --timeout --output --quiet --verbose --help --usage
		--version' -- "$cur")
}
complete -F _gf_profile gf-profile
