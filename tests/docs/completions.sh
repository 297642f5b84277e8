#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The files of completions/ are those of the commands' options today (make completions
# writes them).
set -u
command -v python3 > /dev/null || { echo "python3 is not installed"; exit 77; }
bin=$PWD/${BUILD:-build}/bin
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

for path in cmd/gf-*.c; do
	python3 share/tools/completions.py "$tmp" "$bin/$(basename "$path" .c)" || exit 1
done
diff -r completions "$tmp" || { echo "completions: run make completions"; exit 1; }
