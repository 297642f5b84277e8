#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A rank that stops at a call of MPI, wherever it is: no wait is without a limit.
load ../cli/common

teardown() {
	[ -z "${job:-}" ] || { pkill -KILL -P "$job"; kill -KILL "$job"; wait "$job"; } 2> /dev/null || true
}

# Ranks that neither have ended nor are stopped; a shell between two looks is none.
waiting() { ps -o stat= --ppid "$job" | grep -vc '^[ZT]'; }

# stops CALL N COMMAND...: rank 1 of 3 stops at its Nth call; the others say why they
# give up, and end. (mpirun may stay with the rank that is stopped.)
stops() {
	local call=$1 n=$2 tries
	shift 2
	LD_PRELOAD=$strike GF_STRIKE=$call:$n:stop:1 mpirun --oversubscribe --bind-to none -np 3 "$@" \
		> out.txt 2> err.txt < /dev/null 3>&- &
	job=$!
	for ((tries = 0; tries < 600; tries++)); do
		! grep -qE "$reason" err.txt || [ "$(waiting)" -gt 0 ] || break
		sleep 0.1
	done
	echo "$call $n: $tries tenths of a second: $*"
	cat err.txt
	teardown
	job=
	[ $tries -lt 600 ]
}

@test "a rank that stops at the start, in an agreement, or at the end" {
	strike=$(realpath -m "$GF_SOURCE/$BUILD/faults/strike.so")
	[ -e "$strike" ] || skip "a sanitizer cannot be preloaded into"
	reason='process [0-9]+ of this job is stopped|rank 1 does not answer'
	train="gf-train -q --model digits-mlp --data synthetic:200 --batch 8 --threads 1 --steps 3 --timeout 5s"
	stops MPI_Comm_dup 1 $train
	stops MPI_Isend 8 $train
	stops MPI_Finalize 1 $train
	stops MPI_Comm_free 2 $train
	stops MPI_Isend 8 gf-allreduce -q -b 4K -e 4K -n 3 --timeout 5s
	stops MPI_Finalize 1 gf-profile -q --pairs --budget 1s --timeout 5s
}
