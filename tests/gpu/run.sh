#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs make check-gpu and make bench-gpu, here or carried to a machine with a GPU
# (carry.sh).
#   tests/gpu/run.sh check             kernels, layers and runtime on the GPU
#   tests/gpu/run.sh bench [PART...]   measure; the most telling parts first
#   tests/gpu/run.sh cpu               the parts that need no GPU: is everything here?
#   tests/gpu/run.sh parts             the parts of bench, in their order
# Each result is printed as soon as it is there, with its time of day. A part of
# bench ends with a table for docs/tables. Exit status 0: done; 1: something is
# wrong; 3: a program cannot start, and a line names the missing part; 77: there is
# no GPU, and the last line says so. LIMIT_S bounds the whole, in seconds (450 for
# check and cpu, 570 for bench).
# shellcheck disable=SC2154 # variables of place.sh
set -u
# shellcheck source=tests/gpu/place.sh
. "$(dirname "$(readlink -f "$0")")/place.sh" || exit 3
bad=0 skipped=
case ${1:-} in bench) limit=${LIMIT_S:-570} ;; *) limit=${LIMIT_S:-450} ;; esac

wrong() { say "FAILED: $*"; bad=1; }

# --- what it needs ------------------------------------------------------------
packages='libjansson libjansson4
libhwloc libhwloc15
libdnnl libdnnl2
libmpi libopenmpi3
libibverbs libibverbs1'

# Prints a line for each missing part, with its Debian name. A program that cannot
# start ends the run; the run does without other parts.
needs() {
	local library package lacking
	lacking=$(ldd "$BUILD"/bin/gf-* 2> /dev/null | awk '/not found/ {print $1}' | sort -u)
	for library in $lacking; do
		package=$(awk -v l="${library%%.so*}" '$1 == l {print " (Debian: " $2 ")"}' <<< "$packages")
		say "needs $library$package, to start at all"
	done
	if ! command -v mpirun > /dev/null; then
		say 'needs mpirun (Debian: openmpi-bin), to start several ranks'
		lacking="$lacking mpirun"
	fi
	[ -z "$lacking" ] || { say "a folder of make carry-gpu's has all of it"; exit 3; }
	[ "$1" != bench ] || "${python[@]}" -c 'import torch' 2> /dev/null ||
		say 'needs python3 with PyTorch, to compare with: goes without'
}

# judged STATUS NAME REASON: a skip counts as one only if there is no GPU.
judged() {
	case $1 in
	0) return 0 ;;
	77) if has_gpu; then
			wrong "$2: there is a GPU, and it was not used: $3"
		else
			say "skipped: $2: $3"
			skipped=$3
		fi ;;
	124 | 137) wrong "$2: not done in its time" ;;
	*) wrong "$2 (status $1)" ;;
	esac
	return 1
}

# try SECONDS NAME COMMAND...: shows its output as it comes, for at most the time
# that is left for all.
try() {
	local seconds=$1 name=$2 left=$((limit - SECONDS)) status
	shift 2
	[ "$left" -gt 0 ] || { wrong "$name: no time is left for it (LIMIT_S)"; return 1; }
	[ "$seconds" -le "$left" ] || seconds=$left
	timeout -k 5 "$seconds" "$@" 2>&1 < /dev/null | tee "$scratch/last" | sed 's/^/    /'
	status=${PIPESTATUS[0]}
	judged "$status" "$name" "$(tail -n 1 "$scratch/last")"
}

# --- cpu ----------------------------------------------------------------------
# Everything but the GPU: programs start, ranks find each other, sums are right.
cpu() {
	local program
	for program in gf-topo gf-profile gf-plan gf-sim gf-allreduce gf-train; do
		try 60 "$program" "$program" --version || continue
		ldd "$(command -v "$program")" | grep 'not found' && wrong "$program lacks a library"
	done
	say 'this machine'
	try 60 gf-topo gf-topo --table
	try 60 gf-allreduce gf-allreduce --list
	say 'four ranks'
	try 120 'all-reduce of four ranks' mpirun -np 4 gf-allreduce -a ring,library -b 64K -e 256K -n 3 -w 1
	say 'training on the processors'
	try 120 gf-train mpirun -np 2 gf-train --device cpu --epochs 1 --steps 20 --check-replicas 10
}

