#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Pipe-SGD where exchange takes several times as long as compute, on an emulated
# cluster (root, gf-lab). Each method trains with each rate from each seed, and the table
# has the one that reaches the accuracy first: medians of the seeds. gnuplot draws accuracy
# over seconds, as in the paper's Figure 4, where it is installed. All hosts share this
# machine's processors, so that exchange slows compute.
#   pipeline.sh [MODEL [RATE [HOSTS]]]       (digits-cnn 100mbit 4)
# Environment: BATCH, EPOCHS, TARGET, SEEDS, RATES (LR:MOMENTUM, a
# list), DATA, OUT (a folder to keep: logs, rows.tsv, accuracy.svg).
set -euo pipefail
model=${1:-digits-cnn} rate=${2:-100mbit} hosts=${3:-4}
target=${TARGET:-0.95}
share=$(cd "$(dirname "$0")/.." && pwd)
lab=$share/lab/gf-lab name=p$(($$ % 1000000))
if [ -n "${OUT:-}" ]; then mkdir -p "$OUT"; else OUT=$(mktemp -d); fi

"$lab" up "$name" --hosts "$hosts" --rate "$rate" > "$OUT/lab.txt"
trap '"$lab" down "$name" > /dev/null' EXIT
gf-topo -q --synthetic "net:$hosts@${rate%bit}b/s,50us" > "$OUT/topo.json"

# label, options of gf-plan
methods='D-Sync|--staleness 1 --policy single
overlapped|--staleness 1
Pipe-SGD|--staleness 2 --policy single
D-Sync trunc16|--staleness 1 --policy single --codecs trunc16
overlapped trunc16|--staleness 1 --codecs trunc16
Pipe-SGD trunc16|--system pipe-sgd'

: > "$OUT/rows.tsv"
while IFS='|' read -r label options; do
	# shellcheck disable=SC2086 # options are words
	gf-plan -q --model "$model" --batch "${BATCH:-32}" $options "$OUT/topo.json" > "$OUT/plan.json"
	for lr in ${RATES:-.1:.9 .2:.5}; do
		logs=()
		for seed in ${SEEDS:-1 2 3}; do
			logs+=("$OUT/$label $lr $seed.jsonl")
			"$lab" run "$name" gf-train -q --plan "$OUT/plan.json" --data "${DATA:-digits}" --threads 1 \
				--lr "${lr%:*}" --optimizer "momentum=${lr#*:}" --batch "${BATCH:-32}" --epochs "${EPOCHS:-12}" \
				--seed "$seed" --log "${logs[-1]}" > /dev/null < /dev/null
		done
		# a run that never reaches it counts as an endless one
		jq -rs --arg name "$label" --arg lr "$lr" --argjson target "$target" '
			def median: sort | .[(length - 1) / 2 | floor];
			def runs: reduce .[] as $r ([]; if $r.part == "train" and $r.epoch == 1 then . + [[$r]] else .[-1] += [$r] end);
			map(select(.part != "batch")) | runs | map(
				map(select(.part == "train")) as $train | map(select(.part == "test")) as $test |
				($train | map(.time_s) | add) as $all | $test[-1].step as $steps |
				([$test[] | select(.accuracy >= $target).epoch] | first // infinite) as $at |
				{step: ($all / $steps), compute: (($train | map(.compute_s + .update_s) | add) / $steps),
				 waits: (($train | map(.exposed_s) | add) / $steps), accuracy: $test[-1].accuracy, epochs: $at,
				 reached: ([$train[] | select(.epoch <= $at).time_s] | add | if $at == infinite then infinite else . end)}) |
			[$name, $lr] + [(map(.step), map(.compute), map(.waits), map(.accuracy), map(.epochs), map(.reached)) | median] |
			@tsv' "${logs[@]}" >> "$OUT/rows.tsv"
	done
done <<< "$methods"
# of each method the rate that gets there first; the others stay in rows.tsv
sort -t$'\t' -k1,1 -k8,8g "$OUT/rows.tsv" | sort -t$'\t' -k1,1 -u -s | sort -t$'\t' -k8,8gr > "$OUT/best.tsv"
printf '%-20s %7s %8s %8s %8s %9s %6s %9s\n' method lr:m step compute waits accuracy epochs reached
awk -F'\t' '{printf "%-20s %7s %8.2f %8.2f %8.2f %7.2f %% %6s %9s\n", $1, $2, 1e3 * $3, 1e3 * $4, 1e3 * $5, 100 * $6,
	($7 > 1e9 ? "-" : $7), ($8 > 1e9 ? "never" : sprintf("%.2f s", $8))}' "$OUT/best.tsv"

command -v gnuplot > /dev/null || { echo 'no picture: want gnuplot (Debian: gnuplot-nox)' >&2; exit 0; }
# after each epoch, means of the seeds
echo method,seconds,accuracy > "$OUT/accuracy.csv"
while IFS=$'\t' read -r label lr _; do
	jq -rs --arg name "$label" '
		def mean: add / length;
		reduce (.[] | select(.part != "batch")) as $r ({s: 0, rows: []};
			if $r.part == "train" then .s = (if $r.epoch == 1 then 0 else .s end) + $r.time_s
			else .rows += [{epoch: $r.epoch, s, accuracy: $r.accuracy}] end) |
		.rows | group_by(.epoch)[] | [$name, (map(.s) | mean), (map(.accuracy) | mean)] | @csv' \
		"$OUT/$label $lr "*.jsonl >> "$OUT/accuracy.csv"
done < "$OUT/best.tsv"
gnuplot -d -e "data='$OUT/accuracy.csv'; out='$OUT/accuracy.svg'; title='$model on $hosts hosts at $rate'; series='method'; \
	x='seconds'; xlabel='time'; xunit='s'; y='accuracy'; ylabel='test accuracy'; yunit='%'; yfrom=1; columns=2" "$share/plots/curves.gp"
echo "accuracy over seconds: $OUT/accuracy.svg"
