#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The engine over a real mpirun, with ranks that stop or die.

setup() {
	unset {OMPI,PRTE}_MCA_odls_base_sigkill_timeout # a user's mpirun is patient
	tests=$GF_SOURCE/$BUILD/tests
	[[ $BUILD = /* ]] && tests=$BUILD/tests
	[ -x "$tests/test_engine_mpi" ] || skip "make check-build builds test_engine_mpi"
}

# No process of a job that has ended is left, not even a stopped one.
no_survivor() {
	local i
	for i in $(seq 600); do
		pgrep -f "$tests/$1" > /dev/null || return 0
		sleep 0.1
	done
	pgrep -af "$tests/$1"
	return 1
}

@test "ring and library sum on 2 and 3 ranks" {
	for ranks in 2 3; do
		for algorithm in ring library; do
			run timeout 300 mpirun -np $ranks "$tests/test_engine_mpi" $algorithm
			[ "$status" -eq 0 ]
			[[ $output = *"all steps hold"* ]]
		done
	done
}

@test "a stopped rank is named, and abort ends the job with 4" {
	run timeout 300 mpirun -np 4 "$tests/test_engine_mpi" ring STOP 1 ABORT
	echo "$output"
	[ "$status" -eq 4 ]
	[[ $output = *"step 10, message "*": rank 1 does not answer (stopped, dead or cut off)"* ]]
	no_survivor "test_engine_mpi ring STOP 1 ABORT"
}

@test "a stopped rank is named with the library's all-reduce, too" {
	run timeout 300 mpirun -np 3 "$tests/test_engine_mpi" library STOP 2 ABORT
	echo "$output"
	[ "$status" -eq 4 ]
	[[ $output = *"rank 2 does not answer (stopped, dead or cut off)"* ]]
	no_survivor "test_engine_mpi library STOP 2 ABORT"
}

@test "leaving with status 4 ends the job, too" {
	run timeout 300 mpirun -np 3 "$tests/test_engine_mpi" ring STOP 0 EXIT
	echo "$output"
	[ "$status" -eq 4 ]
	[[ $output = *"rank 0 does not answer (stopped, dead or cut off)"* ]]
	no_survivor "test_engine_mpi ring STOP 0 EXIT"
}

@test "a killed rank ends the job at once" {
	run timeout 300 mpirun -np 3 "$tests/test_engine_mpi" ring KILL 1
	echo "$output"
	# by mpirun, or by the others if these see it first
	[[ $status = @(3|137) ]]
	[[ $output = *"signal 9"* || $output = *"rank 1 is gone"* ]]
	no_survivor "test_engine_mpi ring KILL 1"
}
