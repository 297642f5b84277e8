#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a GPU that is lent for an hour is asked, in parts that need no other part.
# Each part ends within ten minutes. The most telling come first.
#   tests/gpu/first-hour.sh [PART...]    all of them, or some
#   tests/gpu/first-hour.sh list         their names
# In the tree after `make check-build`, or in a carried folder (`make carry-gpu`).
# It prints Markdown for docs/tables: a heading, then the command and its output
# or a table. After a part that fails, the next one is run. Exit status
# 0: done; 1: something failed; 2: usage; 77: there is no GPU.
# shellcheck disable=SC2317,SC2154 # parts are called by their names; place.sh's variables
set -u
# shellcheck source=tests/gpu/place.sh
. "$(dirname "$(readlink -f "$0")")/place.sh" || exit 3
parts=(changed check rates steps nccl plan sanitize)
bad=0

# PART_S: of each part
limit=${PART_S:-590}
part_ends=0

# shown SECONDS COMMAND...: the command, and what it prints.
shown() {
	local seconds=$1 left=$((part_ends - SECONDS)) status
	shift
	[ "$seconds" -le "$left" ] || seconds=$left
	[ "$seconds" -gt 0 ] || { echo "FAILED: no time is left for $*"; bad=1; return 1; }
	printf '\n```\n$ %s\n' "$*" | sed "s|$here/||g"
	timeout -k 5 "$seconds" "$@" 2>&1 < /dev/null
	status=$?
	echo '```'
	[ "$status" -eq 0 ] || { echo "FAILED: status $status"; bad=1; return "$status"; }
}

# quietly SECONDS FILE COMMAND...: its output goes to a file, shown if it fails.
quietly() {
	local seconds=$1 file=$2 left=$((part_ends - SECONDS)) status
	shift 2
	[ "$seconds" -le "$left" ] || seconds=$left
	[ "$seconds" -gt 0 ] || { echo "FAILED: no time is left for $*"; bad=1; return 1; }
	timeout -k 5 "$seconds" "$@" > "$file" 2>&1 < /dev/null
	status=$?
	[ "$status" -eq 0 ] && return
	echo "FAILED: status $status: $*"
	tail -n 5 "$file"
	bad=1
	return "$status"
}

has_torch() { "${python[@]}" -c 'import torch' 2> /dev/null; }

machine() {
	echo "# A GPU, $(date -u +%Y-%m-%d)"
	echo
	{
		nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
		gf-allreduce --list | grep -E '^(device|between) '
		[ ! -e carried.txt ] || head -n 1 carried.txt
		"${python[@]}" -c 'import torch
print("PyTorch", torch.__version__, "NCCL", torch.cuda.nccl.version(), "cuDNN", torch.backends.cudnn.version())'
		getconf GNU_LIBC_VERSION
		echo "$(getconf _NPROCESSORS_ONLN) processors"
	} 2> /dev/null | sed 's/^/- /'
}

# --- parts --------------------------------------------------------------------

# What the H100's rows do not have: these kernels, and costs of copies and
# messages that are enqueued before the clock starts.
part_changed() {
	local test=$gpu_tests/test_gpu_nn_rows library=$BUILD/lib/libgradflow.so.0
	if has_torch && [ -e "$library" ]; then
		shown 120 env GF_SOURCE="$here" GRADFLOW_LIBRARY="$library" \
			LD_LIBRARY_PATH="$foreign_path${libraries:+:$libraries}" \
			python3 tests/python/check_gpu.py nccl 1 between
	else
		echo 'selections of a PyTorch job: not run: no PyTorch, or no library'
	fi
	[ ! -x "$test" ] || shown 60 "$test"
	shown 330 "$here/tests/gpu/run.sh" bench rows profile nccl
	[ ! -x "$test" ] || ! command -v compute-sanitizer > /dev/null ||
		shown 180 compute-sanitizer --tool memcheck --error-exitcode 9 "$test"
}

# Is everything right? Kernels, layers, training.
part_check() {
	shown 580 env LIMIT_S=$((part_ends - SECONDS - 5)) "$here/tests/gpu/run.sh" check
}

train=(gf-train -q --device cuda --lr 1e-3 --epochs 1000)

