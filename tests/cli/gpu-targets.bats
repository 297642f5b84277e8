#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# How make check-gpu and make bench-gpu read the output of programs: tables,
# verdicts, missing parts. Programs of the tests' own take their places.
# bats file_tags=long
load common

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p build/bin build/gpu tools
	touch nvidia0
	export GF_GPU_DEVICES=$PWD/nvidia0 BUILD=$PWD/build
	# the tools that the script itself wants, and no more
	for tool in bash env sed awk grep tee timeout date mktemp rm sort tail wc cat cp paste ldd dirname readlink head ls tr; do
		ln -sf "$(command -v "$tool")" "tools/$tool"
	done
	stub build/bin/gf-train <<- 'EOF'
		[ "$1" != --help ] || { echo --precision; exit; }
		while [ $# -gt 0 ]; do [ "$1" != --log ] || log=$2; shift; done
		[ -z "${log:-}" ] || for i in 1 2 3 4; do
			echo '{"part": "batch", "loss": 2.0, "time_s": 0.0125, "samples_per_s": 1000}'
		done > "$log"
	EOF
	stub build/bin/gf-allreduce <<- 'EOF'
		[ "$1" != --list ] || { echo 'device    cuda:0  one'; exit; }
		echo '         4096          1024      f32     sum          library     10.5    0.39    0.00      0      8.25    0.50    0.25      0'
	EOF
	stub build/bin/gf-profile <<- 'EOF'
		while [ $# -gt 0 ]; do [ "$1" != -o ] || out=$2; shift; done
		printf '  "copies": [\n{"name": "host-to-device",\n "alpha_s": 5e-6,\n "beta_s_per_byte": 2e-11\n}\n  ],\n "forward_s": 0.004,\n' > "$out"
	EOF
	for name in gf-topo gf-plan gf-sim; do stub "build/bin/$name" <<< 'cat > /dev/null 2>&1 < /dev/null'; done
	stub build/gpu/bench_kernels <<- 'EOF'
		[ "${2:-}" != rows ] || { echo 'rows: loss: 0.080 ms, 2500 GB/s, 83.3 % of a copy'; exit; }
		echo 'GPU, 100 elements; a copy within the device: 4000 GB/s'
		printf '%-22s %9.3f ms %8.0f GB/s %6.1f %%\n' 'chunk norms, adding' 0.3 3900 97.5 sgd 0.5 3600 ${SGD:-90}
		echo 'topk of 100, k 1: 0.400 ms; CUB'"'"'s sort: 3.000 ms, 7.5 times as long'
	EOF
	stub tools/mpirun <<< 'shift 2; exec "$@"'
	stub tools/python3 <<- 'EOF'
		case $1 in
		*topk_torch.py) echo "torch.topk of 100, k 1: ${TORCH:-1.000} ms (PyTorch 2)" ;;
		*rows_torch.py) echo 'loss: 0.120 ms' ;;
		*train_torch.py) printf 'eager %s\ncompiled 1250\n' ${EAGER:-800} ;;
		esac
	EOF
}

# stub FILE: a program, from standard input. In place of a link, not through it.
stub() {
	rm -f "$1"
	{ echo '#!/bin/bash'; cat; } > "$1"
	chmod +x "$1"
}

bench() { PATH=$PWD/tools bash "$GF_SOURCE/tests/gpu/run.sh" bench "$@"; }

@test "every part has its table" {
	wants 0 bench
	prints 'all is well'
	prints '| chunk norms, adding | 3900 | 97.5 % |'
	prints "| CUB's radix sort | 3.000 ms | 7.50 |"
	prints '| torch.topk | 1.000 ms | 2.50 |'
	prints '| loss | 0.080 ms | 83.3 % | 0.120 ms | 1.50 |'
	prints '| gf-train --precision f16 | 1000 | 1.25 |'
	prints '| PyTorch, compiled | 1250 | 1.56 |'
	prints '| 4 | 16 | 12.500 ms |'
	prints '| by the host, 4 ranks: library | 4096 | 8.25 us | 0.25 GB/s | 0 |'
	prints '| gtop-k | 12.500 ms | +0.000 ms |'
	prints '| host-to-device, s per byte | 2e-11 |'
	prints '| forward_s | 0.004 |'
}

