#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gf-allreduce across emulated hosts of two ranks each. Needs root; skipped
# aloud without.
load lab

setup_file() {
	needs_lab
	lab up ballr --hosts 2 --ranks 2 --rate 100mbit
}

teardown_file() {
	lab down ballr 2> /dev/null || true
	[ ! -e /run/gf-lab/ballr ]
}

teardown() {
	[ -z "${job:-}" ] || { kill "$job" && wait "$job"; } || true
}

@test "cluster: every algorithm sums right, and none beats the link" {
	wants 0 lab run ballr --timeout 100 gf-allreduce -a all,auto -n 3 -w 1 -b 64K -e 512K -f 8 --table=json
	jq -se 'length == 52 and (map(.algorithm) | unique | length) == 12
		and all(.wrong == 0 and .ranks == 4 and .ranks_per_host == 2)' out.txt
	# hosts come first where there are several
	jq -se 'map(select(.chosen == "blueconnect" or .chosen == "hierarchical").factors) | unique == ["2x2"]' out.txt
	# a host sends and receives the whole message once, at 12.5 MB/s but for
	# what a port lets pass after a pause
	jq -se 'map(select(.size_bytes == 524288)) | all(.min_s > (524288 - 65536) / 12.5e6)' out.txt
}

@test "cluster: a rule's algorithms of levels go by the hosts of the job" {
	while IFS='|' read -r algorithm stages; do
		jq -n --arg a "$algorithm" '{format: "gf-plan", version: 1, rule: {threshold_bytes: 1e6, lanes: 1, algorithms: [
			{min_bytes: 0, algorithm: $a}]}}' > rule.json
		wants 0 lab run ballr --timeout 60 gf-allreduce -q -a auto --plan rule.json -b 64K -e 64K -n 3 --table=json
		jq -se --arg a "$algorithm" --arg s "$stages" 'all(.chosen == $a and .factors == "2x2" and .stages == $s and .wrong == 0)' out.txt
	done <<- 'END'
		blueconnect|halving,halving
		hierarchical|
	END
}

@test "cluster: Open MPI does as it is told, by the bytes that a host sends" {
	wants 0 "$GF_SOURCE/tests/lab/ompi.sh"
	[ "$(grep -c '^ok ' out.txt)" -eq 5 ]
}

@test "cluster: codecs make the transfer shorter" {
	wants 0 lab run ballr --timeout 100 gf-allreduce -a blueconnect -n 3 -w 1 -b 1M -e 1M --codec q8 --table=json
	cp out.txt q8.txt
	wants 0 lab run ballr --timeout 100 gf-allreduce -a blueconnect -n 3 -w 1 -b 1M -e 1M --table=json
	jq -se --slurpfile q q8.txt '($q | map(.wrong) | add == 0) and all(.wrong == 0)
		and (map(.time_s) | min) > 2 * ($q | map(.time_s) | min)' out.txt
}

@test "cluster: a rank that stops: rank, message and step" {
	lab run ballr --timeout 60 gf-allreduce -q -a ring -b 64K -e 64K -n 100000 --timeout 4s > out.txt 2> err.txt < /dev/null 3>&- &
	job=$!
	sleep 6
	local stopped status=0 pid
	for pid in $(ip netns pids gflab-ballr-h1); do
		grep -qzx 'OMPI_COMM_WORLD_RANK=3' "/proc/$pid/environ" && [ "$(cat "/proc/$pid/comm")" = gf-allreduce ] && stopped=$pid
	done
	[ -n "$stopped" ]
	kill -STOP "$stopped"
	wait "$job" || status=$?
	job=
	kill -CONT "$stopped" 2> /dev/null || true
	cat err.txt
	[ "$status" -eq 4 ]
	grep -qE 'step [0-9]+, message 0 \(65536 bytes\).*rank 3 does not answer' err.txt
	[ ! -s out.txt ]
}

@test "cluster: a link that drops to 1 Mb/s: rank, message and step, and all end" {
	lab run ballr --timeout 100 gf-allreduce -q -a ring -b 8M -e 8M --segment 1M -n 100000 --timeout 3s \
		> out.txt 2> err.txt < /dev/null 3>&- &
	job=$!
	sleep 8
	kill -0 $job
	lab rate ballr h1 1mbit
	local status=0 began=$SECONDS pid host
	wait "$job" || status=$?
	job=
	lab rate ballr h1 100mbit
	echo "status $status after $((SECONDS - began)) s"
	cat err.txt
	[ "$status" -eq 4 ]
	[ $((SECONDS - began)) -le 60 ]
	# a megabyte takes 8 s now: a piece of it is late, or the ranks that have their
	# pieces wait for the rank that has not
	grep -qE 'step [0-9]+, message 0 \(8388608 bytes\).*(no progress for 3 s: .*ranks? [0-3]|waited 3[.0-9]* s for all ranks: rank [0-3] does not answer)' err.txt
	[ ! -s out.txt ]
	sleep 1
	for host in h0 h1; do
		for pid in $(ip netns pids "gflab-ballr-$host"); do
			[ "$(cat "/proc/$pid/comm" 2> /dev/null)" != gf-allreduce ]
		done
	done
}