# The kernels of a training step, ours and PyTorch's, with their times.
part_steps() {
	local model batch trace=$gpu_tests/kernel_trace.so
	[ -e "$trace" ] || { echo 'FAILED: built without CUPTI'; bad=1; return; }
	while read -r model batch; do
		echo
		echo "gf-train --model $model --batch $batch --precision f16:"
		quietly 100 "$scratch/out" env CUDA_INJECTION64_PATH="$trace" GF_KERNEL_TRACE="$scratch/ours" \
			"${train[@]}" --precision f16 --model "$model" --batch "$batch" \
			--data "synthetic:$((4 * batch))" --steps 24 && kernels "$scratch/ours" loss
		has_torch || { echo 'not compared: no PyTorch'; continue; }
		echo
		echo "PyTorch, eager, the same model and batch under autocast:"
		quietly 120 "$scratch/out" env LD_LIBRARY_PATH="$nvidia:$foreign_path" \
			CUDA_INJECTION64_PATH="$trace" GF_KERNEL_TRACE="$scratch/torch" \
			python3 tests/gpu/train_torch.py "share/models/$model.json" "$batch" 14 eager &&
			kernels "$scratch/torch" 'nll_loss_forward|softmax_warp_forward|cunn_SoftMaxForward'
	done <<< 'resnet50 128
alexnet-bn 256
gpt-text 512'
}
kernels() { # TRACE MARKER
	echo
	sort -n "$1" | awk -v marker="$2" -v most=30 -f tests/gpu/kernel_table.awk || bad=1
}

# What messages cost by gradflow's lanes, and every kernel as a share of a copy.
part_nccl() {
	[ ! -x "$gpu_tests/lane_cost" ] || shown 60 "$gpu_tests/lane_cost"
	shown 500 "$here/tests/gpu/run.sh" bench kernels methods
}

# Images a second, beside PyTorch eager and compiled.
part_rates() {
	shown 580 env LIMIT_S=$((part_ends - SECONDS - 5)) "$here/tests/gpu/run.sh" bench resnet50 alexnet text shared
}

# The predicted time of a step beside the measured one.
part_plan() {
	local model batch
	while read -r model batch; do
		quietly 120 "$scratch/out" gf-profile --device cuda --model "$model" --batch "$batch" -o "$scratch/profile" || continue
		gf-topo --synthetic 'gpu:1@32GB/s,3us' | cat - "$scratch/profile" |
			gf-plan -q > "$scratch/plan" || { echo "FAILED: no plan for $model"; bad=1; continue; }
		shown 120 gf-train --device cuda --plan "$scratch/plan" --batch "$batch" --lr 1e-3 \
			--data "synthetic:$((4 * batch))" --epochs 1000 --steps 40
	done <<< 'digits-cnn 64
resnet50 32
alexnet-bn 128'
}

# What no fake can see.
part_sanitize() {
	local tool test
	command -v compute-sanitizer > /dev/null || { echo 'skipped: no compute-sanitizer'; return; }
	for tool in memcheck racecheck synccheck; do
		for test in test_dense_kernels test_sparse_kernels; do
			shown 80 compute-sanitizer --tool "$tool" --error-exitcode 9 "$gpu_tests/$test"
		done
	done
	[ ! -x "$gpu_tests/test_gpu_nn_pass" ] ||
		shown 120 compute-sanitizer --tool memcheck --error-exitcode 9 "$gpu_tests/test_gpu_nn_pass"
}

# ------------------------------------------------------------------------------
[ "${1:-}" != list ] || { echo "${parts[@]}"; exit; }
[ $# -gt 0 ] || set -- "${parts[@]}"
for part; do
	declare -F "part_$part" > /dev/null ||
		{ echo "first-hour.sh: want parts out of ${parts[*]}, got $part" >&2; exit 2; }
done
if ! gf-allreduce --list 2> /dev/null | grep -q '^device *cuda:'; then
	echo "skipped: $(gf-allreduce --list | sed -n 's/^device *no cuda *//p')"
	has_gpu && exit 1
	exit 77
fi
machine
for part; do
	printf '\n## %s\n' "$part"
	part_ends=$((SECONDS + limit))
	"part_$part"
done
exit "$bad"
