#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# init_process_group("gradflow"): share/python/gradflow/backend.py. GF_PYTHON is the
# interpreter that has PyTorch; 1.13 has no process groups of this kind.
load torch

holds() { # RANKS CASE...
	local status=0
	timeout 600 "$python" "$GF_SOURCE/tests/python/check_backend.py" "$@" > out.txt 2>&1 || status=$?
	! grep '^skipped: ' out.txt || skip "$(cat out.txt)"
	[ "$status" -eq 0 ] || { cat out.txt; return 1; }
}

@test "PyTorch, process group: unchanged DistributedDataParallel has gloo's bits" { holds 2 same; }
@test "PyTorch, process group: every size, type and operation" { holds 3 sums others; }
@test "PyTorch, process group: groups of 2 + 2 ranks, a rule's algorithm, refusals" { holds 4 groups ruled; }
@test "PyTorch, process group: a rank that ends is named" { holds 2 lost; }
