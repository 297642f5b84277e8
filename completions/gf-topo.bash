# SPDX-License-Identifier: BSD-3-Clause
# Written by make completions.
_gf_topo() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words='' paths='' list='' before=''
	# an option, = and its word are three words
	if [[ $cur == = ]]; then cur=''
	elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
	--device) words='auto cpu gpu' ;;
	--export) words='nccl slurm astra-sim' ;;
	--import | --hwloc | --nvml | --output | -o) paths=-f ;;
	--sysfs) paths=-d ;;
	--synthetic | --ranks-per-host | --name) return ;;
	*)
		words='--synthetic --device --measure --import
		--ranks-per-host --export --name --tree --hwloc --sysfs --nvml
		--output --quiet --verbose --help --usage --version' ;;
	esac
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gf_topo gf-topo
