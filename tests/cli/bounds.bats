#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Small documents that ask for much: the answer comes before the work, within
# an address space of 1 GB.
load common

bounded() { # STATUS COMMAND...
	(! is_bounded || ulimit -v 1000000 && wants "$@")
}

@test "ranks that are too many to replay are counted before they are built" {
	gf-plan -q --model resnet20 --gpu v100 "$share/topologies/4x2-1gbe.json" > plan.json
	jq -c '.ranks = 16777216' plan.json > many.json
	bounded 0 gf-sim --steps many.json
	grep -q 'more than 2e+06 steps are not replayed' err.txt
	bounded 1 gf-sim --slow-link 3:2 many.json
	grep -q 'slow links are replayed: want at most 2e+06 steps' err.txt
}

@test "a staleness that no simulated step reaches takes no memory" {
	gf-plan -q --policy wfbp --lanes 1 --model resnet20 --gpu v100 "$share/topologies/4x2-1gbe.json" > plan.json
	jq -c '.pipeline.staleness = 1000000' plan.json > stale.json
	bounded 0 gf-sim --jitter 0.1:runs=10 stale.json
	jq -c '.pipeline.staleness = 1000' plan.json > thousand.json
	jq -c 'del(.staleness, .unlimited_s)' out.txt > want.txt
	bounded 0 gf-sim --jitter 0.1:runs=10 thousand.json
	jq -c 'del(.staleness, .unlimited_s)' out.txt | cmp want.txt -
}

@test "lines and sizes of a cost are limited" {
	jq -c '.network.allreduce[0].larger = [range(101) |
		{from_bytes: (. + 1), startup_s: 3, per_byte_s: 0.25}]' "$share/profiles/six.json" > lines.json
	wants 2 gf-plan lines.json
	grep -q 'larger: want at most 100 lines, got 101' err.txt
	jq -c '.network.allreduce[0].contention = [range(1001) |
		{size_bytes: (. + 1), gamma: [1, 1.5]}]' "$share/profiles/six.json" > sizes.json
	wants 2 gf-plan sizes.json
	grep -q 'contention: want at most 1000 sizes, got 1001' err.txt
}

@test "pairs of many ranks, and a factor that has a limit" {
	gf-plan -q --lanes 1 --algorithm ring --policy single --model resnet20 --gpu v100 \
		"$share/topologies/4x2-1gbe.json" > plan.json
	jq -nc 'range(8) | {from_rank: ., to_rank: ((. + 1) % 8), rate_bytes_per_s: (if . == 3 then 0.001 else 1e15 end),
		slow: (. == 3)}' > pairs.json
	wants 0 gf-sim --pairs pairs.json plan.json
	grep -q 'rank 3 has 1/1e+06 of the median bandwidth out' err.txt
	jq -nc 'range(20000) | {from_rank: (2 * .), to_rank: (2 * . + 1), rate_bytes_per_s: 1e9, slow: false}' > many.json
	jq -c '.ranks = 40000' plan.json > wide.json
	bounded 0 gf-sim --pairs many.json wide.json
}

@test "an imported table says where it has no whole number and no algorithm" {
	sed 's/"ranks": *[0-9]*/"ranks": 4.5/' "$data/import/allreduce.json" > ranks.json
	wants 2 gf-profile --import ranks.json
	grep -q 'ranks.json:1: /ranks: want an integer, got 4.5' err.txt
	sed 's/"chosen": *"[a-z]*"/"chosen": ""/' "$data/import/allreduce.json" > chosen.json
	wants 2 gf-profile --import chosen.json
	grep -q 'chosen.json:[0-9]*: /chosen: want an algorithm, got none' err.txt
}

@test "data that swell or never come are refused" {
	mkdir swollen waiting
	head -c 64M /dev/zero | tr '\0' a | gzip > swollen/all.txt.gz
	wants 2 gf-train --device cpu --steps 1 --model lstm-text --data swollen
	says 'swollen/all.txt.gz: want at most 50 bytes from a byte of gzip, got more'
	mkfifo waiting/train.txt
	wants 2 timeout 60 gf-train --device cpu --steps 1 --model lstm-text --data waiting
	says 'waiting/train.txt: want a regular file'
}

