#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

plan() { # options of gf-plan...
	gf-plan -q "$@" "$share/profiles/six.json" > plan.json
}

# The replay's row, and in it the step model's iteration.
replay() { # plan and options of gf-sim...
	local model
	wants 0 gf-sim "$@"
	model=$(jq .iteration_s out.txt)
	wants 0 timeout 60 gf-sim --steps "$@"
	jq -c --argjson model "$model" '.model_iteration_s = $model' out.txt > row.json
	mv row.json out.txt
}

@test "--bandwidth: a host's interfaces together, as gf-topo writes them" {
	gf-plan -q --batch 1 --precision bf16 bert-base dgx-h100-4x8 > plan.json
	wants 0 gf-sim plan.json --bandwidth 8x400Gb/s,3200Gb/s,100Gb/s --table=json
	jq -es '.[0] == .[1] and .[0].bandwidth_bytes_per_s == 4e11 and .[2].iteration_s > 2 * .[0].iteration_s' out.txt
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

@test "--accumulate: micro-batches before the one that exchanges" {
	# 20 each; messages start in the last backward
	for policy in single wfbp dear; do
		plan --policy $policy
		jq -r .predicted.iteration_s plan.json > alone.txt
		wants 0 gf-sim plan.json --accumulate 3
		jq -e --argjson alone "$(cat alone.txt)" '.compute_s == 60 and .iteration_s == $alone + 40
			and (.samples_per_s * .iteration_s - 12 | fabs < 1e-9)' out.txt
		# planned so, and taken back
		plan --policy $policy --accumulate 3
		wants 0 gf-sim plan.json
		jq -e --argjson alone "$(cat alone.txt)" '.iteration_s == $alone + 40' out.txt
		wants 0 gf-sim plan.json --accumulate 1
		jq -e --argjson alone "$(cat alone.txt)" '.iteration_s == $alone' out.txt
	done
	wants 0 gf-plan -q plan.json --accumulate 2 --policy single
	jq -e '.model.accumulate == 2 and .model.forward_s == 23 and .predicted.iteration_s == 88' out.txt
	wants 2 gf-plan --accumulate 2 "$data/valid/topology-4x2-1gbe.json"
	one_line
	says "--accumulate: want a model"
}

@test "sweeps: one row per combination, JSON Lines and CSV alike" {
	plan
	wants 0 gf-sim plan.json --ranks 2,4,8 --bandwidth 1B/s,8B/s
	jq -es 'length == 6 and [.[].ranks] == [2, 2, 4, 4, 8, 8]' out.txt
	jq -es 'all(.[]; .bandwidth_bytes_per_s == 1 or .bandwidth_bytes_per_s == 8)' out.txt
	jq -c 'map_values(tostring | sub("\\.0$"; ""))' out.txt > json.txt
	wants 0 gf-sim plan.json --ranks 2,4,8 --bandwidth 1B/s,8B/s --table=csv
	as_rows out.txt | jq -c 'with_entries(select(.value != "")) | map_values(sub("\\.0$"; ""))' | diff json.txt -
}

@test "several plans: a row for each in each of the circumstances, by name" {
	local job=(--model resnet50 --gpu v100 asc-wfbp-8x4-10gbe)
	for system in ddp gtopk blueconnect; do
		gf-plan -q --system $system "${job[@]}" > $system.json
	done
	wants 0 gf-sim ddp.json gtopk.json blueconnect.json --ranks 8,32 --bandwidth 10Gb/s,25Gb/s
	jq -es 'length == 12 and ([.[].plan] | unique == ["blueconnect", "ddp", "gtopk"])' out.txt
	jq -es 'all(.system == .plan) and (map(select(.plan == "gtopk")) | all(.selection == "gtopk" and .messages == 1 and .lanes == 1))' out.txt
	# each row is the plan's own
	jq -c 'select(.plan == "ddp") | del(.plan)' out.txt > together.txt
	wants 0 gf-sim ddp.json --ranks 8,32 --bandwidth 10Gb/s,25Gb/s
	diff <(jq -c . out.txt) together.txt
	# a stream of plans, where one comes twice
	cat ddp.json gtopk.json ddp.json > all.json
	stdin=all.json wants 0 gf-sim
	jq -es '[.[].plan] == ["ddp", "gtopk"]' out.txt
	wants 0 gf-sim all.json blueconnect.json --table=csv
	[ "$(as_rows out.txt | jq -r .policy | tr '\n' ' ')" = "ddp single single " ]
	[ "$(head -n 1 out.txt | cut -d, -f-9)" = plan,policy,system,codecs,selection,algorithms,staleness,lanes,messages ]
	# plans that differ and are called alike get numbers
	gf-plan -q --threshold 4M --policy threshold "${job[@]}" > a.json
	gf-plan -q --threshold 8M --policy threshold "${job[@]}" > b.json
	cat a.json b.json > two.json
	wants 0 gf-sim two.json
	jq -es '[.[].plan] == ["threshold", "threshold 2"]' out.txt
	wants 2 gf-sim a.json b.json --steps
	one_line
	says '--steps: want one plan, got 2'
	wants 0 gf-sim a.json b.json --ranks 32,64 --plot curves.csv
	[ "$(tail -n +2 curves.csv | sed 's/.*,//' | sort | uniq -c | tr -s ' ')" = "$(printf ' 2 a\n 2 b')" ]
	wants 0 gf-sim a.json b.json --plot bars.csv
	[ "$(head -n 1 bars.csv)" = plan,compute,exposed ]
	for ending in svg pdf; do
		wants 0 gf-sim a.json b.json --ranks 32,64 --bandwidth 1Gb/s,10Gb/s --plot curves.$ending
		wants 0 gf-sim a.json b.json --plot bars.$ending
	done
}

@test "--replan: beside a plan the one that would be made there" {
	local job=(--model resnet50 --gpu v100 asc-wfbp-8x4-10gbe)
	gf-plan -q "${job[@]}" > plan.json
	wants 0 gf-sim plan.json --replan --ranks 32,64
	jq -es '[.[].plan] == ["plan", "plan replanned", "plan", "plan replanned"]' out.txt
	# where the plan was made nothing is gained beyond the tolerance; on more
	# ranks the new plan is that of gf-plan
	jq -es '.[1].iteration_s <= .[0].iteration_s * 1.005 and .[3].iteration_s < .[2].iteration_s' out.txt
	cp out.txt rows.txt
	wants 0 gf-plan -q "${job[@]}" --ranks 64
	jq -e -n --slurpfile p out.txt --slurpfile r rows.txt '
		$r[3].messages == ($p[0].messages | length) and $r[3].policy == $p[0].policy and
		($r[3].iteration_s - $p[0].predicted.iteration_s | fabs) < 1e-9'
	# a plan that does not fit is left out, and the new one stands there
	gf-plan -q --algorithm blueconnect --policy single "${job[@]}" > blue.json
	wants 0 gf-sim blue.json --replan --ranks 32,33
	jq -es 'map([.plan, .ranks, has("left_out")]) == [["blue", 32, false], ["blue replanned", 32, false],
		["blue", 33, true], ["blue replanned", 33, false]]' out.txt
	# system, selection and staleness go on
	gf-plan -q --system pipe-sgd "${job[@]}" > pipe.json
	wants 0 gf-sim pipe.json --replan --ranks 64
	jq -es '.[1] | .system == "pipe-sgd" and .staleness == 2 and .codecs == "trunc16"' out.txt
}

