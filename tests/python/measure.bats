#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# What a PyTorch job measures of itself: share/python/gradflow/measure.py. GF_PYTHON is
# the interpreter that has PyTorch.
load ../cli/common

setup_file() {
	for python in ${GF_PYTHON:-python3 /usr/bin/python3}; do
		"$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2> /dev/null || continue
		export python
		return
	done
	skip "no PyTorch with gloo"
}

holds() { # RANKS CASE...
	wants 0 timeout 600 "$python" "$GF_SOURCE/tests/python/check_measure.py" "$@"
}

@test "PyTorch, profile: wrapped, compiled, autocast, accumulated models" {
	holds 2 wrapped compiled mixed accumulated
}
@test "PyTorch, profile: parameters that few steps use, or none" { holds 2 sometimes; }
@test "PyTorch: its profiler's trace is imported" { holds 1 trace; }
