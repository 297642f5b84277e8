#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
unset HWLOC_COMPONENTS # the devices of this machine are asked for
load ../cli/common

@test "a job: one document with its ranks and hosts" {
	wants 0 mpi 4 gf-topo
	jq -e '.format == "gf-topology" and .ranks == 4' out.txt
	jq -e '.hosts | length == 1 and .[0].ranks == 4' out.txt
	jq -e '.levels | length == 1 and .[0].name == "host" and .[0].size == 4' out.txt
}

@test "a job of one rank" {
	wants 0 mpi 1 gf-topo
	jq -e '.ranks == 1 and .levels[0].size == 1' out.txt
}

@test "a job measured" {
	wants 0 mpi 2 gf-topo --measure --device cpu
	jq -e '.levels[0].bandwidth_origin == "measured"' out.txt
}

@test "--synthetic and --table print once" {
	wants 0 mpi 3 gf-topo --synthetic "net:4@1Gb/s,50us" --table
	[ "$(grep -c '^net x4' out.txt)" -eq 1 ]
}

@test "help, version and usage errors neither hang nor repeat" {
	wants 0 mpi 3 gf-topo --version
	[ "$(wc -l < out.txt)" -eq 1 ]
	wants 0 mpi 3 gf-topo --help
	[ "$(grep -c '^Usage' out.txt)" -eq 1 ]
	wants 2 mpi 3 gf-topo --device tpu
	[ "$(grep -c 'want auto, cpu or gpu' err.txt)" -eq 1 ]
}

@test "one rank's failure ends all alike" {
	wants 3 mpi 3 gf-topo -o no/such/folder/t.json
	[ "$(grep -c 'gf-topo' err.txt)" -ge 1 ]
	[ "$(grep -c 'no/such/folder' err.txt)" -eq 1 ]
	wants 2 mpi 2 gf-topo --machine hwloc="$GF_SOURCE/Makefile"
}

@test "ranks that differ find out at the start, those that are unlike describe the job" {
	unlike gf-topo --measure -- --device cpu
	says 'command: rank 0 has --measure, rank 1 has describe'
	unlike gf-topo --synthetic "net:4@1Gb/s,50us" -- --device cpu
	says '--synthetic'
	makes_apart
	wants 0 mpi 3 ./apart gf-topo --measure --device cpu
	jq -e '.ranks == 3' out.txt
}
