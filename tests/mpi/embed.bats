#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# libgradflow in another program's loop (include/gradflow.h, tests/embed/job.c).
load ../cli/common

job() { # RANKS ARGUMENT...
	local ranks=$1
	shift
	[ -x "$GF_SOURCE/$BUILD/embed/job" ] || skip "no shared library in this build"
	timeout 300 mpirun --bind-to none -np "$ranks" "$GF_SOURCE/$BUILD/embed/job" "$@"
}

rule() { # JQ-FILTER: a rule with one message a tensor
	jq -n "{format: \"gf-plan\", version: 1, system: \"auto\", policy: \"threshold\",
		rule: {threshold_bytes: 1, lanes: 2, algorithms: [{min_bytes: 0, algorithm: \"ring\"}]},
		selection: {method: \"dense\"}, pipeline: {staleness: 1, warmup_steps: 0}} | $1" > rule.json
}

profile() { # of the tensors of job.c, in another order
	jq -n '{format: "gf-profile", version: 1, model: {name: "three", forward_s: 1, backward_s: 2,
		tensors: [{name: "a", count_elems: 8, dtype: "f32", ready_s: 1},
			{name: "b", count_elems: 6, dtype: "f32", ready_s: 1.5},
			{name: "c", count_elems: 5, dtype: "f32", ready_s: 2}]},
		network: {ranks: 2, allreduce: [{algorithm: "rhd", startup_s: 1e-5, per_byte_s: 1e-9}]}}' > three.json
}

@test "libgradflow: parameters are exact, whatever the order of gradients" {
	rule .
	wants 0 job 1 exact -
	wants 0 job 2 exact -
	wants 0 job 3 exact rule.json
	rule '.rule.algorithms[0].algorithm = "auto"'
	wants 0 job 2 exact rule.json
}

@test "libgradflow: a whole plan orders tensors by its names" {
	profile
	wants 0 gf-plan --policy wfbp three.json
	cp out.txt plan.json
	wants 0 job 2 exact plan.json
	wants 2 job 3 exact plan.json
	says "plan.json: the plan is for 2 ranks, this job has 3"
	wants 2 job 2 gtopk plan.json
	says "plan.json"
}

@test "libgradflow: gTop-k's vector, and what was put back" {
	rule '.selection = {method: "gtopk", density: 0.25, warmup_densities: [], putback: "paper"}'
	wants 0 job 4 gtopk rule.json
}

@test "libgradflow: stale gradients, as Pipe-SGD counts them" {
	rule '.pipeline.staleness = 2'
	wants 0 job 2 pipeline rule.json
	[ "$(cat out.txt)" = "1 1 0.9 0.8 0.71 0.63 0.559 0.496" ]
	rule .
	wants 0 job 2 pipeline rule.json
	[ "$(cut -d' ' -f1-4 out.txt)" = "1 0.9 0.81 0.729" ]
}

@test "libgradflow: a run goes on from its set bit for bit" {
	for method in '.' '.pipeline.staleness = 2' \
		'.selection = {method: "topk", density: 0.2, warmup_densities: [], putback: "paper"}' \
		'.selection = {method: "csc", chunk_elems: 2, keep: 0.5, warmup_steps: 2, decay: 0.9}'; do
		rule "$method"
		rm -rf set
		wants 0 job 2 save rule.json set
		whole=$(cat out.txt)
		wants 0 job 2 load rule.json set
		[ -n "$whole" ]
		[ "$whole" = "$(cat out.txt)" ]
	done
	wants 2 job 3 load rule.json set
	says "was written with ranks 2, this run has 3"
	fails says --re
	wants 2 job 2 epoch rule.json set
	says "was written with epoch_steps 0, this run has 7"
	wants 2 job 2 save rule.json set
	says "set: holds checkpoints of an earlier run: gradflow_load goes on"
	fails says --re
}

@test "libgradflow: what auto found is given to the next, and stored" {
	rule '.rule.algorithms[0].algorithm = "auto"'
	for way in ring rhd butterfly; do
		rm -rf set
		wants 0 job 2 ways rule.json "$way;$way;$way" set
		wants 0 job 2 loadways rule.json "$way;$way;$way" set
	done
	for what in ways algorithm; do
		wants 0 job 2 bad $what rule.json
	done
	wants 0 job 2 apart ways rule.json
	# a plan with algorithms keeps them
	rule .
	wants 0 job 2 ways rule.json "ring;ring;ring"
	wants 1 job 2 ways rule.json "rhd;rhd;rhd"
	says "ring;ring;ring"
}

@test "libgradflow: structs of earlier and of later versions" {
	rule .
	wants 0 job 2 sizes rule.json
}

@test "libgradflow: what it refuses, by name" {
	rule .
	for what in none count size name taken reserved bytes shape sum timeout training; do
		wants 0 job 2 bad $what rule.json
	done
	for what in epoch shape; do
		wants 0 job 2 apart $what rule.json
	done
	wants 1 job 2 exact absent.json
	says "absent.json"
	profile
	jq '.network.allreduce[0].algorithm = "ps"' three.json > ps.json
	wants 0 gf-plan --servers 1 --policy single ps.json
	cp out.txt plan.json
	wants 1 job 3 exact plan.json
	says "want a plan without servers, got one that has 1"
}

@test "libgradflow: calls out of order are refused and change nothing" {
	for method in . '.pipeline.staleness = 2'; do
		rule "$method"
		rm -rf set set-other
		wants 0 job 2 abandon rule.json
	done
	rule .
	wants 0 job 2 misuse rule.json set
	[ -d set/step-2 ]
	[ -d set-other/step-1 ]
}

@test "libgradflow: beside MPI calls of the program's own" {
	rule .
	wants 0 job 2 beside 2 rule.json
	wants 0 job 2 beside 3 rule.json
	rule '.rule.algorithms[0].algorithm = "library"'
	wants 0 job 2 beside 3 rule.json
}

@test "libgradflow: a rank that stops is named, and the others end" {
	rule .
	wants 1 job 3 hangs rule.json
	says "step 2, message 0 "
	says "rank 1 does not answer"
}

@test "libgradflow: programs that differ are told apart" {
	rule .
	[ -x "$GF_SOURCE/$BUILD/embed/job" ] || skip "no shared library in this build"
	by_rank "$GF_SOURCE/$BUILD/embed/job" exact rule.json -- "$GF_SOURCE/$BUILD/embed/job" pipeline rule.json
	wants 2 mpi 2 ./by_rank
	says "tensors"
}

@test "libgradflow: needs nothing of ours, and says nothing by itself" {
	[ -e "$GF_SOURCE/$BUILD/lib/libgradflow.so.0" ] || skip "no shared library in this build"
	# the names of versions are symbols, too, but not of every linker
	[ -z "$(nm -D --defined-only "$GF_SOURCE/$BUILD/lib/libgradflow.so.0" | grep -vE ' gradflow_| A GRADFLOW_')" ]
	# programs that were linked with the first version find what they had
	nm -D --defined-only "$GF_SOURCE/$BUILD/lib/libgradflow.so.0" | sed -n 's/.* T \(.*\)@@GRADFLOW_0$/\1/p' | sort > first.txt
	printf 'gradflow_%s\n' begin close count error load local_rank open parameters place rank ranks ready save \
		sent_bytes start step steps version ways | diff - first.txt
	# every function of the header is there, and beside them what programs of 0.2 call
	diff <({ grep -oE '\bgradflow_[a-z_]+\(' "$GF_SOURCE/include/gradflow.h"; printf 'gradflow_post%s\n' '' _many; } | tr -d '(' | sort -u) \
		<(nm -D --defined-only "$GF_SOURCE/$BUILD/lib/libgradflow.so.0" | grep -oE ' gradflow_[a-z_]+' | tr -d ' ' | sort -u)
	rule .
	wants 0 job 2 exact rule.json
	[ ! -s out.txt ]
	[ ! -s err.txt ]
}

@test "libgradflow: a program of an earlier header" {
	[ -x "$GF_SOURCE/$BUILD/embed/older" ] || skip "no shared library in this build"
	wants 0 timeout 60 "$GF_SOURCE/$BUILD/embed/older"
	wants 0 timeout 60 "$GF_SOURCE/$BUILD/embed/older" trainer
}

@test "libgradflow: NULL, not a number, two threads, a forked child" {
	[ -x "$GF_SOURCE/$BUILD/embed/misuse" ] || skip "no shared library in this build"
	wants 0 timeout 60 "$GF_SOURCE/$BUILD/embed/misuse" nothing
	wants 0 timeout 60 mpirun --bind-to none -np 2 "$GF_SOURCE/$BUILD/embed/misuse" trainer
}
