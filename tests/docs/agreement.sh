#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is not made of tables (man/page.sh): every command has a page, and README, gf(7) and the
# completions name it. Every page is listed in gf(7), every document format has a page.
set -u
bin=$PWD/${BUILD:-build}/bin
pages=${BUILD:-build}/man
bad=0
offend() { echo "agreement: $*"; bad=1; }
for path in cmd/gf-*.c; do
	cmd=$(basename "$path" .c)
	[ -e "$pages/$cmd.1" ] || offend "$cmd.1 is missing"
	grep -q " $cmd" completions/gradflow.bash || offend "completions/ lack $cmd"
	grep -q "Xr $cmd 1" "$pages/gf.7" || offend "gf(7) does not name $cmd(1)"
	grep -qF -- "$cmd" README.md 2> /dev/null || offend "README.md does not name $cmd"
done
for schema in "${BUILD:-build}"/schema/*.json; do
	[ -e "$schema" ] || continue
	format=$(basename "$schema" .schema.json)
	[ -e "$pages/$format.5" ] || offend "$format.5 is missing for $schema"
done
for page in "$pages"/*.[1357]; do
	name=$(basename "$page")
	[ "$name" = gf.7 ] || grep -q "Xr ${name%.*} ${name##*.}" "$pages/gf.7" || offend "gf(7) does not name $name"
done
for name in $("$bin/gf-plan" --list selections | awk 'NR > 1 {print $1}'); do
	[ -e "tests/entries/selection/$name.json" ] || offend "tests/entries/selection/$name.json is missing"
done
exit $bad
