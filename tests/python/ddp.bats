#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans under DistributedDataParallel: share/python/gradflow/ddp.py. GF_PYTHON is the
# interpreter that has PyTorch; of any version from 1.13 on.
load torch

holds() { # RANKS CASE...
	wants 0 timeout 600 "$python" "$GF_SOURCE/tests/python/check_ddp.py" "$@"
}

@test "PyTorch, hook: f32 over a ring is DistributedDataParallel's result" { holds 2 same; }
@test "PyTorch, hook: the same on three ranks, and uneven inputs" { holds 3 same uneven; }
@test "PyTorch, hook: fused AdamW, a schedule, clipping, autocast, accumulation" { holds 2 whole_job; }
@test "PyTorch, hook: messages that cut and join buckets; on a GPU's stream" { holds 2 cuts device by_host; }
@test "PyTorch, hook: channels_last, autocast, a wrapper; 16-bit parameters" { holds 2 formats types; }
@test "PyTorch, hook: several models, and groups of 2 + 2 ranks" { holds 4 several groups; }
@test "PyTorch, hook: every codec and selection learns and sends less" { holds 2 plans; }
@test "PyTorch, hook: stale gradients are those of the step before" { holds 2 stale; }
@test "PyTorch, hook: a plan's file, and buckets of its sizes" { holds 2 file; }
@test "PyTorch, hook: a job that was stopped goes on bit for bit" { holds 2 resumed; }
@test "PyTorch, fully_shard: replicas' means are its own all-reduce's, or smaller; its state; refusals" {
	for case in same selections resumed refusals; do
		status=0
		timeout 600 "$python" "$GF_SOURCE/tests/python/check_hsdp.py" "$case" > out.txt 2>&1 || status=$?
		! grep -q '^skipped: ' out.txt || skip "$(cat out.txt)"
		[ "$status" -eq 0 ] || { cat out.txt; return 1; }
	done
}
@test "PyTorch, hook: refusals name the parameter and the remedy" { holds 2 refusals; }
@test "PyTorch, hook: the same on GPUs, by NCCL and by the host" {
	status=0
	timeout 600 "$python" "$GF_SOURCE/tests/python/check_gpu.py" nccl 1 dense codecs stale job > out.txt 2>&1 || status=$?
	[ "$status" -ne 77 ] || skip "$(tail -n 1 out.txt)"
	[ "$status" -eq 0 ] || { cat out.txt; return 1; }
	wants 0 timeout 600 "$python" "$GF_SOURCE/tests/python/check_gpu.py" gloo 2 dense codecs selections stale job tuned
}
