# SPDX-License-Identifier: BSD-3-Clause
_gf_sim() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--ranks | --bandwidth | --slow | --jitter | --runs | --seed | --iterations) return ;;
	--topology | --profile | --trace | --plot | --output | -o)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	case $cur in
	-*) mapfile -t COMPREPLY < <(compgen -W '--ranks --topology --profile
		--bandwidth --slow --jitter --runs --seed --iterations --steps --csv
		--table --trace --plot --output --quiet --verbose --help --usage
		--version' -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	esac
}
complete -F _gf_sim gf-sim
