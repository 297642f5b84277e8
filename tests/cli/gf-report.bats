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
			and (.iteration_s | near(7)) and (.without_stragglers_s | near(3)))
		and (.[1] | .rank == 0 and .last == 0 and .late_s == 0 and (.compute_s | near(2)))
		and (.[2] | .rank == 1 and .last == 4 and (.late_s | near(4)) and (.cost_s | near(4)))
		and (.[3] | .part == "message" and .message == "all-reduce" and .count == 4
			and .size_bytes == 4000000 and (.time_s | near(1)) and (.waited_s | near(4)))' out.txt
	wants 0 gf-report run.json --table
	grep -q "^rank 1 came last to 100 % of 4 messages; the others waited 4.00 s for it alone in a step$" out.txt
	[ "$(grep -c . out.txt)" -le 13 ]
	[ "$(tail -n 1 out.txt)" = "cause: rank 1 is late, and the others wait for it; next: see what else runs on its host" ]
	says "no plan is made: run.json: a trace of gf-train or gradflow.Record goes with its plan (gf-report --plan, gf-plan --refine)"
	# one stall of 70 s in three steps of 7 s
	jq '.traceEvents |= map(if .ts >= 21e6 then .ts += 70e6 else . end)' run.json > stall.json
	wants 0 gf-report stall.json --table
	grep -q "^step  *7.00 s (half of them 7.00 s to .*), 24.5 s on average$" out.txt
}

@test "the last line is the cause, and the next command" {
	# messages of 6 s in steps of 8 s, for which nobody comes late
	trace 1 | jq '.traceEvents |= map(select(.pid == 0) | if .cat == "message" then .dur += 5e6 else . end
		| .ts += (.ts / 3e6 | floor) * 5e6 | (., (.pid += 1), (.pid += 2)))' > slow.json
	wants 0 gf-report slow.json --table
	[ "$(tail -n 1 out.txt)" = "cause: the network, for which a step waits 75 % of its time; next: mpirun -np 3 gf-profile --pairs" ]
	# of two ranks nobody knows whose link it is
	trace 1 > run.json
	wants 0 gf-report run.json --table
	[ "$(tail -n 1 out.txt)" = "cause: messages, for which a step waits 33 % of its time; next: gf-report TRACE --plan PLAN --profile - | gf-plan --compare" ]
	jq '.traceEvents |= map(if .cat == "message" then .dur = 1e4 else . end | .ts -= (.ts / 3e6 | floor) * 99e4)' run.json > fast.json
	wants 0 gf-report fast.json --table
	tail -n 1 out.txt | grep -q "^cause: compute, for which a step takes [0-9]* % of its time; next: nothing"
}

# The trace of five steps on three ranks. Rank 2 computes twice as long; rank 1
# once half as long again. Messages last 0.5 and 0.7 s from the last start on.
run_trace() {
	awk 'function slice(rank, cat, name, from, to, args) {
		printf "%s{\"ph\": \"X\", \"pid\": %d, \"tid\": 0, \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %.3f, \"dur\": %.3f%s}\n",
			comma, rank, cat, name, from * 1e6, (to - from) * 1e6, args
		comma = ","
	}
	function ready(rank, name, at) {
		printf ",{\"ph\": \"i\", \"pid\": %d, \"tid\": 0, \"cat\": \"ready\", \"name\": \"%s\", \"ts\": %.3f, \"s\": \"t\"}\n",
			rank, name, at * 1e6
	}
	function message(rank, i, from, to) {
		slice(rank, "message", "message " i, from, to, ", \"args\": {\"message\": " i "}")
	}
	BEGIN {
		print "{\"traceEvents\": ["
		for (step = 0; step < 5; step++) {
			for (rank = 0; rank < 3; rank++) {
				f = rank == 2 ? 2 : rank == 1 && step == 3 ? 1.5 : 1
				slice(rank, "forward", "forward", at + 0.2 * f, at + f)
				slice(rank, "backward", "backward", at + f, at + 3 * f)
				ready(rank, "a", at + 2 * f)
				ready(rank, "b", at + 3 * f)
				message(rank, 0, at + 2 * f, at + 4.5)
				message(rank, 1, at + 3 * f > at + 4.5 ? at + 3 * f : at + 4.5, at + 6.7)
				slice(rank, "update", "update", at + 6.7, at + 6.7 + 0.2 * f)
			}
			at += 6.7
		}
		print "]}"
	}'
}

