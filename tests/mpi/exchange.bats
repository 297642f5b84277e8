#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# libgradflow's exchange in a program with an optimiser of its own
# (include/gradflow.h, tests/embed/caller.c), by MPI and as plain processes.
load ../cli/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	[ -d "$GF_SOURCE/$BUILD/embed" ] || skip "no shared library in this build"
}

program() { # NAME: of build/embed
	printf %s "$GF_SOURCE/$BUILD/embed/$1"
}

caller() { # RANKS ARGUMENT...: under mpirun
	local ranks=$1 binary
	binary=$(program caller)
	shift
	timeout 300 mpirun --bind-to none -np "$ranks" "$binary" "$@"
}

# RANKS COMMAND...: plain processes; @ is the rank. The statuses are in
# status.RANK; fails if one does.
processes() {
	local ranks=$1 rank failed=0
	shift
	for ((rank = 0; rank < ranks; rank++)); do
		(
			status=0
			timeout 120 "${@//@/$rank}" || status=$?
			echo "$status" > "status.$rank"
		) &
	done
	wait
	for ((rank = 0; rank < ranks; rank++)); do
		[ "$(cat "status.$rank")" -eq 0 ] || failed=1
	done
	return "$failed"
}

joins() { # by UCX, which a build may lack
	needs_ucx
	wants 0 "$(program caller)" -j "$PWD/try" 0 1 means -
}

