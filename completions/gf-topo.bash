# SPDX-License-Identifier: BSD-3-Clause
_gf_topo() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--device) mapfile -t COMPREPLY < <(compgen -W 'auto cpu gpu' -- "$cur"); return ;;
	--export) mapfile -t COMPREPLY < <(compgen -W 'nccl slurm astra-sim' -- "$cur"); return ;;
	--synthetic | --name | --ranks-per-host) return ;;
	--sysfs) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
	--hwloc | --nvml | --import | --output | -o) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W '--synthetic --device --measure --name
		--tree --import --ranks-per-host --export --hwloc --sysfs --nvml --output --quiet --verbose --help --usage
		--version' -- "$cur")
}
complete -F _gf_topo gf-topo
