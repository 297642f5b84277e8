#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load ../cli/common

quick="--batch 2 --warmup 1 --repeats 3 --threads 1 --time 1ms"

@test "both halves, every algorithm of the build" {
	wants 0 mpi 2 gf-profile $quick --model digits-mlp
	jq -e '.network.ranks == 2 and (.network.allreduce | length) >= 2' out.txt
	jq -e '[.network.allreduce[].algorithm] | index("ring") != null and index("library") != null' out.txt
	jq -e '.network.allreduce[] | .startup_s >= 0 and .per_byte_s >= 0 and .startup_s + .per_byte_s > 0' out.txt
	jq -e '.network.allreduce[].fit | (.size_bytes | length) >= 8 and .r_squared <= 1
		and (.time_s | min) > 0 and (.time_s | length) == (.spread_s | length)' out.txt
	jq -e '.network.allreduce[].fit.size_bytes | .[0] == 1024 and .[-1] == 4194304' out.txt
	jq -e '.model.overlap_slowdown >= 1' out.txt
	jq -e '.measured | .model.ranks == 2 and .network.ranks == 2' out.txt
}

@test "the network alone, one algorithm, three lanes" {
	wants 0 mpi 3 gf-profile -a ring --min-bytes 256 --max-bytes 256K --lanes 3 --time 1ms
	jq -e '(has("model") | not) and [.network.allreduce[].algorithm] == ["ring"]' out.txt
	jq -e '.network.ranks == 3' out.txt
	jq -e '[.network.allreduce[].contention[]?.gamma | length == 3 and .[0] == 1 and . == sort] | all' out.txt
}

@test "a pipe from gf-topo, and one rank" {
	gf-topo --synthetic "net:2@1Gb/s,50us" > topo.json
	mpi 2 gf-profile $quick --model digits-mlp -a ring < topo.json > out.txt
	jq -se 'map(.format) == ["gf-topology", "gf-profile"]' out.txt
	wants 0 mpi 1 gf-profile $quick --model digits-mlp
	says 'no network half'
	wants 0 mpi 2 gf-profile $quick --model digits-mlp --no-network
	jq -e 'has("network") | not' out.txt
}

@test "refusals end every rank, and are printed once" {
	gf-topo --synthetic "net:4@1Gb/s,50us" > topo.json
	wants 2 mpi 2 gf-profile $quick --model digits-mlp topo.json
	[ "$(grep -c 'the topology has 4 ranks, this job has 2' err.txt)" -eq 1 ]
	wants 2 mpi 1 gf-profile
	[ "$(grep -c 'nothing to measure' err.txt)" -eq 1 ]
	wants 3 mpi 2 gf-profile --model no-such-model
	[ "$(grep -c 'no-such-model' err.txt)" -eq 1 ]
	wants 2 mpi 2 gf-profile --batch 0
	[ "$(grep -c -- '--batch' err.txt)" -eq 1 ]
	wants 3 mpi 2 gf-profile $quick --model digits-mlp -a ring -o no/such/folder/p.json
	[ "$(grep -c 'no/such/folder' err.txt)" -eq 1 ]
}

@test "help and version under mpirun" {
	wants 0 mpi 3 gf-profile --version
	[ "$(wc -l < out.txt)" -eq 1 ]
	wants 0 mpi 3 gf-profile --help
	[ "$(grep -c '^Usage' out.txt)" -eq 1 ]
}
