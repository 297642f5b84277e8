#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# libgradflow's trainer beside PyTorch's optimisers.
load ../cli/common

setup_file() { # finds the interpreter that has PyTorch
	for python in ${GF_PYTHON:-python3 /usr/bin/python3} ''; do
		[ -n "$python" ] || skip "no PyTorch"
		"$python" -c 'import torch' 2> /dev/null && break
	done
	export python GRADFLOW_LIBRARY=$GF_SOURCE/$BUILD/lib/libgradflow.so.0
	[ -e "$GRADFLOW_LIBRARY" ] || skip "no shared library in this build"
}

@test "PyTorch: the trainer's sgd and adamw take the steps of PyTorch's, to rounding" {
	for case in sgd adamw adamw_otherwise; do
		wants 0 timeout 60 mpirun --bind-to none -np 1 "$python" "$GF_SOURCE/tests/python/check_trainer.py" "$case"
	done
}
