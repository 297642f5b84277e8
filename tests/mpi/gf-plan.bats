#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gf-plan --refine on the trace of a run.
load ../cli/common

@test "--refine: a run's own trace, and what it changed" {
	# compute as long as the profile says; a network far slower than it says
	jq '.model.forward_s = 0.02 | .model.backward_s = 0.06 | .network.ranks = 2
		| .model.tensors |= map(.ready_s *= 0.003 | .count_elems *= 2000)
		| .network.allreduce[0] |= (.startup_s = 1e-9 | .per_byte_s = 1e-15 | .contention = [1, 2])' \
		"$share/profiles/six.json" > profile.json
	gf-plan -q --policy wfbp profile.json > plan.json
	wants 0 mpi 2 gf-train --plan plan.json --replay --steps 6 --trace trace.json
	wants 0 gf-report trace.json --plan plan.json
	jq -se '(.[0] | .kind == "gf-train" and .ranks == 2 and .steps == 6 and .matched > 0 and .unmatched == 0
			and .without_stragglers_s <= .iteration_s and .best_s > 0)
		and ([.[] | select(.part == "message") | .size_bytes > 0] | all)' out.txt
	wants 0 gf-plan --refine trace.json plan.json
	says "compute: forward 20.0 ms ->"
	says "ring: startup 1.00 ns ->"
	says "step: measured"
	says "messages: 6 ->"
	jq -e '.model.forward_s >= 0.019 and .model.backward_s >= 0.05' out.txt
	jq -e '.network.allreduce[0] | .startup_s > 1e-9 and .per_byte_s > 1e-15' out.txt
	jq -e '.ranks == 2 and (.inputs.profile // "") == ""' out.txt
	# of another plan it is refused
	gf-plan -q --policy single profile.json > other.json
	wants 2 gf-plan --refine trace.json other.json
	one_line
	says "want tensors 0 to 5 in message 0 of the plan, got 0 to 0"
}

@test "a run's trace with a selection: no cost of an all-reduce that did not run" {
	gf-topo -q --synthetic "host:1@8GB/s,1us net:2@1GB/s,50us" > topo.json
	gf-plan -q --selection gtopk:density=.01 --policy single --model digits-cnn topo.json > plan.json
	wants 0 mpi 2 gf-train -q --plan plan.json --replay --steps 30 --trace trace.json
	wants 0 gf-report --plan plan.json --profile profile.json --table=json trace.json
	jq -se 'map(select(.part == "message")) | length == 1 and (.[0] | .message == "sparse sets" and (has("busbw_bytes_per_s") | not))' out.txt
	jq -e '(has("network") | not) and [.selections[].method] == ["gtopk"]' profile.json
	wants 0 gf-report --plan plan.json --table trace.json
	prints "selection gtopk) it is predicted to take"
	wants 0 gf-plan -q --selection gtopk:density=.01 --policy single profile.json topo.json
	cp out.txt again.json
	# the plan of the same run, by the costs that the trace has
	wants 0 gf-plan -q --refine trace.json --policy single plan.json
	[ "$(jq -c '.messages' out.txt)" = "$(jq -c '.messages' again.json)" ]
	jq -e --slurpfile again again.json '.predicted.iteration_s / $again[0].predicted.iteration_s - 1 | fabs < 1e-9' out.txt
	jq -e 'has("network") | not' out.txt
}

@test "--reproducible: bits do not depend on messages, lanes and algorithms" {
	gf-topo -q --synthetic "host:3@1GB/s,10us" > topo.json
	gf-profile -q --estimate --flops 1e9 --model digits-mlp > prof.json
	local n=0 options first digest
	while read -r options; do
		# shellcheck disable=SC2086
		wants 0 gf-plan --reproducible topo.json prof.json $options
		says "reproducible: "
		cp out.txt plan.json
		wants 0 mpi 3 gf-train -q --reproducible --plan plan.json --data digits --batch 16 --steps 5 --seed 3 --checkpoint w$n
		digest=$(tensors_of w$n/step-5/rank-0.safetensors | sha256sum)
		[[ $options == *--codecs* ]] || first=${first:-$digest}
		[[ $options == *--codecs* ]] || [ "$digest" = "$first" ]
		[[ $options != *--codecs* ]] || coded+=("$digest")
		n=$((n + 1))
	done <<-END
	--policy wfbp
	--policy single --algorithm rhd
	--policy wfbp --algorithm butterfly --lanes 3
	--policy mg-wfbp --lanes 2
	--policy dear
	--policy wfbp --codecs f16
	--policy single --lanes 2 --codecs f16
	END
	[ "$n" -eq 7 ]
	[ "${coded[0]}" = "${coded[1]}" ]
	# a run of its own, and plans that are not
	wants 0 mpi 3 gf-train -q --reproducible --model digits-mlp --data digits --batch 16 --steps 5 --seed 3 --checkpoint own
	[ "$(tensors_of own/step-5/rank-0.safetensors | sha256sum)" = "$first" ]
	gf-plan -q topo.json prof.json --algorithm ring > ring.json
	wants 2 mpi 3 gf-train -q --reproducible --plan ring.json --data digits --steps 1
	says "want a plan of gf-plan --reproducible"
	jq '.reproducible = true' ring.json > claims.json
	wants 2 gf-sim claims.json
	says "want rhd or butterfly"
	while IFS='|' read -r status text options; do
		# shellcheck disable=SC2086
		wants "$status" gf-plan --reproducible topo.json prof.json $options
		says "$text"
	done <<-END
	1|ring with f32 adds in an order|--algorithm ring
	1|adds in an order|--codecs q8
	2|reproducible|--selection topk
	END
}
