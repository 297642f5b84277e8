#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# PyTorch jobs on an emulated cluster (root), or in shared memory: steps inside
# DistributedDataParallel by its own hooks and by gradflow.ddp, and inside fully_shard
# and gradflow.shard, in turns, with predictions.
#   tests/bench/pytorch.sh [RATE | shm]      1gbit
# In the environment: JOB (conv, or transformer), HOSTS (4), RANKS per host (1; with
# shm, of all: 2), ROUNDS (5), STEPS (6) of a turn, GF_PYTHON. WORK is a folder that
# keeps profiles and turns: a run that finds them there adds its rounds, so that a
# long measurement can be cut. LOSSES=N trains N steps by each contestant instead.
# GF_CONTESTANTS are some of them, with commas between; GF_WIDTH (2048, or 256) is the
# width of the job's largest layers, and GF_RATE its learning rate (1e-3).
# Memory is kept by the process: whether malloc gives it back to the system in each step is luck
# that can treble the time of an optimiser.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PATH="$PWD/${BUILD:-build}/bin:$PATH" GRADFLOW_LIBRARY=$PWD/${BUILD:-build}/lib/libgradflow.so.0
. tests/launcher.sh plain
rate=${1:-1gbit} job=${JOB:-conv} hosts=${HOSTS:-4} lab=pytorch
if [ "$rate" = shm ]; then
	hosts=1 ranks=${RANKS:-2}
else
	ranks=$((hosts * ${RANKS:-1}))
fi
for python in ${GF_PYTHON:-python3 /usr/bin/python3} ''; do
	[ -z "$python" ] || "$python" -c 'import torch.distributed' 2> /dev/null || continue
	break
done
[ -n "$python" ] || { echo "skipped: no PyTorch"; exit 77; }
work=${WORK:-}
[ -n "$work" ] || work=$(mktemp -d) || exit 1
mkdir -p "$work"
finish() {
	[ "$rate" = shm ] || share/lab/gf-lab down "$lab" > /dev/null 2>&1
	[ -n "${WORK:-}" ] || rm -rf "$work"
}
trap finish EXIT
if [ "$rate" != shm ]; then
	share/lab/gf-lab up "$lab" --hosts "$hosts" --ranks "${RANKS:-1}" --rate "$rate" --shaper htb > /dev/null 2>&1 ||
		{ echo "skipped: no lab"; exit 77; }
fi

launch() { # COMMAND...: on all ranks
	if [ "$rate" = shm ]; then
		timeout 600 mpirun --bind-to none --oversubscribe -np "$ranks" "$@"
	else
		share/lab/gf-lab run "$lab" --timeout 600 -- "$@"
	fi
}
peer() { # ARGUMENT...: of ddp_peer.py
	local address=h0
	[ "$rate" != shm ] || address=127.0.0.1
	# shellcheck disable=SC2016 # the ranks expand it
	launch env OMP_NUM_THREADS=1 MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=1073741824 GLOO_SOCKET_IFNAME="$([ "$rate" = shm ] && echo lo || echo eth0)" \
		MASTER_ADDR=$address MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE="$ranks" \
		sh -c 'RANK=$OMPI_COMM_WORLD_RANK exec "$@"' peer "$python" "$PWD/tests/bench/ddp_peer.py" "$job" "$@"
}
median() { sort -n | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2}'; }

declare -A options=(
	[f16]='--codecs f16' [q8]='--codecs q8'
	[csc]='--selection csc:keep=0.15,warmup_steps=0'
	[gtopk]='--selection gtopk:density=0.001,warmup_densities=none'
	[powersgd]='--selection powersgd:rank=1,warmup_steps=2'
)
GF_ALSO=$(IFS=';'; echo "${options[*]}")
export GF_ALSO
if [ ! -e "$work/network.json" ]; then
	launch gf-profile -q --transport ucx --collectives all_reduce,reduce_scatter,all_gather --points callers_memory=on --budget "${BUDGET:-20s}" --max-bytes 16M > "$work/network.part" || exit 1
	mv "$work/network.part" "$work/network.json"
	cp "$work/network.json" "$work/network.alone"
	peer profile "$work" || exit 1
fi
plan() { # NAME: a contestant
	local network=network.json
	[ "$2" = model.json ] || network=network.shards
	[ -e "$work/$1.plan" ] || gf-plan -q "${@:3}" "$work/$2" "$work/$network" > "$work/$1.plan" ||
		rm -f "$work/$1.plan"
}
plan dense model.json
for codec in f32 bf16 q8; do
	plan "shards $codec" shards.json --shard zero3:units=block --codecs "$codec"
done
for name in "${!options[@]}"; do
	# shellcheck disable=SC2086 # they are several
	plan "$name" model.json ${options[$name]}
done
if [ -n "${LOSSES:-}" ]; then
	peer losses "$work" "$LOSSES"
	exit
fi
for ((round = 0; round < ${ROUNDS:-5}; round++)); do
	peer race "$work" "${STEPS:-6}" >> "$work/turns" || exit 1
done
jq -r '"forward \(.model.forward_s * 1e3 | round) ms, backward \(.model.backward_s * 1e3 | round) ms, AdamW \(.model.update_s * 1e3 | round) ms, gradients \([.model.tensors[].count_elems] | add * 4 / 1e6 | round) MB"' "$work/model.json"
echo "$job, $ranks ranks on $hosts hosts, $rate, $(grep -c '^DDP	' "$work/turns") rounds"
printf '%-18s %12s %12s %8s %10s\n' contestant 'predicted ms' 'measured ms' 'x DDP' 'off by'
# DDP's time in each round, then each contestant's
cut -f1 "$work/turns" | awk '!seen[$0]++' | while read -r name; do
	ms=$(awk -F'\t' -v n="$name" '$1 == n {print $2}' "$work/turns" | median)
	ratio=$(awk -F'\t' -v n="$name" '$1 == "DDP" {d = $2} $1 == n {print d / $2}' "$work/turns" | median)
	predicted=- off=-
	file=$work/${name#gradflow }.plan
	[ "$name" != gradflow ] || file=
	if [ -e "$file" ]; then
		predicted=$(jq '.predicted.iteration_s * 1e4 | round / 10' "$file")
		off=$(awk -v p="$predicted" -v m="$ms" 'BEGIN {printf "%+.0f %%", 100 * (m / p - 1)}')
	fi
	printf '%-18s %12s %12.1f %8.2f %10s\n' "$name" "$predicted" "$ms" "$ratio" "$off"
done
