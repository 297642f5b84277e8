#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans of shards under PyTorch's fully_shard: gf-plan --emit fsdp2.
load torch

setup_file() { needs_torch; }

@test "PyTorch, fully_shard: a plan's units, what it keeps and gathers ahead; tied weights; replicas" {
	able fsdp2 2 layers blocks tied
	able fsdp2 4 copies
}
