# SPDX-License-Identifier: BSD-3-Clause
# Shared by the bats files: `load common` from tests/cli, `load ../cli/common`
# elsewhere. Commands are on PATH (tests/run.sh); $GF_SOURCE is the source tree.

. "$GF_SOURCE/tests/facts.bash"

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	share=$GF_SOURCE/share
	data=$GF_SOURCE/tests/data
}

# wants STATUS COMMAND...: runs it, the exit status must be STATUS. Standard
# output is in $output, standard error in $errors.
wants() {
	local status=0 want=$1
	shift
	"$@" > out.txt 2> err.txt < "${stdin:-/dev/null}" || status=$?
	output=$(< out.txt)
	errors=$(< err.txt)
	if [ "$status" -ne "$want" ]; then
		echo "want exit status $want, got $status: $*"
		echo "--- stdout"; head -c 4000 out.txt
		echo "--- stderr"; head -c 4000 err.txt
		return 1
	fi
}

# The names of a list of gf-plan --list, one per line: algorithms, selections, ...
names_of() {
	gf-plan --list "$1" | awk 'NR > 1 {print $1}'
}

# A list of gf-plan as refusals have it: "a, b or c".
choice_of() {
	names_of "$1" | paste -sd, | sed 's/,/, /g; s/\(.*\), /\1 or /'
}

# plain COMMAND...: runs it as a user whom permissions bind. Root may override
# permissions, so it gives this right up.
plain() {
	if [ "$(id -u)" -eq 0 ]; then
		set -- setpriv --bounding-set -dac_override,-dac_read_search \
			--inh-caps -dac_override,-dac_read_search "$@"
	fi
	"$@"
}

# Skips the test if that is not possible.
needs_permissions() {
	local bound=0
	mkdir closed && chmod 000 closed
	plain ls closed > /dev/null 2>&1 && bound=1
	chmod 700 closed && rmdir closed
	[ "$bound" -eq 0 ] || skip "permissions do not bind here"
	plain true || skip "root may not give up what it may"
}

# tensors_of FILE: the data of a safetensors file, without what its header says of the run
tensors_of() {
	tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1"
}

# Skips the test if this build has no oneDNN.
needs_onednn() {
	grep -q 'oneDNN on' "$GF_SOURCE/$BUILD/config.txt" || skip "no oneDNN in this build"
}

# Skips the test if this build has no UCX.
needs_ucx() {
	gf-allreduce --list | grep -q '^transport  *ucx' || skip "no UCX in this build"
}

# Makes a locale whose numbers have a comma and which has an i of its own, and sets $locale to its
# name; skips the test if there are no sources of locales.
makes_locale() {
	[ -e /usr/share/i18n/locales/tr_TR ] || skip "no sources of locales"
	export LOCPATH=$PWD/locales
	mkdir locales
	locale=tr_TR.UTF-8
	localedef -i tr_TR -f UTF-8 "locales/$locale"
	[ "$(LC_ALL=$locale locale decimal_point)" = , ]
}

# fails COMMAND...: it must. (A line that begins with ! never ends a test.)
fails() {
	if "$@"; then echo "did not fail: $*"; return 1; fi
}

# holds_all FILE TEXT...: each, as fixed strings
holds_all() {
	local text of=$1 all
	all=$(< "$of")
	for text in "${@:2}"; do
		[[ $all == *"$text"* ]] || { echo "want in $of: $text"; echo "got:"; cat "$of"; return 1; }
	done
}

# Standard error, and standard output, hold each text.
says() { holds_all err.txt "$@"; }
prints() { holds_all out.txt "$@"; }

# replayed_sends PLAN: an array of what the replay's ranks send, as slices of a trace; a rank's pid
# is one more than its number.
replayed_sends() {
	gf-sim -q "$1" --steps --trace sends.json > /dev/null
	jq '[.traceEvents[] | select(.cat == "step" and (.name | startswith("send ")))]' sends.json
}

# one_line: standard error is exactly one line.
one_line() {
	local lines
	mapfile lines < err.txt
	[[ ${#lines[@]} -eq 1 && ${lines[0]} == *$'\n' ]] || { echo "want one line on stderr, got:"; cat err.txt; return 1; }
}

# Open MPI, bounded in time; ranks first: mpi 4 gf-train ...
mpi() {
	local ranks=$1
	shift
	timeout -k 5 "${MPI_TIMEOUT:-300}" mpirun --oversubscribe --bind-to none -np "$ranks" "$@"
}

# by_rank COMMAND... -- COMMAND...: makes ./by_rank, which runs the first on rank 0 and the
# second on all others. (mpirun 5.0 crashes at -np 1 A : -np 1 B.)
by_rank() {
	local first=()
	while [ "$1" != -- ]; do first+=("$1"); shift; done
	shift
	printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" != 0 ] || exec %s\nexec %s\n' \
		"$(printf '%q ' "${first[@]}")" "$(printf '%q ' "$@")" > by_rank
	chmod +x by_rank
}

# unlike COMMAND ARG... -- ARG...: ranks 0 and 1 have different arguments, and one line
# says so.
unlike() {
	local command=$1 first=()
	while [ "$1" != -- ]; do first+=("$1"); shift; done
	shift
	by_rank "${first[@]}" -- "$command" "$@"
	wants 2 mpi 2 ./by_rank
	[ "$(grep -c "^$command" err.txt)" -eq 1 ]
}

# Makes ./apart, which runs a command as one of three unlike ranks: the first two share one
# processor, and the last is on a host of another name.
makes_apart() {
	[ "$(nproc)" -ge 2 ] || skip "one processor"
	cat > apart <<-'END'
		#!/bin/bash
		[ "$OMPI_COMM_WORLD_RANK" = 2 ] || exec taskset -c "$(taskset -pc $$ | grep -o '[0-9]*$')" "$@"
		unshare -u true 2> /dev/null || exec "$@"
		exec unshare -u sh -c 'hostname elsewhere; exec "$@"' sh "$@"
	END
	chmod +x apart
}

# What a sanitizer needs is beyond any limit.
is_bounded() { ! grep -q -e -fsanitize "$GF_SOURCE/$BUILD/flags.txt"; }

# Makes ./short, which leaves rank 1 that many KiB of memory.
makes_short() {
	is_bounded || skip "a sanitizer needs more"
	printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" != 1 ] || ulimit -v %s\nexec "$@"\n' "$1" > short
	chmod +x short
}

# A pipe of that name that takes no byte more, and that nobody reads.
full_pipe() {
	mkfifo "$1"
	exec 9<> "$1"
	dd if=/dev/zero of=/dev/fd/9 bs=4096 oflag=nonblock 2> /dev/null || true
}

# The rows of a CSV file, a line of JSON each.
as_rows() { # file
	python3 -c 'import csv, json, sys
for row in csv.DictReader(open(sys.argv[1])): print(json.dumps(row))' "$1"
}
