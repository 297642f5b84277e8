#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A rank that never starts MPI, or ends before: the others end with 4, and say so.
# All jobs wait at the same time.
load ../cli/common

teardown() {
	local pid
	for pid in $(jobs -p); do { kill "$pid" && wait "$pid"; } 2> /dev/null || true; done
}

# begin NAME MPIRUN-ARGUMENT...: $NAME.out, $NAME.err
begin() {
	local name=$1
	shift
	timeout -k 5 200 mpirun --oversubscribe --bind-to none "$@" \
		> "$name.out" 2> "$name.err" < /dev/null 3>&- &
	job[$name]=$!
}

# ends NAME: leaves its exit status in $status
ends() {
	status=0
	wait "${job[$1]}" || status=$?
	mv "$1.out" out.txt
	mv "$1.err" err.txt
	echo "$1: status $status"
	cat err.txt
}

@test "a rank that never starts MPI: the others end with 4, and say so" {
	declare -A job
	local name began=$SECONDS
	printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && sleep 100\nexec "$@"\n' > late
	chmod +x late
	begin train -np 2 ./late gf-train -q --steps 1 --timeout 1s
	begin profile -np 2 ./late gf-profile --time 1ms --timeout 1s
	begin allreduce -np 2 ./late gf-allreduce -b 1K -e 1K --timeout 1s
	begin version -np 1 gf-allreduce --version : -np 2 gf-allreduce -b 1K -e 1K --timeout 1s
	for name in train profile allreduce version; do
		ends $name
		# where the others had begun when rank 0 ended, mpirun ends them by
		# itself, with 1 and not always with words
		[ $name = version ] && [ $status -eq 1 ] && continue
		[ $status -eq 4 ]
		says 'MPI has not started for 20 s: a rank is late, or ended without it'
	done
	[ $((SECONDS - began)) -lt 90 ]
}
