# SPDX-License-Identifier: BSD-3-Clause
_gf_allreduce() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--datatype | -d) mapfile -t COMPREPLY < <(compgen -W 'f32 f64 f16 bf16 i32' -- "$cur"); return ;;
	--op) mapfile -t COMPREPLY < <(compgen -W 'sum prod max min avg' -- "$cur"); return ;;
	--algorithms | -a) mapfile -t COMPREPLY < <(compgen -W 'auto all ring rhd butterfly tree linear
		hierarchical blueconnect ps library topk gtopk' -- "$cur"); return ;;
	--stages) mapfile -t COMPREPLY < <(compgen -W 'ring halving shm' -- "$cur"); return ;;
	--device) mapfile -t COMPREPLY < <(compgen -W 'cpu cuda auto' -- "$cur"); return ;;
	--codec) mapfile -t COMPREPLY < <(compgen -W 'f32 f16 bf16 trunc16 q8' -- "$cur"); return ;;
	--average) mapfile -t COMPREPLY < <(compgen -W 'max mean min rank0' -- "$cur"); return ;;
	--plan | --best | --trace | --output | -o) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	--min-bytes | -b | --max-bytes | -e | --step-factor | -f | --step-bytes | -i | --factors | --density | --lanes | --segment | \
		--repeats | -n | --warmup | -w | --check | -c | --timeout | --spoil | --min-bw) return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W '--min-bytes --max-bytes --step-factor
		--step-bytes --datatype --op --algorithms --factors --stages --codec
		--density --lanes --segment --device --plan --repeats --warmup --check --average
		--timeout --spoil --json --csv --percentiles --best --trace --min-bw --list
		--output --quiet --verbose --help --usage --version' -- "$cur")
}
complete -F _gf_allreduce gf-allreduce
