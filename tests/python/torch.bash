# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests with PyTorch: `load torch`. GF_PYTHON names the interpreter that has it, of
# any version from 1.13 on.
load ../cli/common

needs_torch() { # [MODULES]: $python is an interpreter that has PyTorch, and these
	local known=${GF_TEST_KNOWN:-$BATS_FILE_TMPDIR}/torch-${1//[^a-z]/-}
	for python in ${GF_PYTHON:-python3 /usr/bin/python3}; do
		# PyTorch takes a second to begin
		grep -qxF "$python" "$known" 2> /dev/null ||
			"$python" -c "import ${1:+$1, }torch.distributed as d; assert d.is_gloo_available()" 2> /dev/null || continue
		echo "$python" > "$known"
		export python
		return
	done
	skip "no PyTorch with gloo${1:+, $1}"
}

needs_library() {
	export GRADFLOW_LIBRARY=$GF_SOURCE/$BUILD/lib/libgradflow.so.0
	[ -e "$GRADFLOW_LIBRARY" ] || skip "no shared library in this build"
}

# Most of them are jobs that send through the library.
setup_file() {
	needs_torch
	needs_library
	gf-allreduce --list | grep -q '^transport  ucx' || skip "built without UCX"
}

# checks TEST RANKS CASE...: runs tests/python/check_TEST.py
checks() { timeout 600 "$python" "$GF_SOURCE/tests/python/check_$1.py" "${@:2}"; }

# holds TEST RANKS CASE...
holds() { wants 0 checks "$@"; }

# able TEST RANKS CASE...: as holds, where this PyTorch has what the test is about
able() {
	local lacks=$BATS_FILE_TMPDIR/lacks-$1
	status=0
	if [ ! -s "$lacks" ]; then
		checks "$@" > out.txt 2>&1 || status=$?
		grep '^skipped: ' out.txt > "$lacks" || true
	fi
	[ ! -s "$lacks" ] || skip "$(cat "$lacks")"
	[ "$status" -eq 0 ] || { cat out.txt; return 1; }
}
