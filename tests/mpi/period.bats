#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans with a period: groups of ranks train by themselves, and all ranks exchange how far
# their parameters have come. (tests/unit/test_outer.c holds the equations.)
load ../cli/common
load job

quick="-q --threads 1 --model digits-mlp --data digits"

# periodic GROUP KEYS [CODEC]: a plan of digits-mlp on 4 ranks with a message per fragment
periodic() {
	gf-topo --synthetic "node:4@125MB/s,50us" |
		gf-plan -q --model digits-mlp --policy wfbp --algorithm rhd 2> /dev/null |
		jq --argjson group "$1" --argjson keys "$2" --arg codec "${3:-f32}" 'del(.predicted)
			| .period = {group_ranks: $group} + $keys + {messages: [
				{first: 0, last: 2, mode: "normal", algorithm: "rhd", codec: $codec},
				{first: 3, last: 5, mode: "normal", algorithm: "rhd", codec: $codec}]}'
}

streaming='{method: "streaming", steps: 8, fragments: 2, delay: 3, mix: 0.5, outer_rate: 0.7, outer_momentum: 0.9}'
streaming=$(jq -nc "$streaming")

@test "each period trains, in groups of one and of two, alike where it must be" {
	while read -r group keys; do
		periodic "$group" "$keys" > plan.json
		wants 0 mpi 4 gf-train $quick --plan plan.json --epochs 6 --check-replicas 3 --target 0.75 --log log.jsonl
		# one test after each epoch, the last of the mean
		jq -se '[.[] | select(.part == "test").epoch] == [1, 2, 3, 4, 5, 6]' log.jsonl
		# the last step's exchange comes after the last epoch's steps
		jq -se '[.[] | select(.part == "batch").step] == [range(1; 1 + length)]' \
			<(jq -c 'select(.part == "batch")' log.jsonl)
		jq -se '[.[] | select(.part == "train").samples] | length == 6 and (unique | length == 1)' log.jsonl
		rm log.jsonl
		grep -qE '^sent .* per rank and step' out.txt
	done <<- END
		1 {"method":"local-sgd","steps":4}
		2 {"method":"post-local","steps":8,"begin_steps":10}
		2 {"method":"diloco","steps":6,"outer_rate":0.7,"outer_momentum":0.9}
		2 $streaming
	END
}

# bats test_tags=long
@test "a stop within a period, and within a fragment's flight, leaves the same weights" {
	periodic 2 "$streaming" q8 > plan.json
	wants 0 mpi 4 gf-train $quick --plan plan.json --epochs 4 --checkpoint whole --log whole.jsonl
	for steps in 10 14; do # in flight, and not
		wants 0 mpi 4 gf-train $quick --plan plan.json --epochs 4 --steps $steps --checkpoint ckpt$steps
		wants 0 mpi 4 gf-train $quick --plan plan.json --epochs 4 --checkpoint ckpt$steps --resume --log again.jsonl
		for rank in 0 1 2 3; do
			cmp {whole,ckpt$steps}/step-44/rank-$rank.safetensors
		done
		# what the last outer exchange made
		cmp <(tail -n 1 whole.jsonl | jq .loss) <(tail -n 1 again.jsonl | jq .loss)
		rm again.jsonl
	done
	# another period is another run, and so is another cut or codec of its messages
	for change in '.mix = 0.25' '.messages[0].codec = "f32"' '.messages[0].last = 1 | .messages[1].first = 2'; do
		jq ".period |= ($change)" plan.json > other.json
		wants 2 mpi 4 gf-train $quick --plan other.json --epochs 5 --checkpoint ckpt10 --resume
		grep -q 'was written with period "streaming group_ranks 2 steps 8 .* mix 0.5 .* 0-2 q8 3-5 q8"' err.txt
	done
}

@test "a group has any exchange: a delay, a selection, halves, f16" {
	while read -r change; do
		periodic 2 "$streaming" | jq "$change" > plan.json
		wants 0 mpi 4 gf-train $quick --plan plan.json --steps 20 --check-replicas 1 --trace trace.json
		jq -e '.traceEvents | length > 0' trace.json
	done <<- 'END'
		.pipeline = {staleness: 2}
		.selection = {method: "gtopk", density: 0.05}
		.selection = {method: "csc", keep: 0.2, chunk_elems: 100} | .fusion = {threshold_bytes: 4096}
		.messages |= map(.half = "split")
		.messages |= map(.codec = "f16") | .period.messages |= map(.codec = "fp4")
	END
}

@test "what goes without a period is refused by name" {
	periodic 2 "$streaming" > plan.json
	wants 0 mpi 4 gf-train $quick --plan plan.json --steps 2 --checkpoint ckpt
	wants 2 mpi 4 gf-train $quick --plan plan.json --checkpoint ckpt --resume=any
	grep -q -- '--resume: want the same ranks with period streaming' err.txt
	jq '.messages |= map(.algorithm = "library")' plan.json > library.json
	wants 1 mpi 4 gf-train $quick --plan library.json --steps 2
	grep -q 'no all-reduce of its own between these 2 ranks' err.txt
}

@test "a replay takes outer exchanges, and gf-allreduce their messages" {
	periodic 2 "$streaming" > plan.json
	wants 0 mpi 4 gf-allreduce -q --plan plan.json -n 1 -w 0 --table=json
	jq -se 'map(select(.size_bytes)) | length == 6 and all(.wrong == 0)' out.txt
	wants 0 mpi 4 gf-train -q --plan plan.json --replay --steps 20
	grep -qE '^sent .* per rank and step' out.txt
}

@test "a rank that is killed: the job ends, and resumes" {
	checkpoints() { [ "$(ls -d ckpt/step-*[0-9] 2> /dev/null | wc -l)" -ge 2 ]; }
	periodic 2 "$streaming" > plan.json
	begin 4 checkpoints gf-train $quick --plan plan.json --epochs 100000 --checkpoint ckpt --checkpoint-every 21
	kill -KILL "$(pid_of 3)"
	ends 137
	from=$(ls -d ckpt/step-*[0-9] | sed 's/.*step-//' | sort -n | tail -n 1)
	wants 0 mpi 4 gf-train $quick --plan plan.json --epochs 100000 --checkpoint ckpt --resume \
		--steps $((from + 9)) --check-replicas 1
}
