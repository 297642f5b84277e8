#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A report of make asan or make tsan ends the program, since a report that a test
# survives is never read.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
offend() { echo "sanitize: $*"; bad=1; }
unset MAKEFLAGS MAKELEVEL

cat > "$scratch/program.c" << 'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int shared;

static void *count(void *arg)
{
	shared++;
	return arg;
}

int main(int argc, char **argv)
{
	char *bytes = calloc(2, sizeof(double));
	double *odd = (double *)(bytes + (argc > 1 && *argv[1] == 'm'));
	volatile double sum = odd[0];
	volatile int most = 0x7fffffff;
	pthread_t thread;

	if (argc > 1 && *argv[1] == 's')
		most = most + 1;
	if (argc > 1 && *argv[1] == 'b')
		sum += bytes[16];
	if (argc > 1 && *argv[1] == 'r') {
		pthread_create(&thread, NULL, count, NULL);
		usleep(100000);
		count(NULL);
		pthread_join(thread, NULL);
	}
	free(bytes);
	puts("the end");
	return 0;
}
C

# Built as make builds a source file, and run with one fault after the other. A
# sleep orders nothing: ThreadSanitizer calls the two accesses around it a race. It
# misses some races of two accesses at the same moment.
check() { # sanitizers faults...
	local flags fault
	flags=$(make -n -B SAN="$1" BUILD="$scratch/none" "$scratch/none/obj/lib/base/error.o" |
		grep -oE -- '-fsanitize=[^ ]*|-fno-sanitize[^ ]*|-fno-omit[^ ]*' | sort -u)
	# shellcheck disable=SC2086
	gcc -O1 -g -pthread $flags -o "$scratch/program" "$scratch/program.c" || { offend "$1: no program"; return; }
	shift
	"$scratch/program" > "$scratch/out" 2>&1 || offend "fails without a fault: $(cat "$scratch/out")"
	for fault; do
		"$scratch/program" "$fault" > "$scratch/out" 2>&1 && offend "$flags: goes on after: $fault"
		grep -qE 'runtime error|Sanitizer' "$scratch/out" || offend "$flags: says nothing of: $fault"
	done
}

check address,undefined misaligned signed-overflow beyond
check thread race
exit $bad
