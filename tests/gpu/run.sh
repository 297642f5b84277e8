#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What make check-gpu and make bench-gpu run, here or carried to a machine with
# a GPU (carry.sh).
#   tests/gpu/run.sh check             kernels, layers and runtime on the GPU
#   tests/gpu/run.sh bench [PART...]   measure; the most telling parts first
#   tests/gpu/run.sh cpu               what needs no GPU: is everything here?
#   tests/gpu/run.sh parts             the parts of bench, in their order
# Each result is printed as soon as it is there, with its time of day. Exit
# status 0; 1: something is wrong; 77: there is no GPU, and the last line says
# what was missing. BENCH_S bounds bench as a whole (1400 seconds).
set -u
here=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
cd "$here" || exit 3
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
gpu_tests=$BUILD/gpu
export PATH=$BUILD/bin:$PATH
scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT
bad=0 skipped=

say() { printf '%s  %s\n' "$(date -u +%H:%M:%S)" "$*"; }
wrong() { say "FAILED: $*"; bad=1; }

# --- what the programs find ---------------------------------------------------
libraries=
if [ -e carried.txt ]; then
	libraries=$here/lib
	[ ! -d mpi ] || {
		export OPAL_PREFIX=$here/mpi OPAL_BINDIR=$here/mpi/bin
		export OPAL_LIBDIR=$here/lib OPAL_PKGLIBDIR=$here/mpi/lib/openmpi
		export OPAL_PKGDATADIR=$here/mpi/share OPAL_SYSCONFDIR=$here/mpi/etc
		export PMIX_PREFIX=$here/mpi PMIX_PKGLIBDIR=$here/mpi/lib/pmix
		export PMIX_PKGDATADIR=$here/mpi/pmix-share
		export PATH=$here/mpi/bin:$PATH
	}
fi
# NCCL, cuDNN and cuBLAS: CUDA's own, or those that PyTorch brought along.
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib \
	$(python3 -c 'import site, glob
for s in site.getsitepackages() + [site.getusersitepackages()]:
    print(*glob.glob(s + "/nvidia/*/lib"))' 2> /dev/null); do
	[ ! -d "$folder" ] || libraries=$libraries${libraries:+:}$folder
done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# the root of a container has no home that a launcher could write to
export TMPDIR=$scratch HOME=${HOME:-$scratch}

# --- is there a GPU? ----------------------------------------------------------
has_gpu() { compgen -G '/dev/nvidia[0-9]*' > /dev/null; }

# judged STATUS NAME REASON: a skip is one only where there is no GPU.
judged() {
	case $1 in
	0) return 0 ;;
	77) if has_gpu; then
			wrong "$2: there is a GPU, and it was not used: $3"
		else
			say "skipped: $2: $3"
			skipped=$3
		fi ;;
	124) wrong "$2: not done in its time" ;;
	*) wrong "$2 (status $1)" ;;
	esac
	return 1
}

# try SECONDS NAME COMMAND...: shows what it prints as it comes.
try() {
	local seconds=$1 name=$2 status
	shift 2
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
	try 60 gf-topo gf-topo --tree
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
		try 300 "${test##*/}" "$test"
	done
	[ -n "$found" ] || { skipped='built without CUDA'; say "skipped: $skipped"; return; }
	trains_on_gpu || return
	say 'training on the GPU: replicas are alike, losses as on the processors'
	try 120 'gf-train on the GPU' gf-train --device cuda "${steady[@]}" --steps 30 --log "$scratch/gpu.jsonl"
	try 120 'gf-train on the CPU' gf-train --device cpu "${steady[@]}" --steps 30 --log "$scratch/cpu.jsonl"
	alike "$scratch/gpu.jsonl" "$scratch/cpu.jsonl" || wrong 'losses on the GPU are not those on the processors'
	shared_ranks 20
}

# A run whose losses do not hang on the last bits, nor on how a batch is divided
# among ranks: no statistics over a batch, a low rate.
steady=(--model digits-cnn-plain --lr 0.02 --epochs 100)

