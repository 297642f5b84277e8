#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans with a period in a PyTorch job: share/python/gradflow/periodic.py.
load torch

@test "PyTorch, Periodic: every period's parameters, by hand and simulated; codecs; types" {
	holds periodic 2 same by_hand codecs kinds
}
@test "PyTorch, Periodic: a job that goes on bit for bit, refusals, a rank that does not come" {
	holds periodic 2 resumed refusals replaced checkpointed lost
}
@test "PyTorch, Periodic: a rank that comes back takes the others' state" { holds periodic 3 joined; }
@test "PyTorch, Periodic: between sites of two ranks, by one plan" { holds periodic 4 sites; }
@test "PyTorch, Periodic: between shards' replicas of fully_shard" { able periodic 4 sharded; }
