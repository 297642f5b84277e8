#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Traces are PyTorch's and NCCL's own (tests/data/kineto.py), or gf-train's.
load common

# A folder with a file for each rank.
gloo() {
	mkdir -p gloo
	cp "$data"/import/kineto-gloo-*.json gloo/
}

# The trace of two ranks of which rank 1 computes three times as long, in four
# steps; a message of 4 MB lasts 1 s from the last arrival on.
trace() {
	jq -n --argjson factor "${1:-3}" '{traceEvents: [range(4) as $s | range(2) as $r
		| (if $r == 1 then $factor else 1 end) as $f | ($s * (2 * $factor + 1)) as $t
		| ({tid: 0, pid: $r, ph: "X", cat: "forward", name: "f", ts: $t, dur: $f},
		   {tid: 0, pid: $r, ph: "X", cat: "backward", name: "b", ts: ($t + $f), dur: $f},
		   {tid: 0, pid: $r, ph: "i", cat: "ready", name: "w", s: "t", ts: ($t + 2 * $f)},
		   {tid: 1, pid: $r, ph: "X", cat: "message", name: "m", ts: ($t + 2 * $f),
		    dur: (2 * $factor + 1 - 2 * $f), args: {message: 0, first: 0, last: 0, bytes: 4000000}})
		| .ts *= 1e6 | if .dur then .dur *= 1e6 else . end]}'
}

@test "which rank came last, and what it cost" {
	trace > run.json
	wants 0 gf-report run.json
	# steps of 7 s: 2 and 6 s of compute; rank 0 waits 4 s and sends for 1
	jq -se 'def near($x): . - $x | fabs < 1e-6;
		(.[0] | .part == "job" and .kind == "gf-train" and .ranks == 2 and .steps == 4
			and .matched == 4 and .unmatched == 0 and .latest_rank == 1 and .slowest_rank == 1
			and (.step_s | near(7)) and (.compute_s | near(4))
			and (.exposed_s | near(3)) and (.exposed_high_s | near(5))
			and (.iteration_s | near(7)) and (.without_stragglers_s | near(5)))
		and (.[1] | .rank == 0 and .last == 0 and .late_s == 0 and (.compute_s | near(2)))
		and (.[2] | .rank == 1 and .last == 4 and (.late_s | near(4)) and (.cost_s | near(2)))
		and (.[3] | .part == "message" and .message == "all-reduce" and .count == 4
			and .size_bytes == 4000000 and (.time_s | near(1)) and (.waited_s | near(4)))' out.txt
	wants 0 gf-report run.json --table
	grep -q "^rank 1 came last to 100 % of 4 messages; the others waited 4 s for it alone in a step$" out.txt
	[ "$(grep -c . out.txt)" -le 12 ]
}

@test "the last steps that all ranks have are simulated" {
	trace | jq '.traceEvents |= map(select(.pid == 1 or .ts >= 7e6))' > run.json
	wants 0 gf-report run.json
	jq -se '.[0] | .steps == 3 and .slowest_rank == 1' out.txt
	jq '.traceEvents |= . + [.[] | select(.cat == "message" and .pid == 1 and .ts < 14e6)
		| .ts += 1 | .args.message = 1]' run.json > more.json
	wants 0 gf-report more.json --table
	grep -q "want 1 messages in every step, found 2 in one of rank 1$" out.txt
}

@test "clocks of ranks are not compared" {
	trace > run.json
	wants 0 gf-report run.json
	mv out.txt want.txt
	jq '.traceEvents |= map(if .pid == 1 then .ts += 1e9 else . end)' run.json > later.json
	wants 0 gf-report later.json
	jq -s 'map(del(.step_s))' out.txt > a
	jq -s 'map(del(.step_s))' want.txt > b
	python3 - <<-'END'
		import json
		def rounded(x): return json.loads(json.dumps(x), parse_float=lambda s: round(float(s), 6))
		assert rounded(json.load(open("a"))) == rounded(json.load(open("b")))
	END
}

