#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

# A second model of the time model, the policies and the optimum, in Python.
@test "predictions, cuts and optima as an independent model has them" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	wants 0 timeout 300 python3 "$GF_SOURCE/tests/cli/step_model.py" 1 12
}
