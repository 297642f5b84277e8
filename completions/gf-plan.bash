# SPDX-License-Identifier: BSD-3-Clause
_gf_plan() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	case $prev in
	--policy) mapfile -t COMPREPLY < <(compgen -W 'auto sequential single wfbp
		threshold mg-wfbp asc-wfbp asc-wfbp-literal optimal dear' -- "$cur"); return ;;
	--system) mapfile -t COMPREPLY < <(compgen -W 'auto gradientflow pipe-sgd
		gtopk asc-wfbp blueconnect' -- "$cur"); return ;;
	--algorithm) mapfile -t COMPREPLY < <(compgen -W 'ring rhd butterfly tree linear
		hierarchical blueconnect ps library' -- "$cur"); return ;;
	--codecs) mapfile -t COMPREPLY < <(compgen -W 'f32 f16 bf16 trunc16 q8' -- "$cur"); return ;;
	--emit) mapfile -t COMPREPLY < <(compgen -W 'ddp horovod nccl-env' -- "$cur"); return ;;
	--release) mapfile -t COMPREPLY < <(compgen -W 'ready backward_end' -- "$cur"); return ;;
	--selection) mapfile -t COMPREPLY < <(compgen -W 'dense csc topk gtopk' -- "$cur"); return ;;
	--putback) mapfile -t COMPREPLY < <(compgen -W 'paper conserve naive' -- "$cur"); return ;;
	--decay) mapfile -t COMPREPLY < <(compgen -W 'momentum' -- "$cur"); return ;;
	--warmup-densities) mapfile -t COMPREPLY < <(compgen -W 'none' -- "$cur"); return ;;
	--lanes | --threshold | --ranks | --flops | --batch | --factors | --servers | --staleness | --pipeline-warmup | \
		--keep | --chunk | --csc-warmup | --density) return ;;
	--refine | --plot | --model | --output | -o) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	case $cur in
	-*) mapfile -t COMPREPLY < <(compgen -W '--policy --system --lanes
		--threshold --ranks --algorithm --factors --codecs --servers
		--release --halves --staleness --pipeline-warmup --selection --keep
		--chunk --csc-warmup --decay --density --warmup-densities
		--putback --compare --json
		--explain --model --flops --batch --emit --list --refine --plot --output --quiet --verbose --help
		--usage --version' -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	esac
}
complete -F _gf_plan gf-plan
