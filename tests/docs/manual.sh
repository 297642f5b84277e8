#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Man pages, as they are built, show the text of their sources. In a macro's arguments a quotation
# mark groups words and is not printed, so an example or a piece of a document
# writes it as \(dq. groff, where it is installed, renders every page without
# a warning: it gives up on a page that mandoc takes. It may print a name that does not fit in a line
# as it is. The program in gradflow(3) compiles.
set -u
bad=0
offend() { echo "manual: $*"; bad=1; }

for page in "${BUILD:-build}"/man/*.[1357]; do
	lost=$(grep -nE '^\.(It )?(Dl|Ql|Li|Cm|Pq Ql) .*"' "$page") &&
		offend "$page: write \\(dq, the mark is not printed: $lost"
	command -v groff > /dev/null || continue
	warned=$(groff -ww -Wbreak -mdoc -Tutf8 "$page" 2>&1 > /dev/null) || offend "groff fails on $page"
	[ -z "$warned" ] || offend "groff, of $page: $warned"
done
awk '/^\.Ed/ {on = 0} on {print} /^\.Bd -literal/ {on = 1}' man/gradflow.3 |
	sed 's/\\e/\\/g' |
	${CC:-gcc} -Wall -Wextra -Werror -Iinclude -x c -fsyntax-only - ||
	offend "the example of gradflow(3) does not compile"
# A page that disagrees with its command is not made.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/common"
echo '@option tables' > "$folder/common/wrong"
while IFS='|' read -r lines want; do
	printf '%b\n' "$lines" > "$folder/gf-topo.1.in"
	got=$(man/page.sh "$folder/gf-topo.1.in" "${BUILD:-build}" 2>&1 > /dev/null) && offend "$lines: made"
	[ "$got" = "page.sh: gf-topo.1.in: $want" ] || offend "$lines: want \"$want\", got \"$got\""
done << 'EOT'
@head table\n@option tables\n@options|no option --tables
@head table\n@options\n@option table|two items for --table
@include wrong|no option --tables
@head synthetic device|--measure has no item
@entries gf_period_plans\n@options|key group_ranks has no item
@key colour\n@options|no key colour of an entry
@what\n@options|unknown: @what
EOT
exit $bad