@test "--steps --table: of a long program a row for each message and kind of step" {
	six=$share/profiles/six.json
	gf-plan -q --policy single "$six" > plan.json
	# a ring of 4: 6 rounds of a send and a receive each on every rank
	wants 0 gf-sim plan.json --steps --table
	[ "$(grep -cE '^ *0 +[0-3] +ring +(send|recv|recv-reduce) ' out.txt)" -eq 48 ]
	wants 0 gf-sim plan.json --steps --table --ranks 16 --trace trace.json
	steps=$(grep -c '"cat": "step"' trace.json)
	first=$(grep -c '"cat": "step", "name": "send ' trace.json)
	prints "$steps steps of 16 ranks: --trace has each"
	grep -qE "^ *0 +ring +send +$first " out.txt
	[ "$(wc -l < out.txt)" -lt 20 ]
	[ "$(awk '$3 ~ /^recv/ { n += $4 } END { print n }' out.txt)" -eq "$first" ]
}

@test "a table on a terminal as wide as its window, JSON into a pipe" {
	local job=(--model resnet50 --gpu v100 asc-wfbp-8x4-10gbe)
	for system in ddp gtopk; do
		gf-plan -q --system $system "${job[@]}" > $system.json
	done
	wants 0 gf-sim ddp.json gtopk.json --table --jitter 0.1 --iterations 10 --bandwidth 10Gb/s
	head -n 1 out.txt | tr -s ' ' > heading.txt
	[ "$(cat heading.txt)" = "plan system policy codec selection messages lanes ranks bandwidth step exposed speed-up efficiency total 50 % 90 % 99 %" ]
	wants 0 python3 "$GF_SOURCE/tests/cli/terminal.py" 96 gf-sim ddp.json gtopk.json --ranks 8,16
	grep -q '^plan ' out.txt
	grep -q '^in all rows: ' out.txt
	[ "$(head -n 5 out.txt | wc -L)" -le 96 ]
	wants 0 python3 "$GF_SOURCE/tests/cli/terminal.py" 200 gf-sim ddp.json gtopk.json --ranks 8,16
	fails grep 'in all rows' out.txt
	wants 0 python3 "$GF_SOURCE/tests/cli/terminal.py" 72 gf-sim ddp.json --table=json
	jq -e '.policy == "ddp"' out.txt
	wants 0 python3 "$GF_SOURCE/tests/cli/terminal.py" 72 gf-sim ddp.json --table=csv
	[ "$(head -c 7 out.txt)" = policy, ]
	wants 0 python3 "$GF_SOURCE/tests/cli/terminal.py" 72 gf-sim ddp.json -o rows.json
	jq -e '.policy == "ddp"' rows.json
	wants 2 gf-sim ddp.json --table=yaml
	says '--table: want text, md, tex, csv, tsv or json, got "yaml"'
}

@test "--bandwidth without levels: messages that were short stay short" {
	local long='"larger": [{"from_bytes": 4096, "startup_s": 1, "per_byte_s": 8e-9}]'
	local rounds='"larger": [{"from_bytes": 4096, "alpha_s": 1, "beta_s_per_byte": 8e-9}]'
	while read -r network; do
		jq "del(.network.allreduce) | .network |= . + $network" "$share/profiles/six.json" > profile.json
		gf-plan -q --policy wfbp --algorithm ring profile.json > plan.json
		wants 0 gf-sim plan.json
		cp out.txt want.txt
		wants 0 gf-sim plan.json --bandwidth 125MB/s
		jq -se 'map(.iteration_s) | .[0] > 20 and (.[0] / .[1] - 1 | fabs < 1e-12)' want.txt out.txt
	done <<-END
	{"allreduce": [{"algorithm": "ring", "startup_s": 0.06, "per_byte_s": 12e-9, $long}]}
	{"levels": [{"name": "net", "alpha_s": 0.01, "beta_s_per_byte": 8e-9, "reduce_s_per_byte": 0, $rounds}]}
	END
}

@test "a network of NCCL's all-reduces alone: other ranks, bandwidths, sizes" {
	gf-profile -q --import "$data/import/nccl-tests.txt" --ranks 16 > net.json
	gf-plan -q --policy single --gpu h100 resnet20 net.json > plan.json
	fails grep -q beyond err.txt
	jq -e '.predicted | .iteration_low_s < .iteration_s and .iteration_s < .iteration_high_s' plan.json
	# one interval and one line for all rows
	wants 0 gf-sim plan.json --ranks 16,32,128
	[ "$(grep -c 'measured on 16 ranks; its costs are carried over to 128 by closed forms' err.txt)" -eq 1 ]
	jq -se 'map((.iteration_high_s - .iteration_low_s) / .iteration_s) | .[0] < .[1] and .[1] < .[2]' out.txt
	wants 0 gf-sim plan.json --bandwidth 1Gb/s,100Gb/s
	jq -se '.[0].exposed_comm_s > 50 * .[1].exposed_comm_s' out.txt
	# the sizes 1 MiB and more alone: nothing is known of smaller ones
	jq '.network.allreduce[0].fit |= (([.size_bytes, .time_s] | transpose | map(select(.[0] >= 1048576))) as $p
		| .size_bytes = ($p | map(.[0])) | .time_s = ($p | map(.[1])) | del(.spread_s))' net.json > large.json
	wants 0 gf-plan --policy wfbp --gpu h100 resnet20 large.json -o wide.json
	[ "$(grep -c 'messages of .* lie beyond the sizes that were measured' err.txt)" -eq 1 ]
	wants 0 gf-sim wide.json
	[ "$(grep -c 'lie beyond the sizes that were measured' err.txt)" -eq 1 ]
	jq -es '.[0].predicted.iteration_high_s == .[1].iteration_high_s' wide.json out.txt
	wants 0 gf-plan --compare --gpu h100 resnet20 large.json
	[ "$(grep -c 'lie beyond the sizes that were measured' err.txt)" -eq 1 ]
	wants 0 gf-plan --compare --over codecs --gpu h100 resnet20 net.json
	says "left out: trunc16, q8, fp8, fp4: want f32, f16 or bf16 with algorithm library, which cannot sum encoded data"
}

@test "sets have no stages that other ranks must fit" {
	for selection in topk gtopk; do
		gf-plan -q --gpu v100 --selection $selection resnet20 asc-wfbp-8x4-10gbe > plan.json
		wants 0 gf-sim plan.json --ranks 33,96,160
		jq -se 'map(.iteration_s) | length == 3 and all(. > 0)' out.txt
	done
}

@test "a ring on other ranks: its closed form" {
	plan --policy single
	wants 0 gf-sim plan.json --ranks 8
	# startup 3 * 14/6, bytes 45 * (7/8)/(3/4)
	jq -e '.iteration_s - 79.5 | fabs < 1e-9' out.txt
}

