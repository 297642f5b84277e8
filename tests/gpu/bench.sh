# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh's variables
# The parts of bench: run.sh reads this and calls bench_PART.

bench_kernels() {
	local slow own cub torch
	[ -x "$gpu_tests/bench_kernels" ] || { skipped='built without CUDA'; say "skipped: kernels: $skipped"; return; }
	try 300 kernels "$gpu_tests/bench_kernels" 100000000 || return
	cp "$scratch/last" "$scratch/kernels"
	grep -q '^topk of' "$scratch/kernels" || wrong 'kernels: no top-k'
	slow=$(awk '/ %$/ && !/^topk/ && $(NF - 1) < 85 {print}' "$scratch/kernels")
	[ -z "$slow" ] || wrong "below 85 % of a copy's rate: $slow"
	table kernel GB/s 'of a copy'
	awk '/ %$/ {gsub(/ +/, " "); match($0, / [0-9.]+ ms /); print "| " substr($0, 1, RSTART - 1) " | " $(NF - 3) " | " $(NF - 1) " % |"}' \
		"$scratch/kernels" >> "$scratch/table"
	show_table
	own=$(sed -nE 's/^topk of [^:]*: ([0-9.]+) ms; .*/\1/p' "$scratch/kernels")
	cub=$(sed -nE "s/^topk of .*sort: ([0-9.]+) ms,.*/\1/p" "$scratch/kernels")
	table 'top-k of 100 million, 0.001' time 'of gradflow'"'s"
	row gradflow "$own ms" 1.00
	row "CUB's radix sort" "$cub ms" "$(ratio "$cub" "$own")"
	beside 120 torch.topk "${python[@]}" tests/gpu/topk_torch.py 100000000 || return
	torch=$(sed -nE 's/^torch.topk [^:]*: ([0-9.]+) ms.*/\1/p' "$scratch/last")
	row torch.topk "$torch ms" "$(ratio "$torch" "$own")"
	if ! less "$own" "$torch" || ! less "$own" "$cub"; then
		wrong 'top-k is not faster than both torch.topk and CUB'
	fi
}

# Layers that look at rows of values, beside PyTorch's.
bench_rows() {
	local name ms share torch
	[ -x "$gpu_tests/bench_kernels" ] || { skipped='built without CUDA'; say "skipped: rows: $skipped"; return; }
	try 200 rows "$gpu_tests/bench_kernels" 100000000 rows || return
	sed -nE 's/^rows: (.*): ([0-9.]+) ms, .* ([0-9.]+) % of a copy$/\1|\2|\3/p' "$scratch/last" > "$scratch/rows"
	[ -s "$scratch/rows" ] || wrong 'rows: no figures'
	beside 120 "PyTorch's rows" "${python[@]}" tests/gpu/rows_torch.py 100000000
	table 'rows, f16' time 'of a copy' "PyTorch's time" "of gradflow's"
	while IFS='|' read -r name ms share; do
		torch=$(sed -n "s/^$name: \([0-9.]*\) ms$/\1/p" "$scratch/last")
		[ -n "$torch" ] || { row "$name" "$ms ms" "$share %" - -; continue; }
		row "$name" "$ms ms" "$share %" "$torch ms" "$(ratio "$torch" "$ms")"
	done < "$scratch/rows"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN {if (b > 0) printf "%.2f", a / b; else printf "-"}'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > 0 && a < b)}'; }

# beside SECONDS NAME COMMAND...: runs a rival, which may be absent.
beside() {
	local seconds=$1 name=$2
	shift 2
	: > "$scratch/last"
	"${python[@]}" -c 'import torch' 2> /dev/null || { say "not compared with $name: no PyTorch"; return 1; }
	try "$seconds" "$name" "$@"
}

# f16 if this build has it.
precision() {
	gf-train --help | grep -q -- --precision && echo --precision f16
}

one_model() { # MODEL BATCH
	local rate eager compiled
	rm -f "$scratch/train"
	# at the rate of train_torch.py: the default one diverges on random labels
	# shellcheck disable=SC2046
	try 120 "gf-train $1" gf-train --device cuda $(precision) --model "$1" --batch "$2" --lr 1e-3 \
		--data "synthetic:$((4 * $2))" --epochs 1000 --steps 60 --log "$scratch/train" || return
	rate=$(column "$scratch/train" samples_per_s)
	table "$1, batch $2" samples/s "of PyTorch's eager"
	beside 200 "PyTorch's $1" "${python[@]}" tests/gpu/train_torch.py "share/models/$1.json" "$2" 40
	eager=$(awk '$1 == "eager" {print $2}' "$scratch/last")
	compiled=$(awk '$1 == "compiled" && $2 > 0 {print $2}' "$scratch/last")
	row "gf-train $(precision)" "$rate" "$(ratio "$rate" "$eager")"
	[ -z "$eager" ] || row "PyTorch, eager" "$eager" 1.00
	[ -z "$compiled" ] || row "PyTorch, compiled" "$compiled" "$(ratio "$compiled" "$eager")"
	[ -z "$eager" ] || ! less "$rate" "$eager" || wrong "$1 trains slower than PyTorch's eager run"
}
bench_resnet50() { trains_on_gpu && one_model resnet50 128; }
bench_alexnet() { trains_on_gpu && one_model alexnet-bn 256; }
bench_text() { trains_on_gpu && one_model gpt-text 512 && show_table && one_model lstm-text 512; }

