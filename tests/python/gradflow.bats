#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A PyTorch job from profile to plan: share/examples/pytorch_job.py.
load torch

job() { # RANKS ARGUMENT...: what torchrun does; rank 0's output and errors remain
	local ranks=$1 r status=0 pids=() meeting
	shift
	meeting=$(mktemp -u "$PWD/meeting.XXXXXX")
	for ((r = ranks - 1; r >= 0; r--)); do
		GF_MEETING="file://$meeting?rank=$r&world_size=$ranks" GF_STEPS=12 GF_WIDTH=16 GF_BUDGET=1 \
			timeout 600 "$python" "$share/examples/pytorch_job.py" "$@" > out.txt.$r 2> err.txt.$r &
		pids+=($!)
	done
	for r in "${pids[@]}"; do wait "$r" || status=1; done
	mv out.txt.0 out.txt
	output=$(cat out.txt) errors=$(cat err.txt.*)
	[ "$status" -eq 0 ] || { echo "$errors"; return 1; }
}

@test "PyTorch: profile, plan, train, refine; the loss is DistributedDataParallel's" {
	job 2 profile model.json network.json
	jq -e '.network.ranks == 2 and (.network.allreduce | length) > 1' network.json
	jq -e '[.model.tensors[].name] | first == "11.bias" and (sort | length) == 10' model.json
	jq -e '.network["x-step-without-plan-s"] > 0' network.json
	wants 0 gf-plan --policy mg-wfbp model.json network.json
	# it is followed, however long steps took without a plan
	jq 'del(.network["x-step-without-plan-s"])' out.txt > plan.json
	job 2 train plan.json trace.json
	loss=$(sed -n 's/^train: loss \([0-9.]*\),.*/\1/p' out.txt)
	prints "step measured"
	# the last step has no end
	[ "$(jq '[.traceEvents[] | select(.cat == "message")] | length' trace.json)" -eq \
		$((2 * 11 * $(jq '.messages | length' plan.json))) ]
	wants 0 gf-report trace.json --plan plan.json
	jq -se '.[0] | .ranks == 2 and .matched > 0 and .compute_s > 0 and .best_s > 0' out.txt
	wants 0 gf-plan --refine trace.json plan.json
	says "medians of 10 steps"
	job 2 ddp
	[ -n "$loss" ]
	awk -v a="$loss" -v b="$(sed -n 's/^ddp: loss \([0-9.]*\),.*/\1/p' out.txt)" \
		'BEGIN { d = a - b; exit !(b > 0 && d < 1e-5 && d > -1e-5) }'
	fails ls .gradflow-*
}

@test "PyTorch: the package's commands, version and list of parts need no PyTorch" {
	export PYTHONPATH=$share/python
	"$python" -c 'import sys, gradflow.commands; assert "torch" not in sys.modules'
	"$python" -c 'import gradflow; assert set(gradflow.__all__) <= {n for n in gradflow.__all__ if hasattr(gradflow, n)}'
	[ "$("$python" -c 'import gradflow; print(gradflow.__version__)')" = "$(sed -n 's/^VERSION *:= //p' "$GF_SOURCE/Makefile")" ]
	wants 0 "$python" -m gradflow
	prints "libgradflow  $GRADFLOW_LIBRARY, " "PyTorch      " "gf-plan      /"
	printf 'raise ImportError("no PyTorch here")\n' > torch.py
	PYTHONPATH=$PWD:$PYTHONPATH wants 1 "$python" -m gradflow
	prints "PyTorch      missing: no PyTorch here"
}
