#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# powersgd by the hook that PyTorch has for it.
load common

@test "--emit ddp: powersgd by PyTorch's hook, or refused" {
	local job=(--model resnet50 --gpu v100 "$share/topologies/asc-wfbp-8x4-10gbe.json") cap
	wants 0 gf-plan "${job[@]}" --emit ddp --selection powersgd:rank=2
	prints "process_group=None, matrix_approximation_rank=2,"
	prints "model.register_comm_hook(state, hooks.powerSGD_hook)"
	# the cap is the best one by that hook, whose messages are short
	cap=$(sed -n 's/.*"bucket_cap_mb": \([0-9.]*\)}.*/\1/p' out.txt)
	ms=$(gf-plan -q "${job[@]}" --policy ddp --selection powersgd:rank=2 --algorithm library --lanes 1 --threshold "${cap}M" |
		jq .predicted.iteration_s | awk '{ printf "%.3g ms\n", 1000 * $1 }')
	says "buckets of $cap MiB: $ms"
	wants 1 gf-plan "${job[@]}" --emit ddp --selection powersgd --codecs f16
	says "DistributedDataParallel has no PowerSGD in codec f16"
	gf-plan -q --model resnet50 --selection powersgd --emit ddp "$share/topologies/4x2-1gbe.json" > ddp.py
	python3 -m py_compile ddp.py
}