@test "another topology replaces the measured network, aloud" {
	plan --policy single
	wants 0 gf-sim plan.json --costs "$data/valid/topology-4x2-1gbe.json"
	says "costs on the topology replace"
	says "the plan is for 4 ranks, simulated on 8"
	jq -e '.ranks == 8 and .iteration_s < 20.01' out.txt
	wants 0 gf-sim -q plan.json --costs asc-wfbp-8x4-10gbe
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

@test "a slow link: a ring moves at its pace, a tree pays where it is used" {
	cat > flat.json <<-'END'
	{"format": "gf-topology", "version": 1, "name": "flat", "source": "synthetic", "ranks": 4, "levels": [
		{"name": "net", "size": 4, "link": "net", "bandwidth_bytes_per_s": 1e8, "latency_s": 0}]}
	END
	gf-plan -q --model resnet20 --flops 1e12 --policy single --algorithm ring flat.json > plan.json
	wants 0 gf-sim plan.json
	cp out.txt even.txt
	wants 0 gf-sim plan.json --slow-link 1:1
	cmp even.txt out.txt
	# 2 * 3/4 of 1089896 bytes pass the slow link, in and out, in whole elements
	wants 0 gf-sim plan.json --slow-link 1:4
	jq -e '.exposed_comm_s / (1.5 * 1089896 * 4 / 1e8) - 1 | fabs < 1e-4' out.txt
	# two slow links at once are no slower than the slower of them
	wants 0 gf-sim plan.json --slow-link 1:4,3:2@net --slow-link 0:3
	jq -e '.exposed_comm_s / (1.5 * 1089896 * 4 / 1e8) - 1 | fabs < 1e-4' out.txt
	# rank 0 adds up what its halves bring: rank 3 sends its gradient once and gets the sum once
	gf-plan -q --model resnet20 --flops 1e12 --policy single --algorithm tree flat.json > plan.json
	wants 0 gf-sim plan.json
	jq -r .exposed_comm_s out.txt > even.txt
	wants 0 gf-sim plan.json --slow-link 3:4
	jq -e --argjson even "$(cat even.txt)" '(.exposed_comm_s - $even) / (2 * 1089896 * 3 / 1e8) - 1 | fabs < 1e-9' out.txt
	replay plan.json --slow-link 3:4
	jq -se '.[0] | .iteration_s / .model_iteration_s - 1 | fabs < 1e-9' out.txt
}

@test "a slow link of a host: the narrowest on the way, or that of a level" {
	gf-plan -q --model resnet20 --flops 1e12 --policy single --lanes 1 --algorithm ring "$share/topologies/4x2-1gbe.json" > plan.json
	wants 0 gf-sim plan.json --slow-link 4:10
	cp out.txt net.txt
	# both ranks of a host share its link
	wants 0 gf-sim plan.json --slow-link 5:10@net
	cmp net.txt out.txt
	wants 0 gf-sim plan.json --slow-link 5:10@host
	jq -se '.[1].exposed_comm_s < .[0].exposed_comm_s / 2' net.txt out.txt
	wants 2 gf-sim plan.json --slow-link 5:10@rack
	one_line
	says "want a slow link of one of the levels host, net, got rack"
	wants 2 gf-sim plan.json --slow-link 8:10
	one_line
	says "want a slow link of a rank from 0 to 7, got 8"
	wants 1 gf-sim plan.json --ranks 1024 --slow-link 5:10
	one_line
	says "slow links are replayed: want at most 2e+06 steps"
}

@test "--pairs: the slow host that gf-profile found" {
	gf-plan -q --model resnet20 --flops 1e12 --policy single --lanes 1 --algorithm ring "$share/topologies/4x2-1gbe.json" > plan.json
	for from in 0 2 4 6; do
		for to in 0 2 4 6; do
			((from == to)) && continue
			rate=100e6 slow=false
			((from == 4)) && rate=20e6 slow=true
			((from == 0 && to == 2)) && rate=50e6 slow=true # one path
			echo "{\"from\": \"h$from\", \"to\": \"h$to\", \"from_rank\": $from, \"to_rank\": $to," \
				"\"rate_bytes_per_s\": $rate, \"latency_s\": 5e-5, \"slow\": $slow}"
		done
	done > pairs.txt
	wants 0 gf-sim plan.json --pairs pairs.txt
	says "the link of rank 4 has 1/5 of the median bandwidth out, 1/1 in"
	fails grep -q measured err.txt
	cp out.txt found.txt
	# what it sends is the ring's pace
	wants 0 gf-sim plan.json --slow-link 4:5
	jq -se '.[0].iteration_s / .[1].iteration_s - 1 | fabs < 1e-9' found.txt out.txt
	# what was measured over these links is as slow as they are
	gf-plan -q "$share/profiles/six.json" > measured.json
	wants 0 gf-sim measured.json --ranks 8 --pairs pairs.txt
	says "the plan's costs were measured: if over these links, their slowness counts twice (--costs takes others)"
	wants 2 gf-sim plan.json --pairs plan.json
	one_line
	says "plan.json: want rows of gf-profile --pairs --table=json, found none"
	wants 2 gf-sim plan.json --pairs /dev/null
	says "want rows of gf-profile --pairs --table=json, found none"
}

@test "jitter: percentiles in order, the same seed gives the same row" {
	plan --policy wfbp
	wants 0 gf-sim plan.json --jitter 0.1:runs=500,seed=7
	cp out.txt first.txt
	jq -e '.least_s <= .p50_s and .p50_s <= .p90_s and .p90_s <= .p99_s and .p99_s <= .most_s' out.txt
	jq -e '.iteration_s == .p50_s and .p50_s > 67' out.txt
	wants 0 gf-sim plan.json --jitter 0.1:runs=500,seed=7
	cmp first.txt out.txt
	wants 0 gf-sim plan.json --jitter 0.1:runs=500,seed=8
	fails cmp -s first.txt out.txt
}

@test "pipelined iterations are filled and drained once" {
	plan --system pipe-sgd
	wants 0 gf-sim plan.json --iterations 100
	# compute 20, exchange 3 + 45/2: 20 + 99 * 25.5 + 25.5
	jq -e '.total_s == 2570' out.txt
	# every rank waits for the slowest: 40 + 99 * 40 + 25.5
	wants 0 gf-sim plan.json --iterations 100 --slow 1:2
	jq -e '.total_s == 4025.5' out.txt
	# ten synchronous steps of 20 + 25.5 in front
	plan --system pipe-sgd --staleness warmup=10
	wants 0 gf-sim plan.json --iterations 100
	jq -e '.total_s == 455 + 20 + 89 * 25.5 + 25.5' out.txt
	wants 0 gf-sim plan.json --iterations 4
	jq -e '.total_s == 182' out.txt
	plan --policy single
	wants 0 gf-sim plan.json --iterations 100
	jq -e '.total_s == 6800' out.txt
}

@test "stale gradients: as long as the network is busy, not from first start to last end" {
	cat > gap.json <<-'END'
	{"format": "gf-profile", "version": 1,
	 "model": {"name": "gap", "forward_s": 1, "backward_s": 10, "tensors": [
		{"name": "a", "count_elems": 1, "dtype": "f32", "ready_s": 0.5},
		{"name": "b", "count_elems": 2, "dtype": "f32", "ready_s": 10}]},
	 "network": {"ranks": 4, "allreduce": [{"algorithm": "ring", "startup_s": 0.1, "per_byte_s": 1}]}}
	END
	gf-plan -q --staleness 2 --policy wfbp gap.json > plan.json
	wants 0 gf-sim plan.json
	# two messages of 0.1 + 4 and 0.1 + 8, with 5.4 between them
	jq -e '(.iteration_s - 12.2 | fabs < 1e-9) and (.communication_s - 17.6 | fabs < 1e-9)' out.txt
	# the first exchange ends at 19.1; the network is not idle after it
	wants 0 gf-sim plan.json --iterations 10
	jq -e '.total_s - (19.1 + 9 * 12.2) | fabs < 1e-9' out.txt
}

@test "stale gradients: what a rank is late with is made up for" {
	cat > alone.json <<-'END'
	{"format": "gf-profile", "version": 1,
	 "model": {"name": "alone", "forward_s": 0.4, "backward_s": 0.6, "tensors": [
		{"name": "a", "count_elems": 1, "dtype": "f32", "ready_s": 0.6}]},
	 "network": {"ranks": 16, "allreduce": [{"algorithm": "ring", "startup_s": 0.3, "per_byte_s": 0}]}}
	END
	# T(t, r) = max(T(t-1, r), C(t-K)) + c; C(t) = max(max T(t, r), C(t-1)) + 0.3, drawn elsewhere
	while read -r staleness want; do
		gf-plan -q --staleness "$staleness" --policy single alone.json > plan.json
		wants 0 gf-sim plan.json --jitter 0.1:runs=10000
		jq -e --argjson want "$want" '.iteration_s == .mean_s and (.mean_s / $want - 1 | fabs < 0.003)' out.txt
	done <<-'END'
	2 1.0232
	3 1.0103
	END
	# each step by itself waits for the slowest of 16, 1.766 deviations late
	gf-plan -q --policy single alone.json > plan.json
	wants 0 gf-sim plan.json --jitter 0.1:runs=10000
	jq -e '.iteration_s == .p50_s and (.mean_s / 1.4766 - 1 | fabs < 0.003)' out.txt
}

@test "--trace is a Chrome trace with every message" {
	plan --policy optimal --lanes 2
	wants 0 gf-sim plan.json --trace trace.json
	jq -e '[.traceEvents[] | select(.cat == "message") | .args.message] == [0, 1, 2, 3]' trace.json
	jq -e '[.traceEvents[] | select(.cat == "message") | .ts + .dur] == [14.5e6, 26.5e6, 43e6, 43e6]' trace.json
	jq -e '[.traceEvents[] | select(.cat == "ready")] | length == 6' trace.json
}

@test "--plot draws an iteration, or curves of a sweep" {
	command -v gnuplot > /dev/null || skip "gnuplot is not installed"
	plan
	wants 0 gf-sim plan.json --plot one.svg
	grep -q "</svg>" one.svg
	grep -q "backward" one.svg
	wants 0 gf-sim plan.json --ranks 2,4,8 --plot scaling.svg
	grep -q "speed-up" scaling.svg
	wants 0 gf-sim plan.json --bandwidth 1B/s,8B/s --plot rate.svg
	grep -q "compute alone" rate.svg
}

@test "--iterations: a pipeline's steps as Pipe-SGD Eq. 4 has them, filling included" {
	gf-profile -q --estimate=flops --model "$share/models/alexnet-bn.json" \
		--passes forward=15ms,backward=30ms |
		jq '(.model.update_s = .002) + {network: {ranks: 4, allreduce: [{algorithm: "ring",
			startup_s: .292946, per_byte_s: 0}]}}' > profile.json
	gf-plan -q --policy single --staleness 2 profile.json > plan.json
	wants 0 gf-sim plan.json --iterations 1000
	# (u + c) + (T - 1) max(u + c, m) + m, and Eq. 3
	jq -e '(.total_s - (.047 + 1000 * .292946) | fabs) < 1e-9
		and (.unlimited_s - (.047 + .292946) / 2 | fabs) < 1e-9' out.txt
}

