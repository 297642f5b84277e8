#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints the findings of make analyze that tests/analyze.txt does not explain, and the
# lines there that explain nothing any more. Analyzers that are absent are said.
#   tests/analyze.sh ANALYZER...
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
bad=0
for tool; do
	command -v "$tool" > /dev/null || { echo "skipped: $tool is not installed"; continue; }
	# "FILE:LINE[:COLUMN]: warning: TEXT [RULE]", or cppcheck's own template
	# reports of sources that have moved or gone say nothing
	mapfile -t found < <(find "$build/analyze" -name "*.$tool" -printf "%P\n" |
		while read -r report; do [ ! -e "${report%.*}.c" ] || cat "$build/analyze/$report"; done |
		sed -nE 's/^([^ :]+):([0-9]+):[0-9]+: (fatal )?(error|warning): (.*)$/\1 \2 \5/p
			s/^([^ :]+):([0-9]+): ([A-Za-z0-9_]+: .*)$/\1 \2 \3/p' | sort -u)
	mapfile -t explained < <(sed -nE "s/^$tool +([^ ]+) +([^ ]+) +.*/\1 \2/p" tests/analyze.txt)
	declare -A used=()
	for line in "${found[@]}"; do
		read -r file number text <<< "$line"
		known=
		for entry in "${explained[@]}"; do
			read -r where rule <<< "$entry"
			# shellcheck disable=SC2053
			if [[ $file == $where && $text == *"$rule"* ]]; then known=1 used[$entry]=1; fi
		done
		[ -n "$known" ] || { bad=1; echo "$tool: $file:$number: $text"; }
	done
	for entry in "${explained[@]}"; do
		[ -n "${used[$entry]:-}" ] || { bad=1; echo "tests/analyze.txt: $tool finds nothing for: $entry"; }
	done
	echo "$tool: ${#found[@]} findings, ${#used[@]} lines explain them"
	unset used
done
exit $bad
