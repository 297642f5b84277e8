#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Memory that is refused, at each request in turn: a command ends as if it were not, or
# with status 3 and one line, and a file that it was to write is whole or not there.
load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	refuse=$(realpath -m "$GF_SOURCE/$BUILD/faults/no_memory.so")
	[ -e "$refuse" ] || skip "a sanitizer cannot be preloaded into"
	profiles=$GF_SOURCE/share/profiles
	gf-plan -q --policy mg-wfbp "$profiles/gradientflow-alexnet-volta-mixed.json" \
		"$profiles/gradientflow-network-v.json" > plan.json
}

# refused_in_turn TRIES MORE COMMAND...: so many places, evenly; MORE: "+" if all that
# comes after a place is refused, too, which the libraries' own starts do not survive
refused_in_turn() {
	local tries=$1 more=$2 n at status
	shift 2
	"$@" > want.out 2> want.err
	GF_NO_MEMORY=0 LD_PRELOAD=$refuse "$@" > /dev/null 2> count.err
	n=$(tail -n 1 count.err)
	[ "$n" -gt 100 ] # it is this program's
	for ((at = 1; at <= n; at += 1 + n / tries)); do
		status=0
		GF_NO_MEMORY=$at$more LD_PRELOAD=$refuse timeout 60 "$@" > got.out 2> got.err || status=$?
		[ $status -ne 0 ] || cmp got.out want.out || { echo "at $at$more of $n"; return 1; }
		[ $status -eq 0 ] || { [ $status -eq 3 ] && [ "$(grep -c . got.err)" -eq 1 ]; } ||
			{ echo "at $at$more of $n: status $status"; cat got.err; return 1; }
	done
}

each() { # TRIES
	local plan=(gf-plan -q --policy mg-wfbp "$profiles/gradientflow-alexnet-volta-mixed.json" "$profiles/gradientflow-network-v.json")
	for more in "" +; do
		refused_in_turn "$1" "$more" "${plan[@]}"
		refused_in_turn "$1" "$more" gf-sim -q --table plan.json
	done
	refused_in_turn "$1" "" gf-topo -q --import "$GF_SOURCE/tests/data/topologies/dgx.xml"
	refused_in_turn "$1" "" "${plan[@]}" -o written.json
	[ "$(ls | grep -c written)" -le 1 ]
}

@test "memory that is refused at some requests" {
	each 12
}

# bats test_tags=long
@test "memory that is refused at each request" {
	each 100000
}
