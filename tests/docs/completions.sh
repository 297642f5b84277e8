#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The files of completions/ equal the commands' output today (make completions
# writes them).
set -u
bin=$PWD/${BUILD:-build}/bin
export GF_SHARE=$PWD/share
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

for path in cmd/gf-*.c; do
	cmd=$(basename "$path" .c)
	"$bin/$cmd" --completion bash > "$tmp/$cmd.bash" || exit 1
	"$bin/$cmd" --completion zsh > "$tmp/_$cmd" || exit 1
	"$bin/$cmd" --completion fish > "$tmp/$cmd.fish" || exit 1
done
diff -r completions "$tmp" || { echo "completions: run make completions"; exit 1; }
