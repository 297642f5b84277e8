# SPDX-License-Identifier: BSD-3-Clause
load common

# The notes of each command in a run that takes no time, with -v if the command has
# no notes without it.
runs() {
	gf-plan -q --model digits-mlp "$share/topologies/4x2-1gbe.json" > plan.json
	jq '.ranks = 1 | del(.levels) | .pipeline.staleness = 3' plan.json > stale.json
	cat <<- RUNS
		gf-topo --import $data/topologies/dgx.xml
		gf-profile --model digits-mlp --repeats 1
		gf-plan --model digits-mlp $share/topologies/4x2-1gbe.json
		gf-sim plan.json --costs $share/topologies/gtopk-32-1gbe.json
		gf-allreduce -b 1K -e 1K -n 1
		gf-train --model digits-mlp --plan stale.json --steps 12 --threads 1
	RUNS
}

@test "-q leaves errors alone; of -q and -v the last one counts" {
	local run options
	runs > runs
	[ "$(wc -l < runs)" -eq 6 ]
	while read -r run; do
		for options in -q "-v -q" "-vvq" "--verbose --quiet"; do
			# shellcheck disable=SC2086
			wants 0 $run $options
			[ ! -s err.txt ] || { echo "$run $options"; cat err.txt; return 1; }
		done
		for options in -v "-q -v" "--quiet --verbose"; do
			# shellcheck disable=SC2086
			wants 0 $run $options
			[ -s err.txt ] || { echo "$run $options: silent"; return 1; }
		done
		# shellcheck disable=SC2086
		wants 3 $run -q -o /dev/full
		one_line
	done < runs
}