@test "the largest speed-up bounds plans of which only backward hides messages" {
	while IFS='|' read -r options bounded; do
		# shellcheck disable=SC2086 # options are words
		gf-plan -q $options asc-wfbp-resnet152 asc-wfbp-8x4-10gbe > plan.json
		wants 0 gf-sim -q --table=json plan.json
		jq -e --argjson bounded "$bounded" 'has("largest_speedup") == $bounded and has("hideable_s") == $bounded
			and has("unlimited_s") and (($bounded | not) or .speedup <= .largest_speedup)' out.txt
	done <<- 'END'
		--policy mg-wfbp --lanes 1|true
		--policy asc-wfbp --lanes 2|false
		--lanes 1 --staleness 2|false
		--policy dear --lanes 1|false
	END
}

@test "--iterations: the steps of a selection's warm-up take what they send" {
	local job=(--model resnet20 --gpu v100 4x2-1gbe)
	# csc: a ramp of four steps, the first of them dense
	csc() {
		gf-plan -q --system gradientflow --selection warmup_steps="$1",keep="$2",chunk_elems=1000 "${job[@]}"
	}
	csc 4 .2 > csc.json
	threshold=$(jq .fusion.threshold_bytes csc.json)
	want=0
	for keep in 1 .8 .6 .4 .2 .2; do
		jq ".selection.keep = $keep" csc.json > at.json
		want=$(gf-sim -q at.json | jq "$want + .iteration_s")
	done
	[ "$threshold" -gt 0 ]
	wants 0 gf-sim csc.json --iterations 6
	jq -e "(.total_s / ($want) - 1 | fabs) < 1e-9" out.txt
	csc 50% .2 > part.json
	jq -e '.selection.warmup_steps == {run_share: .5}' part.json
	wants 0 gf-sim part.json --iterations 8
	jq -e "(.total_s - ($want + 2 * .iteration_s) | fabs) < 1e-9" out.txt
	# gtopk: epochs of three steps, each with a density
	gf-plan -q --system gtopk --selection warmup_densities=.5,.1 "${job[@]}" > topk.json
	for density in .5 .1 .001; do
		jq ".selection.density = $density" topk.json > at.json
		gf-sim -q at.json
	done | jq -s '[.[].iteration_s] | 3 * .[0] + 3 * .[1] + 4 * .[2]' > want.txt
	wants 0 gf-sim topk.json --iterations 10:epoch_steps=3
	jq -e "(.total_s / $(cat want.txt) - 1 | fabs) < 1e-9" out.txt
	wants 0 gf-sim topk.json --iterations 10
	says 'total_s leaves out the epochs of a warm-up'
}

@test "--jitter network: messages start later, in the mean by what was asked for" {
	plan --policy single
	wants 0 gf-sim plan.json --jitter network=2s,runs=2000
	base=$(gf-sim -q plan.json | jq .iteration_s)
	jq -e ".mean_s - $base > 1.9 and .mean_s - $base < 2.1 and .least_s > $base and .p99_s > .p50_s" out.txt
	wants 0 gf-sim plan.json --jitter 0.1:network=2s,runs=200 --plot jitter.csv
	jq -e '.p99_s > .p50_s' out.txt
	gf-plan -q --policy single --staleness 2 "$share/profiles/six.json" > stale.json
	wants 0 gf-sim stale.json --jitter network=2s,runs=500
	jq -e '.mean_s > 0 and .least_s < .most_s' out.txt
}

