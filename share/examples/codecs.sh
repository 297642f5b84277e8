#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From which size of message does a codec pay? Measures the all-reduce of the ranks that
# mpirun starts, with each codec, in turns; a table of times and a picture.
#   codecs.sh [ALGORITHM]                    (ring)
# Environment: CODECS (a list), FROM, TO (sizes), ROUNDS (3), MPIRUN, OUT (a folder to keep).
set -euo pipefail
algorithm=${1:-ring}
codecs=${CODECS:-f32 f16 q8}
plots=$(cd "$(dirname "$0")/../plots" && pwd)
read -r -a mpirun <<< "${MPIRUN:-mpirun -np 2 --oversubscribe}"
if [ -n "${OUT:-}" ]; then mkdir -p "$OUT"; else OUT=$(mktemp -d); fi

rm -f "$OUT/rows.jsonl"
for _ in $(seq "${ROUNDS:-3}"); do
	for codec in $codecs; do
		"${mpirun[@]}" gf-allreduce -q -a "$algorithm" --codec "$codec" \
			-b "${FROM:-16K}" -e "${TO:-4M}" -f 4 --table=json >> "$OUT/rows.jsonl"
	done
done

# the median of the rounds, for each size and codec
jq -rs 'map(select(.placement == "in_place")) | group_by([.size_bytes, .codec])[] |
	(map(.time_s) | sort) as $t | [.[0].size_bytes, .[0].codec, $t[(length - 1) / 2 | floor]] |
	@csv' "$OUT/rows.jsonl" | tr -d '"' > "$OUT/medians.csv"
{ echo size_bytes,codec,time_s; cat "$OUT/medians.csv"; } > "$OUT/codecs.csv"
awk -F, -v codecs="$codecs" '
	BEGIN { n = split(codecs, name, " "); printf "%10s", "bytes"
		for (i = 1; i <= n; i++) printf "%12s", name[i]; print "   best" }
	{ time[$1, $2] = $3; if (!($1 in seen)) { seen[$1]; size[++rows] = $1 } }
	END { for (r = 1; r <= rows; r++) { s = size[r]; best = name[1]; printf "%10d", s
		for (i = 1; i <= n; i++) { t = time[s, name[i]]; printf "%9.1f us", t * 1e6
			if (t < time[s, best]) best = name[i] }
		print "   " best } }' "$OUT/medians.csv"
if command -v gnuplot > /dev/null; then
	gnuplot -e "data='$OUT/codecs.csv'; out='$OUT/codecs.svg'; x='size_bytes'; y='time_s'" \
		-e "series='codec'; xlabel='message'; ylabel='time'; xunit='B'; yunit='s'" \
		-e "xlog=2; ylog=10; title='$algorithm by codec'" "$plots/curves.gp"
	echo "the picture: $OUT/codecs.svg"
fi
