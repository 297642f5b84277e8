# SPDX-License-Identifier: BSD-3-Clause
load common

# The notes of each command that has -v, in a run that takes no time.
runs() {
	gf-plan -q --model digits-mlp "$share/topologies/4x2-1gbe.json" > plan.json
	jq '.ranks = 1 | del(.levels) | .pipeline.staleness = 3' plan.json > stale.json
	cat <<- RUNS
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
	[ "$(wc -l < runs)" -eq 5 ]
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

@test "commands without details have no -v" {
	wants 0 gf-topo --import "$data/topologies/dgx.xml" -q
	[ ! -s err.txt ]
	for command in gf-topo gf-report; do
		wants 2 $command -v
		says "invalid option -- 'v'"
		fails grep verbose <($command --help)
	done
}
