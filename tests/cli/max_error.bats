#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The error of mean gradients by rounding: predicted, bounded, shown.
load common

plan() { # OPTION...
	wants 0 gf-plan -q --model resnet50 "$@" gtopk-32-1gbe
}

all_codecs() {
	gf-plan --list codecs | awk 'NR > 1 {print $1}' | paste -sd,
}

@test "gf-plan --max-error: every message keeps the bound, and a bound costs time" {
	codecs=$(all_codecs)
	before=0
	for bound in 1 3e-2 4e-3 1e-6; do
		plan --codecs "$codecs" --max-error "$bound"
		jq -e --argjson bound "$bound" '.predicted | .error > 0 and .error <= $bound
			and all(.messages[]; .error > 0 and .error <= $bound)' out.txt > /dev/null
		jq -e --argjson before "$before" '.predicted.iteration_s >= $before * 0.995' out.txt > /dev/null
		before=$(jq .predicted.iteration_s out.txt)
	done
	plan --codecs "$codecs"
	jq -e --argjson bounded "$before" '.predicted.iteration_s < $bounded and .predicted.error > 1e-6' out.txt > /dev/null
}

@test "gf-plan --max-error: ... of messages in halves, of shards, of groups, of gradients that are unlike" {
	local options
	gf-plan -q --model resnet50 gtopk-32-1gbe | jq '{format: "gf-profile", version: 1, model: (.model + {tensors: [
		(.tensors | map(del(.type))) | to_entries[] | .value + {gradient: {rms: (if .key % 2 == 0 then 1 else 1e-3 end), zeros: 0,
		correlation: (.key % 5 / 10 - 0.1), peak: (4 + .key % 3)}}]})}' > measured.json
	while read -r options; do
		for bound in 1e-1 3e-2 8e-3 4e-3; do
			# shellcheck disable=SC2086
			gf-plan -q --codecs "$(all_codecs)" --max-error "$bound" $options > out.txt
			jq -e --argjson bound "$bound" '.predicted | .error > 0 and .error <= $bound
				and all(.messages[]; .error > 0 and .error <= $bound)' out.txt
		done
	done <<- END
		--model resnet50 --policy dear gtopk-32-1gbe
		--model resnet50 --shard zero2 gtopk-32-1gbe
		--model resnet50 --period local-sgd:steps=8 4x2-1gbe
		--policy wfbp measured.json gtopk-32-1gbe
		--policy single measured.json gtopk-32-1gbe
		--policy dear measured.json gtopk-32-1gbe
	END
}

@test "gf-plan --max-error: ... of sets, of outer messages, and where only another codec keeps it" {
	# a few tensors with large values make the blocks of all round more
	jq -n '{format: "gf-profile", version: 1, model: {name: "s", device: "cpu", batch_per_rank: 1, forward_s: 0.003,
		backward_s: 0.04, update_s: 0, tensors: [range(40) | {name: "t\(.)", dtype: "f32", ready_s: (.001 * (. + 1)),
			count_elems: (if . % 10 == 5 then 10 else 100 end),
			gradient: {rms: (if . % 10 == 5 then 30 else 1 end), peak: 3.45, zeros: 0, correlation: 0}}]}}' > uneven.json
	gf-topo --synthetic "host:2@1GB/s,10us net:4@10Mb/s,1ms" > topo.json
	while IFS='|' read -r bound codecs options; do
		# shellcheck disable=SC2086
		gf-plan -q --max-error "$bound" $options > out.txt
		jq -e --arg codecs "$codecs" '[(.messages + (.period.messages // []))[].codec] | unique | join(",") == $codecs' out.txt
	done <<- 'END'
		1e-6|f32|--selection gtopk --codecs f32,q8 --model resnet20 topo.json
		0.1|q8|--selection gtopk --codecs f32,q8 --model resnet20 topo.json
		0.1|f32|--codecs f32,q8 --policy single uneven.json topo.json
		0.03|f32|--codecs f32 --period streaming:codecs=q8,f32,fragments=4,steps=64 uneven.json topo.json
		0.2|f32,q8|--codecs f32 --period streaming:codecs=q8,f32,fragments=4,steps=64 uneven.json topo.json
	END
	wants 1 gf-plan -q --max-error 0.03 --codecs f32 --period streaming:codecs=q8,fragments=4,steps=64 uneven.json topo.json
	says "--max-error: want at most 0.03 of each message, got 1.2e-01"
}

@test "the error of gradients that have less than nothing in common is one of as many as there are" {
	gf-plan -q --model resnet50 gtopk-32-1gbe | jq '{format: "gf-profile", version: 1, model: (.model + {tensors: [
		(.tensors[] | del(.type)) + {gradient: {rms: 1, zeros: 0, correlation: -0.1, peak: 4}}]})}' > measured.json
	for ranks in 2 4 32; do
		gf-plan -q --codecs bf16 --algorithm ring --policy single --ranks $ranks measured.json gtopk-32-1gbe > measured-plan.json
		plan --codecs bf16 --algorithm ring --policy single --ranks $ranks
		jq -se '.[0].predicted.error / .[1].predicted.error - 1 | fabs < 1e-6' measured-plan.json out.txt
	done
}

