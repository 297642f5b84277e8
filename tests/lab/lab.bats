#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The emulated cluster itself. Needs root; skipped aloud without.
load lab

teardown() {
	lab down btest > /dev/null 2>&1 || true
	ip netns del btest-foreign 2> /dev/null || true
	ip netns del gflab-btest-h1 2> /dev/null || true
}

@test "lab: a name, a rate or a count that is none is refused" {
	needs_lab
	wants 2 lab up 'Bad Name'; says 'want a lab name'
	wants 2 lab up btest --rate fast; says '--rate: want a rate'
	wants 2 lab up btest --hosts 0; says '--hosts: want an integer from 1 to 64'
	wants 3 lab down btest; says 'want a lab named btest, found none'
	wants 2 lab
}

@test "lab: up, run, down leaves nothing behind" {
	needs_lab
	before=$(ip netns list; ip link show | grep -c veth || true)
	wants 0 lab up btest --hosts 3 --ranks 2 --racks 2 --trunk 500mbit
	wants 0 lab status; prints 'btest: hosts=3 ranks=2'
	wants 0 lab run btest --timeout 60 hostname
	[ "$(sort -u out.txt | tr '\n' ' ')" = "h0 h1 h2 " ]
	[ "$(wc -l < out.txt)" -eq 6 ]
	wants 0 lab down btest
	[ "$before" = "$(ip netns list; ip link show | grep -c veth || true)" ]
	[ ! -e /run/gf-lab/btest ]
	[ ! -e /etc/netns/gflab-btest-h0 ]
}

@test "lab: a namespace it did not make is not touched" {
	needs_lab
	ip netns add gflab-btest-h1
	wants 3 lab up btest --hosts 2; says 'gflab-btest-h1 exists and is not this lab'
	ip netns list | grep -q gflab-btest-h1
	[ ! -e /run/gf-lab/btest ]
	ip netns list | grep -q gflab-btest-h0 && false
	true
}

@test "lab: down ends what runs in it, the exit status of a command is kept" {
	needs_lab
	wants 0 lab up btest --hosts 1
	wants 7 lab exec btest h0 bash -c 'exit 7'
	lab exec btest h0 sleep 300 &
	sleep 0.5
	wants 0 lab down btest
	wait $! && false
	true
}

# A port that lets a packet or a bucket of bytes through at once after a pause would make
# small messages of a step free, which no link does. tbf must let a packet pass whole.
# Load can only lengthen a message.
@test "lab: a message after a pause takes as long as its bytes need" {
	needs_lab
	command -v python3 > /dev/null || skip "needs python3"
	while read -r shaper sizes; do
		wants 0 lab up btest --hosts 2 --rate 100mbit --shaper "$shaper"
		lab exec btest h1 timeout 60 python3 -c "
import socket
peer = socket.create_server(('', 7700)).accept()[0]
while size := peer.recv(4, socket.MSG_WAITALL):
    peer.recv(int.from_bytes(size, 'big') - 4, socket.MSG_WAITALL); peer.send(b'.')" &
		wants 0 lab exec btest h0 timeout 60 python3 -c "
import socket, time
for _ in range(100):
    try: peer = socket.create_connection(('h1', 7700)); break
    except OSError: time.sleep(.1)
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def lone(size):
    time.sleep(.01); begun = time.monotonic()
    peer.sendall(size.to_bytes(4, 'big') + bytes(size - 4)); peer.recv(1)
    return time.monotonic() - begun
for size in $sizes:
    assert (least := min(lone(size) for _ in range(20))) > .9 * size * 8 / 100e6, (size, least)"
		wait $!
		wants 0 lab down btest
	done <<- 'END'
		htb 1400,8000,32768
		tbf 32768,
	END
}

@test "lab: links are measured as they come up, and a rate they miss is told" {
	needs_lab
	command -v python3 > /dev/null || skip "needs python3"
	unset GF_LAB_LINKS
	wants 0 lab up btest --hosts 2 --rate 100gbit
	says 'links carry, in % of their rate: one stream '
	says 'this machine cannot give 100gbit by htb to 2 hosts: want 90 % of it at least, got '
	grep -qE '^one_bits_per_s=[1-9][0-9]+ one_percent=[0-9.]+ both_bits_per_s=[1-9][0-9]+ .*all_bits_per_s=[1-9]' /run/gf-lab/btest/rates
	wants 0 lab down btest
	# payload is never more than the rate, and what the queue holds passes it
	for shaper in htb tbf; do
		wants 0 lab up btest --hosts 3 --rate 20mbit --shaper $shaper
		. /run/gf-lab/btest/rates
		echo "$one_percent $both_percent $all_percent"
		[ "${one_percent%.*}" -le 102 ] && [ "${both_percent%.*}" -le 102 ] && [ "${all_percent%.*}" -le 102 ]
		wants 0 lab down btest
	done
}

@test "lab: a run in which the links move by more than 5 % says so" {
	needs_lab
	printf '#!/bin/sh\ncat "%s/rates.txt"\n' "$PWD" > links
	chmod +x links
	export GF_LAB_LINKS=$PWD/links
	rates() { echo "one_bits_per_s=9${1}0000 one_percent=9$1 both_bits_per_s=9${1}0000 both_percent=9$1 all_bits_per_s=$2 all_percent=$3" > rates.txt; }
	rates 5 950000 95.0
	wants 0 lab up btest --hosts 2 --rate 1mbit
	says 'one stream 95, both directions 95, all hosts 95.0'
	if grep 'cannot give' err.txt; then false; fi
	rates 5 910000 91.0
	wants 0 lab run btest --np 1 true
	if grep 'links moved' err.txt; then false; fi
	rates 5 960000 96.0
	wants 3 lab run btest --np 1 sh -c 'exit 3'
	says 'the links moved by more than 5 % during this run: all hosts at once carried 910 kb/s each before and 960 after'
	# a link that was told to move says nothing
	wants 0 lab rate btest h1 500kbit
	rates 5 470000 47.0
	wants 0 lab run btest --np 1 true
	if grep 'links moved' err.txt; then false; fi
	wants 0 lab down btest
	rates 5 899000 89.9
	wants 0 lab up btest --hosts 2 --rate 1mbit
	says 'this machine cannot give 1mbit by htb to 2 hosts: want 90 % of it at least, got 89'
}

@test "lab: a signal to a run reaches its launcher" {
	needs_lab
	wants 0 lab up btest --hosts 1
	"$GF_SOURCE/share/lab/gf-lab" run btest --timeout 60 sleep 55 3>&- & # no shell in between
	job=$!
	for _ in $(seq 100); do ip netns pids gflab-btest-h0 | xargs -r ps -o comm= -p | grep -qx sleep && break; sleep .1; done
	begun=$SECONDS
	kill -TERM $job
	wait $job && false
	[ $((SECONDS - begun)) -le 30 ]
	if ip netns pids gflab-btest-h0 | xargs -r ps -o comm= -p | grep -qx mpirun; then false; fi
}