@test "PyTorch's profiler: steps, messages by size, the best plan, a profile" {
	gloo
	wants 0 gf-report gloo
	jq -se '(.[0] | .kind == "kineto" and .ranks == 2 and .steps == 3 and .matched == 12
			and .exposed_s > 0 and .exposed_s <= .communication_s
			and .communication_s + .compute_s >= .exposed_s and .best_s > 0)
		and ([.[] | select(.part == "message") | .size_bytes] == [8, 32, 64, 128])
		and ([.[] | select(.part == "rank") | .last] | add == 12)
		and ([.[] | select(.part == "scale")] | length > 5
			and all(.iteration_low_s <= .iteration_s and .iteration_s <= .iteration_high_s))' out.txt
	wants 0 gf-report gloo --profile -
	[ ! -e - ]
	cp out.txt profile.json
	wants 0 gf-plan -q profile.json
	jq -se 'length == 1 and .[0].ranks == 2 and (.[0].tensors | length == 4)' out.txt
	wants 0 gf-report gloo --topology 4x2-1gbe
	jq -se '[.[] | select(.part == "message") | .expected_s] | length == 4 and all(. > 0)' out.txt
	# a rank of eight: its times hold the waits for the others
	wants 0 gf-report "$data/import/kineto-mi300-ddp.json" --table
	grep -q "a group has 8 ranks, whose other traces are not here" out.txt
	grep -q "^which rank came last is not known" out.txt
	grep -q "not simulated: want the traces of all 8 ranks, found 1$" out.txt
	# more ranks than any plan is made for are a note
	sed -i 's/"world_size": 2/"world_size": 8192/' gloo/*
	wants 0 gf-report gloo
	says "no plan is made: want 2 to 4096 ranks, found 8192"
	jq -se '(map(.part) | index("scale") | not) and (.[0] | .of_ranks == 8192 and (has("slowest_rank") | not))' out.txt
}

@test "NCCL's Inspector: messages, no steps" {
	wants 0 gf-report "$data/import/inspector.jsonl"
	jq -se '(.[0] | .kind == "inspector" and .ranks == 2 and .steps == 0 and .matched == 22
			and (has("step_s") | not))
		and ([.[] | select(.part == "message" and .size_bytes == 67108864)]
			| length == 1 and .[0].time_s < 700e-6 and .[0].waited_s > 0)' out.txt
	# a header's rank is that of the group: files with two of them are a rank each
	mkdir pairs
	for part in head tail; do
		$part -n 23 "$data/import/inspector.jsonl" > one
		jq -c 'if .header then .header.id += "2" | .header.rank = 1 - .header.rank else . end' one |
			cat one - > pairs/$part.jsonl
	done
	wants 0 gf-report pairs
	jq -se '.[0] | .ranks == 2 and .matched == 44 and .unmatched == 0' out.txt
	cat pairs/* > both.jsonl
	wants 2 gf-report both.jsonl
	says "both.jsonl: want a file for each rank"
}

@test "--against: what got slower" {
	trace > monday.json
	trace 4 > tuesday.json
	wants 0 gf-report monday.json --against monday.json
	jq -se 'length == 5 and all(.verdict == "same")' out.txt
	wants 1 gf-report tuesday.json --against monday.json
	says "of 5 times are slower"
	jq -se 'map({(.what): .verdict}) | add | .step == "slower" and ."all-reduce of 4000000 bytes, 2 ranks" == "same"' out.txt
	wants 0 gf-report "$data/import/nccl-tests.txt" --against "$data/import/nccl-tests.txt"
	jq -se 'length > 3 and all(.verdict == "same")' out.txt
	# sizes that look alike, and stages
	wants 0 gf-report "$data/import/allreduce.json" --against "$data/import/allreduce.json"
	jq -se 'map(.what) | index("blueconnect 2:halving 2:ring of 1024 bytes") and length == (unique | length)' out.txt
	sed 's/"size_bytes": 1048576, "count_elems": 262144/"size_bytes": 1048580, "count_elems": 262145/' \
		"$data/import/allreduce.json" > near.json
	wants 0 gf-report near.json --against "$data/import/allreduce.json"
	says "6 rows are in one of the runs alone"
	wants 2 gf-report monday.json --against "$data/import/nccl-tests.txt"
	says "nothing that"
}

@test "--plot: a bar for each rank" {
	trace > run.json
	wants 0 gf-report run.json --plot bars.csv
	grep -q "^rank,compute,exposed communication,the rest$" bars.csv
	grep -q "^rank 0,2,5,0$" bars.csv
	[ "$(wc -l < bars.csv)" -eq 3 ]
	wants 0 gf-report run.json --plot bars.svg
	grep -q "<svg" bars.svg
}

@test "what is no trace, by name" {
	echo '{"traceEvents": [{"ph": "X", "cat": "forward"' > cut.json
	mkdir empty
	trace > run.json
	mkdir twice
	cp "$data/import/kineto-gloo-0.json" twice/a.json
	cp "$data/import/kineto-gloo-0.json" twice/b.json
	mkdir pipe
	mkfifo pipe/a
	while IFS='|' read -r status text arguments; do
		wants "$status" timeout 20 gf-report $arguments
		one_line
		says "$text"
	done <<-END
	2|want the traces of a job|
	3|nowhere.json|nowhere.json
	2|empty: want a folder with files|empty
	2|cut.json|cut.json
	2|want a trace of a job's ranks|$data/import/nccl-tests.txt
	2|one more of rank 0|twice
	2|run.json: want the trace of another rank, got one more of rank 0|run.json run.json
	2|pipe/a: want a regular file|pipe
	2|--profile: want a folder with all traces, got 2 files|$data/import/kineto-gloo-0.json $data/import/kineto-gloo-1.json --profile p.json
	2|--plot: want a report|run.json --profile - --plot x.csv
	2|--plot: want traces with steps|$data/import/inspector.jsonl --plot x.csv
	2|as the first file is|run.json $data/import/inspector.jsonl
	END
	[ ! -e x.csv ] && [ ! -e p.json ]
	wants 2 gf-report run.json --against run.json --plot x.svg
	says "goes without"
}
