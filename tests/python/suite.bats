#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch's own tests of DistributedDataParallel and of fully_shard.
load torch

in_place() { # SCRIPT: tests/python/SCRIPT, which may skip itself
	[ -n "${GF_PYTHON:-}" ] || skip "minutes: make check-torch runs it"
	status=0
	timeout 2400 "$python" "$GF_SOURCE/tests/python/$1" > out.txt 2> err.txt || status=$?
	[ "$status" -ne 77 ] || skip "$(tail -n 1 out.txt)"
	[ "$status" -eq 0 ] || { tail -n 20 err.txt; grep -vE '^ *[0-9.]+ s  (passed|skipped|n/a) ' out.txt; return 1; }
}

@test "PyTorch's own tests of DistributedDataParallel, with gradflow.ddp in its place" {
	in_place check_suite.py
}

@test "PyTorch's own tests of fully_shard, with the halves of gradflow.shard" {
	in_place check_fsdp_suite.py
}