@test "rows have the interval that the plan's prediction has, and pictures draw it" {
	jq '.network.allreduce[0].fit = {r_squared: 0.9, residual_rms: 0.15, residual_max: 0.4,
		size_bytes: [1, 1024], time_s: [3.25, 259], spread_s: [1.3, 103.6]} | .model.spread_s = 4' \
		"$share/profiles/six.json" > doubtful.json
	gf-plan -q --policy single doubtful.json > plan.json
	jq -e '.predicted.iteration_high_s > 0' plan.json
	wants 0 gf-sim plan.json
	jq -e --slurpfile p plan.json '(.iteration_low_s - $p[0].predicted.iteration_low_s | fabs) < 1e-9
		and (.iteration_high_s - $p[0].predicted.iteration_high_s | fabs) < 1e-9' out.txt
	wants 0 gf-sim plan.json --ranks 2,4,8 --plot curve.csv
	jq -es 'all(.iteration_low_s <= .iteration_s and .iteration_s <= .iteration_high_s)' out.txt
	grep -q efficiency_low curve.csv
	gf-plan -q --policy wfbp doubtful.json > wfbp.json
	wants 0 gf-sim plan.json wfbp.json --plot bars.csv --table
	prints "low"
	[ "$(head -n 1 bars.csv)" = plan,compute,exposed,low,high ]
	# a plan of which nothing is in doubt has no interval beside one that has
	gf-plan -q --policy wfbp "$share/profiles/six.json" > sure.json
	wants 0 gf-sim plan.json sure.json
	jq -se '.[0].iteration_low_s > 0 and (.[1] | has("iteration_low_s") or has("efficiency_high") | not)' out.txt
	# on a topology, the network's doubt is none of its
	wants 0 gf-sim plan.json --bandwidth 1B/s
	jq -e '.iteration_high_s / .iteration_s < 1.3' out.txt
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
	says "want a multiple of the plan's inner factors"
	# of several, those that do not fit have the reason instead of times
	wants 0 gf-sim plan.json --ranks 7,64,9,16
	jq -se 'map(.ranks) == [7, 64, 9, 16] and map(has("iteration_s")) == [false, true, false, true]
		and (.[0].left_out | startswith("want a multiple of the plan'"'"'s inner factors"))' out.txt
	wants 0 gf-sim plan.json --ranks 7,64 --table=csv
	as_rows out.txt | jq -es '.[0] | .ranks == "7" and .iteration_s == "" and .left_out != ""'
	wants 0 gf-sim plan.json --ranks 64,7 --table
	prints "left out"
	prints "want a multiple"
	wants 0 gf-sim plan.json --ranks 7,64,16 --table=csv --plot curve.csv
	[ "$(wc -l < curve.csv)" -eq 3 ]
	wants 0 gf-sim plan.json --ranks 7,64,9,16
	wants 2 gf-sim plan.json --ranks 7,9
	says "got 9"
	[ -z "$output" ]
	# halving has no form for three
	gf-plan -q --algorithm blueconnect --factors 4,4:halving --policy single --ranks 16 "$data/valid/topology-4x2-1gbe.json" model.json > halving.json
	wants 2 gf-sim halving.json --ranks 12
	one_line
	says "leave a power of two to the plan's last stage, as halving wants it, got 12, which leave 3"
	# fewer ranks fill the inner factors first
	gf-plan -q --algorithm blueconnect --factors 4,16,3 --policy single --ranks 192 "$data/valid/topology-4x2-1gbe.json" model.json > figure.json
	wants 0 gf-sim figure.json --ranks 4,8,16,32,64,128,192
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
	2|want RANK:FACTOR, got "3"|--slow 3
	2|--jitter: |--jitter -1
	2|--jitter: network: |--jitter network=5%
	2|--jitter: 5%: want network, runs or seed, got "run_s"|--jitter 5%:run_s=10
	2|--ranks: want each once, got "8" twice|--ranks 8,4,8
	2|--bandwidth: want each once|--bandwidth 1GB/s,1GB/s
	2|want a slow rank once, got 1 twice|--slow 1:2 --slow 1:3 --slow 0:2 --slow 2:2 --slow 3:2
	2|--iterations: |--iterations 2.5
	2|want a path or a name in share/topologies|--costs nowhere
	END
	wants 2 gf-sim "$data/valid/plan-rule.json"
	one_line
	says "want a plan with messages, got a rule"
	wants 2 gf-sim "$share/profiles/six.json"
	one_line
	says "want a gf-plan document, found a gf-profile"
	wants 3 gf-sim plan.json -o /dev/full
}

@test "--steps: the replay says what the model says, one message at a time" {
	# parts of a ring of 4 are whole elements
	jq '.model.tensors |= map(.count_elems *= 8) | .network.allreduce[0].per_byte_s /= 8' \
		"$share/profiles/six.json" > six8.json
	while read -r policy want; do
		gf-plan -q --lanes 1 --policy "$policy" six8.json > plan.json
		replay plan.json
		says "replayed on a uniform network"
		head -n 1 out.txt | jq -e --argjson want "$want" '.model_iteration_s == $want
			and (.iteration_s - $want | fabs < 1e-9)'
	done <<-'END'
	sequential 83
	wfbp 67
	mg-wfbp 60
	optimal 58
	END
}

@test "--steps: so it does where messages and backward slow each other" {
	local beside policy
	for beside in '{message_slowdown: 1.7}' '{startup_extra_s: 2}' '{compute_slowdown: [1.4]}' \
		'{message_slowdown: 1.3, startup_extra_s: 1, compute_slowdown: [1.2]}'; do
		jq --argjson beside "$(jq -n "$beside")" '.model.tensors |= map(.count_elems *= 8) | .model.issue_s = 0.25
			| .network.allreduce[0] |= (.per_byte_s /= 8 | .beside_backward = $beside)' "$share/profiles/six.json" > beside.json
		for policy in single wfbp threshold optimal; do
			gf-plan -q --lanes 1 --policy "$policy" beside.json > plan.json
			replay plan.json
			jq -e '.model_iteration_s > 50 and (.iteration_s - .model_iteration_s | fabs < 1e-9)' out.txt
		done
	done
}

@test "--steps: so it does where larger messages have lines of their own" {
	jq '.network.levels |= map(.reduce_s_per_byte = 0)' "$data/valid/profile-level-lines.json" > lines.json
	jq 'del(.network.levels[].larger)' lines.json > line.json
	for a in rhd butterfly tree linear; do
		for ranks in 4 8; do
			gf-plan -q --policy wfbp --lanes 1 --algorithm $a --model resnet20 --ranks $ranks \
				"$data/valid/topology-4x2-1gbe.json" lines.json > plan.json
			replay plan.json
			# parts of some elements more or less
			jq -se '.[0] | .iteration_s / .model_iteration_s - 1 | fabs < 1e-3' out.txt
			jq -r .predicted.iteration_s plan.json > with.txt
			gf-plan -q --policy wfbp --lanes 1 --algorithm $a --model resnet20 --ranks $ranks \
				"$data/valid/topology-4x2-1gbe.json" line.json | jq -r .predicted.iteration_s > without.txt
			wants 1 cmp -s with.txt without.txt
		done
	done
	# a measured level alone, without a topology
	jq '.network.levels |= .[1:]' lines.json > net.json
	gf-plan -q --policy wfbp --lanes 1 --algorithm ring --model resnet20 --ranks 8 net.json > plan.json
	replay plan.json
	jq -se '.[0] | .iteration_s / .model_iteration_s - 1 | fabs < 1e-3' out.txt
}

@test "--steps without levels: every message by the ring's line for it" {
	local rings='{"algorithm": "ring", "startup_s": 0.06, "per_byte_s": 0, "larger": [
		{"from_bytes": 99, "startup_s": 1, "per_byte_s": 1e-3},
		{"from_bytes": 3073, "startup_s": 6, "per_byte_s": 2e-3}]}'
	for elems in 4 20 24 28 400 764 772 1024; do
		jq ".network.allreduce = [$rings] | .model.tensors |= map(.count_elems = $elems)" "$share/profiles/six.json" > profile.json
		wants 0 gf-plan -q --policy wfbp --algorithm ring --lanes 1 -o plan.json profile.json
		replay plan.json
		jq -se '.[0] | .iteration_s / .model_iteration_s - 1 | fabs < 1e-9' out.txt || { echo "$elems"; return 1; }
	done
	# on other ranks rounds keep their lines
	replay --ranks 8 plan.json
	jq -se '.[0] | .iteration_s / .model_iteration_s - 1 | fabs < 1e-9' out.txt
}

