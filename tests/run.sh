#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds what it runs, of it what FILTER matches, but for a BUILD with flags of its own, and runs suites and closes with the slowest tests and "N passed, N failed, N skipped".
#   tests/run.sh [--long | --threads] SUITE...
#                  layers build unit fuzz cli docs lint python mpi fence two-ranks lab
# --long runs the bats tests and scripts tagged "long" instead of the others, and of
# programs the fuzzers, and the unit tests that leave cases out of a sweep otherwise; --threads
# leaves out the programs of unit that start no thread. fence compares a tenth without --long.
# JOBS programs or bats files run beside each other, in the order of the suites: three
# more than there are processors, at most 8, since many wait more than they compute.
# FILTER=regex limits programs and bats files by name, BATS_FILTER the tests in these. A test program exits 0, 1, or
# 77 to skip with the reason on its last line; each bats test counts. A program or a
# bats file that hangs is ended after TEST_TIMEOUT seconds. The times shown judge
# nothing: how long it took, and how many seconds of a processor that was.
set -u
cd "$(dirname "$0")/.." || exit 1
# relative, as tests name it: $GF_SOURCE/$BUILD
BUILD=$(realpath -m --relative-to="$PWD" "${BUILD:-build}") || exit 1
export BUILD
export PATH="$PWD/$BUILD/bin:$PATH"
export GF_SOURCE="$PWD"
export PYTHONDONTWRITEBYTECODE=1
. tests/launcher.sh
# Threads that wait for work leave the processors to the tests beside them.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY-passive}
# A program keeps memory that it has freed: pages that the system hands out anew take up to half of
# the time of a test.
export MALLOC_MMAP_THRESHOLD_=${MALLOC_MMAP_THRESHOLD_-1073741824} MALLOC_TRIM_THRESHOLD_=${MALLOC_TRIM_THRESHOLD_-4294967296}

