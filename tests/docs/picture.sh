#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The picture that README begins with is what the command below it draws: the same
# numbers, and by the same gnuplot the same bytes.
set -u
bin=$PWD/${BUILD:-build}/bin
export PATH=$bin:$PATH GF_SHARE=${GF_SHARE:-$PWD/share}
bad=0
offend() { echo "picture: $*"; bad=1; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
command=$(sed -n 's/^    \(gf-plan .*--plot \)timeline\.svg .*/\1/p' README.md | head -n 1)
[ -n "$command" ] || { offend "README has no command for docs/timeline.svg"; exit 1; }
# shellcheck disable=SC2086
$command "$folder/timeline.csv" -q > /dev/null || offend "$command fails"
awk -F, 'function off(a, b) { return a + 0 == a && b + 0 == b ? (a - b) ^ 2 > 1e-18 * (a * a + b * b) : a != b }
	NR == FNR { for (i = 1; i <= NF; i++) want[FNR, i] = $i; rows = FNR; next }
	{ for (i = 1; i <= NF; i++) if (off(want[FNR, i], $i)) exit 1 }
	END { if (FNR != rows) exit 1 }' docs/timeline.csv "$folder/timeline.csv" ||
	offend "docs/timeline.csv is not what README's command writes now"
gnuplot --version 2> /dev/null | awk '{ print "GNUPLOT " $2 " " $3 " " $4 }' > "$folder/version"
if grep -qFf "$folder/version" docs/timeline.svg; then
	# shellcheck disable=SC2086
	$command "$folder/timeline.svg" -q > /dev/null || offend "$command fails"
	cmp -s docs/timeline.svg "$folder/timeline.svg" ||
		offend "docs/timeline.svg is not what README's command draws now"
fi
exit $bad
