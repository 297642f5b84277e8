#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans that a PyTorch job makes of itself, and what it records of its steps:
# share/python/gradflow/tune.py, record.py. GF_PYTHON is the interpreter that has PyTorch.
load torch

holds() { # RANKS CASE...
	wants 0 timeout 600 "$python" "$GF_SOURCE/tests/python/check_tune.py" "$@"
}

@test "PyTorch, tune: a plan is made, taken up and kept, in DistributedDataParallel's bits" { holds 2 kept; }
@test "PyTorch, tune: a plan that is not faster is dropped" { holds 2 dropped; }
@test "PyTorch, tune: accumulated steps" { holds 2 accumulated; }
@test "PyTorch, tune: what fails leaves the job as it was" { holds 2 failed; }
@test "PyTorch, Record: messages beside their prediction, lines, a trace" {
	holds 2 recorded
	[ "$(grep -c "^gradflow: step [0-9]*: .* ms: forward" err.txt)" -eq 5 ]
}
