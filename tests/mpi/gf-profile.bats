#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load ../cli/common

quick="--batch 2 --repeats 3:warmup=1 --threads 1 --points time=1ms --lanes 2 --max-bytes 1M"

# bats test_tags=long
@test "both halves, every algorithm of the build" {
	wants 0 mpi 2 gf-profile $quick --model digits-mlp
	jq -e '.network.ranks == 2 and (.network.allreduce | length) >= 2' out.txt
	diff <(jq -r '.network.allreduce[].algorithm' out.txt | uniq) <(names_of algorithms)
	jq -e '.network.allreduce[] | .startup_s >= 0 and .per_byte_s >= 0 and .startup_s + .per_byte_s > 0' out.txt
	jq -e '.network.allreduce[].fit | (.size_bytes | length) >= 8 and .r_squared <= 1
		and (.time_s | min) > 0 and (.time_s | length) == (.spread_s | length)' out.txt
	jq -e '.network.allreduce[].fit.size_bytes | .[0] == 1024 and .[-1] == 1048576' out.txt
	jq -e '.network.levels | length == 1 and .[0].name == "host" and .[0].fit.r_squared <= 1' out.txt
	jq -e '.model.overlap_slowdown >= 1' out.txt
	# a time of zero is not written; nor what backward does not slow
	jq -e '(.model.issue_s // 0) >= 0 and all(.network.allreduce[]; .beside_backward.message_slowdown // 1 | . >= 1)' out.txt
	jq -e '[.codecs[] | select(.device == "cpu" and .encode_s_per_byte > 0)] | length >= 6' out.txt
	jq -e '.measured | .model.ranks == 2 and .network.ranks == 2' out.txt
}

@test "the network alone, one algorithm, three lanes" {
	wants 0 mpi 3 gf-profile -a ring --points min_bytes=256,time=1ms --max-bytes 256K --lanes 3
	jq -e '(has("model") | not) and [.network.allreduce[].algorithm] == ["ring"]' out.txt
	jq -e '.network.ranks == 3' out.txt
	jq -e '[.network.allreduce[].contention[]?.gamma | length == 3 and .[0] == 1 and . == sort] | all' out.txt
	jq -e '.measured.network | has("memory") | not' out.txt
	wants 0 mpi 2 gf-profile -a ring --points min_bytes=256,time=1ms,callers_memory=on --max-bytes 256K --lanes 1
	jq -e '.measured.network.memory == "caller'"'s"'"' out.txt
}

# bats test_tags=long
@test "halves by themselves, on ranks that fold and do not" {
	for n in 2 3; do
		wants 0 mpi $n gf-profile -a ring,rhd,tree --collectives reduce_scatter,all_gather \
			--points min_bytes=256,time=1ms --max-bytes 64K --lanes 2
		jq -e '[.network.allreduce[] | "\(.algorithm) \(.collective // "all_reduce")"] | sort
			== ["rhd all_gather", "rhd all_reduce", "rhd reduce_scatter",
			"ring all_gather", "ring all_reduce", "ring reduce_scatter", "tree all_reduce"]' out.txt
		jq -e 'all(.network.allreduce[]; .startup_s >= 0 and .per_byte_s >= 0 and .startup_s + .per_byte_s > 0
			and (.fit.time_s | min) > 0 and (.fit.size_bytes | length) >= 8)' out.txt
		jq -e '[.network.allreduce[].contention[]?.gamma | length == 2 and .[0] == 1 and . == sort] | all' out.txt
		gf-profile --table out.txt > table.txt
		grep -q "^all-gather of $n ranks" table.txt
		jq '.network.allreduce |= map(select(.collective | not))' out.txt > whole.json
		gf-plan --model digits-mlp --policy dear out.txt -o plan.json 2> err.txt
		fails grep -q 'half of the all-reduce' err.txt
		jq -e '[.network.allreduce[].collective // empty] | length == 4' plan.json
		gf-plan --model digits-mlp --policy dear whole.json -o plan.json 2> err.txt
		grep -q 'assumed: half of the all-reduce' err.txt
	done
	# of one half alone, too; who asks for another is told
	wants 0 mpi 2 gf-profile -a ring --collectives all_gather --points min_bytes=256,time=1ms --max-bytes 64K --lanes 1
	jq -e '[.network.allreduce[].collective] == [null, "all_gather"]' out.txt
	wants 2 mpi 2 gf-profile -a ring --collectives scatter
	says '--collectives: want all_reduce, reduce_scatter or all_gather, got "scatter"'
}

@test "a pipe from gf-topo, and one rank" {
	gf-topo --synthetic "net:2@1Gb/s,50us" > topo.json
	mpi 2 gf-profile $quick --model digits-mlp -a ring < topo.json > out.txt
	jq -se 'map(.format) == ["gf-topology", "gf-profile"]' out.txt
	wants 0 mpi 1 gf-profile $quick --model digits-mlp
	says 'no network half'
	wants 0 mpi 2 gf-profile --batch 2 --repeats 3:warmup=1 --threads 1 --model digits-mlp -a none
	jq -e 'has("network") | not' out.txt
}

