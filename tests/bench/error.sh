#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The error of sums under every codec, by a ring and by direct, at 4, 8 and 16
# ranks or those given: docs/tables/sum_error.txt. Not a matter of the machine's speed.
#	tests/bench/error.sh [RANKS...]
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/launcher.sh plain
PATH=$(realpath "${BUILD:-build}")/bin:$PATH

[ $# -gt 0 ] || set -- 4 8 16
printf 'codec    ranks   ring rms direct rms   ring max direct max\n'
for codec in f32 f16 bf16 trunc16 q8 fp8 fp4; do
	for ranks in "$@"; do
		mpirun --oversubscribe -np "$ranks" gf-allreduce -a ring,direct \
			--codec "$codec" --error -b 1M -e 1M -n 1 -w 0 --table=json |
			jq -rs 'map(select(.placement == "in_place")) as [$ring, $direct]
				| [$ring.codec, $ring.ranks, $ring.error_rms, $direct.error_rms,
				   $ring.error_max, $direct.error_max] | @tsv' |
			awk '{printf "%-8s %5d %10.2e %10.2e %10.2e %10.2e\n", $1, $2, $3, $4, $5, $6}'
	done
done