check() { PATH=$PWD/tools bash "$GF_SOURCE/tests/gpu/run.sh" check; }

@test "selections on the GPU are compared with the processors" {
	stub build/gpu/test_one <<< 'exit 0'
	# as the real one: which document it reads, and which options go together
	stub build/bin/gf-topo <<- 'EOF'
		case "$*" in
		"--synthetic host:"[124]"@8GB/s,1us,shm") echo a topology ;;
		"--synthetic site:2@100Mb/s,100us host:"[12]"@8GB/s,1us,shm") echo a topology ;;
		*) exit 2 ;;
		esac
	EOF
	stub build/bin/gf-plan <<- 'EOF'
		grep -q topology && echo "$*"
	EOF
	stub build/bin/gf-train <<- 'EOF'
		while [ $# -gt 0 ]; do
			case $1 in --log) log=$2 ;; --plan) plan=$(cat "$2") ;; --device) device=$2 ;; esac
			shift
		done
		[ -n "${log:-}" ] || exit 0
		loss=2.0
		case "$device $plan" in cuda*"$LOSES"*) loss=2.2 ;; esac
		echo "{\"part\": \"batch\", \"loss\": $loss, \"time_s\": 0.01}" > "$log"
	EOF
	LOSES=nothing wants 0 check
	for run in 'csc, K = 1, 2' 'topk, K = 1, 2' 'gtopk, K = 2, 4'; do
		prints "$run ranks, mpi: as on the processors"
	done
	prints 'streaming, 4 ranks in two groups, mpi: as on the processors'
	LOSES='--staleness 2 --selection topk' wants 1 check
	prints 'FAILED: topk, K = 2, 4 ranks, mpi: losses are not those on the processors'
	prints 'gtopk, K = 2, 4 ranks, mpi: as on the processors'
	LOSES='--period diloco:steps=6' wants 1 check
	prints 'FAILED: diloco, 4 ranks in two groups, mpi: losses are not those on the processors'
	stub build/bin/gf-topo <<< 'exit 2'
	stub build/bin/gf-plan <<< 'exit 2'
	LOSES=nothing wants 1 check
	prints 'FAILED: no plan for digits-cnn-plain with --staleness 1 --selection csc'
}

@test "what must hold and does not" {
	SGD=84.9 wants 1 bench kernels
	prints "FAILED: below 85 % of a copy's rate: sgd"
	TORCH=0.3 wants 1 bench kernels
	prints 'FAILED: top-k is not faster than both'
	EAGER=1001 wants 1 bench alexnet
	prints "FAILED: alexnet-bn trains slower than PyTorch's eager run"
	LIMIT_S=0 wants 1 bench kernels
	prints 'FAILED: kernels: no time is left for it (LIMIT_S)'
	wants 2 bench kernels nonsense
	says 'want parts out of kernels'
}

@test "what is lacking has a line, and what can goes without" {
	stub tools/python3 <<< 'exit 1'
	wants 0 bench kernels alexnet
	prints 'needs python3 with PyTorch, to compare with: goes without'
	prints 'not compared with torch.topk: no PyTorch'
	prints '| gf-train --precision f16 | 1000 | - |'
	wants 0 bench rows
	prints '| loss | 0.080 ms | 83.3 % | - | - |'
	rm tools/mpirun
	wants 3 bench
	prints 'needs mpirun (Debian: openmpi-bin), to start several ranks'
	stub tools/ldd <<< "echo '	libjansson.so.4 => not found'"
	wants 3 bench
	prints 'needs libjansson.so.4 (Debian: libjansson4), to start at all'
}

hour() { PATH=$PWD/tools bash "$GF_SOURCE/tests/gpu/first-hour.sh" "$@"; }

