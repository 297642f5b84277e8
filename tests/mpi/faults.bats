#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Faults of a training job: a rank dies or stops answering, or the disk is full. The
# job ends and says why, and --resume goes on from the last complete checkpoint.
load ../cli/common
load job

long="-q --model digits-mlp --data synthetic:20000 --batch 8 --epochs 1000 --threads 1"

checkpoints() { [ "$(ls -d ckpt/step-*[0-9] 2> /dev/null | wc -l)" -ge 2 ]; }

# trains RANKS OPTION...: a job that checkpoints into ckpt/, up to its second checkpoint
trains() {
	local ranks=$1
	shift
	begin "$ranks" checkpoints gf-train $long --checkpoint ckpt --checkpoint-every 20 "$@"
}

newest() { ls -d ckpt/step-*[0-9] | sed 's/.*step-//' | sort -n | tail -n 1; }

# goes_on: the newest checkpoint is complete, and a run resumes from it
goes_on() {
	local from ranks=$1
	from=$(newest)
	[ "$(ls "ckpt/step-$from"/rank-* | wc -l)" -eq "$ranks" ]
	wants 0 mpi "$ranks" gf-train $long --checkpoint ckpt --resume --steps $((from + 5)) --check-replicas 1 --log log.jsonl
	jq -se --argjson from "$from" 'map(select(.part == "batch").step) == [range($from + 1; $from + 6)]' log.jsonl
	[ -d "ckpt/step-$((from + 5))" ]
	# what the interrupted run left unfinished is gone
	[ -z "$(ls -d ckpt/*.tmp 2> /dev/null)" ]
}

@test "a rank that is killed: the job ends at once, and resumes" {
	trains 3
	kill -KILL "$(pid_of 1)"
	ends 137
	tr '\n' ' ' < err.txt | grep -q 'rank 1 .* on *signal 9'
	goes_on 3
}

@test "rank 0 killed" {
	trains 2
	kill -KILL "$(pid_of 0)"
	ends 137
	goes_on 2
}

@test "a rank that is stopped: the others name it, status 4, and it resumes" {
	trains 3 --timeout 5s
	kill -STOP "$(pid_of 1)"
	ends 4
	grep -qE 'gf-train(\[2\])?: .*rank 1 does not answer' err.txt
	goes_on 3
}

@test "a rank stopped under the MPI library's own all-reduce" {
	jq -n '{format: "gf-plan", version: 1, policy: "threshold",
		rule: {threshold_bytes: 20000, lanes: 1, algorithms: [{min_bytes: 0, algorithm: "library"}]}}' > rule.json
	trains 3 --timeout 5s --plan rule.json
	kill -STOP "$(pid_of 2)"
	ends 4
	grep -q 'rank 2 does not answer' err.txt
	goes_on 3
}

@test "a rank that is only slow is waited for" {
	trains 2 --timeout 60s
	pid=$(pid_of 1)
	kill -STOP "$pid"
	sleep 2
	kill -CONT "$pid"
	before=$(newest)
	while [ "$(newest)" -le $((before + 60)) ]; do
		kill -0 $job
		sleep 0.1
	done
}

@test "a full disk while writing a checkpoint: the one before is intact" {
	mkdir small
	mount -t tmpfs -o size=2m tmpfs small 2> /dev/null || skip "mount is not permitted"
	# room for the folder's lock, not for a part
	fill() { { head -c 4M /dev/zero > small/filler; truncate -s -8K small/filler; } 2> /dev/null; }
	status=0
	{
		wants 0 mpi 3 gf-train $long --steps 10 --checkpoint small/ckpt &&
		cp -r small/ckpt before && fill &&
		wants 3 mpi 3 gf-train $long --steps 20 --checkpoint small/ckpt --resume &&
		[ "$(grep -c 'No space left on device' err.txt)" -eq 1 ] &&
		grep -q 'gf-train: rank [0-2]: small/ckpt/step-20.tmp' err.txt &&
		diff -r before small/ckpt &&
		rm small/filler &&
		wants 0 mpi 3 gf-train $long --steps 20 --checkpoint small/ckpt --resume &&
		[ -f small/ckpt/step-20/rank-2.safetensors ] && [ -d small/ckpt/step-10 ]
	} || status=$?
	umount small
	[ $status -eq 0 ]
}

@test "a checkpoint folder that cannot be written" {
	: > file
	wants 3 mpi 2 gf-train $long --steps 3 --checkpoint file
	[ "$(grep -c 'file: ' err.txt)" -eq 1 ]
	wants 3 mpi 2 gf-train $long --steps 3 --checkpoint no/such/folder
	[ "$(grep -c 'no/such/folder: No such file or directory' err.txt)" -eq 1 ]
}
