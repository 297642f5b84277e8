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
	says "compute: forward 20 ms ->"
	says "ring: startup 1 ns ->"
	says "iteration: measured"
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
