#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans of shards under PyTorch's fully_shard: gf-plan --emit fsdp2.
load torch

setup_file() { needs_torch; }

@test "PyTorch, fully_shard: a plan's units, what it keeps and gathers ahead; replicas" {
	local run
	for run in "2 layers blocks" "4 copies"; do
		status=0
		timeout 600 "$python" "$GF_SOURCE/tests/python/check_fsdp2.py" $run > out.txt 2>&1 || status=$?
		! grep -q '^skipped: ' out.txt || skip "$(cat out.txt)"
		[ "$status" -eq 0 ] || { cat out.txt; return 1; }
	done
}
