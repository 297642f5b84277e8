# SPDX-License-Identifier: BSD-3-Clause
# Written by make completions.
_gf_allreduce() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words='' paths='' list='' before=''
	# an option, = and its word are three words
	if [[ $cur == = ]]; then cur=''
	elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
	--datatype | -d) words='f32 f64 f16 bf16 i32' ;;
	--op) words='sum prod max min avg' ;;
	--algorithms | -a) list=1 words='auto all ring rhd butterfly tree linear
		hierarchical blueconnect direct ps library topk gtopk' ;;
	--stages) list=1 words='ring halving shm' ;;
	--codec) words='f32 f16 bf16 trunc16 q8 fp8 fp4' ;;
	--device) words='cpu cuda auto' ;;
	--transport) words='auto mpi ucx' ;;
	--join) words='localhost:29600' ;;
	--average) words='max mean min rank0' ;;
	--plan | --best | --trace | --output | -o) paths=-f ;;
	--min-bytes | -b | --max-bytes | -e | --step-factor | -f | \
		--step-bytes | -i | --factors | --density | --lanes | \
		--segment | --rank | --ranks | --repeats | -n | --warmup | -w | \
		--check | -c | --timeout | --spoil | --min-bw) return ;;
	*)
		words='--min-bytes --max-bytes --step-factor --step-bytes
		--datatype --op --algorithms --factors --stages --codec
		--density --lanes --segment --device --transport --join --rank
		--ranks --plan --repeats --warmup --check --error --average
		--verify --timeout --spoil --json --csv --percentiles --best
		--trace --min-bw --list --output --quiet --verbose --help
		--usage --version' ;;
	esac
	if [[ $list && $cur == *,* ]]; then before=${cur%,*}, cur=${cur##*,}; fi
	mapfile -t COMPREPLY < <(compgen $paths -P "$before" -W "$words" -- "$cur")
	[[ -z $paths ]] || compopt -o filenames 2> /dev/null
}
complete -F _gf_allreduce gf-allreduce
