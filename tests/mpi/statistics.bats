#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gf-train --statistics: what gradients are like, and the error of their means beside the one that
# is predicted by it.
load ../cli/common

plan() { # ALGORITHM CODEC OPTION...
	gf-plan -q --model digits-cnn --ranks 4 --policy single --algorithm "$1" --codecs "$2" "${@:3}" 4x2-1gbe > plan.json
}
train() { wants "$1" mpirun -np 4 gf-train -q --plan plan.json --batch 4 --steps 200 --statistics model.json "${@:2}"; }

agree() { # lines of an algorithm and a codec
	local codec algorithm off
	while read -r algorithm codec; do
		plan "$algorithm" "$codec"
		wants 0 mpirun -np 4 gf-train --plan plan.json --batch 4 --steps 200 --statistics model.json
		off=$(sed -nE 's/.* are off by ([^ ]+) of .* predicted ([^;]+);.*/\1 \2/p' err.txt)
		awk -v of="$algorithm $codec" '{ print of, $1, $2; exit !($1 > 0 && $1 / $2 > 1 / 1.2 && $1 / $2 < 1.2) }' <<< "$off"
		# gf-plan knows it by the file
		gf-plan -q --policy single --algorithm "$algorithm" --codecs "$codec" model.json "$share/topologies/4x2-1gbe.json" --ranks 4 > again.json
		jq -e --argjson p "${off#* }" '.predicted.error / $p - 1 | fabs < .03' again.json
	done
}

@test "gf-train --statistics: the error of a training's means is as predicted" {
	agree <<- END
		ring bf16
		ring trunc16
		direct q8
		hierarchical fp8
	END
}

# bats test_tags=long
@test "gf-train --statistics: ... by the other ways" {
	agree < <(printf '%s\n' {ring,rhd,tree,direct,hierarchical,blueconnect}\ {f16,bf16,trunc16,q8,fp8})
}

# bats test_tags=long
@test "gf-train --statistics: each tensor's, with selections and stale gradients, too" {
	local options
	while read -r options; do
		# shellcheck disable=SC2086
		gf-plan -q --model digits-cnn --ranks 4 $options 4x2-1gbe > plan.json
		train 0
		jq -e '.format == "gf-profile" and (.model.tensors | length == 14 and all(.gradient |
			.rms > 0 and .peak > 1 and .zeros >= 0 and .zeros < .5 and .correlation > -.4 and .correlation < 1))' model.json
		[[ $(< err.txt) != *'are off by'* ]]
	done <<- END
		--selection topk:density=.1
		--staleness 2
		--policy dear
		--period diloco:level=host,steps=5
	END
	# of one rank nothing is common to others
	gf-plan -q --model digits-cnn --ranks 1 4x2-1gbe > plan.json
	wants 0 gf-train -q --plan plan.json --batch 4 --steps 10 --statistics model.json
	jq -e 'all(.model.tensors[]; .gradient.correlation == 0)' model.json
}

@test "gf-train --statistics: what cannot be looked at is refused" {
	wants 2 gf-train --model digits-cnn --statistics model.json
	says '--statistics goes with --plan'
	plan ring f32
	wants 1 mpirun -np 4 gf-train --plan plan.json --steps 9 --statistics model.json
	says '--statistics: want a run with a tenth step, got steps 1 to 9'
	[ ! -e model.json ]
	gf-plan -q --model digits-cnn --ranks 4 --shard zero2 4x2-1gbe > plan.json
	train 1
	says '--statistics: want gradients that ranks have whole'
	# a document says where it is wrong
	plan ring f32
	train 0
	jq '.model.tensors[3].gradient.zeros = 2' model.json > bad.json
	wants 2 gf-plan bad.json 4x2-1gbe
	says 'bad.json: /model/tensors/3/gradient/zeros: want a number <= 1, got 2'
}
