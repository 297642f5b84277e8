#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs suites and closes with "N passed, N failed, N skipped".
#   tests/run.sh SUITE...      layers build unit fuzz cli docs lint python mpi lab
# FILTER=regex limits programs and bats files by name. A test program exits 0,
# 1, or 77 to skip with the reason on its last line; each bats test counts. A
# test that hangs is ended after TEST_TIMEOUT seconds. The times shown judge nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
# relative, as tests name it: $GF_SOURCE/$BUILD
BUILD=$(realpath -m --relative-to="$PWD" "${BUILD:-build}") || exit 1
export BUILD
export PATH="$PWD/$BUILD/bin:$PATH"
export GF_SOURCE="$PWD"
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

took() { # since $SECONDS: " (N s)" where it is worth a look
	[ $((SECONDS - $1)) -lt 2 ] || echo " ($((SECONDS - $1)) s)"
}
record() { # status name since
	case $1 in
	0) passed=$((passed + 1)); echo "ok    $2$(took "${3:-$SECONDS}")" ;;
	77) skipped=$((skipped + 1)); echo "skip  $2: $(tail -n 1 "$log")" ;;
	*) failed=$((failed + 1)); echo "FAIL  $2 (status $1)"; sed 's/^/      /' "$log" | tail -n 40 ;;
	esac
}
wanted() { [ -z "${FILTER:-}" ] || [[ $1 =~ $FILTER ]]; }
program() { # name command...
	local name=$1 began=$SECONDS; shift
	wanted "$name" || return 0
	timeout -k 5 "${TEST_TIMEOUT:-1500}" "$@" > "$log" 2>&1 < /dev/null
	record $? "$name" "$began"
}
bats_files() {
	local file began
	if ! command -v bats > /dev/null; then
		echo "bats is not installed" > "$log"; record 77 "$1/*.bats"; return
	fi
	for file in tests/"$1"/*.bats; do
		[ -e "$file" ] || continue
		wanted "$file" || continue
		began=$SECONDS
		timeout -k 5 "${TEST_TIMEOUT:-3600}" bats --tap "$file" > "$log" 2>&1 < /dev/null
		local status=$? p f s
		s=$(grep -cE '^ok .* # skip' "$log")
		p=$(($(grep -cE '^ok ' "$log") - s))
		f=$(grep -cE '^not ok ' "$log")
		passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
		grep -E '^ok .* # skip' "$log" | sed 's/^/skip  /'
		if [ "$status" -ne 0 ]; then
			[ "$f" -gt 0 ] || { failed=$((failed + 1)); echo "FAIL  $file (status $status)"; }
			grep -vE '^ok |^1\.\.' "$log" | sed 's/^/      /'
		fi
		echo "$([ "$status" -eq 0 ] && echo ok || echo FAIL)    $file ($p passed)$(took "$began")"
	done
}

export PYTHONDONTWRITEBYTECODE=1
# for every suite that has an mpirun in it
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1

for suite in "$@"; do
	case $suite in
	layers) program layers tests/layers.sh; program traits tests/traits.sh ;;
	build) for t in tests/build/*.sh; do [ -x "$t" ] && program "build/${t##*/}" "$t"; done ;;
	unit) for t in "$BUILD"/tests/test_*; do [ -x "$t" ] && program "unit/${t##*/}" "$t"; done ;;
	fuzz) for t in "$BUILD"/fuzz/fuzz_*; do [ -x "$t" ] && program "fuzz/${t##*/}" "$t" --seconds "${FUZZ_SECONDS:-3}"; done ;;
	cli | python) bats_files "$suite" ;;
	mpi | lab)
		if command -v mpirun > /dev/null; then
			bats_files "$suite"
		else
			echo "mpirun is not installed" > "$log"; record 77 "$suite"
		fi ;;
	docs) for t in tests/docs/*.sh; do [ -x "$t" ] && program "docs/${t##*/}" "$t"; done ;;
	lint)
		if command -v mandoc > /dev/null; then
			for m in man/*.[1357]; do [ -e "$m" ] && program "lint/${m##*/}" mandoc -T lint -W warning "$m"; done
		else
			echo "mandoc is not installed" > "$log"; record 77 lint/man
		fi
		if command -v shellcheck > /dev/null; then
			mapfile -t scripts < <(grep -rlE '^#!/bin/(ba)?sh' tests share .ci --include='*' 2> /dev/null)
			program lint/shellcheck shellcheck -S warning "${scripts[@]}"
		else
			echo "shellcheck is not installed" > "$log"; record 77 lint/shellcheck
		fi ;;
	*) echo "tests/run.sh: no suite $suite" >&2; exit 2 ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + failed)) -gt 0 ]
