#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which bucket_cap_mb for a DDP job? Predicts the step with every cap, as a table and a
# picture, beside DDP's default and gradflow's own plan. --emit ddp has the file for the job.
#   buckets.sh DOCUMENT...     a profile and a topology, or names: --model resnet50 ...
# Environment: CAPS (MiB), OUT (a folder to keep).
set -euo pipefail
[ $# -gt 0 ] || set -- --model resnet50 --gpu v100 asc-wfbp-8x4-10gbe
plots=$(cd "$(dirname "$0")/../plots" && pwd)
if [ -n "${OUT:-}" ]; then mkdir -p "$OUT"; else OUT=$(mktemp -d); fi

step() { gf-plan -q "$@" | jq -r '[.predicted.iteration_s, (.messages | length)] | @tsv'; }
printf '%8s  %10s  %7s\n' cap_MiB step buckets
echo cap_bytes,step_s > "$OUT/buckets.csv"
best=
for cap in ${CAPS:-1 2 4 8 12 18 25 40 60 100}; do
	read -r time buckets < <(step --system ddp --threshold "${cap}M" "$@")
	printf '%8s  %7.2f ms  %7d\n' "$cap" "$(jq -n "$time * 1e3")" "$buckets"
	echo "$((cap * 1048576)),$time" >> "$OUT/buckets.csv"
	if [ -z "$best" ] || jq -en "$time < $best" > /dev/null; then best=$time best_cap=$cap; fi
done
read -r default _ < <(step --system ddp "$@")
read -r own _ < <(step "$@")
ms() { printf '%.2f ms' "$(jq -n "$1 * 1e3")"; }
echo "default $(ms "$default"), best cap $(ms "$best") ($best_cap MiB), gradflow $(ms "$own")"
if command -v gnuplot > /dev/null; then
	gnuplot -e "data='$OUT/buckets.csv'; out='$OUT/buckets.svg'; x='cap_bytes'; y='step_s'" \
		-e "xlabel='bucket cap'; ylabel='step'; xunit='B'; yunit='s'; xlog=2; yfrom=1" \
		-e "reference='DDP as it is'; level=$default; title='DDP by bucket cap'" "$plots/curves.gp"
	echo "the picture: $OUT/buckets.svg"
fi