@test "the first hour's parts need no other part" {
	stub build/gpu/test_gpu_nn_rows <<< 'exit ${ROWS:-0}'
	stub build/gpu/lane_cost <<< 'echo "| 1 group of 4 KiB | 8 us |"; exit ${LANE_COST:-0}'
	stub build/gpu/kernel_trace.so <<< ''
	stub tools/getconf <<< 'echo 16'
	# the trace of three steps: 1 ms, two kernels of which one runs twice
	cat > trace <<- 'EOF'
		0	100000	7	0	void loss_rows<f16>(int)
		200000	300000	7	0	(anonymous namespace)::sum(float*)
		300000	500000	7	0	(anonymous namespace)::sum(float*)
		1000000	1100000	7	0	void loss_rows<f16>(int)
		1200000	1300000	7	0	(anonymous namespace)::sum(float*)
		1300000	1500000	7	0	(anonymous namespace)::sum(float*)
		2000000	2100000	7	0	void loss_rows<f16>(int)
		2200000	2300000	7	0	(anonymous namespace)::sum(float*)
		2300000	2500000	7	0	(anonymous namespace)::sum(float*)
		3000000	3100000	7	0	void loss_rows<f16>(int)
	EOF
	stub build/bin/gf-train <<< "cp $PWD/trace \"\$GF_KERNEL_TRACE\""
	stub tools/python3 <<< 'exit 1'
	wants 0 hour steps
	prints '## steps'
	prints '| 1.000 ms a step, the GPU busy for 0.400 ms | launches | ms |'
	prints '| `sum` | 2.0 | 0.300 |'
	prints '| `loss_rows<f16>` | 1.0 | 0.100 |'
	wants 0 hour changed
	prints 'build/gpu/test_gpu_nn_rows'
	prints '| loss | 0.080 ms | 83.3 % | - | - |'
	ROWS=1 wants 1 hour changed
	prints 'FAILED: status 1'
	LANE_COST=5 wants 1 hour nccl
	prints 'FAILED: status 5'
	prints '| chunk norms, adding | 3900 | 97.5 % |'
	wants 2 hour nonsense
	says 'want parts out of changed check'
	stub build/bin/gf-allreduce <<< 'echo "device    no cuda  there is no driver"'
	rm nvidia0
	wants 77 hour
	prints 'skipped: there is no driver'
}

# The commands themselves, which see no GPU: they end with 2 if they do not take
# what the scripts tell them. A plan for more ranks than one is a refusal, too, as
# mpirun starts one here.
@test "the commands take all options that the scripts give" {
	local name real
	real=$(dirname "$(command -v gf-plan)")
	export CUDA_VISIBLE_DEVICES=-1
	ln -sf "$real/gf-topo" "$real/gf-plan" build/bin/
	for name in gf-train gf-allreduce gf-profile; do
		mv "build/bin/$name" "build/stub-$name"
		stub "build/bin/$name" <<- EOF
			"$real/$name" "\$@" > $PWD/said 2>&1 < /dev/null
			[ \$? -ne 2 ] || grep -q 'the plan is for . ranks' $PWD/said || { echo "$name \$*"; tail -n 2 $PWD/said; } >> $PWD/refused
			exec "$PWD/build/stub-$name" "\$@"
		EOF
	done
	# estimated, as the real one does not get that far
	stub build/stub-gf-profile <<- EOF
		while [ \$# -gt 0 ]; do
			case \$1 in -o) out=\$2 ;; --model) model=\$2 ;; --batch) batch=\$2 ;; esac
			shift
		done
		exec "$real/gf-profile" --estimate --flops 15T --model "\$model" --batch "\$batch" -o "\$out"
	EOF
	for name in test_one lane_cost; do stub "build/gpu/$name" <<< ''; done
	wants 0 check
	wants 0 bench
	wants 0 hour changed nccl plan
	[ ! -e refused ] || { cat refused; return 1; }
}

@test "no GPU is a skip, an unused one is not" {
	stub build/gpu/bench_kernels <<< 'echo no GPU that CUDA can use; exit 77'
	wants 1 bench kernels
	prints 'there is a GPU, and it was not used'
	rm nvidia0
	wants 77 bench kernels
	prints 'skipped: no GPU that CUDA can use'
}