# Losses of two logs, step by step, within 5 %.
alike() {
	paste <(losses "$1") <(losses "$2") | awk '
		{ d = $1 - $2; if (d < 0) d = -d; if (!($1 > 0) || d > 0.05 * $2) bad = 1; n++ }
		END { exit bad || !n }'
}
losses() { grep '"part": "batch"' "$1" | sed -E 's/.*"loss": ([^,]*),.*/\1/'; }

# Whether gf-train of this build and machine computes on a GPU; else why not.
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

# Several ranks on the one GPU, by the host: correct is when replicas agree and
# losses are those of one rank with the whole batch.
shared_ranks() { # STEPS
	local ranks
	for ranks in 1 2 4; do
		rm -f "$scratch/shared.$ranks"
		try 150 "$ranks ranks share a GPU" mpirun -np "$ranks" gf-train --device cuda \
			"${steady[@]}" --steps "$1" --batch $((64 / ranks)) --check-replicas 5 \
			--log "$scratch/shared.$ranks" || continue
		say "$ranks ranks on one GPU: $(step_ms "$scratch/shared.$ranks") ms per step"
		[ "$ranks" -eq 1 ] || alike "$scratch/shared.$ranks" "$scratch/shared.1" ||
			wrong "$ranks ranks do not train as one does"
	done
}

# --- bench --------------------------------------------------------------------
# Medians of the second half of a log's steps.
column() { # FILE KEY
	grep '"part": "batch"' "$1" | sed -nE "s/.*\"$2\": ([^,}]*)[,}].*/\1/p" |
		awk '{v[NR] = $1} END {for (i = int(NR / 2) + 1; i <= NR; i++) print v[i]}' |
		sort -g | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'
}
step_ms() { column "$1" time_s | awk '{printf "%.3f", $1 * 1e3}'; }

bench_kernels() {
	local slow
	[ -x "$gpu_tests/bench_kernels" ] || { skipped='built without CUDA'; say "skipped: kernels: $skipped"; return; }
	try 300 kernels "$gpu_tests/bench_kernels" 100000000 || return
	cp "$scratch/last" "$scratch/kernels"
	grep -q '^topk of' "$scratch/kernels" || wrong 'kernels: no top-k'
	slow=$(awk '/ %$/ && !/^topk/ && $(NF - 1) < 85 {print}' "$scratch/kernels")
	[ -z "$slow" ] || wrong "below 85 % of a copy's rate: $slow"
	try 120 torch.topk python3 tests/gpu/topk_torch.py 100000000 || return
	awk -v own="$(sed -nE 's/^topk of [^:]*: ([0-9.]+) ms; .*/\1/p' "$scratch/kernels")" \
		-v cub="$(sed -nE "s/^topk of .*sort: ([0-9.]+) ms,.*/\1/p" "$scratch/kernels")" \
		-v torch="$(sed -nE 's/^torch.topk [^:]*: ([0-9.]+) ms.*/\1/p' "$scratch/last")" 'BEGIN {
			printf "top-k: %s ms; torch.topk %.2f times, CUB %.2f times as long\n", own, torch / own, cub / own
			exit !(own > 0 && own < torch && own < cub) }' ||
		wrong 'top-k is not faster than both torch.topk and CUB'
}

# f16 where this build has it.
precision() {
	gf-train --help | grep -q -- --precision && echo --precision f16
}

one_model() { # MODEL BATCH
	local rate eager compiled
	rm -f "$scratch/train"
	# shellcheck disable=SC2046
	try 240 "gf-train $1" gf-train --device cuda $(precision) --model "$1" --batch "$2" \
		--data "synthetic:$((4 * $2))" --epochs 1000 --steps 60 --log "$scratch/train" || return
	rate=$(column "$scratch/train" samples_per_s)
	say "$1, batch $2 $(precision): gf-train $rate images/s"
	try 400 "PyTorch's $1" python3 tests/gpu/train_torch.py "share/models/$1.json" "$2" 40 || return
	eager=$(awk '$1 == "eager" {print $2}' "$scratch/last")
	compiled=$(awk '$1 == "compiled" && $2 > 0 {print $2}' "$scratch/last")
	awk -v own="$rate" -v eager="$eager" -v compiled="${compiled:-0}" -v model="$1" 'BEGIN {
		printf "%s: %.0f images/s, %.2f of eager%s\n", model, own, own / eager,
			compiled > 0 ? sprintf(", %.2f of compiled", own / compiled) : ""
		exit own < eager }' || wrong "$1 trains slower than PyTorch's eager run"
}
bench_resnet50() { trains_on_gpu && one_model resnet50 128; }
bench_alexnet() { trains_on_gpu && one_model alexnet-bn 256; }

