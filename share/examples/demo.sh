#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gradflow's main job from end to end, with the commands that a user would type. It
# discovers, measures, plans, trains on as many ranks as there are cores (2 to 32), and
# compares predicted with measured. Ranks that share a core keep each other waiting for
# longer than a prediction can know.
# Environment: BUILD (build), RANKS (the cores, 2 to 32), EPOCHS (10), OUT (a folder to keep).
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/${BUILD:-build}/bin:$PATH"
cores=$(nproc)
ranks=${RANKS:-$((cores > 32 ? 32 : cores < 2 ? 2 : cores))} epochs=${EPOCHS:-10}
if [ -n "${OUT:-}" ]; then mkdir -p "$OUT"; else OUT=$(mktemp -d); fi

run=(mpirun -np "$ranks" --bind-to none --oversubscribe)
# Open MPI refuses root unless told twice; a container's root is as good as any.
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

[ "$ranks" -le "$cores" ] || echo "$ranks ranks share $cores core(s): expect measured times \
well above the predicted ones"
say() { printf '\n$ %s\n' "$*"; }
say "gf-topo > topo.json"
gf-topo > "$OUT/topo.json"
gf-topo --table
say "${run[*]} gf-profile --model digits-cnn topo.json > prof.json"
"${run[@]}" gf-profile --model digits-cnn "$OUT/topo.json" > "$OUT/prof.json"
say "gf-plan --compare topo.json prof.json"
gf-plan --compare "$OUT/topo.json" "$OUT/prof.json"
say "gf-plan topo.json prof.json > plan.json"
gf-plan "$OUT/topo.json" "$OUT/prof.json" > "$OUT/plan.json"
say "${run[*]} gf-train --plan plan.json --data digits --epochs $epochs --trace trace.json --checkpoint ckpt"
rm -rf "$OUT/ckpt"
"${run[@]}" gf-train --plan "$OUT/plan.json" --data digits \
	--epochs "$epochs" --trace "$OUT/trace.json" --checkpoint "$OUT/ckpt" --target 0.95
echo
echo "everything is in $OUT; trace.json opens in https://ui.perfetto.dev. man -l build/man/gf.7 goes on"
