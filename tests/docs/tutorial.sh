#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands of the README and of the TUTORIAL in gf(7) run one after the other
# in a folder of their own, as a reader would type them, and show what the text
# says of them. Three things differ: profiles measure less, the language
# model is trained for two steps, and a line that both have runs once.
set -u
command -v mpirun > /dev/null || { echo "mpirun is not installed"; exit 77; }
source=$PWD
bin=$PWD/${BUILD:-build}/bin pages=$PWD/${BUILD:-build}/man
export PATH=$bin:$PATH LC_ALL=C.UTF-8
. tests/launcher.sh plain
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
ln -s "$source/share" share
bad=0
offend() { echo "tutorial: $*"; bad=1; }
shows() { grep -qE "$1" out.txt || { offend "want \"$1\" of $line, got:"; head -n 20 out.txt; }; }

commands() {
	sed -nE 's/^    (\$ )?((gf-[a-z]+|mpirun) .*)/\2/p' "$source/README.md" | grep -vE '^gf-train: |──' |
		sed -E '/lstm-text/s/--epochs 2 .*/--steps 2/'
	awk '/^\.Sh /{on = /TUTORIAL/} on && sub(/^\.Dl /, "")' "$pages/gf.7"
}

ran=0
declare -A seen=()
while IFS= read -r line; do
	ran=$((ran + 1))
	[ -z "${seen[$line]:-}" ] || continue
	seen[$line]=1
	[[ $line == *--plot* ]] && ! command -v gnuplot > /dev/null && continue
	timeout 600 bash -c "set -o pipefail; $line" > out.txt 2> err.txt < /dev/null ||
		{ offend "$line: status $?"; tail -n 5 err.txt; }
	case $line in
	*gf-topo*--import*--table*) shows 'gpu x4' ;;
	*"gf-topo --table"*) shows '^topology host' ;;
	*--pairs*) shows '^latency: median' ;;
	*"--compare topo"*) shows ' policy .* exposed .*x ddp'; shows ' optimal ' ;;
	*--memory*) grep -q 'fits into 40 GiB: a rank holds' err.txt || offend "want what a rank holds" ;;
	*"--over shards"*) shows '^zero3 ' ;;
	*"--over systems"*) shows '^gtopk '; shows '^pipe-sgd ' ;;
	*lstm-text*) shows '^message ' ;;
	*--explain*) shows '^compute  f+b' ;;
	*gf-train*) shows '^step predicted .*measured/predicted [0-9.]+$' ;;
	*--list*) shows '^ *resnet50'; shows '^ *asc-wfbp-8x4-10gbe' ;;
	*"--ranks 32,64,512 --table"*) shows ' 512 '; shows efficiency ;;
	*"--bandwidth"*) [ "$(wc -l < out.txt)" -eq 4 ] || offend "$line: want three rows" ;;
	*--emit*) shows bucket_cap_mb ;;
	*gf-allreduce*) shows '#wrong'; shows 'ring' ;;
	esac
done < <(commands | sed -E 's/ +#.*//; s/--budget [0-9]+s/--budget 1s --points time=1ms --max-bytes 64K --repeats 3/')
[ "$ran" -ge 29 ] || offend "want at least 29 commands, ran $ran"
for file in topo.json prof.json plan.json trace.json better.json big.json rule.json; do
	jq -e . "$file" > /dev/null || offend "$file is no document"
done
# what else is typed: targets and scripts, which take too long here, and a page
cd "$source" || exit 1
while read -r target; do
	grep -qE "^$target:" Makefile || offend "README: make $target: no such target"
done < <(grep -oE '^    (\$ )?make [a-z-]+|`make [a-z-]+' README.md | awk '{ print $NF }')
while read -r script; do
	[ -x "$script" ] || offend "README: $script is no script"
done < <(sed -nE 's/^    \$ (tests[^ ]*).*/\1/p' README.md)
if command -v man > /dev/null; then
	man -P cat -l "$pages/gf.7" 2> /dev/null < /dev/null | grep -q TUTORIAL || offend "man -l $pages/gf.7 has no TUTORIAL"
fi
exit $bad
