#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The weights, and what ranks keep back, as a second trainer in Python has them.
load ../cli/common

second_trainer() { # RANKS STEPS CASE...
	command -v python3 > /dev/null || skip "python3 is not installed"
	wants 0 timeout 600 python3 "$GF_SOURCE/tests/mpi/second_trainer.py" "$@"
}

@test "optimisers and codecs as a second trainer has them" {
	second_trainer 3 3 momentum nesterov lars clip trunc16 q8 fp8 fp4
}

@test "top-k and gTop-k as a second trainer has them" {
	second_trainer 3 3 topk gtopk gtopk-conserve gtopk-naive gtopk-all gtopk-one
}

@test "GradientFlow's chunks as a second trainer has them" {
	second_trainer 2 4 csc csc-warmup csc-decay csc-clip
}

@test "stale gradients as a second trainer has them" {
	second_trainer 2 4 stale-2 stale-3 stale-warmup
}
