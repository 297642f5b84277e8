#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The transport over a real mpirun, in an environment that says nothing to Open MPI.

setup() {
	unset OMPI_MCA_pml {OMPI,PRTE}_MCA_odls_base_sigkill_timeout
	tests=$GF_SOURCE/$BUILD/tests
	[[ $BUILD = /* ]] && tests=$BUILD/tests
	[ -x "$tests/test_mpi" ] || skip "make check-build builds test_mpi"
}

@test "transport promises hold on 2 ranks" {
	run timeout 300 mpirun -np 2 "$tests/test_mpi"
	[ "$status" -eq 0 ]
	[[ $output = *"all checks hold"* ]]
}

@test "transport promises hold on 5 ranks" {
	run timeout 300 mpirun -np 5 "$tests/test_mpi"
	[ "$status" -eq 0 ]
	[[ $output = *"all checks hold"* ]]
}

@test "shm: ranks of a host in shared memory, MPI below" {
	for ranks in 2 5; do
		run timeout 300 mpirun -np $ranks "$tests/test_shm"
		echo "$output"
		[ "$status" -eq 0 ]
		[[ $output == *"all checks hold"* ]]
	done
}

everything() { # RANKS...
	for ranks; do
		for transport in mpi shm; do
			run timeout 300 mpirun -np "$ranks" "$tests/test_exec_elements" $transport
			echo "$ranks ranks over $transport: $output"
			[ "$status" -eq 0 ]
			[[ $output == *"all checks hold"* ]]
		done
	done
}

@test "every type, operation, codec and set, over MPI and in shared memory" {
	everything 3 8
}

# bats test_tags=long
@test "every type, operation, codec and set, on other numbers of ranks" {
	everything 2 5
}
