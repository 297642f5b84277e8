#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Buckets of DistributedDataParallel as gf-plan foresees them.
load torch

setup_file() { needs_torch; }

@test "policy ddp fills buckets as PyTorch does" { holds buckets 40; }
