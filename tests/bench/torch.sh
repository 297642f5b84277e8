#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gf-train beside PyTorch eager: milliseconds of a training step of shipped models,
# by the clock, on one thread, in turns.
#   tests/bench/torch.sh [MODEL[:BATCH[:STEPS]]...]
# Both train on made-up data. In the environment: GF_PYTHON, the interpreter that has
# PyTorch (python3); ROUNDS (3) of both in turns, of which the median counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PATH="$PWD/${BUILD:-build}/bin:$PATH" OMP_NUM_THREADS=1
python=${GF_PYTHON:-python3}
"$python" -c 'import torch' 2> /dev/null || { echo "skipped: $python has no PyTorch"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# those that gf-train trains; large ones with few samples and steps
models=(digits-mlp:16:300 digits-cnn:16:300 digits-cnn-plain:16:300 mnist-mlp:16:300 cifar100-cnn:32:60
	cifar100-convex:32:60 resnet20:32:30 lstm-text:16:60 gpt-text:16:60 resnet18:8:6 alexnet-bn:8:6 resnet50:4:6
	vgg16:2:6 densenet201:2:6 inception-v4:2:6 resnet152:2:6 lstm-ptb:8:6)
[ $# -eq 0 ] || models=("$@")

median() { # of numbers, one a line
	sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

# both count the second half of the steps; ours takes the samples of the first once more
ours() { # model batch steps
	rm -f "$work/log"
	gf-train -q --threads 1 --model "$1" --data "synthetic:$(($2 * $3 / 2))" --epochs 2 --batch "$2" --log "$work/log" -o "$work/out" ||
		return 1
	jq -r 'select(.part == "batch").time_s' "$work/log" | tail -n +$(($3 / 2 + 1)) | median
}

peer() { # model batch steps
	"$python" tests/bench/torch_peer.py "share/models/$1.json" synthetic "$2" "$3" 1 | jq .step_s
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc --all) processors, PyTorch $("$python" -c 'import torch; print(torch.__version__)')"
printf '%-18s %5s  %11s  %10s  %s\n' model batch gf-train/ms PyTorch/ms 'PyTorch beside gf-train'
for row in "${models[@]}"; do
	IFS=: read -r model batch steps <<< "$row"
	batch=${batch:-16} steps=${steps:-30}
	rm -f "$work/ours" "$work/peer"
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		ours "$model" "$batch" "$steps" >> "$work/ours" || exit 1
		peer "$model" "$batch" "$steps" >> "$work/peer" || exit 1
	done
	awk -v name="$model" -v batch="$batch" -v a="$(median < "$work/ours")" -v b="$(median < "$work/peer")" \
		'BEGIN {printf "%-18s %5d  %11.2f  %10.2f  %.2f\n", name, batch, a * 1e3, b * 1e3, b / a}'
done
