#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds with and without CUDA. Without CUDA everything works but GPUs. CUDA=1 on a
# machine without CUDA ends with one line. Programs built with CUDA start without
# any library of NVIDIA's.
set -u
export BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
offend() { echo "cuda: $*"; bad=1; }
unset MAKEFLAGS MAKELEVEL

# Neither the driver nor the libraries that are opened on demand are needed at the
# start.
for program in "$BUILD"/bin/gf-*; do
	ldd "$program" | grep -E 'lib(cuda|nvidia-ml|nccl|cudnn|cublas|cublasLt)\.so' &&
		offend "$program starts only where these are"
done

# CUDA is asked for, and absent.
for wanting in NVCC= NVCC=/no/such/nvcc "NVCC=true CUDA_HOME="; do
	# shellcheck disable=SC2086
	make CUDA=1 $wanting BUILD="$scratch/none" config > "$scratch/out" 2>&1 &&
		offend "make CUDA=1 $wanting succeeded"
	[ "$(wc -l < "$scratch/out")" -eq 1 ] && grep -q 'CUDA=1 wants nvcc' "$scratch/out" ||
		offend "make CUDA=1 $wanting: want one line, got: $(cat "$scratch/out")"
done

# CUDA is left out, as it is from all programs of a machine without it. Three tables
# know of it: everything else is the object that is there.
if grep -q 'CUDA on' "$BUILD/config.txt"; then
	mkdir -p "$scratch/off/obj"
	cp -a "$BUILD"/obj/{cmd,lib,kernels} "$scratch/off/obj/"
	for source in $(grep -rlE 'GF_HAVE_(CUDA|NCCL|CUDNN)' lib cmd kernels); do
		rm "$scratch/off/obj/${source%.c}.o"
	done
	make -s FLAGS_FILE= CUDA=0 WERROR=1 BUILD="$scratch/off" \
		"$scratch/off/bin/gf-allreduce" "$scratch/off/bin/gf-profile" > "$scratch/out" 2>&1 ||
		offend "make CUDA=0 fails: $(tail -n 5 "$scratch/out")"
	ldd "$scratch"/off/bin/gf-* | grep -i cuda && offend "CUDA=0 is linked with CUDA"
	"$scratch/off/bin/gf-allreduce" -q -b 1K -e 2K -n 2 -w 0 > "$scratch/out" 2>&1 ||
		offend "gf-allreduce without CUDA: $(cat "$scratch/out")"

	# The processors that code is made for, and nvcc's warnings.
	flags=$(make -n -B WERROR=1 CUDA_ARCH="80 90" BUILD="$scratch/arch" \
		"$scratch/arch/obj/kernels/cuda/vector.cu.o" 2> /dev/null)
	for flag in code=sm_80 code=sm_90 code=compute_90 -Werror=all-warnings; do
		grep -q -- "$flag" <<< "$flags" || offend "nvcc is called without $flag"
	done
	grep -q code=sm_75 <<< "$flags" && offend "nvcc is called with code=sm_75"
	nvcc=$(grep -oE '[^ ]*nvcc ' <<< "$flags" | head -n 1)
	printf '__global__ void kernel(void) { int unused = 1; }\n' > "$scratch/warning.cu"
	${nvcc:-nvcc} -arch=sm_90 -Werror=all-warnings -c -o "$scratch/w.o" "$scratch/warning.cu" > /dev/null 2>&1 &&
		offend "a warning of nvcc's is no error"
fi
exit $bad
