#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program built with CUDA on a machine that has neither NVIDIA's driver nor
# NCCL, cuDNN and cuBLAS (hidden.c): it starts, names the missing parts, and runs on
# the host if any device will do.
set -u
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
grep -q 'CUDA on' "$BUILD/config.txt" || { echo 'built without CUDA'; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
bad=0
offend() { echo "hidden: $*"; bad=1; }

${CC:-cc} -shared -fPIC -Wall -Wextra -Wno-pedantic -Werror -o "$scratch/hidden.so" \
	tests/build/hidden.c -ldl || exit 1
export GF_HIDDEN_LOG=$scratch/log
alone() { LD_PRELOAD=$scratch/hidden.so PATH=$BUILD/bin:$PATH timeout 60 "$@" > "$scratch/out" 2> "$scratch/err"; }

# wants STATUS STREAM TEXT COMMAND...
wants() {
	local want=$1 stream=$2 text=$3 status=0
	shift 3
	alone "$@" || status=$?
	[ "$status" -eq "$want" ] || offend "want status $want, got $status: $*: $(cat "$scratch/err")"
	grep -q -- "$text" "$scratch/$stream" ||
		offend "$*: want \"$text\" on $stream, got: $(cat "$scratch/$stream")"
}

wants 0 out '^device *no cuda  *no GPU that CUDA can use: there is no driver' gf-allreduce --list
wants 0 out '^between *no nccl' gf-allreduce --list
wants 0 out '"levels"' gf-topo
wants 0 out '# Out of bounds values : 0 OK' gf-allreduce --device auto -b 1K -e 1K -n 2 -w 0
wants 0 out '"device": "cpu"' gf-profile --device auto --model digits-mlp --repeats 1:warmup=0
wants 0 out 'test accuracy' gf-train --device auto --model digits-mlp --data digits --epochs 1 --steps 2
wants 3 err 'there is no driver' gf-train --device cuda --model digits-mlp --data digits --epochs 1 --steps 1
wants 3 err 'there is no driver' gf-allreduce --device cuda -b 1K -e 1K
wants 3 err 'there is no driver' gf-profile --device cuda --model digits-mlp
for library in libcuda.so libnccl.so libnvidia-ml.so; do
	grep -q "^$library" "$GF_HIDDEN_LOG" || offend "nobody looked for $library"
done
exit $bad