@test "--steps and the model: sparse sets in rounds that grow" {
	for from in 8 9 17 33 100; do
		jq ".network = {levels: [{name: \"net\", alpha_s: 0.1, beta_s_per_byte: 0.001, reduce_s_per_byte: 0,
			larger: [{from_bytes: $from, alpha_s: 0.5, beta_s_per_byte: 0.004}]}]}" "$share/profiles/six.json" > profile.json
		for method in topk gtopk; do
			gf-plan -q --ranks 8 --policy single --selection $method:density=0.04 profile.json > plan.json
			replay plan.json
			jq -se '.[0] | .iteration_s / .model_iteration_s - 1 | fabs < 1e-9' out.txt || { echo "$method, $from"; return 1; }
		done
	done
}

@test "lines of levels at their extremes" {
	gf-plan -q --policy wfbp --algorithm rhd "$data/valid/topology-4x2-1gbe.json" "$data/valid/profile-level-lines.json" \
		<(jq 'del(.network)' "$share/profiles/six.json") > plan.json
	while read -r change; do
		jq ".network.levels |= map($change)" "$data/valid/profile-level-lines.json" > profile.json
		wants 0 gf-sim --costs profile.json --ranks 1,2,7,100003 plan.json
		jq -se 'length == 4 and all(.iteration_s >= .compute_s) and (map(.iteration_s) | . == sort)' out.txt
		wants 0 gf-sim --costs profile.json --steps --ranks 7 plan.json
		head -n 1 out.txt | jq -e '.iteration_s >= .compute_s'
	done <<-'END'
	.alpha_s = 0 | .beta_s_per_byte = 0
	del(.larger)
	.larger = []
	.larger |= map(.alpha_s = 1e9 | .beta_s_per_byte = 0)
	.larger |= [.[0] | .from_bytes = 1 | .alpha_s = 10]
	.larger |= [.[0] | .from_bytes = 1000000000000 | .alpha_s = 1e12]
	END
	for ranks in 0 -1 1,0 16777217 nan; do
		wants 2 gf-sim --ranks $ranks plan.json
		says "gf-sim: --ranks: want an integer from 1 to 16777216, got"
	done
}

@test "--steps: flows beside others that weigh 10^27 and more as much" {
	while IFS=: read -r algorithm host net; do
		jq ".network.levels |= map(if .name == \"host\" then $host else $net end)" \
			"$data/valid/profile-level-lines.json" > profile.json
		gf-plan -q --policy wfbp --algorithm "$algorithm" "$data/valid/topology-4x2-1gbe.json" profile.json \
			<(jq 'del(.network)' "$share/profiles/six.json") > plan.json
		replay plan.json
		jq -se '.[0] | .iteration_s >= .compute_s and .iteration_s < 2 * .model_iteration_s' out.txt
	done <<-'END'
	rhd:.beta_s_per_byte = 1e-300 | .larger |= [.[0] | .from_bytes = 8 | .beta_s_per_byte = 1e9]:.
	ps:.beta_s_per_byte = 1e-30 | .larger |= [.[0] | .from_bytes = 5 | .beta_s_per_byte = 1e-3]:.alpha_s = 0 | .beta_s_per_byte = 0 | .larger |= [(.[0] | .from_bytes = 5 | .alpha_s = 1e-18 | .beta_s_per_byte = 1e-300), (.[0] | .from_bytes = 20 | .alpha_s = 1e-18 | .beta_s_per_byte = 1e-9)]
	END
}

@test "--steps: steps make up messages, messages the iteration" {
	jq 'del(.network)' "$share/profiles/six.json" > model.json
	gf-plan -q --policy wfbp --algorithm hierarchical "$data/valid/topology-4x2-1gbe.json" model.json > plan.json
	wants 0 gf-sim -q --steps plan.json --trace trace.json --plot steps.svg
	[ -z "$errors" ]
	# in microseconds, to the nanosecond
	jq -e --slurpfile row out.txt '[.traceEvents[] | select(.ph == "X") | .end = .ts + .dur] as $x
		| ($x | map(select(.cat == "message"))) as $m | ($x | map(select(.cat == "step"))) as $s
		| ($m | length) == 6 and ($s | map(.pid) | unique | length) == 8
		and all($m[]; . as $n | [$s[] | select(.args.of_message == $n.args.message) | .end] | max - $n.end | fabs < 2e-3)
		and ([$m[].end, ($x[] | select(.name == "backward") | .end)] | max - $row[0].iteration_s * 1e6 | fabs < 2e-3)' trace.json
	# every send meets its receive at the same end
	jq -e '[.traceEvents[] | select(.cat == "step") | (.name / " ") as [$op, $peer]
		| {$op, ranks: (if $op == "send" then [.pid - 1, ($peer | tonumber)] else [($peer | tonumber)?, .pid - 1] end),
			at: [.args.of_message, (.ts + .dur | round)]}] | map(select(.op != "copy" and .op != "reduce" and .op != "round"))
		| length > 0 and (map(select(.op == "send") | [.ranks, .at]) | sort) == (map(select(.op != "send") | [.ranks, .at]) | sort)' trace.json
	wants 0 gf-sim --steps --table=csv plan.json
	[ "$(wc -l < out.txt)" = 2 ]
	jq -e '[.traceEvents[] | select(.name == "process_name") | .args.name] | index("rank 7") != null' trace.json
	# slices of one thread follow each other
	jq -e '[.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid])
		| all(.[]; sort_by(.ts) | . as $r | all(range(1; length); $r[.].ts >= $r[. - 1].ts + $r[. - 1].dur - 1e-3))' trace.json
	grep -q "</svg>" steps.svg
	wants 0 gf-sim --steps --table plan.json
	prints "by replay,"
}

@test "--steps: messages that share links slow each other" {
	jq 'del(.network) | .model.tensors |= map(.count_elems *= 80000000)' "$share/profiles/six.json" > model.json
	gf-plan -q --policy wfbp --algorithm ring "$data/valid/topology-4x2-1gbe.json" model.json > plan.json
	jq '.lanes = 2 | .messages[1:] |= map(.mode = "simultaneous") | del(.predicted)
		| .tensors[1:] |= map(.type = "simultaneous")' plan.json > two.json
	gf-sim --steps plan.json > one.txt
	gf-sim --steps two.json --trace trace.json > out.txt
	jq -e --slurpfile one one.txt '.iteration_s > 0.99 * $one[0].iteration_s' out.txt
	jq -e '[.traceEvents[] | select(.cat == "message")] | .[1].ts < .[0].ts + .[0].dur' trace.json
}

@test "--costs: documents count the server" {
	gf-topo --synthetic "net:5@1Gb/s,50us" > topo.json
	gf-plan -q --model resnet20 --servers 1 topo.json > plan.json
	gf-sim -q --costs topo.json plan.json --table=json |
		jq -e --slurpfile p plan.json '.ranks == 4 and (.iteration_s / $p[0].predicted.iteration_s - 1 | fabs < 1e-9)'
}

