#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# fully_shard's halves by gradflow: share/python/gradflow/shards.py. On two ranks they are the bits
# of fully_shard itself.
load torch

shards() { able shard "$@"; } # RANKS CASE...

@test "PyTorch, shards: halves by an exchange; fully_shard's bits; precision, factors, accumulation" {
	shards 2 halves same precision accumulated factors clipped
}
@test "PyTorch, shards: offload, checkpointing, torch.compile, frozen, tied, from meta, columns" {
	shards 2 offloaded recomputed compiled frozen tied meta columns replaced untaken without_elements
}
@test "PyTorch, shards: several models, forwards between, unused parameters, other orders and lengths" {
	shards 2 several looked ordered lengths taken nested let_go
}
@test "PyTorch, shards: optimisers and hooks in backward, and exceptions" { shards 2 in_backward raises; }
@test "PyTorch, shards: checkpoints of fully_shard and for it; ZeRO-1 beside gradflow.ddp" {
	shards 2 checkpointed zero1
}
@test "PyTorch, shards: units of plans, codecs within their errors, refusals" { shards 2 by_plan coded refusals; }
@test "PyTorch, shards: the same on three ranks" { shards 3 halves same precision accumulated meta coded by_plan; }
@test "PyTorch, shards: replicas, by a selection too; given back to fewer ranks; refused meshes" {
	shards 4 hybrid selected given_back_to_fewer of_unlike_meshes several
}
@test "PyTorch, shards: a rank that is gone is told at once" {
	shards 2 lost
	grep -q '^gradflow: .*rank 1 is gone' out.txt
	shards 3 lost_in_backward
	[ "$(grep -c '^gradflow: .*rank [0-2] is gone' out.txt)" -ge 1 ]
}
