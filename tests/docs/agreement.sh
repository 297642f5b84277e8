#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every long option of `CMD --help` is in the command's man page and in its
# three completions, and these name no option that the command lacks. Every
# man page is listed in gf(7), every document format has a page and a schema.
set -u
bin=$PWD/${BUILD:-build}/bin
bad=0
offend() { echo "agreement: $*"; bad=1; }
# argp's own, the same for every command
common='--help --usage --version'

for path in cmd/gf-*.c; do
	cmd=$(basename "$path" .c)
	help=$("$bin/$cmd" --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u) ||
		{ offend "$cmd --help fails"; continue; }
	for file in "man/$cmd.1" "completions/$cmd.bash" "completions/_$cmd" "completions/$cmd.fish"; do
		[ -e "$file" ] || { offend "$file is missing"; continue; }
		case $file in
		# mdoc: `.It Fl q , -quiet` and `.Op Fl -tree`; a dash may be escaped
		*.1) named=$(sed -E 's/\\-/-/g' "$file" | grep -w Fl |
			sed -E 's/(^| )-([a-z][a-z0-9-]+)/\1--\2/g' |
			grep -oE -- '--[a-z][a-z0-9-]+' | sort -u) ;;
		*.fish) named=$(grep -oE -- '-l +[a-z][a-z0-9-]+' "$file" | sed -E 's/-l +/--/' | sort -u) ;;
		*) named=$(grep -oE -- '--[a-z][a-z0-9-]+' "$file" | sort -u) ;;
		esac
		for option in $help; do
			[[ " $common " == *" $option "* && $file == completions/* ]] && continue
			grep -qxF -- "$option" <<< "$named" || offend "$file lacks $option"
		done
		case $file in completions/*)
			for option in $named; do
				grep -qxF -- "$option" <<< "$help" || offend "$file names $option, $cmd has no such option"
			done ;;
		esac
	done
	grep -q "Xr $cmd 1" man/gf.7 2> /dev/null || offend "gf(7) does not name $cmd(1)"
	grep -qF -- "$cmd" README.md 2> /dev/null || offend "README.md does not name $cmd"
done
for schema in share/schema/*.json; do
	[ -e "$schema" ] || continue
	format=$(basename "$schema" .schema.json)
	[ -e "man/$format.5" ] || offend "man/$format.5 is missing for $schema"
done
for page in man/*.1 man/*.5; do
	[ -e "$page" ] || continue
	name=$(basename "$page"); 
	grep -q "Xr ${name%.*} ${name##*.}" man/gf.7 || offend "gf(7) does not name $name"
done
exit $bad