@test "--plan: which rank costs how much" {
	cat > two.json <<-'END'
	{"format": "gf-profile", "version": 1,
	 "model": {"name": "two", "forward_s": 1, "backward_s": 2, "tensors": [
		{"name": "a", "count_elems": 1, "dtype": "f32", "ready_s": 1},
		{"name": "b", "count_elems": 1, "dtype": "f32", "ready_s": 2}]},
	 "network": {"ranks": 3, "allreduce": [{"algorithm": "ring", "startup_s": 0.1, "per_byte_s": 0.1}]}}
	END
	gf-plan -q --policy wfbp two.json > plan.json
	run_trace > run.json
	wants 0 gf-report --plan plan.json run.json
	# as it was: ready at 4 and 6, 6.7 s. All steps would end at 3 + 0.7, and rank 2 makes them
	# 6.7; rank 1 does so in one of them alone, which no median shows
	jq -se 'def near($x): . - $x | fabs < 1e-9;
		(.[0] | .ranks == 3 and .slowest_rank == 2
			and (.iteration_s | near(6.7)) and (.without_stragglers_s | near(3.7)))
		and (.[1] | .rank == 0 and (.factor | near(1)) and (.cost_s | near(0)) and .noise == 0)
		and (.[2] | .rank == 1 and (.factor | near(1)) and (.cost_s | near(0)) and .noise > 0)
		and (.[3] | .rank == 2 and (.factor | near(2)) and (.cost_s | near(3)))' out.txt
	gf-plan -q --policy wfbp --staleness 2 two.json > stale.json
	wants 0 gf-report --plan stale.json run.json --table
	grep -q "not simulated: want a plan without stale gradients" out.txt
}

# late.tar holds PyTorch's traces of steps that take 27 ms, and 60 ms more on late ranks
# (kineto.py late); the machine adds a few milliseconds. is TRACES JQ: of the job's row, or $ranks.
is() {
	wants 0 gf-report -q "$1"
	jq -se "def near(\$x): . - \$x | fabs < 8e-3; (map(select(.part == \"rank\"))) as \$ranks | .[0] | $2" out.txt
}

