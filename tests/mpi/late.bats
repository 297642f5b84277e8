#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A rank that never starts MPI, or ends before: the others end with 4, and say so. So does
# one that waits in a call that never returns. All jobs wait at the same time.
load ../cli/common

teardown() {
	local pid
	for pid in $(jobs -p); do { kill "$pid" && wait "$pid"; } 2> /dev/null || true; done
}

mpirun="mpirun --oversubscribe --bind-to none"

# begin NAME COMMAND...: $NAME.out, $NAME.err
begin() {
	local name=$1
	shift
	timeout -k 5 200 "$@" > "$name.out" 2> "$name.err" < /dev/null 3>&- &
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
	printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && sleep 400\nexec "$@"\n' > late
	chmod +x late
	begin train $mpirun -np 2 ./late gf-train -q --steps 1 --timeout 1s
	begin profile $mpirun -np 2 ./late gf-profile --points time=1ms --timeout 1s
	begin allreduce $mpirun -np 2 ./late gf-allreduce -b 1K -e 1K --timeout 1s
	by_rank gf-allreduce --version -- gf-allreduce -b 1K -e 1K --timeout 1s
	begin version $mpirun -np 3 ./by_rank
	for name in train profile allreduce version; do
		ends $name
		# where the others had begun when rank 0 ended, mpirun ends them by
		# itself, with 1 and not always with words
		[ $name = version ] && [ $status -eq 1 ] && continue
		[ $status -eq 4 ]
		says 'MPI has not started for 20 s: a rank is late, or ended without it'
	done
	[ $((SECONDS - began)) -lt 390 ]
}

# Also where nobody reads what is said, as behind an mpirun that is stopped.
@test "a start, a meeting or an end that never returns, of one rank without a launcher" {
	declare -A job
	local name tries train="gf-train -q --model digits-mlp --data synthetic:200 --batch 8 --threads 1 --steps 1 --timeout 1s"
	strike=$(realpath -m "$GF_SOURCE/$BUILD/faults/strike.so")
	[ -e "$strike" ] || skip "a sanitizer cannot be preloaded into"
	full_pipe full
	begin start env LD_PRELOAD="$strike" GF_STRIKE=MPI_Init_thread:1:hang $train
	begin meet env LD_PRELOAD="$strike" GF_STRIKE=getaddrinfo:1:hang $train --join localhost:29600 --rank 0 --ranks 2
	begin end env LD_PRELOAD="$strike" GF_STRIKE=MPI_Finalize:1:hang $train
	begin failed env LD_PRELOAD="$strike" GF_STRIKE=MPI_Finalize:1:hang gf-train -q --model digits-mlp --data ./none
	begin unread env LD_PRELOAD="$strike" GF_STRIKE=MPI_Finalize:1:hang sh -c 'exec "$@" 2>&9' - $train
	begin lost env LD_PRELOAD="$strike" GF_STRIKE=MPI_Isend:8:kill:1 \
		$mpirun -np 2 sh -c '"$@" 2> full; echo $? > "status.$OMPI_COMM_WORLD_RANK"; exec sleep 10' - $train
	# what it fails by is told, and is its status
	ends failed
	[ $status -eq 3 ]
	one_line
	# and its result is there
	for name in end unread; do
		ends $name
		[ $status -eq 0 ]
		[ "$name" = unread ] || fails grep -q 'MPI has not ended' err.txt
	done
	for name in start meet; do
		ends $name
		[ $status -eq 4 ]
		case $name in
		start) says 'gf-train: MPI has not started for 20 s' ;;
		meet) says 'gf-train: the ranks have not met for 23 s' ;;
		esac
	done
	for ((tries = 0; tries < 600; tries++)); do
		[ ! -s status.0 ] || break
		sleep 0.1
	done
	grep -x '[34]' status.0
}
