#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Buckets of DistributedDataParallel as gf-plan foresees them.
load ../cli/common

setup_file() { # finds an interpreter that has PyTorch
	for python in python3 /usr/bin/python3 ''; do
		[ -n "$python" ] || break
		"$python" -c 'import torch.distributed as d; assert d.is_available()' 2> /dev/null && break
	done
	export python
}

@test "policy ddp fills buckets as PyTorch does" {
	[ -n "$python" ] || skip "no PyTorch"
	wants 0 timeout 300 "$python" "$GF_SOURCE/tests/python/check_buckets.py" 40
}
