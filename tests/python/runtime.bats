#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gradflow's runtime in PyTorch jobs: share/python/gradflow/runtime.py.
load ../cli/common

setup_file() { # finds the interpreter that has PyTorch
	for python in ${GF_PYTHON:-python3 /usr/bin/python3} ''; do
		[ -n "$python" ] || break
		"$python" -c 'import torch' 2> /dev/null && break
	done
	export python
}

holds() { # RANKS PLAN CASE
	[ -n "$python" ] || skip "no PyTorch"
	[ -e "$GF_SOURCE/$BUILD/lib/libgradflow.so.0" ] || skip "no shared library in this build"
	GRADFLOW_LIBRARY=$GF_SOURCE/$BUILD/lib/libgradflow.so.0 wants 0 timeout 600 mpirun --bind-to none \
		-np "$1" "$python" "$GF_SOURCE/tests/python/check_runtime.py" "$2" "$3"
}

rule() { # SELECTION: of a rule
	jq -n --argjson selection "$1" '{format: "gf-plan", version: 1, system: "auto", policy: "threshold",
		rule: {threshold_bytes: 100, lanes: 2, algorithms: [{min_bytes: 0, algorithm: "rhd"}]},
		selection: $selection, pipeline: {staleness: 1, warmup_steps: 0}}' > rule.json
}

@test "PyTorch, Runtime: synchronous SGD's parameters, without a plan and by a rule" {
	rule '{"method": "dense"}'
	holds 2 - dense
	holds 3 rule.json dense
}
@test "PyTorch, Runtime: AdamW's steps are torch's" {
	holds 1 - adamw
	holds 1 - adamw_otherwise
}
@test "PyTorch, Runtime: accumulated gradients" {
	holds 2 - accumulated
	holds 2 - only_within
}
@test "PyTorch, Runtime: what is out of order is refused" { holds 2 - misused; }
@test "PyTorch, Runtime: gTop-k and csc send less and learn" {
	rule '{"method": "gtopk", "density": 0.1, "warmup_densities": [], "putback": "paper"}'
	holds 2 rule.json sparse
	rule '{"method": "csc", "chunk_elems": 8, "keep": 0.3, "warmup_steps": 5, "decay": 1}'
	holds 2 rule.json sparse
}
@test "PyTorch, Runtime: what it refuses" { holds 1 - refused; }