# The cost of a method is the step's time less that of the plan that sends all
# gradients in one message.
method() { # RANKS TRANSPORT NAME MODEL PLAN-OPTIONS...
	local ranks=$1 transport=$2 name=$3 model=$4
	shift 4
	planned "$ranks" "$model" "$@" || return 1
	rm -f "$scratch/method"
	try 150 "$name, $transport" mpirun -np "$ranks" gf-train -q --device cuda --transport "$transport" \
		--plan "$scratch/plan" --model "$model" \
		--batch 32 --data synthetic:256 --epochs 1000 --steps 40 --log "$scratch/method" || return 1
	row "$name" "$(step_ms "$scratch/method") ms" "$(awk -v a="$(step_ms "$scratch/method")" \
		-v b="${dense_ms:-0}" 'BEGIN {printf("%+.3f ms", (b > 0 ? a - b : 0))}')"
}
# Ranks that share a GPU exchange by the host. By NCCL one rank exchanges nothing,
# so the rest of a method's work shows.
methods() { # RANKS TRANSPORT
	dense_ms=
	method "$@" 'one message' resnet50 --policy single || return
	dense_ms=$(step_ms "$scratch/method")
	method "$@" 'lazy fusion, 4 MiB' resnet50 --policy threshold --threshold 4M
	method "$@" csc resnet50 --system gradientflow
	method "$@" gtop-k resnet50 --system gtopk
	method "$@" 'stale, K = 2' resnet50 --policy single --staleness 2
	method "$@" 'csc, K = 2' resnet50 --system gradientflow --staleness 2
}
bench_methods() {
	trains_on_gpu || return
	table 'ResNet-50, 2 ranks by the host' 'time of a step' 'beside one message'
	methods 2 mpi
	has_nccl || return
	table 'ResNet-50, 1 rank by NCCL' 'time of a step' 'beside one message'
	methods 1 nccl
}

bench_shared() {
	trains_on_gpu || return
	table 'ranks on the GPU' 'batch of each' 'time of a step'
	shared_ranks 60
}

# Whether the commands see a GPU; if not, why.
sees_gpu() { # NAME
	gf-allreduce --list > "$scratch/list" 2>&1
	grep -q '^device *cuda:' "$scratch/list" && return 0
	judged 77 "$1" "$(sed -n 's/^device *no cuda *//p' "$scratch/list")"
}

bench_nccl() {
	local ranks
	sees_gpu nccl || return
	grep -E '^(device|between) ' "$scratch/list" | sed 's/^/    /'
	table 'all-reduce' size 'time, in place' busbw wrong
	try 60 'NCCL, one rank' gf-allreduce --device cuda -a library,ring -b 4K -e 64M -f 16 -n 20 && sizes 'NCCL, 1 rank'
	for ranks in 2 4; do
		try 60 "$ranks ranks by the host" mpirun -np "$ranks" gf-allreduce --device cuda -b 4K -e 64M -f 16 -n 10 &&
			sizes "by the host, $ranks ranks"
	done
}

# The rows of gf-allreduce's table that was printed last.
sizes() {
	awk -v name="$1" '$1 ~ /^[0-9]+$/ && NF >= 13 {
		print "| " name ": " $5 " | " $1 " | " $10 " us | " $12 " GB/s | " $9 + $13 " |"}' "$scratch/last" >> "$scratch/table"
}

bench_profile() {
	sees_gpu profile || return
	try 120 'copies and ready times' gf-profile --device cuda --model resnet50 --batch 32 -o "$scratch/profile.json" || return
	table 'ResNet-50, batch 32' value
	awk -F'[:,]' '
		function cell(what) { gsub(/[ "]/, "", $2); print "| " what " | " $2 " |" }
		/"copies": \[/ { copies = 1 }
		/^  \]/ { copies = 0 }
		copies && /"name":/ { name = $2; gsub(/[ "]/, "", name) }
		copies && /"alpha_s":/ { cell(name ", startup in s") }
		copies && /"beta_s_per_byte":/ { cell(name ", s per byte") }
		/"(forward|backward|update)_s":/ { what = $1; gsub(/[ "]/, "", what); cell(what) }
	' "$scratch/profile.json" >> "$scratch/table"
	gf-topo --synthetic 'gpu:4@32GB/s,3us' | cat - "$scratch/profile.json" | gf-plan -q > "$scratch/plan" ||
		wrong 'gf-plan does not take the profile'
}

