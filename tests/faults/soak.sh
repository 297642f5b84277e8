#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Trains for a long time with checkpoints. Memory, open files, maps and threads must not
# grow.
#   tests/faults/soak.sh [SECONDS]    STEPS (none: as many as fit), RANKS (2), OPTIONS of gf-train
set -eu -o pipefail
seconds=${1:-600}
build=$(realpath "${BUILD:-build}")
export PATH="$build/bin:$PATH"
. "${BASH_SOURCE%/*}/../launcher.sh"
folder=$(mktemp -d)
cd "$folder"
read -ra options <<< "${OPTIONS:-}"
mpirun --bind-to none -np "${RANKS:-2}" gf-train -q --model digits-mlp --data synthetic:2000 --batch 8 --epochs 100000000 \
	--threads 1 --checkpoint ckpt --checkpoint-every 50 "${options[@]}" > out.txt 2> err.txt < /dev/null &
job=$!
trap 'kill $job 2> /dev/null || true; wait $job 2> /dev/null || true; rm -rf "$folder"' EXIT

# rss_kib files maps threads, of all ranks; what the machine's shared memory holds
look() {
	local pid rss=0 files=0 maps=0 threads=0
	for pid in $(pgrep -P $job -x gf-train); do
		rss=$((rss + $(awk '/^VmRSS/ {print $2}' "/proc/$pid/status")))
		files=$((files + $(find "/proc/$pid/fd" -mindepth 1 | wc -l)))
		maps=$((maps + $(wc -l < "/proc/$pid/maps")))
		threads=$((threads + $(awk '/^Threads/ {print $2}' "/proc/$pid/status")))
	done
	echo "$rss $files $maps $threads $(find /dev/shm -type f | wc -l)"
}
newest() { find ckpt -maxdepth 1 -name 'step-*[0-9]' 2> /dev/null | sed 's/.*step-//' | sort -n | tail -n 1; }

# after the first tenth everything has its size
sleep $((seconds / 10 + 5))
kill -0 $job || { cat err.txt; exit 1; }
read -r rss files maps threads shm <<< "$(look)"
first=$(newest)
for ((waited = seconds / 10; waited < seconds; waited++)); do
	sleep 1
	[ "$(newest)" -lt "${STEPS:-1000000000000}" ] || break
done
kill -0 $job || { cat err.txt; exit 1; }
read -r rss_end files_end maps_end threads_end shm_end <<< "$(look)"
last=$(newest)
echo "$SECONDS s, ${RANKS:-2} ranks, steps $first to $last"
echo "resident KiB $rss to $rss_end, files $files to $files_end, maps $maps to $maps_end, threads $threads to $threads_end, /dev/shm $shm to $shm_end"
[ "$last" -gt "$first" ] || { echo "it stands still"; exit 1; }
# a run that leaks a byte a step would grow by more
[ "$rss_end" -le $((rss + rss / 50 + 1024)) ] || { echo "memory grows"; exit 1; }
[ "$files_end" -le $((files + 2)) ] || { echo "open files grow"; exit 1; }
[ "$threads_end" -le "$threads" ] || { echo "threads grow"; exit 1; }
[ "$maps_end" -le $((maps + 8)) ] || { echo "maps grow"; exit 1; }