@test "--steps: selections, servers, split halves, slow ranks" {
	jq 'del(.network) | .model.tensors |= map(.count_elems *= 100000)' "$share/profiles/six.json" > model.json
	for axes in "--system gtopk" "--selection topk" "--system gradientflow" "--system pipe-sgd" "--servers 1" \
		"--policy dear --algorithm ring"; do
		# shellcheck disable=SC2086
		gf-plan -q $axes "$data/valid/topology-4x2-1gbe.json" model.json > plan.json
		replay plan.json --slow 1:1.5
		head -n 1 out.txt | jq -e '.iteration_s >= 30 and (.iteration_s / .model_iteration_s | . > 0.9 and . < 1.1)'
	done
}

@test "--steps: what cannot be replayed" {
	jq 'del(.network)' "$share/profiles/six.json" > model.json
	gf-plan -q --lanes 1 --algorithm ring "$data/valid/topology-4x2-1gbe.json" model.json > plan.json
	wants 0 gf-sim --steps plan.json --ranks 100000
	says "more than 2e+06 steps are not replayed: these are the closed forms' times"
	cp out.txt steps.txt
	wants 0 gf-sim plan.json --ranks 100000
	cmp steps.txt out.txt
	jq '.network.allreduce[0].algorithm = "library"' "$share/profiles/six.json" > library.json
	gf-plan -q --algorithm library --policy single "$data/valid/topology-4x2-1gbe.json" library.json > plan.json
	wants 1 gf-sim --steps plan.json
	one_line
	says "message 0: library has no steps of its own"
	while IFS='|' read -r text options; do
		# shellcheck disable=SC2086
		wants 2 gf-sim --steps $options plan.json
		says "$text"
		[ -z "$output" ]
	done <<-'END'
	want one number of ranks|--ranks 2,4
	want one number of ranks|--bandwidth 1GB/s,2GB/s
	--steps goes without --jitter|--jitter 0.1
	--steps goes without --iterations|--iterations 5
	END
}

@test "--verify: every distinct schedule is proved, in one line" {
	local net="$data/valid/topology-4x2-1gbe.json"
	gf-plan -q --model digits-mlp --policy dear "$net" > plan.json
	wants 0 gf-sim --verify plan.json
	[ "$(wc -l < out.txt)" -eq 2 ]
	prints "elements, reduce-scatter, f32, 8 ranks: "
	prints "elements, all-gather, f32, 8 ranks: "
	gf-plan -q --model digits-mlp --policy wfbp --algorithm direct --codecs q8 "$net" | jq '.segment_bytes = 4096' > plan.json
	wants 0 gf-sim --verify --ranks 5 plan.json
	[ "$(wc -l < out.txt)" -eq "$(jq '[.messages[] as $m | [.tensors[$m.first:$m.last + 1][].count_elems] | add] | unique | length' plan.json)" ]
	[ "$(grep -cE '^direct, .* q8, 5 ranks, segments of 1024: [0-9]+ steps, every contribution exactly once, no race, no deadlock$' out.txt)" -eq "$(wc -l < out.txt)" ]
	gf-plan -q --model digits-mlp --system gtopk "$net" > plan.json
	wants 0 gf-sim --verify plan.json
	prints "gtopk, 1 set, f32, 8 ranks: "
}

@test "--verify: what cannot be proved" {
	local net="$data/valid/topology-4x2-1gbe.json"
	gf-plan -q --model digits-mlp --policy single "$net" > plan.json
	wants 1 gf-sim --verify --ranks 257 plan.json
	says "want at most 256 ranks for a proof, got 257"
	wants 2 gf-sim --verify --ranks 2,4 plan.json
	says "--verify: want one number of ranks and one bandwidth, got a list"
	wants 2 gf-sim --verify --steps plan.json
	jq '.segment_bytes = 4' plan.json > cut.json
	wants 1 gf-sim --verify --ranks 64 cut.json
	says "want at most 1000000 steps of all ranks for a proof, got more"
	gf-plan -q --model digits-mlp --policy single --algorithm library "$net" > plan.json
	wants 1 gf-sim --verify plan.json
	says "library has no steps of its own"
	gf-plan -q --model digits-mlp --policy single --factors 2:ring,4:mpi "$net" > plan.json
	wants 1 gf-sim --verify plan.json
	says "stage 1: mpi has no steps of its own, which could be proved"
}

@test "what --costs names must hold some" {
	gf-plan -q "$share/profiles/six.json" > plan.json
	jq 'del(.network)' "$share/profiles/six.json" > model.json
	while IFS='|' read -r text options; do
		# shellcheck disable=SC2086
		wants 2 gf-sim plan.json $options
		one_line
		says "$text"
		[ -z "$output" ]
	done <<-END
	plan.json: want a topology or a profile with a network, found none|--costs plan.json
	model.json: want a topology or a profile with a network, found none|--costs model.json
	END
	wants 0 gf-sim plan.json --costs 4x2-1gbe
	says 'simulated on 8'
}