@test "levels: the given topology's, and algorithms that work by them" {
	gf-topo --synthetic "pair:2@8GB/s,1us,shm net:2@1Gb/s,50us" > topo.json
	wants 0 mpi 4 gf-profile -a blueconnect,ring --lanes 1 --budget 300ms --points time=1ms --max-bytes 256K topo.json
	jq -e '[.network.levels[].name] == ["pair", "net"]' out.txt
	jq -e '.network.levels[] | .alpha_s >= 0 and .beta_s_per_byte >= 0 and .alpha_s + .beta_s_per_byte > 0' out.txt
	# one stage at a time by each algorithm that can run there, then the best together
	jq -e '[.network.allreduce[] | select(.algorithm == "blueconnect") | [.stages[] | "\(.factor):\(.algorithm)"] | join(" ")]
		| .[:6] == ["2:shm 2:ring", "2:ring 2:ring", "2:mpi 2:ring", "2:shm 2:shm", "2:shm 2:mpi"] + .[5:6]
		and length <= 7 and length == (unique | length)' out.txt
	jq -e '[.network.allreduce[] | select(.algorithm == "blueconnect") | [.startup_s, .per_byte_s]] | unique | length >= 3' out.txt
	prints_table() { gf-profile --table out.txt | grep -E "$1"; }
	prints_table '^blueconnect 2:mpi 2:ring +f32 '
	jq -e '.network.allreduce[] | select(.algorithm == "ring") | has("stages") | not' out.txt
	gf-plan -q --model digits-mlp topo.json out.txt --algorithm blueconnect > plan.json
	jq -e '.messages[0].stages | length == 2' plan.json
	# on one level all of it is one stage
	gf-topo --synthetic "pair:2@8GB/s,1us,shm" > topo.json
	wants 0 mpi 2 gf-profile -a blueconnect --lanes 1 --budget 300ms --points time=1ms --max-bytes 256K topo.json
	jq -e '[.network.allreduce[].stages | if . then .[0].algorithm else "" end] == ["", "ring", "shm", "mpi"]' out.txt
}

@test "--budget bounds the time, --pairs tests every link" {
	wants 0 mpi 3 gf-profile --pairs --budget 1s
	prints 'rank 2'; prints 'latency: median'
	wants 0 mpi 3 gf-profile --pairs --table=json --budget 1s
	jq -se 'length == 6 and (map(.rate_bytes_per_s) | min) > 0 and (map(.slow) | any | not)' out.txt
	wants 2 mpi 1 gf-profile --pairs; says 'want two ranks or more'
	wants 2 gf-profile --pairs --model digits-mlp; says '--pairs goes without --model'
}

# bats test_tags=long
@test "the time that measuring takes is told before" {
	wants 0 mpi 2 gf-profile -a ring --lanes 1 --budget 1s --points time=20ms
	says 'measuring the network takes at least 2 s (--budget), longer beside other work'
}

@test "refusals end every rank, and are printed once" {
	gf-topo --synthetic "net:4@1Gb/s,50us" > topo.json
	wants 2 mpi 2 gf-profile $quick --model digits-mlp topo.json
	[ "$(grep -c 'the topology has 4 ranks, this job has 2' err.txt)" -eq 1 ]
	wants 2 mpi 1 gf-profile
	[ "$(grep -c 'nothing to measure' err.txt)" -eq 1 ]
	wants 2 mpi 2 gf-profile --model no-such-model
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

@test "ranks that differ find out at the start" {
	unlike gf-profile -a ring -- -a tree
	says 'ring'
	says 'tree'
	unlike gf-profile --max-bytes 1M -- --max-bytes 2M
	says '1024 to 1048576 bytes'
	says '1024 to 2097152 bytes'
	unlike gf-profile --model digits-mlp -- --model digits-cnn
	says 'model: '
	unlike gf-profile --pairs -- -a ring
	says 'command: '
	unlike gf-profile --model digits-mlp --batch 2 -- --model digits-mlp --batch 4
	says 'batch 4'
	unlike gf-profile --estimate --model digits-mlp --gpu h100 -- --model digits-mlp
	says 'command: rank 0 has --estimate, rank 1 has measure'
	by_rank gf-profile $quick --model digits-mlp --device cuda -- gf-profile $quick --model digits-mlp --device cpu
	wants 2 mpi 2 ./by_rank
	says 'rank 0 has batch 2, 1 + 3 repeats, cuda'
}

@test "ranks that are unlike measure together" {
	makes_apart
	quick="${quick/1M/64K} --budget 300ms -a ring --model digits-mlp"
	quick=${quick/--batch 2/--batch 64} # backward lasts longer than its messages
	# by MPI all ranks are on one host here
	local ucx=
	! gf-allreduce --list | grep -q '^transport  *ucx' || ucx='--transport ucx'
	wants 0 mpi 3 ./apart gf-profile $quick $ucx
	jq -e '(.model.tensors | length > 0) and .network.allreduce[0].beside_backward' out.txt
	# threads, and which backend of the host, are each rank's own affair
	by_rank gf-profile ${quick/--threads 1/} --device cpu -- gf-profile ${quick/--threads 1/} --threads 1 --device ref
	wants 0 mpi 2 ./by_rank
}

@test "a measurement that fails keeps the half that is whole" {
	makes_short 700000
	wants 3 mpi 2 ./short gf-profile --batch 2 --repeats 3:warmup=1 --threads 1 --points min_bytes=2G,time=1ms --lanes 1 -a ring \
		--max-bytes 64G --model digits-mlp -o half.json
	says 'the profile has the model half alone'
	says 'Cannot allocate memory'
	jq -e '.model.tensors and (has("network") or has("codecs") | not) and (.measured | has("model"))' half.json
	gf-profile -q --table half.json | grep digits-mlp
}

@test "the whole gradient is measured, however little time there is" {
	wants 0 mpi 2 gf-profile -q --model mnist-mlp --budget 300ms --points time=1ms --repeats 3
	# of the algorithm that is the fastest for it, the last point
	jq -e '([.model.tensors[].count_elems] | add * 4) as $bytes |
		.network.allreduce | any(.fit.size_bytes[-1] == $bytes) and any(.fit.size_bytes[-1] < $bytes)' out.txt
}
