#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The folder for a GPU machine runs with nothing of this machine's, as far as tests
# without a GPU can show.
load ../cli/common

@test "a carried folder: programs, ranks, training, without this tree" {
	wants 0 env -C "$GF_SOURCE" BUILD="$BUILD" tests/gpu/carry.sh "$PWD/carried"
	prints 'carried:'
	# all libraries but the C library come from the folder
	for program in carried/build/bin/gf-* carried/mpi/bin/* $(compgen -G "carried/mpi/lib/openmpi/*.so"); do
		LD_LIBRARY_PATH=$PWD/carried/lib ldd "$program" |
			awk -v here="$PWD" '$2 == "=>" && $3 !~ "^" here && $1 !~ /^(libc|libm|ld-|libresolv|libutil|libpthread|libdl|librt|linux-)/ {print; bad = 1} END {exit bad}'
	done
	mv carried elsewhere
	wants 0 env -i -C / PATH=/usr/bin:/bin "$PWD/elsewhere/run.sh" cpu
	prints 'all is well'
}

@test "without a GPU check and bench skip, and say so" {
	compgen -G '/dev/nvidia[0-9]*' > /dev/null && skip 'there is a GPU'
	for what in check bench; do
		wants 77 env -C "$GF_SOURCE" BUILD="$BUILD" tests/gpu/run.sh $what
		grep -q '^skipped: ' <(tail -n 1 out.txt)
		grep FAILED out.txt && return 1
	done
	wants 2 env -C "$GF_SOURCE" tests/gpu/run.sh bench nonsense
	says 'want parts out of kernels'
	wants 2 env -C "$GF_SOURCE" tests/gpu/run.sh
	says 'usage'
}

@test "carry.sh: folders that are not its own" {
	mkdir mine; touch mine/thesis.txt
	wants 2 env -C "$GF_SOURCE" BUILD="$BUILD" tests/gpu/carry.sh "$PWD/mine"
	says 'want a new folder'
	[ -e mine/thesis.txt ]
	wants 3 env -C "$GF_SOURCE" BUILD="$PWD/none" tests/gpu/carry.sh "$PWD/new"
	wants 2 env -C "$GF_SOURCE" BUILD="$BUILD" tests/gpu/carry.sh "$PWD/new" "$PWD/mine"
	says 'no NCCL, cuDNN or cuBLAS there'
}
