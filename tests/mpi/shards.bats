#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans with shards: training, going on with other shards, and ranks that are lost.
# (tests/unit/test_train_shards.c compares bits.)
load ../cli/common
load job

quick="-q --threads 1 --model digits-mlp --data digits --optimizer adamw"

# sharded METHOD [JQ]: a plan of digits-mlp on 3 ranks
sharded() {
	gf-topo --synthetic "node:3@125MB/s,50us" |
		gf-plan -q --model digits-mlp --shard "$1" --algorithm ring | jq "${2:-.}"
}

@test "a run goes on with any shards, and shows what it gathers" {
	# oneDNN 3.7 has other kernels for weights that come in parts, which round otherwise
	local step=30 quick="$quick --device ref"
	sharded zero3 '.shard.ahead = 1' > zero3.json
	sharded zero1 > zero1.json
	sharded none > none.json
	wants 0 mpi 3 gf-train $quick --plan zero3.json --steps $step --check-replicas 10 --checkpoint ckpt --trace trace.json
	# each rank gathers units in both passes, and the one of the turn once
	jq -e '[.traceEvents[] | select(.ph == "X" and .pid == 0) | .name] |
		index("message 0 all-gather") and index("message 1 all-gather") and index("message 1 reduce-scatter")' trace.json
	for method in zero1 none zero3; do
		step=$((step + 5))
		wants 0 mpi 3 gf-train $quick --plan $method.json --steps $step --check-replicas 5 --checkpoint ckpt --resume
	done
	wants 0 mpi 3 gf-train $quick --plan none.json --steps $step --checkpoint whole
	cmp {ckpt,whole}/step-$step/rank-0.safetensors
}

@test "each transport and codec" {
	for change in . '.messages |= map(.codec = "bf16")' '.lanes = 2 | .messages |= map(.mode = "simultaneous")'; do
		sharded zero3 "del(.predicted) | $change | [.messages[].last] as \$last | .messages[0].mode as \$mode
			| .tensors |= [to_entries[] | .value + {type: (if .key | IN(\$last[]) then \$mode else \"merged\" end)}]" > plan.json
		for transport in auto mpi $(gf-allreduce --list | sed -n 's/^transport  *\(ucx\) .*/\1/p'); do
			wants 0 mpi 3 gf-train $quick --plan plan.json --steps 12 --check-replicas 4 --transport $transport
		done
	done
	wants 0 mpi 3 gf-train -q --plan plan.json --replay --steps 5
	grep -qE '^sent .* per rank and step' out.txt
}

@test "what is not run with shards is refused by name" {
	sharded zero3 '.messages[0].release = "backward_end"' > plan.json
	wants 1 mpi 3 gf-train $quick --plan plan.json --steps 2
	grep -q 'message 0: want release "ready" with shards of parameters' err.txt
}

@test "a rank that is killed among gathers: the job ends, and resumes" {
	checkpoints() { [ "$(ls -d ckpt/step-*[0-9] 2> /dev/null | wc -l)" -ge 2 ]; }
	sharded zero3 > plan.json
	begin 3 checkpoints gf-train $quick --plan plan.json --epochs 100000 --checkpoint ckpt --checkpoint-every 21
	kill -KILL "$(pid_of 1)"
	ends 137
	from=$(ls -d ckpt/step-*[0-9] | sed 's/.*step-//' | sort -n | tail -n 1)
	wants 0 mpi 3 gf-train $quick --plan plan.json --epochs 100000 --checkpoint ckpt --resume \
		--steps $((from + 9)) --check-replicas 1
}
