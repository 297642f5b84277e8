#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The generated models in share/models equal the output of share/tools/models.py.
set -u
command -v python3 > /dev/null || { echo "python3 is not installed"; exit 77; }
cd "$(dirname "$0")/../.." || exit 1
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
python3 share/tools/models.py "$made" || exit 1
bad=0 count=0
for model in "$made"/*.json; do
	count=$((count + 1))
	diff -u "share/models/${model##*/}" "$model" || bad=1
done
echo "$count models compared"
[ "$bad" -eq 0 ] && [ "$count" -ge 10 ]
