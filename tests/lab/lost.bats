#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A host that falls silent, connections that are reset, a rank that is killed: over
# MPI and over UCX, under mpirun and without. Each rank that can says who is missing
# within the time-out, and no rank is left 5 s later.
load lab

TIMEOUT=3

setup_file() {
	needs_lab
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	lab up lost --hosts 3 --rate 1gbit --shaper none
	training="gf-train -q --model digits-mlp --data synthetic:20000 --batch 8 --epochs 1000 --threads 1 --timeout ${TIMEOUT}s"
	pids=()
}

teardown() {
	lab down lost 2> /dev/null || true
	for pid in "${pids[@]:-}"; do
		[ -z "$pid" ] || { kill "$pid" && wait "$pid"; } 2> /dev/null || true
	done
}

ranks_on() { # HOST: pids of gf-train
	local pid
	for pid in $(ip netns pids "gflab-lost-$1"); do
		[ "$(cat "/proc/$pid/comm" 2> /dev/null)" != gf-train ] || echo "$pid"
	done
}

left() { for h in h0 h1 h2; do ranks_on $h; done | wc -l; }

# begin mpirun mpi|ucx, or begin processes: in training when it returns
begin() {
	local h tries
	if [ "$1" = mpirun ]; then
		lab run lost --timeout 60 $training --transport "$2" --checkpoint ckpt --checkpoint-every 20 \
			> out.0 2> err.0 < /dev/null 3>&- &
		pids=($!)
	else
		for h in 0 1 2; do
			lab exec lost h$h timeout 60 $training --join 10.77.0.1:7000 --rank $h --ranks 3 \
				--checkpoint ckpt --checkpoint-every 20 > out.$h 2> err.$h < /dev/null 3>&- &
			pids+=($!)
		done
	fi
	for ((tries = 0; tries < 300; tries++)); do
		[ "$(ls -d ckpt/step-*[0-9] 2> /dev/null | wc -l)" -lt 2 ] || return 0
		sleep 0.1
	done
	cat err.*
	return 1
}

# ends [RANK...]: within the time-out and 5 s all ranks are gone; the named ones, the
# plain processes, have a line each that says who is missing
ends() {
	local began=$SECONDS rank
	while [ "$(left)" -gt 0 ] && [ $((SECONDS - began)) -le $((TIMEOUT + 7)) ]; do sleep 0.1; done
	echo "$(left) ranks after $((SECONDS - began)) s"
	cat err.*
	[ "$(left)" -eq 0 ]
	# half a second for words, and 5 s for a launcher
	[ $((SECONDS - began)) -le $((TIMEOUT + 6)) ]
	for rank; do grep -qE "rank ${missing:-2} (does not answer|is gone)" err.$rank; done
}

cut_link() { lab exec lost h2 ip link set eth0 down; }
kill_rank() { kill -KILL $(ranks_on h2); }

# All TCP connections of the rank on h2 end in the middle (connect to no address).
reset_rank() {
	cat > reset.py <<-'PY'
		import ctypes, os, socket, sys
		libc = ctypes.CDLL(None, use_errno=True)
		process, ended = os.pidfd_open(int(sys.argv[1])), 0
		for fd in os.listdir(f"/proc/{sys.argv[1]}/fd"):
		    copy = libc.syscall(438, process, int(fd), 0)  # pidfd_getfd
		    try:
		        s = socket.socket(fileno=copy)
		        s.getpeername()
		        ended += s.family == socket.AF_INET and not libc.connect(copy, b"\0" * 16, 16)
		    except OSError:
		        pass
		sys.exit(not ended)
	PY
	lab exec lost h2 /usr/bin/python3 reset.py "$(ranks_on h2)"
}

@test "lost: the link of a host is cut, plain processes" {
	begin processes
	cut_link
	ends 0 1
	# it cannot know that it is the one
	grep -qE 'ranks 0, 1 do not answer|rank [01] (does not answer|is gone)' err.2
}

@test "lost: the link of a host is cut, under mpirun over MPI" {
	begin mpirun mpi
	cut_link
	ends 0
}

@test "lost: the link of a host is cut, under mpirun over UCX" {
	begin mpirun ucx
	cut_link
	ends 0
}

@test "lost: a rank is killed, plain processes" {
	begin processes
	kill_rank
	ends 0 1
}

@test "lost: a rank is killed, under mpirun over MPI" {
	begin mpirun mpi
	kill_rank
	ends
}

@test "lost: a rank is killed, under mpirun over UCX" {
	begin mpirun ucx
	kill_rank
	ends
}

@test "lost: connections are reset, plain processes" {
	begin processes
	reset_rank
	ends
	for rank in 0 1; do grep -qE 'rank [0-2] (is gone|does not answer)' err.$rank; done
}

@test "lost: connections are reset, under mpirun over UCX" {
	begin mpirun ucx
	reset_rank
	ends
	grep -qE 'rank [0-2] (is gone|does not answer)' err.0
}

# Open MPI 4 may lose what was on its way, and says so or not: the time-out does
@test "lost: connections are reset, under mpirun over MPI" {
	begin mpirun mpi
	reset_rank
	ends
	grep -qE 'disconnected|rank [0-2]|no progress' err.0
}
