#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load ../cli/common

# The short version of `make convergence`: one model, 4 ranks, one seed. `make check`
# asks it of every selection in tests/unit/test_train_select.c.
# bats test_tags=long
@test "every method comes to the accuracy of dense gradients" {
	OUT=$BATS_TEST_TMPDIR/out RANKS=4 SEEDS=1 EPOCHS=15 LONGER= wants 0 "$GF_SOURCE/tests/bench/convergence.sh" digits-mlp
	cat "$BATS_TEST_TMPDIR/out/table.txt"
	fails grep '^skipped: [^p]' out.txt
	methods=$(grep -cE '^[a-z0-9-]+\|(--.*)?$' "$GF_SOURCE/tests/bench/convergence.sh")
	[ "$methods" -ge 13 ]
	# and as often as its facts measure each other selection
	while read -r name times; do
		grep -q -- "--selection $name" "$GF_SOURCE/tests/bench/convergence.sh" || methods=$((methods + times))
	done < <(facts 'select($name != "dense") | "\($name) \(.measured // [0] | length)"')
	# all ran; none is more than five points of 100 below the first, and the
	# selections send less than half of its bytes
	awk -v methods="$methods" -v selections="$(names_of selections | grep -vx dense | paste -sd'|')" 'NR > 1 {
		if (NR == 2) { dense = $5; bytes = $NF; next }
		if ($5 < dense - 5) exit 1
		if ($3 ~ selections && $NF > bytes / 2) exit 1
		n++
	} END {exit n != methods - 1}' "$BATS_TEST_TMPDIR/out/table.txt"
	[ "$(wc -l < "$BATS_TEST_TMPDIR/out/digits-mlp-4.csv")" -eq $((15 * methods + 1)) ]
	command -v gnuplot > /dev/null || skip "gnuplot is not installed"
	ls "$BATS_TEST_TMPDIR"/out/*.svg | wc -l | grep -qx 4
}
