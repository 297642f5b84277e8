#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# libgradflow as other programs find it (include/gradflow.h); exchange.bats has its work.
load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	[ -d "$GF_SOURCE/$BUILD/embed" ] || skip "no shared library in this build"
}

@test "libgradflow: needs nothing of ours, and says nothing by itself" {
	library=$GF_SOURCE/$BUILD/lib/libgradflow.so.0
	# the names of versions are symbols, too, but not of every linker
	[ -z "$(nm -D --defined-only "$library" | grep -vE ' gradflow_| A GRADFLOW_')" ]
	# every function of the header is there, and no other
	diff <(grep -oE '\bgradflow_[a-z_]+\(' "$GF_SOURCE/include/gradflow.h" | tr -d '(' | sort -u) \
		<(nm -D --defined-only "$library" | grep -oE ' gradflow_[a-z_]+' | tr -d ' ' | sort -u)
	wants 0 timeout 60 mpirun --bind-to none -np 2 "$GF_SOURCE/$BUILD/embed/caller" means -
	[ ! -s err.txt ]
}

@test "libgradflow: NULL, not a number, two threads, a forked child" {
	wants 0 timeout 60 "$GF_SOURCE/$BUILD/embed/misuse" nothing
	wants 0 timeout 60 mpirun --bind-to none -np 2 "$GF_SOURCE/$BUILD/embed/misuse" threads
}

@test "libgradflow: programs that differ are told apart" {
	binary=$GF_SOURCE/$BUILD/embed/caller
	by_rank "$binary" means - -- "$binary" hangs -
	wants 2 mpi 2 ./by_rank
	says "options: rank 0 has"
}
