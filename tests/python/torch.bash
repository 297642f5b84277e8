# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests with PyTorch: `load torch`. GF_PYTHON names the interpreter that has it, of
# any version from 1.13 on.
load ../cli/common

needs_torch() { # [MODULES]: $python is an interpreter that has PyTorch, and these
	for python in ${GF_PYTHON:-python3 /usr/bin/python3}; do
		"$python" -c "import ${1:+$1, }torch.distributed as d; assert d.is_gloo_available()" 2> /dev/null || continue
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

# holds TEST RANKS CASE...: tests/python/check_TEST.py
holds() {
	wants 0 timeout 600 "$python" "$GF_SOURCE/tests/python/check_$1.py" "${@:2}"
}