@test "a plan with a period: its steps, ranks and rates; replayed and proved" {
	gf-topo --synthetic "host:4@10Gb/s,50us site:2@100Mb/s,5ms" > sites.json
	gf-plan -q --model resnet50 --period streaming:hide=5%,fragments=4 sites.json > plan.json
	# as predicted
	wants 0 gf-sim plan.json --table=json
	jq -e --slurpfile plan plan.json '.iteration_s - $plan[0].predicted.iteration_s | fabs < 1e-9' out.txt
	jq -e --slurpfile plan plan.json '.period_s - $plan[0].period.period_s | fabs < 1e-9' out.txt
	# a delay of 2 wants 3 steps between fragments
	wants 0 gf-sim plan.json --period-steps 8,20,40 --bandwidth 100Mb/s,1Gb/s --table=json
	jq -es 'map(select(.left_out)) | length == 2 and .[0].period_steps == 8' out.txt
	jq -es '[.[] | select(.left_out | not) | [.period_steps, .bandwidth_bytes_per_s]] ==
		[[20, 12.5e6], [40, 12.5e6], [20, 125e6], [40, 125e6]]' out.txt
	# the shortest that is efficient, in any order
	for steps in 20,40,200 200,40,20; do
		wants 0 gf-sim plan.json --period-steps $steps --bandwidth 1Gb/s
		says 'efficient from 8 ranks at 1 Gb/s, 20 steps a period on'
	done
	wants 0 gf-sim plan.json --period-steps 20,40 --bandwidth 100Mb/s,1Gb/s --plot h.csv
	[ "$(grep -c ",0.1 Gb/s on 8 ranks$" h.csv)" = 2 ]
	[ "$(grep -c ",1 Gb/s on 8 ranks$" h.csv)" = 2 ]
	# two periods that differ by their own messages alone
	gf-plan -q --model resnet50 --period streaming:hide=5%,fragments=4,codecs=q8 sites.json > q8.json
	wants 0 gf-sim plan.json q8.json --table=csv
	[ "$(as_rows out.txt | jq -r '"\(.period) \(.outer_codecs)"' | tr '\n' ' ')" = "streaming f32 streaming q8 " ]
	wants 0 gf-sim plan.json q8.json --table=json
	jq -es 'map(.codecs, .outer_codecs) == ["f32", "f32", "f32", "q8"] and all(.outer_algorithms != "")' out.txt
	# a period as a picture: its steps, its exchanges, and where it ends
	wants 0 gf-sim plan.json --plot period.csv --table=json
	[ "$(grep -c '^group,step,' period.csv)" = "$(jq .period.steps plan.json)" ]
	[ "$(grep -c '^between groups,exchange,fragment' period.csv)" = 4 ]
	jq -e --arg ends "$(sed -n 's/^,mark,period,.*,//p' period.csv)" '.period_s / ($ends | tonumber) - 1 | fabs < 1e-9' out.txt
	wants 0 gf-sim plan.json --period-steps 400 --slow 1:2 --plot part.csv
	[ "$(grep '^group,step,' part.csv | cut -d, -f3 | xargs)" = "199 200 201 202 203 204" ]
	grep -q '^,mark,fragment is applied,' part.csv
	gf-plan -q "$share/profiles/six.json" > six.json
	# more groups, and one slow rank for all
	wants 0 gf-sim plan.json --ranks 8,16 --slow 5:2 --table=json
	jq -es '.[0].iteration_s > 2 * .[0].compute_s and .[1].outer_s > .[0].outer_s' out.txt
	# slow ranks and links of two groups are as those of one
	gf-sim plan.json --slow 1:2 --slow-link 2:3@host --table=json > one.txt
	gf-sim plan.json --slow 5:2 --slow-link 2:3@host --table=json | diff one.txt -
	jq '.period.delay = 0' plan.json > barrier.json
	# a host's link is in both exchanges, the link between sites in one
	for link in 1:4 1:4@site 6:4@site 1:4@host; do gf-sim barrier.json --slow-link $link --table=json; done > links.txt
	gf-sim barrier.json --table=json >> links.txt
	jq -es 'map(.iteration_s - .outer_exposed_s / .period_steps) as $step |
		$step[0] == $step[1] and $step[1] == $step[2] and $step[3] > 1.1 * $step[4] and
		($step[0] / $step[4] - 1 | fabs < 1e-9) and
		.[0].outer_s == .[1].outer_s and .[1].outer_s == .[2].outer_s and
		.[0].outer_s > 3 * .[4].outer_s and .[3].outer_s > .[4].outer_s' links.txt
	wants 0 gf-sim plan.json --steps --table=json
	says "the steps are those of the outer exchange"
	jq -e '.messages > 0 and .compute_s == 0 and .iteration_s > 0' out.txt
	wants 0 gf-sim plan.json --verify
	grep -q ", 4 ranks: " out.txt
	grep -q ", 8 ranks: " out.txt
	while IFS='|' read -r options want; do
		# shellcheck disable=SC2086
		wants 2 gf-sim plan.json $options
		says "$want"
	done <<-'END'
	--ranks 6|want ranks that make more than one of the plan's groups of 4, got 6
	--period-steps 9|want steps of a period that its 4 fragments divide
	--jitter 0.1|--jitter: want plans without a period, got streaming of 12 steps in plan: leave --jitter out, or plan without --period
	six.json --jitter network=5ms|--jitter: want plans without a period, got streaming of 12 steps in plan
	--slow-link 1:2@rack|want a slow link of one of the levels host, site, got rack
	END
	# lines that were measured on as many ranks as a group has count there, as in the plan
	jq '.network.ranks = 4' "$share/profiles/six.json" > four.json
	gf-plan -q --ranks 8 --period local-sgd four.json sites.json > plan.json
	wants 0 gf-sim plan.json four.json --ranks 8
	jq -e --slurpfile plan plan.json '.iteration_s - $plan[0].predicted.iteration_s | fabs < 1e-9' out.txt
	# anew, with groups, keys and the codecs of both exchanges as they are
	gf-plan -q --model resnet50 --period diloco:steps=30,codecs=q8,outer_momentum=0.5 sites.json > plan.json
	wants 0 gf-sim plan.json --replan --table=json
	jq -es '.[1].plan == "plan replanned" and (.[0] | del(.plan)) == (.[1] | del(.plan))' out.txt
	wants 0 gf-sim plan.json --replan --ranks 16,6 --bandwidth 10Gb/s --period-steps 10 --table=json
	jq -es '.[1].period_steps == 10 and .[1].outer_s < 0.99 * .[0].outer_s and (.[3].left_out |
		startswith("--period: want ranks that make two or more whole groups of 4"))' out.txt
	wants 2 gf-sim six.json --period-steps 9
	says "want a plan with a period where its steps change, got one without"
}

@test "the last line is the answer: where a plan pays, what bounds it, which is fastest" {
	local job=(--gpu v100 resnet50 asc-wfbp-8x4-10gbe) last
	gf-plan -q "${job[@]}" > f32.json
	gf-plan -q --codecs q8 "${job[@]}" > q8.json
	gf-topo -q --synthetic net:8@16Gb/s,20us | gf-plan -q --gpu v100 --algorithms rhd --model resnet50 - > rhd.json
	gf-plan -q --codecs slow:bits=1.5,encode=2GB/s,decode=4GB/s "${job[@]}" > slow.json
	while IFS='|' read -r options want; do
		# shellcheck disable=SC2086
		wants 0 gf-sim $options
		last=$(tail -n 1 err.txt)
		[[ $last =~ ^gf-sim:\ $want$ ]] || { echo "want: $want, got: $last"; false; }
	done <<- 'END'
		f32.json|[0-9]+ ms a step on 32 ranks: [0-9]+ % of it waits for messages, so compute bounds it
		f32.json --ranks 2,8,128|at least 90 % efficient up to [0-9]+ ranks; on 128 ranks [0-9]+ %, where [0-9]+ % of a step waits for messages, by a plan for 32 ranks \(--replan\)
		f32.json --ranks 64,8,2 --bandwidth 100Gb/s,10Gb/s|at least 90 % efficient up to 64 ranks at 100 Gb/s; on 64 ranks at 10 Gb/s [0-9]+ %, .*
		rhd.json --ranks 4,7,8|at least 90 % efficient up to 4 ranks; on 7 ranks [0-9]+ %, .*
		f32.json --bandwidth 1Gb/s,100Gb/s|at least 90 % efficient from 32 ranks at 100 Gb/s on; on 32 ranks at 1 Gb/s [0-9]+ %, where [0-9]+ % .*
		f32.json q8.json --bandwidth 1Gb/s,2Gb/s|fastest: q8
		f32.json q8.json --bandwidth 1Gb/s,50Gb/s,100Gb/s|fastest: q8
		f32.json slow.json --bandwidth 1Gb/s,50Gb/s,100Gb/s|fastest: slow, f32 from 50 Gb/s on
		f32.json slow.json --ranks 8,32|fastest: f32, slow from 32 ranks on
		f32.json slow.json --ranks 8,32 --bandwidth 1Gb/s,10Gb/s,100Gb/s|fastest: on 8 ranks slow, f32 from 10 Gb/s on; on 32 ranks slow, f32 from 100 Gb/s on
		f32.json --replan --ranks 32,64 --bandwidth 10Gb/s|fastest: f32 replanned
	END
	# as efficient as the rows say
	wants 0 gf-sim f32.json --ranks 2,8,128 --table=json
	last=$(sed -nE 's/.*at least 90 % efficient up to ([0-9]+) ranks.*/\1/p' err.txt)
	jq -es --argjson last "$last" 'length == 3 and all((.efficiency >= .9) == (.ranks <= $last))' out.txt
}
