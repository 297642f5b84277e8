#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans that a PyTorch job makes of itself, and what it records of its steps:
# share/python/gradflow/tune.py, record.py.
load torch

@test "PyTorch, tune: a plan is kept or dropped; accumulated steps; what fails leaves the job as it was" {
	holds tune 2 kept dropped accumulated routed failed single
}
@test "PyTorch, tune: shards begin as fully_shard's, and go by a plan or stay so" { able tune 2 sharded; }
@test "PyTorch, Record: messages beside their prediction, lines, a trace" {
	holds tune 2 recorded
	[ "$(grep -c "^gradflow: step [0-9]*: .* ms: forward" err.txt)" -eq 5 ]
}
@test "PyTorch, Record: what gradients are like" { holds tune 2 statistics; }
