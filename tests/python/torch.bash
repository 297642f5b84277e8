# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of jobs that send through the library: `load torch`. $python is the
# interpreter that has PyTorch; GF_PYTHON names it, if it is set.
load ../cli/common

setup_file() {
	for python in ${GF_PYTHON:-python3 /usr/bin/python3}; do
		"$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2> /dev/null || continue
		export python GRADFLOW_LIBRARY=$GF_SOURCE/$BUILD/lib/libgradflow.so.0
		[ -e "$GRADFLOW_LIBRARY" ] || skip "no shared library in this build"
		gf-allreduce --list | grep -q '^transport  ucx' || skip "built without UCX"
		return
	done
	skip "no PyTorch with gloo"
}
