# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A job in the background that a test strikes: `load job`. $job is the timeout(1) above
# its mpirun; its output is in out.txt and err.txt.

teardown() {
	[ -z "${job:-}" ] || { kill "$job" && wait "$job"; } || true
}

# begin RANKS READY COMMAND...: until READY, a function, holds
begin() {
	local ranks=$1 ready=$2
	shift 2
	: > err.txt
	timeout -k 5 300 mpirun --oversubscribe --bind-to none -np "$ranks" "$@" > out.txt 2> err.txt < /dev/null 3>&- &
	job=$!
	while kill -0 $job 2> /dev/null; do
		! "$ready" || return 0
		sleep 0.1
	done
	tail -n 20 err.txt
	return 1
}

# pid_of RANK
pid_of() {
	local mpirun pid
	mpirun=$(pgrep -P "$job")
	for pid in $(pgrep -P "$mpirun"); do
		tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" && { echo "$pid"; return 0; }
	done
	return 1
}

# ends STATUS: the job ends with that status, by itself
ends() {
	local status=0 began=$SECONDS
	wait "$job" || status=$?
	job=
	echo "status $status after $((SECONDS - began)) s"
	tail -n 20 err.txt
	[ "$status" -eq "$1" ] && [ $((SECONDS - began)) -le 100 ]
}