# --- check --------------------------------------------------------------------
check() {
	local test found=
	for test in "$gpu_tests"/test_*; do
		[ -x "$test" ] || continue
		found=1
		say "${test##*/}"
		[ "${test##*/}" != test_nccl ] || has_nccl || { say 'skipped: no NCCL here'; continue; }
		try 300 "${test##*/}" "$test"
	done
	[ -n "$found" ] || { skipped='built without CUDA'; say "skipped: $skipped"; return; }
	trains_on_gpu || return
	say 'training on the GPU: replicas are alike, losses as on the processors'
	try 120 'gf-train on the GPU' gf-train --device cuda "${steady[@]}" --steps 30 --log "$scratch/gpu.jsonl"
	try 120 'gf-train on the CPU' gf-train --device cpu "${steady[@]}" --steps 30 --log "$scratch/cpu.jsonl"
	alike "$scratch/gpu.jsonl" "$scratch/cpu.jsonl" || wrong 'losses on the GPU are not those on the processors'
	shared_ranks 20
	say 'selections by the host: replicas are alike, losses as on the processors'
	chosen 2 1 mpi csc topk gtopk
	chosen 4 2 mpi csc topk gtopk dense
	say 'periods between groups on the one GPU: losses as on the processors'
	periods 1 mpi
	periods 2 mpi
	by_nccl
}

# Each kind of period, between two groups of so many ranks, with the same plan on both
# devices. A fragment is in flight over several steps, and comes under a codec.
periods() { # GROUP-RANKS TRANSPORT
	local group=$1 transport=$2 ranks=$((2 * $1)) name
	for name in local-sgd diloco streaming; do
		# shellcheck disable=SC2046
		gf-topo --synthetic "site:2@100Mb/s,100us host:$group@8GB/s,1us,shm" |
			gf-plan -q --model digits-cnn-plain --ranks "$ranks" \
				--period "$name:steps=6,codecs=q8$([ "$name" != streaming ] || echo ,fragments=2,delay=2)" > "$scratch/plan" ||
			{ wrong "no plan for a period $name"; continue; }
		trained_alike "$name, $ranks ranks in two groups" "$ranks" "$transport"
	done
}

# A plan for so many ranks of this machine, in $scratch/plan.
planned() { # RANKS MODEL PLAN-OPTIONS...
	local ranks=$1 model=$2
	shift 2
	gf-topo --synthetic "host:$ranks@8GB/s,1us,shm" |
		gf-plan -q --model "$model" --ranks "$ranks" "$@" > "$scratch/plan" ||
		{ wrong "no plan for $model with $*"; return 1; }
}

# Every selection, with the same plan on both devices: both choose the same
# gradients, but for those that differ by the rounding of the passes.
chosen() { # RANKS STALENESS TRANSPORT SELECTIONS...
	local name ranks=$1 staleness=$2 transport=$3
	shift 3
	for name; do
		# shellcheck disable=SC2046
		planned "$ranks" digits-cnn-plain --staleness "$staleness" --selection "$name$(case $name in
			dense) ;;
			csc) echo :keep=.3,chunk_elems=500,warmup_steps=4 ;;
			*) echo :density=.01,warmup_densities=none ;; esac)" || continue
		trained_alike "$name, K = $staleness, $ranks ranks" "$ranks" "$transport"
	done
}

# The plan $scratch/plan on both devices: replicas and losses are alike.
trained_alike() { # NAME RANKS TRANSPORT
	local device name=$1 ranks=$2 transport=$3
	for device in cuda cpu; do
		rm -f "$scratch/alike.$device"
		try 100 "$name, $device" mpirun -np "$ranks" gf-train -q --device "$device" \
			--transport "$([ "$device" = cpu ] && echo auto || echo "$transport")" --plan "$scratch/plan" \
			"${steady[@]}" --steps 20 --batch $((64 / ranks)) --check-replicas 5 \
			--log "$scratch/alike.$device" || return
	done
	alike "$scratch/alike.cuda" "$scratch/alike.cpu" ||
		{ wrong "$name, $transport: losses are not those on the processors"; return; }
	say "$name, $transport: as on the processors"
}

# As many ranks as there are GPUs, also if there is one.
by_nccl() {
	local ranks
	has_nccl || { say 'skipped: no NCCL here'; return; }
	ranks=$(gf-allreduce --list | grep -c '^device *cuda:')
	say "by NCCL, $ranks ranks"
	try 120 'all-reduces by NCCL' mpirun -np "$ranks" gf-allreduce --device cuda -a all --density 0.01 -b 4K -e 4M -f 8 -n 3 -w 1
	try 120 'gf-train by NCCL' mpirun -np "$ranks" gf-train --device cuda --transport nccl "${steady[@]}" --steps 30 --check-replicas 10
	chosen "$ranks" 1 nccl csc topk gtopk
	chosen "$ranks" 2 nccl csc topk gtopk dense
	[ $((ranks % 2)) -ne 0 ] || periods $((ranks / 2)) nccl
}

