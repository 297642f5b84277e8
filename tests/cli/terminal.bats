#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# What a terminal gets: widths, colours, locales.
load common

# on COLUMNS COMMAND...: standard output is a terminal of that width.
on() { wants 0 python3 "$GF_SOURCE/tests/cli/terminal.py" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	share=$GF_SOURCE/share
	command -v python3 > /dev/null || skip "python3 is not installed"
	gf-plan -q --gpu v100 resnet20 4x2-1gbe > plan.json
}

# Each command that prints something for people.
each() { # FUNCTION
	"$1" gf-plan --compare --gpu v100 resnet20 4x2-1gbe
	"$1" gf-plan --table plan.json
	"$1" gf-plan --explain plan.json
	"$1" gf-plan --list
	"$1" gf-plan --help
	"$1" gf-sim plan.json --ranks 8,16
	"$1" gf-sim plan.json --steps
	"$1" gf-topo --table
	"$1" gf-profile --table six
	"$1" gf-allreduce -n 1 -e 4K
	"$1" gf-train --model digits-mlp --steps 2 --data digits
}

@test "no colours and no control characters, whatever NO_COLOR and TERM say" {
	plain() {
		on 100 env TERM=xterm-256color "$@"
		if grep -nP '[\x00-\x08\x0b-\x1f\x7f]' out.txt; then echo "$*"; false; fi
	}
	each plain
	for variables in NO_COLOR=1 NO_COLOR= TERM=dumb; do
		on 100 env "$variables" gf-plan --compare --gpu v100 resnet20 4x2-1gbe
		cp out.txt "$variables"
		cmp NO_COLOR=1 "$variables"
	done
}

@test "LC_ALL=C prints ASCII, and no locale changes a number" {
	ascii() {
		on 100 env LC_ALL=C "$@"
		if grep -nP '[^\x00-\x7f]' out.txt; then echo "$*"; false; fi
	}
	each ascii
	for locale in C C.UTF-8 de_DE.UTF-8; do
		on 100 env LC_ALL=$locale gf-sim plan.json --ranks 8,16
		cp out.txt $locale
		cmp C $locale
	done
}

@test "COLUMNS and the window's width: tables and charts fit" {
	fits() { # MOST
		[ "$(wc -L < out.txt)" -le "$1" ] || { echo "want $1 columns"; cat out.txt; false; }
	}
	for width in 70 100; do
		on $width gf-plan --explain plan.json
		grep -E '^(compute|lane|network)' out.txt > chart.txt
		cp chart.txt out.txt
		fits $width
		on $width gf-sim plan.json --ranks 8,16
		head -n 3 out.txt > table.txt && cp table.txt out.txt
		fits 100
	done
	# COLUMNS overrides the window; terminal.py takes it away, env puts it back
	on 200 gf-sim plan.json --ranks 8,16
	cp out.txt wide.txt
	on 200 env COLUMNS=80 gf-sim plan.json --ranks 8,16
	fails cmp -s wide.txt out.txt
	grep -q '^in all rows: ' out.txt
	on 80 env COLUMNS=200 gf-sim plan.json --ranks 8,16
	cmp wide.txt out.txt
	for nonsense in 0 -5 wide 99999999999999999999; do
		on 80 env COLUMNS=$nonsense gf-sim plan.json --ranks 8,16
	done
	# into a pipe nothing is folded
	wants 0 env COLUMNS=40 gf-sim plan.json --ranks 8,16 --table
	cmp wide.txt out.txt
}
