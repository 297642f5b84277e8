#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Plans in PyTorch jobs: share/python/gradflow and share/examples/pytorch_job.py.
load ../cli/common

setup_file() { # finds the interpreter that has PyTorch
	for python in ${GF_PYTHON:-python3 /usr/bin/python3} ''; do
		[ -n "$python" ] || break
		"$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2> /dev/null && break
	done
	export python
}
torch() { [ -n "$python" ] || skip "no PyTorch with gloo"; }

holds() { # CASE [RANKS]
	torch
	wants 0 timeout 600 "$python" "$GF_SOURCE/tests/python/check_gradflow.py" "$@"
}

job() { # RANKS ARGUMENT...: what torchrun does; rank 0's output and errors remain
	local ranks=$1 r status=0 pids=() meeting
	shift
	meeting=$(mktemp -u "$PWD/meeting.XXXXXX")
	for ((r = ranks - 1; r >= 0; r--)); do
		GF_MEETING="file://$meeting?rank=$r&world_size=$ranks" GF_STEPS=12 GF_WIDTH=16 \
			timeout 600 "$python" "$share/examples/pytorch_job.py" "$@" > out.txt.$r 2> err.txt.$r &
		pids+=($!)
	done
	for r in "${pids[@]}"; do wait "$r" || status=1; done
	mv out.txt.0 out.txt
	output=$(cat out.txt) errors=$(cat err.txt.*)
	[ "$status" -eq 0 ] || { echo "$errors"; return 1; }
}

@test "PyTorch: means are exact, messages are the plan's, in its order (2 ranks)" { holds exact; }
@test "PyTorch: the same on three ranks" { holds exact 3; }
@test "PyTorch: one start, and replicas stay equal" { holds replicas 3; }
@test "PyTorch: f16 on the wire" { holds wires; }
@test "PyTorch: a message released at backward's end waits for it" { holds late; }
@test "PyTorch: no more messages in flight than lanes" { holds lanes; }
@test "PyTorch: stale gradients are those of K - 1 steps before" { holds pipeline; }
@test "PyTorch: accumulation, parameters without a gradient, a backward too many" { holds accumulate; }
@test "PyTorch: half a message twice is not a message" { holds halves; }
@test "PyTorch: a trace of steps that overlap" { holds traced; }
@test "PyTorch: a rule binds to the model" { holds rule; }
@test "PyTorch: what it cannot execute is refused with the place" { holds refusals; }

@test "PyTorch: profile, plan, train, refine; the loss is DistributedDataParallel's" {
	torch
	job 2 profile model.json network.txt
	wants 0 gf-profile --import network.txt
	cp out.txt network.json
	jq -e '.network.ranks == 2 and .network.allreduce[0].algorithm == "library"' network.json
	jq -e '[.model.tensors[].name] | first == "11.bias" and (sort | length) == 10' model.json
	wants 0 gf-plan --policy mg-wfbp model.json network.json
	cp out.txt plan.json
	job 2 train plan.json trace.json
	loss=$(sed -n 's/^train: loss \([0-9.]*\),.*/\1/p' out.txt)
	prints "iteration measured"
	[ "$(jq '[.traceEvents[] | select(.cat == "message")] | length' trace.json)" -eq \
		$((2 * 12 * $(jq '.messages | length' plan.json))) ]
	wants 0 gf-plan --refine trace.json plan.json
	says "medians of 11 steps"
	job 2 ddp
	[ -n "$loss" ]
	awk -v a="$loss" -v b="$(sed -n 's/^ddp: loss \([0-9.]*\),.*/\1/p' out.txt)" \
		'BEGIN { d = a - b; exit !(b > 0 && d < 1e-5 && d > -1e-5) }'
	fails ls .gradflow-*
}