has_nccl() { ! gf-allreduce --list | grep -q 'no nccl'; }

# A run whose losses depend neither on the last bits nor on the division of a batch
# among ranks: no statistics over a batch, a low rate.
steady=(--model digits-cnn-plain --lr 0.02 --epochs 100)

# Losses of two logs, step by step, within 5 %.
alike() {
	paste <(losses "$1") <(losses "$2") | awk '
		{ d = $1 - $2; if (d < 0) d = -d; if (!($1 > 0) || d > 0.05 * $2) bad = 1; n++ }
		END { exit bad || !n }'
}
losses() { grep '"part": "batch"' "$1" | sed -E 's/.*"loss": ([^,]*),.*/\1/'; }

# Whether gf-train of this build and machine computes on a GPU; if not, why.
trains_on_gpu() {
	[ -n "${gpu_works:-}" ] || {
		gpu_works=no
		if gf-train --device cuda --epochs 1 --steps 1 > "$scratch/why" 2>&1; then
			gpu_works=yes
		elif has_gpu; then
			wrong "gf-train --device cuda: $(tail -n 1 "$scratch/why")"
		else
			skipped=$(tail -n 1 "$scratch/why")
			say "skipped: gf-train --device cuda: $skipped"
		fi
	}
	[ "$gpu_works" = yes ]
}

# Several ranks on the one GPU, by the host. The run is correct if replicas agree
# and losses are those of one rank with the whole batch.
shared_ranks() { # STEPS
	local ranks
	for ranks in 1 2 4; do
		rm -f "$scratch/shared.$ranks"
		try 150 "$ranks ranks share a GPU" mpirun -np "$ranks" gf-train --device cuda \
			"${steady[@]}" --steps "$1" --batch $((64 / ranks)) --check-replicas 5 \
			--log "$scratch/shared.$ranks" || continue
		say "$ranks ranks on one GPU: $(step_ms "$scratch/shared.$ranks") ms per step"
		row "$ranks" "$((64 / ranks))" "$(step_ms "$scratch/shared.$ranks") ms"
		[ "$ranks" -eq 1 ] || alike "$scratch/shared.$ranks" "$scratch/shared.1" ||
			wrong "$ranks ranks do not train as one does"
	done
}

# --- numbers ------------------------------------------------------------------
# Medians of the second half of a log's steps.
column() { # FILE KEY
	grep '"part": "batch"' "$1" | sed -nE "s/.*\"$2\": ([^,}]*)[,}].*/\1/p" |
		awk '{v[NR] = $1} END {for (i = int(NR / 2) + 1; i <= NR; i++) print v[i]}' |
		sort -g | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'
}
step_ms() { column "$1" time_s | awk '{printf "%.3f", $1 * 1e3}'; }


# table HEADING...: a table begins; row CELL...; and it is printed.
table() {
	line "$@" > "$scratch/table"
	printf -- '---|%.0s' "$@" | sed 's/^/|/' >> "$scratch/table"
	echo >> "$scratch/table"
}
row() { [ ! -e "$scratch/table" ] || line "$@" >> "$scratch/table"; }
line() { printf '| %s ' "$@"; echo '|'; }
show_table() {
	[ ! -e "$scratch/table" ] || [ "$(wc -l < "$scratch/table")" -le 2 ] || { echo; cat "$scratch/table"; echo; }
	rm -f "$scratch/table"
}

# --- bench --------------------------------------------------------------------
# shellcheck source=tests/gpu/bench.sh
. tests/gpu/bench.sh

# The most telling first.
parts=(kernels rows resnet50 alexnet text shared nccl methods profile)

bench() {
	local part
	[ $# -gt 0 ] || set -- "${parts[@]}"
	for part in "$@"; do
		declare -F "bench_$part" > /dev/null ||
			{ echo "run.sh: want parts out of ${parts[*]}, got $part" >&2; exit 2; }
	done
	for part in "$@"; do
		say "--- $part"
		"bench_$part"
		show_table
	done
}

# ------------------------------------------------------------------------------
case ${1:-} in
check | cpu | bench) mode=$1; shift; needs "$mode"; "$mode" "$@" ;;
parts) echo "${parts[@]}"; exit 0 ;;
*) echo 'usage: run.sh check | cpu | parts | bench [PART...]' >&2; exit 2 ;;
esac
if [ "$bad" -ne 0 ]; then
	say 'something is wrong (see FAILED above)'
	exit 1
fi
if [ -n "$skipped" ]; then
	echo "skipped: $skipped"
	exit 77
fi
say 'all is well'
