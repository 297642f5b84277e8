#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Standard input that a launcher passes on. Some launchers (Open MPI 5.0.11) never pass on
# its end, as the one here.
load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	command -v python3 > /dev/null || skip "python3 is not installed"
	# not by way of env(1): the process has the name of this file
	cat > mpirun <<- END
		#!$(python3 -c 'import sys; print(sys.executable)')
		import os, subprocess, sys
		rank = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
		while block := os.read(0, 65536):
		    os.write(rank.stdin.fileno(), block)
		sys.exit(rank.wait(60))
	END
	chmod +x mpirun
	gf-topo -q --synthetic 'host:4@8GB/s,1us' > topo.json
	gf-plan -q topo.json > rule.json
}

@test "the end of the launcher's own input ends a rank's, from a file and from a pipe" {
	stdin=topo.json wants 0 ./mpirun gf-plan -q -
	cmp out.txt rule.json
	# a process between the two
	stdin=topo.json wants 0 ./mpirun bash -c 'gf-plan -q -; exit $?'
	cmp out.txt rule.json
	{ head -c 50 topo.json; sleep 2; tail -c +51 topo.json; } | ./mpirun gf-plan -q - > out.txt
	cmp out.txt rule.json
}

@test "input that ends early is named, and no input is none" {
	head -c 50 topo.json > part.json
	stdin=part.json wants 2 ./mpirun gf-plan -q -
	says 'standard input:'
	one_line
	wants 2 ./mpirun gf-plan -q -
	says 'standard input: want a document, got nothing'
}

@test "a pipe of the command's own is read to its end, whatever the launcher's input" {
	cat > slow <<- 'END'
		#!/usr/bin/env python3
		import subprocess, sys, time
		plan = subprocess.Popen(["gf-plan", "-q", "-"], stdin=subprocess.PIPE)
		text = open("topo.json", "rb").read()
		for part in text[:50], text[50:]:
		    plan.stdin.write(part)
		    plan.stdin.flush()
		    time.sleep(2)
		plan.stdin.close()
		sys.exit(plan.wait(60))
	END
	wants 0 python3 slow
	cmp out.txt rule.json
	wants 0 ./mpirun bash -c '{ head -c 50 topo.json; sleep 2; tail -c +51 topo.json; } | gf-plan -q -'
	cmp out.txt rule.json
}

# bats test_tags=long
@test "a rank whose launcher is on another host gives up after half a minute, and says what to do" {
	needs_ucx
	cp mpirun prted # the daemon there
	wants 4 ./prted gf-profile --join job --rank 0 --ranks 1 --model digits-mlp
	says 'standard input: want its end, got nothing for 30 s: name the file, or give mpirun the option --stdin none'
}
