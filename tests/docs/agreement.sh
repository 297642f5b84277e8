#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every long option of `CMD --help` is in the command's man page. Every
# man page is listed in gf(7), every document format has a page and a schema.
set -u
bin=$PWD/${BUILD:-build}/bin
bad=0
offend() { echo "agreement: $*"; bad=1; }
for path in cmd/gf-*.c; do
	cmd=$(basename "$path" .c)
	help=$("$bin/$cmd" --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u) ||
		{ offend "$cmd --help fails"; continue; }
	page=man/$cmd.1
	[ -e "$page" ] || { offend "$page is missing"; continue; }
	# mdoc: `.It Fl q , -quiet` and `.Op Fl -tree`; a dash may be escaped
	named=$(sed -E 's/\\-/-/g' "$page" | grep -w Fl |
		sed -E 's/(^| )-([a-z][a-z0-9-]+)/\1--\2/g' |
		grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)
	for option in $help; do
		grep -qxF -- "$option" <<< "$named" || offend "$page lacks $option"
	done
	# a default that both tell is one
	default=$("$bin/$cmd" --help | tr -s ' \n' ' ' | sed -nE 's/.*--timeout=TIME [^-]*\(([0-9]+s)\).*/\1/p')
	[ -z "$default" ] || grep -q "by default $default" "$page" ||
		offend "$page does not say that --timeout is $default by default"
	grep -q " $cmd" completions/gradflow.bash || offend "completions/ lack $cmd"
	grep -q "Xr $cmd 1" man/gf.7 2> /dev/null || offend "gf(7) does not name $cmd(1)"
	grep -qF -- "$cmd" README.md 2> /dev/null || offend "README.md does not name $cmd"
done
for schema in "${BUILD:-build}"/schema/*.json; do
	[ -e "$schema" ] || continue
	format=$(basename "$schema" .schema.json)
	[ -e "man/$format.5" ] || offend "man/$format.5 is missing for $schema"
done
for page in man/*.1 man/*.5; do
	[ -e "$page" ] || continue
	name=$(basename "$page"); 
	grep -q "Xr ${name%.*} ${name##*.}" man/gf.7 || offend "gf(7) does not name $name"
done
# What a plan may name is described where plans are: an item of a list, or quoted.
for list in algorithms selections codecs; do
	for name in $("$bin/gf-plan" --list $list | awk 'NR > 1 {print $1}'); do
		grep -qE "^\.(It Cm|Ql) $name( |$)" man/gf-plan.5 ||
			offend "gf-plan(5) does not describe $name of --list $list"
	done
done
for name in $("$bin/gf-plan" --list selections | awk 'NR > 1 {print $1}'); do
	[ -e "tests/entries/selection/$name.json" ] || offend "tests/entries/selection/$name.json is missing"
done
exit $bad
