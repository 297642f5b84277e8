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
