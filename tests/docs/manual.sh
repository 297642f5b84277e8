#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Man pages, as they are built, show the text of their sources. In a macro's arguments a quotation
# mark groups words and is not printed, so an example or a piece of a document
# writes it as \(dq. groff, where it is installed, renders every page without
# a warning: it gives up on a page that mandoc takes. The program in
# gradflow(3) compiles.
set -u
bad=0
offend() { echo "manual: $*"; bad=1; }

for page in "${BUILD:-build}"/man/*.[1357]; do
	lost=$(grep -nE '^\.(It )?(Dl|Ql|Li|Cm|Pq Ql) .*"' "$page") &&
		offend "$page: write \\(dq, the mark is not printed: $lost"
	command -v groff > /dev/null || continue
	warned=$(groff -ww -mdoc -Tutf8 "$page" 2>&1 > /dev/null) || offend "groff fails on $page"
	[ -z "$warned" ] || offend "groff, of $page: $warned"
done
awk '/^\.Ed/ {on = 0} on {print} /^\.Bd -literal/ {on = 1}' man/gradflow.3 |
	sed 's/\\e/\\/g' |
	${CC:-gcc} -Wall -Wextra -Werror -Iinclude -x c -fsyntax-only - ||
	offend "the example of gradflow(3) does not compile"
exit $bad
