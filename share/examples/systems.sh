#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Published systems beside each other: one model on several numbers of ranks and link
# rates, as a table and a picture of how efficiently they scale.
#   systems.sh [MODEL [TOPOLOGY [GPU]]]      (resnet50 asc-wfbp-8x4-10gbe v100)
# Environment: SYSTEMS, RANKS, RATES (lists), OUT (a folder to keep, with the plans).
set -euo pipefail
model=${1:-resnet50} topology=${2:-asc-wfbp-8x4-10gbe} gpu=${3:-v100}
systems=${SYSTEMS:-auto ddp horovod gradientflow pipe-sgd topk gtopk asc-wfbp blueconnect}
if [ -n "${OUT:-}" ]; then mkdir -p "$OUT"; else OUT=$(mktemp -d); fi

plans=()
for system in $systems; do
	if gf-plan -q --model "$model" --gpu "$gpu" --system "$system" "$topology" \
		-o "$OUT/$system.json"; then
		plans+=("$OUT/$system.json")
	else
		echo "$system is left out" >&2
		status=1
	fi
done

# --replan would add plans that are made anew for each row.
echo "each plan is made for $topology, and stays as it is in every row"
sweep=(gf-sim -q "${plans[@]}" --ranks "${RANKS:-8,16,32,64,128}")
"${sweep[@]}" --bandwidth "${RATES:-10Gb/s,25Gb/s,100Gb/s}" --table || status=$?
if command -v gnuplot > /dev/null; then
	"${sweep[@]}" --plot "$OUT/systems.svg" -o "$OUT/systems.jsonl" || status=$?
	echo "the picture, at the topology's own rate: $OUT/systems.svg"
fi
exit "${status:-0}"
