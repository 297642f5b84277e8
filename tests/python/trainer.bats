#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# libgradflow's trainer beside PyTorch's optimisers.
load torch

setup_file() { needs_torch; needs_library; }

@test "PyTorch: the trainer's sgd and adamw take the steps of PyTorch's, to rounding" {
	for case in sgd adamw adamw_otherwise; do # MPI begins once in a process
		wants 0 timeout 60 mpirun --bind-to none -np 1 "$python" "$GF_SOURCE/tests/python/check_trainer.py" "$case"
	done
}
