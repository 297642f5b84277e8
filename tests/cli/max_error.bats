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
	! grep -q error out.txt
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
	! emit --codecs "$codec" --max-error 1e-5
	says "--max-error: want at most 1e-05, got "
	! emit --codecs "f32,$codec" --max-error 1e-5
	says "change nothing"
}
