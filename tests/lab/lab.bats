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

# A port that lets 32 KiB through at once after a pause would make small messages of a
# step free, which no link does. Load can only lengthen a message.
@test "lab: a message after a pause takes as long as its bytes need" {
	needs_lab
	command -v python3 > /dev/null || skip "needs python3"
	for shaper in tbf htb; do
		wants 0 lab up btest --hosts 2 --rate 100mbit --shaper $shaper
		lab exec btest h1 timeout 60 python3 -c "
import socket
peer = socket.create_server(('', 7700)).accept()[0]
while peer.recv(32768, socket.MSG_WAITALL): peer.send(b'.')" &
		wants 0 lab exec btest h0 timeout 60 python3 -c "
import socket, time
for _ in range(100):
    try: peer = socket.create_connection(('h1', 7700)); break
    except OSError: time.sleep(.1)
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def lone():
    time.sleep(.01); begun = time.monotonic()
    peer.sendall(bytes(32768)); peer.recv(1)
    return time.monotonic() - begun
assert (least := min(lone() for _ in range(20))) > .9 * 32768 * 8 / 100e6, least"
		wait $!
		wants 0 lab down btest
	done
}
