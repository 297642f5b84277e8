#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch's own tests of DistributedDataParallel: check_suite.py.
load torch

@test "PyTorch's own tests of DistributedDataParallel, with gradflow.ddp in its place" {
	[ -n "${GF_PYTHON:-}" ] || skip "minutes: make check-torch runs it"
	status=0
	timeout 1200 "$python" "$GF_SOURCE/tests/python/check_suite.py" > out.txt 2> err.txt || status=$?
	[ "$status" -ne 77 ] || skip "$(tail -n 1 out.txt)"
	[ "$status" -eq 0 ] || { tail -n 20 err.txt; grep -vE '^ *[0-9.]+ s  (passed|skipped|n/a) ' out.txt; return 1; }
}
