#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The example that a page begins with, and every .Dl line in the EXAMPLES of a
# page, run as they stand, from a folder in which share/ is the shipped
# one; lines that begin with mpirun too, where there is an mpirun. What has a budget of 10 s
# measures less here.
load common

@test "examples of the man pages run" {
	ln -s "$share" share
	mkdir traces monday tuesday
	tee < "$data/import/kineto-gloo-0.json" {traces,monday,tuesday}/0.json > /dev/null
	tee < "$data/import/kineto-gloo-1.json" {traces,monday,tuesday}/1.json > /dev/null
	local failed=0 ran=0 page line
	for page in "$GF_SOURCE/${BUILD:-build}"/man/*.[157]; do
		[ -e "$page" ] || continue
		while IFS= read -r line; do
			[[ $line == *mpirun* ]] && ! command -v mpirun > /dev/null && continue
			ran=$((ran + 1))
			if ! timeout 300 bash -c "set -o pipefail; $line" > example.out 2> example.err < /dev/null; then
				echo "$(basename "$page"): $line"
				tail -n 30 example.err
				failed=1
			fi
		done < <(awk '/^\.Sh /{on = /EXAMPLES/; first = /DESCRIPTION/}
			/^\.Pp/{first = 0} (on || first) && sub(/^\.Dl /, "")' "$page" | sed 's/\\&//g; s/\\(dq/"/g; s/\\-/-/g; s/\\e/\\/g; s/--budget 10s/--budget 1s --points time=1ms --max-bytes 64K --repeats 3/; s/-e 16M/-e 1M/')
	done
	echo "$ran examples"
	[ "$ran" -gt 0 ]
	[ $failed -eq 0 ]
}