# Two ranks, since one exchanges nothing; what a method adds to a step is the
# step's time less that of the plan that sends all gradients in one message.
method() { # NAME MODEL PLAN-OPTIONS...
	local name=$1 model=$2
	shift 2
	gf-topo --device cpu --synthetic 'host:2@8GB/s,1us,shm' |
		gf-plan -q --model "$model" --ranks 2 "$@" > "$scratch/plan" ||
		{ wrong "no plan for $name"; return 1; }
	rm -f "$scratch/method"
	try 150 "$name" mpirun -np 2 gf-train -q --device cuda --plan "$scratch/plan" --model "$model" \
		--batch 32 --data synthetic:256 --epochs 1000 --steps 40 --log "$scratch/method" || return 1
	say "$name: $(step_ms "$scratch/method") ms per step, $(awk -v a="$(step_ms "$scratch/method")" \
		-v b="${dense_ms:-0}" 'BEGIN {printf "%+.3f", b > 0 ? a - b : 0}') ms beside one dense message"
}
bench_methods() {
	trains_on_gpu || return
	dense_ms=
	method 'one message' resnet50 --policy single || return
	dense_ms=$(step_ms "$scratch/method")
	method 'lazy fusion, 4 MiB' resnet50 --policy threshold --threshold 4M
	method csc resnet50 --system gradientflow
	method gtop-k resnet50 --system gtopk
}

bench_shared() { trains_on_gpu && shared_ranks 60; }

# Whether the commands see a GPU; else why not.
sees_gpu() { # NAME
	gf-allreduce --list > "$scratch/list" 2>&1
	grep -q '^device *cuda:' "$scratch/list" && return 0
	judged 77 "$1" "$(sed -n 's/^device *no cuda *//p' "$scratch/list")"
}

bench_nccl() {
	sees_gpu nccl || return
	grep -E '^(device|between) ' "$scratch/list" | sed 's/^/    /'
	try 120 'NCCL, one rank' gf-allreduce --device cuda -a library,ring -b 4K -e 64M -f 8 -n 20
	try 120 'two ranks by the host' mpirun -np 2 gf-allreduce --device cuda -b 4K -e 16M -f 8 -n 10
}

bench_profile() {
	sees_gpu profile || return
	try 120 'copies and ready times' gf-profile --device cuda --model resnet50 --batch 32 -o "$scratch/profile.json" || return
	grep -E '"(name": "(host-to-device|device-to-host|within-device)"|(alpha|beta)_s|forward_s|backward_s)' "$scratch/profile.json"
	gf-topo --synthetic 'gpu:4@32GB/s,3us' | cat - "$scratch/profile.json" | gf-plan -q > "$scratch/plan" ||
		wrong 'gf-plan does not take the profile'
}

# The most telling first: seconds are an upper bound of each.
parts=(kernels resnet50 alexnet shared nccl methods profile)

bench() {
	local part left
	[ $# -gt 0 ] || set -- "${parts[@]}"
	for part in "$@"; do
		declare -F "bench_$part" > /dev/null ||
			{ echo "run.sh: want parts out of ${parts[*]}, got $part" >&2; exit 2; }
	done
	for part in "$@"; do
		left=$((${BENCH_S:-1400} - SECONDS))
		if [ "$left" -le 0 ]; then
			wrong "$part: no time is left for it (BENCH_S)"
			continue
		fi
		say "--- $part"
		"bench_$part"
	done
}

# ------------------------------------------------------------------------------
case ${1:-} in
check | cpu) mode=$1; shift; "$mode" "$@" ;;
bench) shift; bench "$@" ;;
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
