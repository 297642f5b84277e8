#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A PyTorch job on an emulated cluster (root): its steps by gf-plan's plans beside
# DistributedDataParallel's, in turns, and predicted beside measured. All over gloo.
#   tests/bench/pytorch.sh [RATE]     HOSTS (4), ROUNDS (3), GF_WIDTH, GF_STEPS
set -u
cd "$(dirname "$0")/../.." || exit 1
export PATH="$PWD/${BUILD:-build}/bin:$PATH"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
hosts=${HOSTS:-4} rounds=${ROUNDS:-3} rate=${1:-1gbit} lab=pytorch
export GF_WIDTH=${GF_WIDTH:-192} GF_STEPS=${GF_STEPS:-15}
for python in python3 /usr/bin/python3 ''; do
	[ -z "$python" ] || "$python" -c 'import torch.distributed' 2> /dev/null || continue
	break
done
[ -n "$python" ] || { echo "skipped: no PyTorch"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'share/lab/gf-lab down "$lab" > /dev/null 2>&1; rm -rf "$work"' EXIT
share/lab/gf-lab up "$lab" --hosts "$hosts" --ranks 1 --rate "$rate" --shaper htb > /dev/null 2>&1 ||
	{ echo "skipped: no lab"; exit 77; }

job() { # ARGUMENT...: of share/examples/pytorch_job.py
	# shellcheck disable=SC2016 # the ranks expand it
	share/lab/gf-lab run "$lab" --timeout 200 -- env GLOO_SOCKET_IFNAME=eth0 \
		MASTER_ADDR=h0 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE="$hosts" \
		sh -c 'RANK=$OMPI_COMM_WORLD_RANK exec "$@"' job "$python" "$PWD/share/examples/pytorch_job.py" "$@"
}
step_ms() { sed -n 's/.* \([0-9.]*\) ms a step.*/\1/p' | tail -n 1; }
median() { sort -n | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2}'; }

job profile "$work/model.json" "$work/network.txt" || exit 1
gf-profile -q --import "$work/network.txt" > "$work/network.json" || exit 1
options() { # what gf-plan is asked for
	case $1 in
	f16) echo --codecs f16 ;;
	K=2) echo --staleness 2 ;;
	K=2,f16) echo --staleness 2 --codecs f16 ;;
	*) echo --policy "$1" ;;
	esac
}
policies="single wfbp mg-wfbp asc-wfbp optimal f16 K=2 K=2,f16"
for policy in $policies; do
	# shellcheck disable=SC2046 # words
	gf-plan -q $(options "$policy") "$work/model.json" "$work/network.json" > "$work/$policy.json" || exit 1
done
for ((round = 0; round < rounds; round++)); do
	for policy in $policies; do job train "$work/$policy.json" | step_ms >> "$work/$policy.ms"; done
	job ddp | step_ms >> "$work/ddp.ms"
done
ddp=$(median < "$work/ddp.ms")
jq -r '"forward \(.model.forward_s * 1e3) ms, backward \(.model.backward_s * 1e3) ms, gradients \([.model.tensors[].count_elems] | add * 4) bytes"' "$work/model.json"
jq -r '.network.allreduce[0] | "all-reduce \(.startup_s * 1e6) us + \(.per_byte_s * 1e9) ns/B"' "$work/network.json"
printf '%-10s %9s %13s %12s %10s\n' plan messages 'predicted ms' 'measured ms' 'x DDP'
for policy in $policies; do
	ms=$(median < "$work/$policy.ms")
	printf '%-10s %9d %13.1f %12.1f %10.2f\n' "$policy" "$(jq '.messages | length' "$work/$policy.json")" \
		"$(jq '.predicted.iteration_s * 1e3' "$work/$policy.json")" "$ms" "$(bc -l <<< "$ddp / $ms")"
done
printf '%-10s %9s %13s %12.1f %10.2f\n' DDP - - "$ddp" 1
