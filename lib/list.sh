#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a list of entries from the files that define them: OUT.c with the arrays LIST, of the
# entries, and LIST_names, which NULL ends, and OUT.h with the declaration of each entry. The
# Makefile has a row per list.
#   list.sh OUT LIST STRUCT PREFIX FILE...
# An entry is `const struct STRUCT PREFIXname = {` where a line begins. The list is in the order of
# the member .place, a number; an entry without it is declared and not listed, unless no entry has
# one. Files that would stay as they are keep their time. Exit status 1: two entries have one place.
set -eu -o pipefail
out=$1 list=$2 struct=$3 prefix=$4
shift 4
mkdir -p "${out%/*}"

# "PLACE SYMBOL NAME" of each; - is no place
found=$([ $# -eq 0 ] || awk -v head="^const struct $struct $prefix[a-z0-9_]+ = \\\\{" '
	$0 ~ head { symbol = $4; place = name = "-" }
	symbol && /^\t\.place = [0-9]+,/ { place = $3 + 0 }
	symbol && /^\t\.name = "/ { name = $3; gsub(/[",]/, "", name) }
	symbol && /^};/ { print place, symbol, name; symbol = "" }' "$@" | sort -s -n)
twice=$(awk '/^[0-9]/ { print $1 }' <<< "$found" | uniq -d)
[ -z "$twice" ] || { echo "list.sh: $list: two entries have .place = $twice" >&2; exit 1; }
listed=$(grep -v '^-' <<< "$found") || listed=$found

keep() { # file: writes the text from standard input
	cat > "$1.new"
	if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}
{
	echo "/* Made by lib/list.sh. */"
	awk -v type="$struct" 'NF { print "extern const struct " type " " $2 ";" }' <<< "$found"
} | keep "$out.h"
{
	printf '/* Made by lib/list.sh. */\n#include "%s.h"\n\n' "${out##*/}"
	awk -v type="const struct $struct *const $list" '
		BEGIN { print "extern " type "[];\n" type "[] = {" }
		NF { print "\t&" $2 "," }
		END { print "\t0,\n};" }' <<< "$listed"
	awk -v type="const char *const ${list}_names" '
		BEGIN { print "extern " type "[];\n" type "[] = {" }
		NF { print "\t\"" $3 "\"," }
		END { print "\t0,\n};" }' <<< "$listed"
} | keep "$out.c"
