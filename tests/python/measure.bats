#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# What a PyTorch job measures of itself: share/python/gradflow/measure.py.
load torch

setup_file() { needs_torch; }

@test "PyTorch, profile: wrapped, compiled, autocast, accumulated models; the optimiser" {
	holds measure 2 wrapped ignoring compiled mixed accumulated updated
}
@test "PyTorch, profile and memory: a model of fully_shard, and replicas of one" {
	able measure 2 sharded
	able measure 4 replicated
}
@test "PyTorch, profile: parameters that few steps use, or none" { holds measure 2 sometimes; }
@test "PyTorch, profile: what cannot be measured or written is refused at once" { holds measure 2 refused; }
@test "PyTorch, profile: costs are fitted to whole steps" {
	needs_library
	holds measure 2 fitted bounds
}
@test "PyTorch, profile: costs of a model of fully_shard are fitted to whole steps" {
	needs_library
	able measure 2 fitted_shards
}
@test "PyTorch: its profiler's trace is imported" { holds measure 2 trace; }