# make has built already; sanitizers' builds have other flags
if [ -z "${MAKELEVEL:-}" ] && [ "$BUILD" = build ]; then
	needs=check-build
	if [ -n "${FILTER:-}" ]; then
		needs=
		for suite in "$@"; do
			case $suite in
			unit | fuzz) needs+=' check-programs' ;;
			layers | lint | --*) ;;
			cli | mpi | python | lab) ! printf '%s\n' tests/"$suite"/*.bats | grep -qE -- "$FILTER" || needs+=' check-commands' ;;
			*) needs+=' check-commands' ;;
			esac
		done
	fi
	# shellcheck disable=SC2086
	[ -z "$needs" ] || make -s -j"$(nproc)" WERROR=1 $needs > /dev/null || exit 1
fi

tags='!long' threads=
case ${1:-} in
--long) tags=long; export GF_TEST_LONG=1; shift ;;
--threads) threads=1; shift ;;
esac
processors=$(nproc)
jobs=${JOBS:-$((processors < 6 ? processors + 3 : 8))}
passed=0 failed=0 skipped=0 busy_s=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
# python3 may be a script that looks for an interpreter, as pyenv's is. The search takes longer than
# the small programs of the tests, so it is done once.
if python=$(python3 -c 'import sys; print(sys.executable)' 2> /dev/null) && mkdir "$scratch/bin"; then
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" > "$scratch/bin/python3"
	chmod +x "$scratch/bin/python3"
	export PATH="$scratch/bin:$PATH"
fi
# what several files of tests find out, once
mkdir "$scratch/known" && export GF_TEST_KNOWN=$scratch/known
declare -A running=() # by process: kind, name, log, when it began

# Ends what still runs, as an interrupted shell would not.
give_up() {
	trap - INT TERM
	local pid
	while [ -n "$(jobs -rp)" ]; do
		for pid in $(jobs -rp); do pkill -P "$pid"; done
		sleep 0.1
	done
	exit 130
}
trap give_up INT TERM

report() { # status name log: of a program
	case $1 in
	0) passed=$((passed + 1)); echo "ok    $2$took" ;;
	77) skipped=$((skipped + 1)); echo "skip  $2: $(tail -n 1 "$3")" ;;
	*) failed=$((failed + 1)); echo "FAIL  $2 (status $1)"; sed 's/^/      /' "$3" | tail -n 40 ;;
	esac
}
report_bats() { # status name log
	local p f s
	sed -nE 's/^(not )?ok [0-9]+ (.*) in ([0-9]+)ms( #.*)?$/\3 \2/p' "$3" |
		sed "s|\$| ($2)|" >> "$scratch/times"
	s=$(grep -cE '^ok .* # skip' "$3")
	p=$(($(grep -cE '^ok ' "$3") - s))
	f=$(grep -cE '^not ok ' "$3")
	passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
	[ "$1" -ne 0 ] || [ $((p + s)) -gt 0 ] || return
	grep -E '^ok .* # skip' "$3" | sed -E 's/ in [0-9]+ms//; s/^/skip  /'
	if [ "$1" -ne 0 ]; then
		[ "$f" -gt 0 ] || { failed=$((failed + 1)); echo "FAIL  $2 (status $1)"; }
		grep -vE '^ok |^1\.\.' "$3" | sed 's/^/      /'
	fi
	echo "$([ "$1" -eq 0 ] && echo ok || echo FAIL)    $2 ($p passed)$took"
}

now_ms() { date +%s%3N; }

# Waits for one of those that run, and reports it.
finish() {
	local pid status=0 kind name log began ms cpu took=
	wait -n -p pid "${!running[@]}" || status=$?
	IFS='|' read -r kind log began name <<< "${running[$pid]}"
	unset "running[$pid]"
	ms=$(($(now_ms) - began))
	cpu=$(awk 'END { print int($1 + $2 + .5) }' "$log.cpu")
	busy_s=$((busy_s + cpu))
	[ $ms -lt 2000 ] || took=" ($((ms / 1000)) s, $cpu s of a processor)"
	[ "$kind" = _bats ] || echo "$ms $name" >> "$scratch/times"
	"report${kind#program}" "$status" "$name" "$log"
	rm -f "$log" "$log.cpu"
}

# begin KIND NAME COMMAND...: as soon as one of the jobs is free
begun=0
begin() {
	local kind=$1 name=$2
	shift 2
	[ -z "${FILTER:-}" ] || [[ $name =~ $FILTER ]] || return 0
	while [ ${#running[@]} -ge "$jobs" ]; do finish; done
	begun=$((begun + 1))
	local log=$scratch/$begun.log
	# in a shell of its own, since wait -n forgets what a signal has ended; it
	# outlives a signal to all, or nobody would end what it runs
	(
		trap : INT TERM
		TIMEFORMAT='%U %S'
		{ time timeout -k 5 "${TEST_TIMEOUT:-1500}" "$@" > "$log" 2>&1 < /dev/null; } 2> "$log.cpu"
		exit $?
	) &
	running[$!]="$kind|$log|$(now_ms)|$name"
}
program() { # name command...
	[ "$tags" = long ] || begin program "$@"
}
is_wanted() { # script: those tagged "long" with --long, the others without
	if grep -q '^# test_tags=long' "$1"; then [ "$tags" = long ]; else [ "$tags" != long ]; fi
}
sweeps() { [ "$tags" != long ] || grep -q test_tries "tests/unit/$1.c" 2> /dev/null; }
absent() { # name reason
	skipped=$((skipped + 1))
	echo "skip  $1: $2"
}
bats_files() {
	local file files jobs=$jobs
	[ "$1" != lab ] || jobs=1 # its files name the same namespaces
	command -v bats > /dev/null || { absent "$1/*.bats" 'bats is not installed'; return; }
	# The longest first, so that none is left alone at the end: the examples are in other files, and some wait.
	mapfile -t files < <({ ls tests/"$1"/{examples,launched-input}.bats; ls -S tests/"$1"/*.bats; } 2> /dev/null | awk '!seen[$0]++')
	for file in "${files[@]}"; do
		[ ! -e "$file" ] || begin _bats "$file" bats --tap --timing --filter-tags "$tags" ${BATS_FILTER:+-f "$BATS_FILTER"} "$file"
	done
}

for suite in "$@"; do
	case $suite in
	layers) program layers tests/layers.sh; program traits tests/traits.sh; program machine-code tests/machine_code.sh ;;
	fence) if [ "$tags" = long ]; then begin program fence tests/fence.sh; else program fence tests/fence.sh --tenth; fi ;;
	build)
		for t in tests/build/*.sh; do
			[ ! -x "$t" ] || ! is_wanted "$t" || begin program "build/${t##*/}" "$t"
		done ;;
	unit)
		for t in "$BUILD"/tests/test_*; do
			[ -x "$t" ] || continue
			[ -z "$threads" ] || nm -D "$t" | grep -q 'U pthread_create' || continue
			! sweeps "${t##*/}" || begin program "unit/${t##*/}" "$t"
		done ;;
	fuzz) for t in "$BUILD"/fuzz/fuzz_*; do [ -x "$t" ] && begin program "fuzz/${t##*/}" "$t" --seconds "${FUZZ_SECONDS:-3}"; done ;;
	cli | python) bats_files "$suite" ;;
	mpi | lab)
		if command -v mpirun > /dev/null; then
			bats_files "$suite"
		else
			absent "$suite" 'mpirun is not installed'
		fi ;;
	two-ranks) program two-ranks tests/two-ranks.sh ;;
	docs) for t in tests/docs/*.sh; do [ -x "$t" ] && program "docs/${t##*/}" "$t"; done ;;
	lint)
		if command -v mandoc > /dev/null; then
			for m in "$BUILD"/man/*.[1357]; do [ -e "$m" ] && program "lint/${m##*/}" mandoc -T lint -W warning "$m"; done
		else
			absent lint/man 'mandoc is not installed'
		fi
		if command -v shellcheck > /dev/null; then
			mapfile -t scripts < <(grep -rlE '^#!/bin/(ba)?sh' tests share man .ci --include='*' 2> /dev/null)
			program lint/shellcheck shellcheck -S warning "${scripts[@]}"
		else
			absent lint/shellcheck 'shellcheck is not installed'
		fi ;;
	*) echo "tests/run.sh: no suite $suite" >&2; exit 2 ;;
	esac
done
while [ ${#running[@]} -gt 0 ]; do finish; done
if [ -s "$scratch/times" ]; then
	echo "the slowest (all are in $BUILD/test-times):"
	sort -rn "$scratch/times" > "$BUILD/test-times"
	head -n 12 "$BUILD/test-times" | awk '{printf "%6.1f s ", $1 / 1000; $1 = ""; print}'
fi
echo "$SECONDS s; the processors were busy for $((100 * busy_s / (SECONDS * processors + 1))) %"
[ $((passed + failed + skipped)) -gt 0 ] || echo "tests/run.sh: nothing ran: no test of ($*) is named ${FILTER:-anything}" >&2
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + failed)) -gt 0 ]
