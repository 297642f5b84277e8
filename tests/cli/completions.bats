#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The words that shells offer by the scripts of completions/. Each case is a command line
# and words; + wants the word among those offered, - wants it not to be.
load common

cases() {
	touch topo.json; mkdir folder
	cat <<- 'EOF'
	gf-plan --policy m|+mg-wfbp -wfbp
	gf-plan --selection top|+topk -density=
	gf-plan --selection topk:d|+topk:density= -topk:keep=
	gf-plan --selection topk:density=.1,p|+topk:density=.1,putback=
	gf-plan --staleness 2:w|+2:warmup_steps=
	gf-plan --period diloco:|+diloco:steps= +diloco:hide= -diloco:mix=
	gf-plan --codecs f32,b|+f32,bf16 -bf16
	gf-plan --model digits-c|+digits-cnn
	gf-plan --model to|+topo.json
	gf-plan to|+topo.json
	gf-plan --comp|+--compare ---completion
	gf-plan --emit h|+horovod -ddp
	gf-sim --costs g|+gtopk-32-1gbe
	gf-sim --s|+--slow +--steps
	gf-train --data |+digits +synthetic +folder -topo.json
	gf-train --augment flip,c|+flip,crop:4
	gf-train --checkpoint |+folder -topo.json
	gf-topo --device |+auto +cpu +gpu -topo.json
	gf-profile -a rin|+ring
	gf-profile --import |+kineto -gf-train
	gf-report --against to|+topo.json
	gf-allreduce -a ring,gat|+ring,gather
	gf-allreduce --datatype i|+i32
	gf-allreduce -o to|+topo.json
	gf-plan res|+resnet20 -resnet20.json
	gf-plan to|+topo.json
	gf-sim 4x|+4x2-1gbe
	EOF
}

# expect [EVERY]: the function offered prints what is offered after $1, in every so many cases
expect() {
	local line words word
	while IFS='|' read -r line words; do
		offered "$line" > words.txt 2> err.txt
		for word in $words; do
			case $word in
			+*) grep -qxF -- "${word#+}" words.txt ||
				{ echo "$line: want ${word#+}, got:"; cat words.txt err.txt; return 1; } ;;
			-*) fails grep -qxF -- "${word#-}" words.txt || { echo "$line"; return 1; } ;;
			esac
		done
	done < <(cases | awk -v every="${1:-1}" 'NR % every == 0')
}

@test "bash completes options and their arguments" {
	. "$GF_SOURCE/completions/gradflow.bash"
	offered() {
		trap - DEBUG # by which bats follows each command
		IFS=' ' read -ra COMP_WORDS <<< "$1"
		case $1 in *' ') COMP_WORDS+=('') ;; esac
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
		# compopt fails where no shell completes
		_gradflow || true
		printf '%s\n' "${COMPREPLY[@]%/}"
	}
	expect
}

@test "no word is offered twice" {
	local command
	for command in gf-topo gf-profile gf-plan gf-sim gf-allreduce gf-train gf-report; do
		# the words of one option
		"$command" --completion | awk -F'\t' -v command="$command" '
			$1 == "option" {option = $2; split("", seen)}
			$1 == "word" && seen[$2]++ {print command, "--" option, $2; bad = 1}
			END {exit bad}' || return 1
	done
}

@test "bash completes what stands after an equals sign" {
	. "$GF_SOURCE/completions/gradflow.bash"
	COMP_WORDS=(gf-plan --policy = m) COMP_CWORD=3
	_gradflow
	[ "${COMPREPLY[*]}" = mg-wfbp ]
	COMP_WORDS=(gf-plan --selection topk : density = .1,p) COMP_CWORD=6
	_gradflow
	[ "${COMPREPLY[*]}" = .1,putback= ]
	COMP_WORDS=(gf-plan --selection = topk :) COMP_CWORD=4
	_gradflow
	[ "${COMPREPLY[*]}" = "density= warmup_densities= putback=" ]
	COMP_WORDS=(gf-plan --emit =) COMP_CWORD=2
	_gradflow
	[ "${COMPREPLY[*]}" = 'ddp fsdp2 horovod nccl-env nccl-tuner rccl-tuner ncclx-tuner ompi ompi-han deepspeed megatron xla torchft maxtext' ]
}

@test "fish completes options and their arguments, with descriptions" {
	command -v fish > /dev/null || skip "fish is not installed"
	offered() {
		fish --no-config -c 'for f in $argv[2]/*.fish; source $f; end
			complete -C $argv[1]' -- "$1" "$GF_SOURCE/completions" |
			tee described.txt | cut -f 1 | sed 's/\/$//'
	}
	expect
	offered 'gf-plan --policy m'
	grep -qP '^mg-wfbp\tmerge a tensor' described.txt
}

in_zsh() { # [EVERY]; each case takes a shell and a terminal
	command -v zsh > /dev/null || skip "zsh is not installed"
	# what stands before the last comma or colon is not offered again
	offered() {
		local before=${1##* } files=$GF_SOURCE/completions
		case $before in *[:,]*) before=${before%"${before##*[:,]}"} ;; *) before='' ;; esac
		zsh -f "$GF_SOURCE/tests/cli/complete.zsh" "$files" "$1" |
			sed "s/^/$before/"
	}
	expect "$@"
}

@test "zsh completes options and their arguments: every third" { in_zsh 3; }

# bats test_tags=long
@test "zsh completes options and their arguments" { in_zsh; }

@test "what is refused beside an option is not offered in zsh" {
	command -v zsh > /dev/null || skip "zsh is not installed"
	zsh -f "$GF_SOURCE/tests/cli/complete.zsh" "$GF_SOURCE/completions" \
		'gf-plan --compare --' > words.txt
	grep -qxF -- --codecs words.txt
	fails grep -qxE -- '--(explain|emit|max-messages)' words.txt
}

@test "--completion prints options, words and rules; --help does not show it" {
	wants 0 gf-plan --completion
	prints "command	gf-plan	[FILE...]"
	prints "option	output	o	FILE		files	write to FILE instead of standard output"
	prints "word	horovod	"
	prints "rule	compare	explain emit max-messages"
	wants 0 gf-plan --help
	fails prints --completion
}