rule() { # JQ-FILTER
	jq -n "{format: \"gf-plan\", version: 1, system: \"auto\", policy: \"threshold\",
		rule: {threshold_bytes: 1, lanes: 2, algorithms: [{min_bytes: 0, algorithm: \"ring\"}]},
		selection: {method: \"dense\"}, pipeline: {staleness: 1, warmup_steps: 0}} | $1" > rule.json
}

@test "exchange: means are exact, whatever the order of posts" {
	rule .
	wants 0 caller 1 means -
	wants 0 caller 2 means rule.json
	wants 0 caller 3 means -
	rule '.rule.algorithms[0].algorithm = "auto"'
	wants 0 caller 2 means rule.json
	rule '.pipeline.staleness = 2'
	wants 1 caller 2 means rule.json
	says "rule.json: staleness 2: an exchange gives back the means of the step itself"
}

@test "exchange: in a program whose numbers have a comma, and whose i is Turkish" {
	joins
	makes_locale
	mkdir sets
	rule .
	LC_ALL=$locale wants 0 "$(program caller)" -j "$PWD/try" 0 1 means -
	LC_ALL=$locale processes 2 "$(program caller)" -j "$PWD/meet" @ 2 means rule.json
	LC_ALL=$locale processes 2 "$(program caller)" -j "$PWD/save" @ 2 save rule.json "$PWD/sets/saved"
	processes 2 "$(program caller)" -j "$PWD/load" @ 2 load rule.json "$PWD/sets/saved"
	# without a launcher, by MPI
	LC_ALL=$locale wants 0 caller 2 means rule.json
}
@test "exchange: a set goes on, bit for bit" {
	for selection in $(facts '.keys + {method: $name} | tojson | gsub(" "; "")'); do
		rule ".selection = $selection"
		rm -rf sets
		wants 0 caller 2 save rule.json "$PWD/sets"
		cp out.txt whole.txt
		wants 0 caller 2 load rule.json "$PWD/sets"
		diff whole.txt out.txt
	done
	wants 2 caller 2 save rule.json "$PWD/sets"
	says "another folder starts anew"
}

@test "exchange: what lost ranks held back goes to others, and is told" {
	rule '.selection = {method: "topk", density: .05, warmup_densities: []}'
	wants 0 caller 4 save rule.json "$PWD/sets"
	wants 0 caller 4 carry rule.json "$PWD/sets"
	grep -c "of 4: step 3, carried 0," out.txt | grep -qx 4
	# ranks 2 and 3 had so much
	want=$(sed -n 's/^rank [23] .* holds //p' out.txt | jq -s 'map(. * .) | add | sqrt')
	wants 0 caller 2 carry rule.json "$PWD/sets"
	sed -n 's/.* carried \(.*\), .*/\1/p' out.txt | jq -se --argjson want "$want" \
		'length == 2 and all(. / $want > .9999 and . / $want < 1.0001)'
	wants 0 caller 3 carry rule.json "$PWD/sets"
	wants 0 caller 6 carry rule.json "$PWD/sets"
	grep -c "carried 0, holds 0$" out.txt | grep -qx 2
}

@test "exchange: a rank that stops is named" {
	rule .
	wants 1 caller 3 hangs rule.json
	says "step 2, message 0 "
	says "rank 1 does not answer"
}

@test "exchange: the example with its own loop" {
	binary=$(program own_loop)
	wants 0 timeout 60 mpirun --bind-to none -np 3 "$binary"
	[ "$(cat out.txt)" = "y = 3.000 x + -1.000" ]
	rule '.selection = {method: "gtopk", density: .5, warmup_densities: []}'
	wants 0 timeout 60 mpirun --bind-to none -np 2 "$binary" rule.json
	wants 1 timeout 60 mpirun --bind-to none -np 2 "$binary" none.json
	says "own_loop: "
}

@test "exchange: the example that keeps shards" {
	binary=$(program zero3)
	wants 0 timeout 60 mpirun --bind-to none -np 3 "$binary"
	[ "$(cat out.txt)" = "y = 3.00 -1.00 x +2.00 x^2" ]
	rule '.rule.algorithms[0].codec = "bf16"'
	wants 0 timeout 60 mpirun --bind-to none -np 2 "$binary" rule.json
	grep -Eq '^y = (2.9|3.0). -' out.txt
	rule '.selection = {method: "gtopk", density: .5, warmup_densities: []}'
	wants 1 timeout 60 mpirun --bind-to none -np 2 "$binary" rule.json
	says "halves: want dense gradients, got"
}

@test "exchange: the example that exchanges every 20 steps" {
	binary=$(program periods)
	wants 0 timeout 60 mpirun --bind-to none -np 3 "$binary"
	[ "$(cat out.txt)" = "y = 3.000 x + -1.000 after 50 exchanges" ]
	rule '.rule.algorithms[0].codec = "q8"'
	wants 0 timeout 60 mpirun --bind-to none -np 2 "$binary" rule.json
	grep -q 'after 50 exchanges$' out.txt
	wants 1 timeout 60 mpirun --bind-to none -np 2 "$binary" none.json
	says "periods: "
}

@test "exchange: the example on a GPU says that there is none" {
	[ ! -e /dev/nvidiactl ] || skip "there is a GPU"
	grep -q 'CUDA on' "$GF_SOURCE/$BUILD/config.txt" || skip "built without CUDA"
	binary=$(program on_device)
	wants 1 "$binary"
	says "on_device: "
}

@test "exchange: plain processes meet in a folder, at a port, by an allgather of their own" {
	joins
	wants 0 processes 3 "$(program caller)" -j "$PWD/place" @ 3 means -
	wants 0 processes 2 "$(program caller)" -j "localhost:$((20000 + RANDOM % 10000))" @ 2 means -
	mkdir own
	wants 0 processes 3 "$(program caller)" gather own @ 3
	wants 0 processes 2 "$(program joined)" "$PWD/place-2" @ 2
	[ "$(cat out.txt)" = "the mean of the last step is 10.5" ]
}

@test "exchange: the example in Rust" {
	joins
	command -v rustc > /dev/null || skip "no rustc here"
	library=$GF_SOURCE/$BUILD/lib
	ln -s "$library/libgradflow.so.0" libgradflow.so
	wants 0 rustc -D warnings -L . -C link-arg=-Wl,-rpath,"$library" -o joined "$GF_SOURCE/share/examples/joined.rs"
	wants 0 processes 2 ./joined "$PWD/place" @ 2
	[ "$(cat out.txt)" = "the mean of the last step is 10.5" ]
	wants 1 ./joined "$PWD/place" 2 2
	says "joined: "
}

@test "exchange: several in a process, each by itself" {
	joins
	wants 0 processes 3 "$(program caller)" -j "$PWD/place" @ 3 two -
}

@test "exchange: when a rank dies the others learn it, and go on without it" {
	joins
	wants 1 processes 3 "$(program caller)" -j "$PWD/place" @ 3 dies -
	[ "$(cat status.0 status.1 status.2)" = "$(printf '0\n7\n0')" ]
	grep -c "rank 1 is gone" err.txt | grep -qx 2
	grep -c "rank 1 on $(hostname) is missing" err.txt | grep -qx 2
	grep -c "went on" out.txt | grep -qx 2
}

# bats test_tags=long
@test "exchange: ranks fewer and more go on from the newest set, by every selection" {
	joins
	caller=$(program caller)
	for name in $(names_of selections); do
		keys=$(jq -c .keys "$GF_SOURCE/tests/entries/selection/$name.json")
		rule ".rule.lanes = 1 | .selection = {method: \"$name\"} + $keys"
		echo "$name"
		rm -rf place* sets sets-2
		for rank in 4 5; do # those that come later
			timeout 60 "$caller" -j place-5 $((rank - 1)) 5 resume rule.json sets-2 -1 > late.$rank 2>&1 3>&- &
		done
		wants 1 processes 4 "$caller" -j place @ 4 elastic rule.json sets
		wait
		[ "$(cat status.0 status.1 status.2 status.3)" = "$(printf '0\n137\n0\n0')" ]
		[ ! -s late.4 ]
		[ ! -s late.5 ]
		grep ranks out.txt > went-on.txt
		lost=$(sed -n 's/rank 1 holds //p' out.txt)
		grep -q "^3 ranks from step 4: carried $lost, " went-on.txt
		grep -q "^5 ranks from step 8: carried 0, " went-on.txt
		# as a run that begins with so many ranks and that set
		(for rank in 0 1 2; do
			timeout 60 "$caller" -j place-again $rank 3 resume rule.json sets $((rank + (rank > 0))) 3>&- &
		done
		for rank in 0 1 2 3 4; do
			timeout 60 "$caller" -j place-more $rank 5 resume rule.json sets-2 $((rank < 3 ? rank : -1)) 3>&- &
		done
		wait) > again.txt
		diff <(sort went-on.txt) <(sort again.txt)
	done
	wants 2 "$caller" -j place-wrong 0 1 resume rule.json sets-2 3
	says "former: want below 3, the ranks that wrote the set, got 3 on rank 0"
}

@test "exchange: when a rank on another host dies, closing gives the memory back" {
	joins
	unshare --uts true 2> /dev/null || skip "host names of their own are not permitted here"
	unset MALLOC_MMAP_THRESHOLD_ MALLOC_TRIM_THRESHOLD_
	printf '#!/bin/bash\nhostname "host$1"\nexec "%s" "${@:2}"\n' "$(program caller)" > host
	chmod +x host
	for mode in dies frees; do
		wants 1 processes 3 unshare --uts ./host @ -j "$PWD/place-$mode" @ 3 $mode -
		[ "$(cat status.0 status.1 status.2)" = "$(printf '0\n7\n0')" ]
	done
}

@test "exchange: signals interrupt nothing" {
	joins
	wants 0 processes 2 "$(program misuse)" signals place @ 2
}

@test "exchange: a rank that closes within a step ends it with zeros, and is named in the next" {
	joins
	wants 0 processes 3 "$(program misuse)" leaves place @ 3
}

@test "exchange: how long opening waits for ranks that do not come is the program's to say" {
	joins
	wants 0 "$(program misuse)" alone place 0 2
	says "waited 1.5 s"
	says "rank 1"
}