@test "gf-sim: the error is that of the plan whose time stands beside it" {
	local options
	while read -r options; do
		# shellcheck disable=SC2086
		plan --codecs bf16 $options
		cp out.txt plan.json
		wants 0 gf-sim -q --ranks 32 --table=json plan.json
		jq -e --slurpfile p plan.json '.error / $p[0].predicted.error - 1 | fabs < 1e-6' out.txt
		wants 0 gf-sim -q --ranks 8,64,128 --table=json plan.json
		jq -se 'length == 3 and all(.error > 1e-3) and .[0].error < .[2].error' out.txt
	done <<- END
		--policy single --algorithm ring
		--algorithm ring --shard zero2
		--algorithm ring --policy dear
	END
}

@test "a library's all-reduce in 16 bits is given gradients that were rounded to them" {
	# the error of one rounding to 8 bits is .00166, and the sum of two is rounded once more
	gf-plan -q --model bert-base --gpu v100 --ranks 2 --emit ddp --codecs bf16 gtopk-32-1gbe > out.txt
	error=$(sed -nE 's/^# reduced in bf16, which changes mean gradients by ([^ ]+) of them.*/\1/p' out.txt)
	awk -v e="$error" 'BEGIN { exit !(e > .0022 && e < .0025) }'
	# f32 is nobody's error, on any number of ranks
	wants 0 gf-plan -q --model bert-base --gpu v100 --ranks 2048 --emit ddp --codecs f32,bf16 --max-error 1e-4 gtopk-32-1gbe
	fails grep _compress_hook out.txt
}

@test "gf-plan --max-error: a bound that no algorithm keeps is refused with the least" {
	codec=$(all_codecs | tr , '\n' | tail -n 1)
	wants 1 gf-plan -q --model resnet50 --codecs "$codec" --max-error 1e-6 gtopk-32-1gbe
	says "--max-error: want at most 1e-06, the least is "
	wants 2 gf-plan -q --model resnet50 --max-error 0 gtopk-32-1gbe
	says "--max-error: want "
}

@test "the error is in comparisons, explanations and over ranks" {
	codec=$(all_codecs | tr , '\n' | tail -n 1)
	wants 0 gf-plan -q --model resnet50 --codecs "$codec" --explain gtopk-32-1gbe
	grep -q "^rounding changes the mean gradients by .* encodes a gradient .* times on its way" out.txt
	wants 0 gf-plan -q --model resnet50 --compare --over "codecs=f32,$codec" --table=json gtopk-32-1gbe
	jq -se 'all(.error > 0) and (map(.error) | max / min > 100)' out.txt > /dev/null
	plan --codecs "$codec"
	cp out.txt plan.json
	wants 0 gf-sim -q --ranks 4,16,64 --table=json plan.json
	jq -se 'map(.error) | .[0] < .[1] and .[1] < .[2]' out.txt > /dev/null
	# what a plan without codecs has is of no note in a table
	plan
	cp out.txt plan.json
	wants 0 gf-sim -q --ranks 4,16 --table plan.json
	fails grep -q error out.txt
}

@test "gf-plan --emit: the reduce type is one that keeps the bound" {
	codec=$(all_codecs | tr , '\n' | sed -n 3p) # of those that PyTorch's hooks have
	emit() { # OPTION...
		gf-plan -q --model bert-base --gpu v100 --emit ddp "$@" gtopk-32-1gbe > out.txt 2> err.txt
	}
	emit --codecs "$codec"
	grep -q "^# reduced in $codec, which changes mean gradients by .* of them (rms)" out.txt
	grep -q _compress_hook out.txt
	emit --codecs "$codec" --max-error 0.1
	grep -q _compress_hook out.txt
	fails emit --codecs "$codec" --max-error 1e-5
	says "--max-error: want at most 1e-05, got "
	fails emit --codecs "f32,$codec" --max-error 1e-5
	says "change nothing"
	# f32 rounds, too
	for codecs in "--codecs f32,$codec" "--codecs f32" ""; do
		# shellcheck disable=SC2086
		fails emit $codecs --max-error 7e-8
		says "--emit ddp: --max-error: want at most 7e-08, got 1.0e-07 of f32 on 32 ranks"
	done
	# the outer messages of a period keep it, too
	wants 1 gf-plan -q --model resnet50 --gpu h100 --emit torchft --period diloco:codecs=fp8 --codecs f32 --max-error 1e-3 4x2-1gbe
	says "outer exchange: --max-error: want at most 0.001, the least is "
}
