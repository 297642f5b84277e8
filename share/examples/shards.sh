#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How many GPUs does this model need, and which stage of shards? Plans the model for each number of
# ranks with as much memory as a GPU has, and prints the fastest stage that fits, with what a rank
# holds and how many samples a second all ranks make.
#   shards.sh MEMORY DOCUMENT...     80GB, then a profile and a topology, or names: --model ...
# Environment: RANKS (4 8 16 32), SHARD (auto; or zero3:units=fsdp2 ...), STATE (optimizer=adamw).
set -euo pipefail
[ $# -gt 1 ] || set -- 40GB --model llama-3.2-1b --gpu h100 --batch 1 dgx-h100-4x8
memory=$1
shift

printf '%6s  %-6s  %10s  %12s  %10s\n' ranks shards step samples/s GiB/rank
for ranks in ${RANKS:-4 8 16 32}; do
	status=0
	plan=$(gf-plan -q --ranks "$ranks" --shard "${SHARD:-auto}" \
		--memory "$memory:${STATE:-optimizer=adamw}" "$@" 2> /dev/null) || status=$?
	case $status in
	0) jq -r --argjson ranks "$ranks" '.predicted as $p | .model as $m | [$ranks,
		.shard.method // "none", 1e3 * $p.iteration_s, $ranks * $m.batch_per_rank / $p.iteration_s,
		$p.memory.peak_bytes / 1073741824] | @tsv' <<< "$plan" |
		awk -F '\t' '{ printf "%6d  %-6s  %7.0f ms  %12.1f  %10.1f\n", $1, $2, $3, $4, $5 }' ;;
	1) # nothing fits: the least that there is
		least=$(gf-plan --ranks "$ranks" --shard "${SHARD:-auto}" \
			--memory "$memory:${STATE:-optimizer=adamw}" "$@" 2>&1 > /dev/null |
			sed -n 's/.*found at least \(.*\): .*/\1/p') || true
		printf '%6d  does not fit into %s: at least %s\n' "$ranks" "$memory" "$least" ;;
	*) gf-plan --ranks "$ranks" --memory "$memory" "$@" > /dev/null; exit "$status" ;;
	esac
done
