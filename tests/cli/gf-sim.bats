#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

plan() { # options of gf-plan...
	gf-plan -q "$@" "$share/profiles/six.json" > plan.json
}

@test "a row repeats the plan's prediction" {
	for policy in sequential wfbp threshold optimal asc-wfbp dear; do
		plan --policy $policy
		wants 0 gf-sim plan.json
		jq -e --slurpfile p plan.json '.iteration_s == $p[0].predicted.iteration_s
			and .exposed_comm_s == $p[0].predicted.exposed_comm_s' out.txt
	done
	for system in gradientflow pipe-sgd gtopk; do
		plan --system $system
		wants 0 gf-sim plan.json
		jq -e --slurpfile p plan.json '.iteration_s == $p[0].predicted.iteration_s' out.txt
	done
}

@test "standard input, a file, and the name -" {
	plan
	wants 0 gf-sim plan.json
	cp out.txt want.txt
	stdin=plan.json wants 0 gf-sim
	cmp want.txt out.txt
	stdin=plan.json wants 0 gf-sim -
	cmp want.txt out.txt
}

@test "speed-up and efficiency as the papers define them" {
	plan --policy single
	wants 0 gf-sim plan.json
	jq -e '.speedup == 4 * 20 / 68 and .efficiency == 20 / 68' out.txt
}

@test "sweeps: one row per combination, JSON Lines and CSV alike" {
	plan
	wants 0 gf-sim plan.json --ranks 2,4,8 --bandwidth 1B/s,8B/s
	jq -es 'length == 6 and [.[].ranks] == [2, 2, 4, 4, 8, 8]' out.txt
	jq -es 'all(.[]; .bandwidth_bytes_per_s == 1 or .bandwidth_bytes_per_s == 8)' out.txt
	jq -r '[.policy, .ranks, .iteration_s] | @csv' out.txt | tr -d '"' > json.txt
	wants 0 gf-sim plan.json --ranks 2,4,8 --bandwidth 1B/s,8B/s --csv
	tail -n +2 out.txt | cut -d, -f1,2,4 | sed 's/\.0$//' > csv.txt
	diff json.txt csv.txt
	[ "$(head -n 1 out.txt | cut -d, -f1-4)" = policy,ranks,bandwidth_bytes_per_s,iteration_s ]
}

@test "a ring on other ranks: its closed form" {
	plan --policy single
	wants 0 gf-sim plan.json --ranks 8
	# startup 3 * 14/6, bytes 45 * (7/8)/(3/4)
	jq -e '.iteration_s - 79.5 | fabs < 1e-9' out.txt
}

@test "another topology replaces the measured network, aloud" {
	plan --policy single
	wants 0 gf-sim plan.json --topology "$data/valid/topology-4x2-1gbe.json"
	says "closed forms replace"
	says "the plan is for 4 ranks, simulated on 8"
	jq -e '.ranks == 8 and .iteration_s < 20.01' out.txt
	wants 0 gf-sim -q plan.json --topology asc-wfbp-8x4-10gbe
	[ -z "$errors" ]
}

@test "a slow rank makes all of them slow" {
	plan --policy wfbp
	wants 0 gf-sim plan.json --slow 1:2
	jq -e '.compute_s == 20 and .iteration_s > 67' out.txt
	wants 0 gf-sim plan.json --slow 1:0.5
	jq -e '.iteration_s == 67' out.txt
	wants 2 gf-sim plan.json --slow 4:2
	one_line
	says "want a slow rank from 0 to 3, got 4"
}

@test "jitter: percentiles in order, the same seed gives the same row" {
	plan --policy wfbp
	wants 0 gf-sim plan.json --jitter 0.1 --runs 500 --seed 7
	cp out.txt first.txt
	jq -e '.least_s <= .p50_s and .p50_s <= .p90_s and .p90_s <= .p99_s and .p99_s <= .most_s' out.txt
	jq -e '.iteration_s == .p50_s and .p50_s > 67' out.txt
	wants 0 gf-sim plan.json --jitter 0.1 --runs 500 --seed 7
	cmp first.txt out.txt
	wants 0 gf-sim plan.json --jitter 0.1 --runs 500 --seed 8
	! cmp -s first.txt out.txt
}

@test "pipelined iterations are filled and drained once" {
	plan --system pipe-sgd
	wants 0 gf-sim plan.json --iterations 100
	# compute 20, exchange 3 + 45/2: 20 + 99 * 25.5 + 25.5
	jq -e '.total_s == 2570' out.txt
	plan --policy single
	wants 0 gf-sim plan.json --iterations 100
	jq -e '.total_s == 6800' out.txt
}

@test "--trace is a Chrome trace with every message" {
	plan --policy optimal --lanes 2
	wants 0 gf-sim plan.json --trace trace.json
	jq -e '[.traceEvents[] | select(.cat == "message") | .args.message] == [0, 1, 2, 3]' trace.json
	jq -e '[.traceEvents[] | select(.cat == "message") | .ts + .dur] == [14.5e6, 26.5e6, 43e6, 43e6]' trace.json
	jq -e '[.traceEvents[] | select(.cat == "ready")] | length == 6' trace.json
}

@test "--plot draws an iteration, or curves of a sweep" {
	plan
	wants 0 gf-sim plan.json --plot one.svg
	grep -q "</svg>" one.svg && grep -q "backward" one.svg
	wants 0 gf-sim plan.json --ranks 2,4,8 --plot scaling.svg
	grep -q "speed-up" scaling.svg
	wants 0 gf-sim plan.json --bandwidth 1B/s,8B/s --plot rate.svg
	grep -q "compute alone" rate.svg
}

@test "a hundred thousand ranks" {
	jq 'del(.network)' "$share/profiles/six.json" > model.json
	gf-plan -q --lanes 1 --algorithm ring "$data/valid/topology-4x2-1gbe.json" model.json > plan.json
	wants 0 gf-sim plan.json --ranks 100000
	jq -e '.ranks == 100000 and .iteration_s > 0' out.txt
}

@test "a decomposition on ranks that do not fit is refused" {
	jq 'del(.network)' "$share/profiles/six.json" > model.json
	gf-plan -q --system blueconnect "$data/valid/topology-4x2-1gbe.json" model.json > plan.json
	wants 0 gf-sim -q plan.json --ranks 64
	wants 2 gf-sim plan.json --ranks 7
	one_line
	says "want ranks that the plan's inner factors"
}

@test "bad requests: one line, the reason, the status" {
	plan
	while IFS='|' read -r status text options; do
		# shellcheck disable=SC2086
		wants "$status" gf-sim $options plan.json
		says "$text"
		[ -z "$output" ]
	done <<-'END'
	2|--ranks: |--ranks 4,x
	2|--ranks: |--ranks 0
	2|--bandwidth: |--bandwidth fast
	2|want RANK:FACTOR, got 3|--slow 3
	2|--jitter: |--jitter -1
	2|want one of --csv and --table|--csv --table
	3|want a path or a name in share/topologies|--topology nowhere
	END
	wants 2 gf-sim "$data/valid/plan-rule.json"
	one_line
	says "want a plan with messages, got a rule"
	wants 2 gf-sim "$share/profiles/six.json"
	one_line
	says "want a plan, found none"
	wants 3 gf-sim plan.json -o /dev/full
}
