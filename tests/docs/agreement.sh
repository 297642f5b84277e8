#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is not made of tables (man/page.sh): every command has a page, and README, gf(7) and the
# completions name it. Every page is listed in gf(7), every document format has a page. An option that
# a page names is one of a command's.
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
# options of mpirun and of Megatron-LM have pages of their own
known=$(for path in cmd/gf-*.c; do "$bin/$(basename "$path" .c)" --completion; done |
	awk -F '\t' '$1 == "option" { print $2 }'
	printf '%s\n' oversubscribe stdin overlap-grad-reduce ddp-bucket-size)
for page in "$pages"/*.[1357]; do
	for name in $(sed -nE 's/^\./ /; s/ Fl -/\n&/gp' "$page" | sed -nE 's/^ Fl -([a-z-]+).*/\1/p'); do
		grep -qx -- "$name" <<< "$known" || offend "$(basename "$page"): no command has --$name"
	done
done
for name in $("$bin/gf-plan" --list selections | awk 'NR > 1 {print $1}'); do
	[ -e "tests/entries/selection/$name.json" ] || offend "tests/entries/selection/$name.json is missing"
done
exit $bad
