# SPDX-License-Identifier: BSD-3-Clause
# Written by make completions.
_gf_sim() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words='' paths='' list='' before=''
	# an option, = and its word are three words
	if [[ $cur == = ]]; then cur=''
	elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
	--topology) paths=-f words='4x2-1gbe asc-wfbp-8x4-10gbe
		blueconnect-4x16x3 gradientflow-cluster-p
		gradientflow-cluster-v gtopk-32-1gbe pipe-sgd-4-10gbe' ;;
	--profile | --pairs | --trace | --plot | --output | -o) paths=-f ;;
	--ranks | --bandwidth | --accumulate | --slow | --slow-link | \
		--jitter | --runs | --seed | --iterations | \
		--without-stragglers | --plot-columns) return ;;
	*)
		case $cur in
		-*) words='--ranks --topology --profile --bandwidth --accumulate
		--replan --slow --slow-link --pairs --jitter --runs --seed
		--iterations --steps --verify --without-stragglers --csv
		--table --json --trace --plot --plot-columns --output --quiet
		--verbose --help --usage --version' ;;
		*) paths=-f ;;
		esac ;;
	esac
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gf_sim gf-sim