@test "late ranks: of two, of four in a queue, all but one, half, none" {
	tar xf "$data/import/late.tar"
	is 2-2-1 '.latest_rank == 1 and .slowest_rank == 1 and (.without_stragglers_s | near(0.027))
		and ($ranks[1] | (.late_s | near(0.06)) and (.cost_s | near(0.06)))'
	# gloo has two threads: the third and fourth message wait for the first two
	is 4-4-2 '.latest_rank == 2 and .slowest_rank == 2 and (.iteration_s - .without_stragglers_s | near(0.06))
		and ($ranks[2] | (.late_s | near(0.06)) and (.cost_s | near(0.06)))'
	# older traces hold no calls of these
	mkdir uncalled
	for trace in 4-4-2/*.gz; do
		gunzip < "$trace" | sed '/"name":"c10d::/d' > "uncalled/$(basename "$trace" .gz)"
	done
	is uncalled '.slowest_rank == 2 and ($ranks[2] | .cost_s | near(0.06))'
	wants 0 gf-report -q 4-2-1-3 --table
	grep -q "^no rank is late alone: the others waited .* at most for one in a step$" out.txt
	grep -q "; each of 2 ranks alone costs about 6" out.txt
	is 4-2-1-3 '(has("latest_rank") or has("slowest_rank") | not) and (.without_stragglers_s | near(0.027))'
	is 4-2-1-2-3 '(has("latest_rank") or has("slowest_rank") | not) and (.without_stragglers_s | near(0.027))
		and ($ranks | map(.cost_s > 0.05) == [false, true, true, true])'
	is 4-2 '(has("latest_rank") or has("slowest_rank") | not) and (.iteration_s - .without_stragglers_s | near(0))'
	# two of four are late by as much to a hair
	trace > run.json
	jq '.traceEvents |= map(., (.pid += 2))' run.json > half.json
	is half.json '(has("latest_rank") or has("slowest_rank") | not) and (.without_stragglers_s | near(3))
		and ($ranks | map(.cost_s) | (.[1] | near(4)) and (.[2] | near(0)) and (.[3] | near(4)))'
	trace 1 > none.json
	is none.json '(has("latest_rank") or has("slowest_rank") | not) and (.without_stragglers_s | near(3))'
}

@test "a rank that waits for each message before it calls for the next" {
	# rank 1 comes 60 ms late to the first of two, whose calls follow backward
	mkdir block
	jq -n '[range(2) as $r | {distributedInfo: {rank: $r, world_size: 2, pg_count: 1}, traceEvents: [range(4) as $s
		| (90 * $s) as $t | (60 * $r) as $late | {"Input Dims": [[64]], "Input type": ["float"]} as $shape
		| (["ProfilerStep#\($s)", $t, 89, 1, {}], ["aten::linear", $t + 0.1, 2.9 + $late, 1, {"Sequence number": $s}],
			["autograd::engine::evaluate_function: AddmmBackward0", $t + 3 + $late, 23, 1, {}],
			["autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", $t + 26 + $late, 1, 1, {}],
			["torch::autograd::AccumulateGrad", $t + 26.1 + $late, 0.8, 1, $shape],
			(([$t + 27 + $late, $t + 87.5], [$t + 87.6, $t + 88]) as [$call, $to]
				| ["c10d::allreduce_", $call, 0.05, 1, {}], ["gloo:all_reduce", $call + 0.1, $to - $call - 0.1, 2, $shape]))
		| {ph: "X", cat: (if .[0] | test("Prof|gloo") then "user_annotation" else "cpu_op" end), name: .[0],
			pid: $r, ts: (1e3 * .[1]), dur: (1e3 * .[2]), tid: .[3], args: .[4]}]}]' > both.json
	jq '.[0]' both.json > block/0.json
	jq '.[1]' both.json > block/1.json
	is block '.slowest_rank == 1 and (.without_stragglers_s | near(0.029)) and ($ranks[1]
		| (.cost_s | near(0.06)) and (.late_s | near(0.06)))'
	# the same of a job that gives no rank and no calls
	jq '[.traceEvents[] | select(.name != "c10d::allreduce_")]' block/0.json > both.json
	mv both.json block/0.json
	jq '[.traceEvents[] | select(.name != "c10d::allreduce_")]' block/1.json > both.json
	mv both.json block/1.json
	is block '.ranks == 2 and .slowest_rank == 1 and ($ranks[1] | .cost_s | near(0.06))'
}

@test "waits for messages that overlap are not added up" {
	# rank 1 comes 5 s late to three messages; all of them wait for the first at the same time
	jq -n '{traceEvents: [range(3) as $s | range(2) as $r | (if $r == 1 then 5 else 0 end) as $late
		| (10 * $s) as $t | ({tid: 0, pid: $r, ph: "X", cat: "forward", name: "f", ts: ($t + $late), dur: 1},
		   {tid: 0, pid: $r, ph: "X", cat: "backward", name: "b", ts: ($t + $late + 1), dur: 3},
		   (range(3) as $m | {tid: 0, pid: $r, ph: "i", cat: "ready", name: "w\($m)", s: "t", ts: ($t + $late + 2 + $m)},
		   {tid: (1 + $m), pid: $r, ph: "X", cat: "message", name: "m", ts: ($t + $late + 2 + $m),
		    dur: (5.5 - $late), args: {message: $m, first: $m, last: $m, bytes: 4}}))
		| .ts *= 1e6 | if .dur then .dur *= 1e6 else . end]}' > run.json
	is run.json '(.step_s | near(10)) and .latest_rank == 1 and ($ranks[1].late_s | near(5))'
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
	wants 0 gf-report gloo --costs 4x2-1gbe
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

@test "--against: ranks beside themselves, medians by their own doubt" {
	# one of two ranks waits 4 s more, whose quartiles reach from 1 to 5 s
	trace 1 > plain.json
	trace > late.json
	wants 1 gf-report late.json --against plain.json
	jq -se 'map(select(.what == "exposed communication")) | .[0] | .verdict == "slower" and .slower_ranks == 1 and .faster_ranks == 0' out.txt
	wants 1 gf-report late.json --against plain.json --table
	grep -q "^exposed communication .* slower on 1 of 2 ranks$" out.txt
	# steps that scatter from 0.6 to 1.4 of their median, with which their quartiles overlap
	steps() {
		jq -n --argjson of "$1" --argjson n "$2" 'reduce range($n) as $s ({at: 0, traceEvents: []};
			($of * (1 + 0.4 * ($s * 7 % 11 - 5) / 5)) as $t | .at as $at | .at += $t
			| .traceEvents += [({tid: 0, pid: 0, ph: "X", cat: "forward", name: "f", ts: $at, dur: ($t / 2)},
				{tid: 0, pid: 0, ph: "X", cat: "backward", name: "b", ts: ($at + $t / 2), dur: ($t / 2)})])'
	}
	steps 19700 44 > before.json
	steps 26700 44 > after.json
	wants 1 gf-report after.json --against before.json
	jq -se '.[0] | .what == "step" and .verdict == "slower" and .slower_ranks == 1 and .ratio_doubt < 0.36' out.txt
	wants 1 gf-report after.json --against before.json --table
	grep -Eq "^step .* 1\.36 \+- 0\.[0-9]{2} x  *slower$" out.txt
	mv out.txt twice.txt
	wants 1 gf-report after.json --against before.json --table
	cmp out.txt twice.txt
	steps 20700 44 > after.json
	wants 0 gf-report after.json --against before.json
	# a few of them say too little
	steps 19700 5 > before.json
	steps 26700 5 > after.json
	wants 0 gf-report after.json --against before.json
	jq -se '.[0].verdict == "same"' out.txt
}

@test "--plot: a bar for each rank" {
	trace > run.json
	wants 0 gf-report run.json --plot bars.csv
	grep -q "^rank,compute,exposed communication,the rest$" bars.csv
	grep -q "^rank 0,2,5,0$" bars.csv
	[ "$(wc -l < bars.csv)" -eq 3 ]
	command -v gnuplot > /dev/null || skip "gnuplot is not installed"
	wants 0 gf-report run.json --plot bars.svg
	grep -q ">gf-train: a step of 2 ranks<" bars.svg
	wants 0 python3 "$GF_SOURCE/tests/cli/picture_text.py" bars.svg
}

# Replays for each number of ranks took minutes.
@test "--plan: the best plan of stale steps comes from what was measured" {
	gf-plan --model digits-cnn --system pipe-sgd 4x2-1gbe > plan.json
	gf-sim -q plan.json --slow 0:2 --trace run.json
	wants 0 timeout 60 gf-report --table run.json --plan plan.json
	grep -q "^by the best plan (.*) it is predicted to take" out.txt
	[ "$(grep -c '4096 ranks' out.txt)" -eq 0 ]
	gf-report run.json --plan plan.json --profile - > own.json
	gf-plan own.json --staleness 2 --codecs trunc16 4x2-1gbe > best.json
	jq -e 'all(.messages[]; .algorithm == "ring")' best.json
}

@test "a plan that is a rule has no messages to compare with, and --costs may be a profile" {
	trace > run.json
	gf-plan -q --ranks 2 4x2-1gbe > rule.json
	wants 0 gf-report run.json --plan rule.json
	jq -se '.[0].matched == 4 and .[0].without_stragglers_s > 0' out.txt
	wants 0 gf-report "$data/import/kineto-mi300-ddp.json"
	says 'no plan is made: nothing says what an all-reduce costs (--costs)'
	wants 0 gf-report "$data/import/kineto-mi300-ddp.json" --costs "$share/profiles/gradientflow-network-p.json"
	jq -se 'any(.part == "scale")' out.txt
}

@test "a .gz in parts: a damaged one is refused, and padding is none" {
	trace > run.json
	head -c 500 run.json | gzip > first
	tail -c +501 run.json | gzip > second
	{ cat first second; head -c 512 /dev/zero; } > run.json.gz
	wants 0 gf-report run.json.gz
	printf '\377' | dd of=second bs=1 conv=notrunc status=none
	cat first second > run.json.gz
	wants 2 gf-report run.json.gz
	says "the gzip stream is damaged"
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
		wants "$status" timeout 120 gf-report $arguments
		one_line
		says "$text"
	done <<-END
	2|want the traces of a job|
	3|nowhere.json|nowhere.json
	2|empty: want a folder with files|empty
	2|cut.json|cut.json
	2|want a trace of a job's ranks|$data/import/nccl-tests.txt
	2|one more of rank 0|twice
	2|run.json: want the trace of another rank, got one more of rank 0 (gf-report --against sets two runs beside each other)|run.json run.json
	2|pipe/a: want a regular file|pipe
	2|--profile: want a folder with all traces, got 2 files|$data/import/kineto-gloo-0.json $data/import/kineto-gloo-1.json --profile p.json
	2|--plot: want a report|run.json --profile - --plot x.csv
	2|--table: want a report|run.json --profile - --table=csv
	2|--plot: want traces with steps|$data/import/inspector.jsonl --plot x.csv
	2|as the first file is|run.json $data/import/inspector.jsonl
	END
	[ ! -e x.csv ] && [ ! -e p.json ]
	wants 2 gf-report run.json --against run.json --plot x.svg
	says "goes without"
}
