#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the fuzz targets one after the other, FUZZ_SECONDS (60) each: a table of inputs
# and of what was found. What libFuzzer learns stays in BUILD/corpus, and what it finds
# in BUILD/found.
#   tests/fuzz/run.sh [TARGET...]
#   tests/fuzz/run.sh --keep [TARGET...]    makes tests/fuzz/corpus of BUILD/corpus:
#                     the smallest inputs that reach each place, KEEP_BYTES (20000) each
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
export GF_SOURCE="$PWD"
# (Stacks of allocations take a fifth of the time: for a finding, run it again without
# malloc_context_size.)
export ASAN_OPTIONS=${ASAN_OPTIONS-allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=0}
export HWLOC_PLUGINS_PATH=/nonexistent
keep=
[ "${1:-}" != --keep ] || { keep=1; shift; }
programs=$build/libfuzzer/fuzz
[ -d "$programs" ] || programs=$build/fuzz
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(find "$programs" -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x -printf '%f\n' | sed 's/^fuzz_//' | sort)
bad=0

# The smallest first: what they reach, larger ones need not.
keep_smallest() { # FROM TO
	local file bytes=0 size
	rm -rf "$2"
	mkdir -p "$2"
	while read -r size file; do
		bytes=$((bytes + size))
		[ $bytes -le "${KEEP_BYTES:-20000}" ] || break
		cp "$1/$file" "$2/${file:0:12}"
	done < <(find "$1" -type f -printf '%s %f\n' | sort -n)
}

# (The target that forks gets no limit on memory: libFuzzer has a thread for it.)
for name in "${targets[@]}"; do
	program=$programs/fuzz_$name own=tests/fuzz/corpus/$name
	corpus=$build/corpus/$name found=$build/found/$name log=$build/found/$name.log
	mkdir -p "$corpus" "$found"
	dirs=("$corpus")
	[ ! -d "$own" ] || dirs+=("$own")
	if [ -n "$keep" ]; then
		small=$(mktemp -d)
		"$program" -merge=1 "$small" "${dirs[@]}" > "$log" 2>&1 || { bad=1; tail -n 5 "$log"; }
		keep_smallest "$small" "$own.new"
		rm -rf "$small" "$own"
		mv "$own.new" "$own"
		printf '%-12s %5d files, %6d bytes\n' "$name" "$(find "$own" -type f | wc -l)" "$(cat "$own"/* | wc -c)"
	elif [ "$programs" = "$build/fuzz" ]; then
		"$program" --seconds "${FUZZ_SECONDS:-60}" > "$log" 2>&1 || { bad=1; echo "FAIL  $name: $log"; }
		printf '%-12s %s\n' "$name" "$(tail -n 1 "$log")"
	else
		"$program" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=600 -rss_limit_mb=3000 -reload=0 \
			-print_final_stats=1 -artifact_prefix="$found/" "${dirs[@]}" > "$log" 2>&1 ||
			{ bad=1; echo "FAIL  $name: $log, $(find "$found" -type f | wc -l) inputs in $found"; }
		awk -v name="$name" '/stat::number_of_executed_units/ {n = $2} / cov: / {for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1)}
			END {printf "%-12s %10d inputs, %6d places reached\n", name, n, cov}' "$log"
	fi
done
exit $bad