@test "what stands for more than it holds is refused in a line" {
	{
		printf 'a: &a "%s"\nm: &m {' "$(printf '%02000d' 0)"
		printf 'k%d: *a, ' {1..95}
		printf '}\ncluster_default: true\nl: ['
		printf '*m, %.0s' {1..5000}
		echo ']'
	} > aliases.yaml
	bounded 2 gf-topo --import slurm:aliases.yaml
	says 'aliases.yaml:1: want at most 64 levels, 2^19 entries and 2^26 bytes, each alias (*) with all that it stands for, got more'
	{
		printf '<system version="2"><cpu>'
		head -c 8M /dev/zero | sed 's/\x00/<a\/>/g'
		printf '</cpu></system>'
	} | gzip > bomb.gz
	bounded 2 gf-topo --import bomb.gz
	says 'bomb.gz: want at most 50 bytes and 2 entries from a byte of gzip, and 1073741824 bytes in all, got more: unpack it by gunzip first'
	head -c 8M /dev/zero | tr '\0' ' ' | gzip > blank.gz
	bounded 2 gf-profile --import blank.gz
	says 'blank.gz: want at most 50 bytes and 2 entries from a byte of gzip, and 1073741824 bytes in all, got more: unpack it by gunzip first'
	gf-plan -q --policy wfbp --model resnet152 --gpu v100 "$share/topologies/4x2-1gbe.json" > plan.json
	jq -nc '{traceEvents: [range(16000) | {ph: "X", cat: "forward", name: "f", pid: 0, ts: (2 * .), dur: 1}]}' > trace.json
	bounded 2 gf-plan --refine trace.json plan.json
	grep -q 'trace.json: want each tensor and message of the plan in each of 16000 steps, got a trace' err.txt
	bounded 0 gf-report --plan plan.json trace.json
}

# Of those that take more than a second, some have another beside them for the same document or
# reader.
has_another='gf-plan (--explain|--lanes 64) uneven|gf-plan --(compare|emit ddp) tensors|gf-plan .*lstm-4900'
has_another+='|--compare topology-divisors|blank\.log\.gz|gf-topo --import lines\.conf\.gz'

@test "no document below 1 MB takes more than 5 s or 512 MB: each 24th" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	is_bounded || skip "a sanitizer needs more"
	python3 "$BATS_TEST_DIRNAME/big_inputs.py" "$GF_SOURCE" | grep -vE "$has_another" | awk 'NR % 24 == 1' > commands
	[ "$(wc -l < commands)" -gt 3 ]
	python3 "$BATS_TEST_DIRNAME/bounded.py" < commands
	# a plan with more lanes than there can be messages
	gf-plan -q --model resnet20 --gpu v100 "$share/topologies/4x2-1gbe.json" | jq '.lanes = 1000000' > lanes.json
	gf-plan -q "$share/topologies/4x2-1gbe.json" | jq '.rule.lanes = 1000 | .rule.threshold_bytes = 0' > rule.json
	{
		printf 'gf-sim %slanes.json\n' '' '--verify ' '--jitter 0.1 ' '--ranks 65536 '
		printf 'gf-plan %s 4x2-1gbe\n' '--lanes 1000 digits-cnn' '--lanes 1000 --gpu v100 resnet152'
		printf 'gf-plan --ranks 8 --model %s rule.json\n' digits-cnn 'resnet152 --gpu v100'
	} | python3 "$BATS_TEST_DIRNAME/bounded.py"
}

@test "nor does one of which a single place is filled, or packed" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	is_bounded || skip "a sanitizer needs more"
	python3 "$BATS_TEST_DIRNAME/filled_documents.py" "$GF_SOURCE" --cases 1 --seed 1
}

# bats test_tags=long
@test "nor do the others, and the dear ones" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	is_bounded || skip "a sanitizer needs more"
	python3 "$BATS_TEST_DIRNAME/big_inputs.py" "$GF_SOURCE" > all
	grep -E "$has_another" all > commands
	[ "$(wc -l < commands)" -eq 8 ]
	grep -vE "$has_another" all | awk 'NR % 24 != 1' >> commands
	python3 "$BATS_TEST_DIRNAME/bounded.py" < commands
}

# bats test_tags=long
@test "nor do these, wherever they are filled" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	is_bounded || skip "a sanitizer needs more"
	python3 "$BATS_TEST_DIRNAME/filled_documents.py" "$GF_SOURCE" --seconds "${HOSTILE_SECONDS:-60}" --seed "${SEED:-1}"
}

# bats test_tags=long
@test "no shipped document with a changed value does, either" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	is_bounded || skip "a sanitizer needs more"
	python3 "$BATS_TEST_DIRNAME/hostile_documents.py" "$GF_SOURCE" --seconds "${HOSTILE_SECONDS:-60}" --seed "${SEED:-1}"
}
