#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Standard input that a launcher passes on. Some launchers (Open MPI 5.0.11) never pass on
# its end, as the one here.
load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	command -v python3 > /dev/null || skip "python3 is not installed"
	cat > launcher <<- 'END'
		#!/usr/bin/env python3
		import os, subprocess, sys
		rank = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
		while block := os.read(0, 65536):
		    os.write(rank.stdin.fileno(), block)
		sys.exit(rank.wait(60))
	END
	chmod +x launcher
	gf-topo -q --synthetic 'host:4@8GB/s,1us' > topo.json
	gf-plan -q topo.json > rule.json
}

@test "the end of the launcher's own input ends a rank's, from a file and from a pipe" {
	stdin=topo.json wants 0 ./launcher gf-plan -q -
	cmp out.txt rule.json
	# a process between the two
	stdin=topo.json wants 0 ./launcher bash -c 'gf-plan -q -; exit $?'
	cmp out.txt rule.json
	{ head -c 50 topo.json; sleep 2; tail -c +51 topo.json; } | ./launcher gf-plan -q - > out.txt
	cmp out.txt rule.json
}

@test "input that ends early is named, and no input is none" {
	head -c 50 topo.json > part.json
	stdin=part.json wants 2 ./launcher gf-plan -q -
	says 'standard input:'
	one_line
	wants 2 ./launcher gf-plan -q -
	says 'standard input: want a document, got nothing'
}

@test "a pipe of the command's own is read to its end, whatever the launcher's input" {
	wants 0 ./launcher bash -c '{ head -c 50 topo.json; sleep 2; tail -c +51 topo.json; } | gf-plan -q -'
	cmp out.txt rule.json
}
