#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Measurements, each beside its peer in the same run, printed as ratios. They
# say nothing on a busy machine: look at the load average it prints first.
# lab-replay lab-levels lab-lanes lab-link are minutes each, so only on request:
# tests/bench/lab.sh says what they are.
#   tests/bench/run.sh [kernels] [train] [plan] [quality] [predict] [post] [allreduce]   (all)
# allreduce needs root for its emulated clusters, and skips them aloud without;
# beside Open MPI it measures gloo and, where UCC_HOME has it, UCC.
#   tests/bench/run.sh transports [CLUSTER...]
# sets the all-reduce over UCX beside MPI's, and beside Open MPI, gloo and UCC.
# A CLUSTER is HOSTSxRANKS@RATE; the rate "none" has no shaper. In the environment:
# TRANSPORTS_SIZES, as "FIRST LAST FACTOR" in bytes (4096 67108864 4), and
# TRANSPORTS_SECONDS (.5) for each size.
#   tests/bench/run.sh contestants
# sets gf-allreduce's auto beside Open MPI and MPICH in shared memory, each in a
# process of its own, in turns (ROUNDS, 3; RANKS, 2; SIZES, bytes).
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
export PATH="$PWD/$build/bin:$PATH"
. tests/launcher.sh plain
work=$(mktemp -d) || exit 1
lab=share/lab/gf-lab
lab_up= # an emulated cluster of ours that stands
trap '[ -z "$lab_up" ] || "$lab" down "$lab_up"; rm -rf "$work"' EXIT
status=0
run() { timeout 300 mpirun --bind-to none -np "$@"; }
heading() { printf '\n== %s\n' "$*"; }
failed() { echo "bench: $*"; status=1; }

# samples/s of gf-train: the median over its epochs after the first
ours() { # ranks batch
	run "$1" gf-train --model digits-cnn-plain --data digits --batch "$2" --epochs 8 --threads 1 2>&1 |
		sed -n 's/.* \([0-9]*\) samples\/s$/\1/p' | tail -n +2 | sort -n |
		awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}
peer() { # ranks batch
	local rank port=$((20000 + RANDOM % 10000))
	for ((rank = 1; rank < $1; rank++)); do
		OMP_NUM_THREADS=1 timeout 300 /usr/bin/python3 tests/bench/torch_peer.py share/models/digits-cnn-plain.json \
			share/data/digits "$2" 8 1 "$rank" "$1" $port > /dev/null 2>&1 &
	done
	OMP_NUM_THREADS=1 timeout 300 /usr/bin/python3 tests/bench/torch_peer.py share/models/digits-cnn-plain.json \
		share/data/digits "$2" 8 1 0 "$1" $port | jq '.samples_per_s | floor'
	wait
}

bench_kernels() {
	heading "kernels, as a share of this machine's copy bandwidth"
	local library=
	if command -v c++ > /dev/null; then
		library=$work/nth_element.so
		c++ -O2 -shared -fPIC -o "$library" tests/bench/nth_element.cc || library=
	fi
	"$build/bench/kernels" ${library:+"$library"}
}

bench_train() {
	heading "gf-train and PyTorch: samples/s of the same model, one thread per rank"
	/usr/bin/python3 -c 'import torch' 2> /dev/null || { echo "skipped: no python3-torch"; return; }
	local ranks round ours peer
	printf 'ranks  round  gf-train  PyTorch  ratio\n'
	for ranks in 1 2; do
		for round in 1 2 3; do
			ours=$(ours "$ranks" 16)
			peer=$(peer "$ranks" 16)
			printf '%5d  %5d  %8d  %7d  %5.2f\n' "$ranks" "$round" "$ours" "$peer" \
				"$(bc -l <<< "$ours / $peer")"
		done
	done
}

seconds() { # COMMAND...: of the processor that it takes
	{ TIMEFORMAT=%U; time "$@" > /dev/null; } 2>&1
}

bench_plan() {
	heading "gf-plan: seconds by number of tensors, and how they grow"
	local tensors lanes slow s
	declare -A before
	printf 'tensors  lanes  slowdown  seconds  growth\n'
	for tensors in 100 604 1000 10000; do
		for slow in 1.0 1.2; do
			/usr/bin/python3 - "$tensors" "$slow" > "$work/profile.json" << 'PY'
import json, random, sys
random.seed(1)
ready, tensors = 0.0, []
for i in range(int(sys.argv[1])):
    ready += random.uniform(1e-6, 4e-4)
    tensors.append({"name": f"t{i}", "dtype": "f32", "ready_s": ready,
                    "count_elems": random.choice([64, 256, 1000, 65536, 262144, 1048576])})
print(json.dumps({"format": "gf-profile", "version": 1,
    "model": {"name": "random", "device": "cpu", "batch_per_rank": 1, "forward_s": 0.1, "backward_s": ready,
              "update_s": 0.0, "overlap_slowdown": float(sys.argv[2]), "tensors": tensors},
    "network": {"ranks": 8, "allreduce": [{"algorithm": "ring", "startup_s": 5e-4,
                "per_byte_s": 1.7e-9, "contention": [1.0, 1.5]}]}}))
PY
			for lanes in 1 2 3 4; do
				s=$(seconds gf-plan -q --lanes $lanes "$work/profile.json")
				printf '%7d  %5d  %8s  %7s  %6s\n' "$tensors" "$lanes" "$slow" "$s" \
					"$(awk -v s="$s" -v before="${before[$lanes,$slow]:-0}" 'BEGIN { if (before > 0) printf "%.1f", s / before }')"
				before[$lanes,$slow]=$s
			done
		done
	done

	local ranks a
	heading "gf-plan: seconds by number of ranks in hosts of 8, every algorithm and decomposition"
	printf ' ranks  seconds\n'
	for ranks in 800 9600 100000; do
		gf-topo --synthetic "host:8@10GB/s,1us net:$((ranks / 8))@1.25GB/s,20us" > "$work/topo.json"
		printf '%6d  %7s\n' $ranks "$(seconds gf-plan -q --policy optimal --model resnet50 "$work/topo.json")"
	done

	heading "gf-sim: seconds by number of ranks, closed forms"
	printf '%-12s  ranks  seconds\n' algorithm
	for a in ring rhd butterfly tree ps; do
		gf-plan -q --lanes 1 --policy mg-wfbp --model resnet50 --algorithm $a share/topologies/4x2-1gbe.json \
			> "$work/plan.json"
		for ranks in 100 10000 100000; do
			printf '%-12s %6d  %s\n' $a $ranks "$(seconds gf-sim -q --ranks $ranks "$work/plan.json")"
		done
	done
}

# What two algorithms cost whose messages share a network the worse the longer they
# are (32 ranks).
contended='{"format": "gf-profile", "version": 1, "network": {"ranks": 32, "allreduce": [
	{"algorithm": "ring", "startup_s": 9.2e-4, "per_byte_s": 1.6e-9, "contention": [
		{"size_bytes": 65536, "gamma": [1, 1.1, 1.3, 1.6]}, {"size_bytes": 1048576, "gamma": [1, 1.5, 2.2, 2.9]},
		{"size_bytes": 16777216, "gamma": [1, 1.9, 2.8, 3.8]}]},
	{"algorithm": "rhd", "startup_s": 2e-4, "per_byte_s": 2.4e-9, "contention": [1, 1.6, 2.5, 3.5]}]}}'

bench_quality() {
	heading "gf-plan: plans on 1 to 4 lanes, two algorithms; distance in % above the bound, and above a search of 100 times the work"
	local model profiles=()
	for model in share/models/*.json; do
		model=$(basename "$model" .json)
		gf-profile -q --estimate --model "$model" --flops 6e12 --batch 32 > "$work/$model.model"
		jq -s '.[0] * {network: .[1].network}' "$work/$model.model" - <<< "$contended" > "$work/$model.json" || return
		profiles+=("$work/$model.json")
	done
	"$build/bench/plan_quality" "${profiles[@]}"

	heading "gf-plan: 10^5 ranks in hosts of 8, its default lanes"
	printf 'model            seconds      MiB\n'
	gf-topo --synthetic "host:8@10GB/s,1us net:12500@1.25GB/s,20us" > "$work/topo.json"
	for model in resnet50 densenet201 bert-base; do
		/usr/bin/time -o "$work/time" -f '%U %M' gf-plan -q --model $model --flops 6e12 "$work/topo.json" > "$work/plan.json"
		awk -v m=$model '{ printf "%-16s %7s  %7.0f\n", m, $1, $2 / 1024 }' "$work/time"
	done
}

bench_post() {
	heading "gradflow_exchange_post: 100 tensors in 50 messages of 64 KiB, a rank beside each other one"
	local ranks
	printf 'ranks  memory     at once  us/tensor  (90 %%)   of 2 us  ms/step  copied bytes\n'
	for ranks in 1 2 4; do
		run $ranks "$build/embed/caller" post | while read -r where batch post most step copied; do
			printf '%5d  %-9s  %7d  %9s  %6s  %8.2f  %7s  %12d\n' $ranks "$where" "$batch" "$post" "$most" \
				"$(bc -l <<< "$post / 2")" "$step" "$copied"
		done
	done
}

bench_predict() {
	heading "predicted and measured step, profile and run apart (ratio measured/predicted)"
	local ranks round
	gf-topo > "$work/topo.json"
	printf 'ranks  round  training  replay\n'
	for ranks in 2 4; do
		for round in 1 2 3; do
			run "$ranks" gf-profile -q --model digits-cnn "$work/topo.json" > "$work/prof.json" 2> /dev/null
			gf-plan -q "$work/topo.json" "$work/prof.json" > "$work/plan.json"
			printf '%5d  %5d  %8s  %6s\n' "$ranks" "$round" \
				"$(run "$ranks" gf-train --plan "$work/plan.json" --data digits --epochs 10 2> /dev/null | sed -n 's/.*measured\/predicted //p')" \
				"$(run "$ranks" gf-train --plan "$work/plan.json" --replay --steps 300 2> /dev/null | sed -n 's/.*measured\/predicted //p')"
		done
	done
	echo "4 ranks share 2 cores on a small machine: reported, not judged"
}

# plugin NAME WHERE COMMAND...: a library as a contestant (tests/bench/plugins)
plugin() {
	local name=$1 where=$2
	shift 2
	mkdir -p "$work/plugins"
	"$@" -shared -fPIC -O2 -o "$work/plugins/$name.so" 2> "$work/$name.log" && return
	echo "without $name: $(grep -m 1 error "$work/$name.log"); want $where"
	rm -f "$work/plugins/$name.so"
}

# gloo of the system, UCC in $UCC_HOME
plugins() {
	local ucc=${UCC_HOME:-/usr}
	plugin gloo libgloo-dev g++ tests/bench/plugins/gloo.cc -lgloo
	plugin ucc "UCC in UCC_HOME ($ucc)" cc tests/bench/plugins/ucc.c -I"$ucc/include" \
		-L"$ucc/lib" -Wl,-rpath,"$ucc/lib" -lucc
}

# begin_lab OPTION...: a cluster named $lab_up, which no other bench uses
begin_lab() {
	local name=b$$
	"$lab" up "$name" "$@" > "$work/lab.log" 2>&1 || { failed "no emulated cluster: $(tail -n 1 "$work/lab.log")"; return 1; }
	lab_up=$name
}

end_lab() {
	"$lab" down "$lab_up"
	lab_up=
}

# peers COMMAND... -- OPTION...: allreduce_peers under that launcher, and its status
peers() {
	local launcher=() loaded=() so
	while [ "$1" != -- ]; do launcher+=("$1"); shift; done
	shift
	for so in "$work"/plugins/*.so; do
		[ ! -e "$so" ] || loaded+=(-p "$so")
	done
	rm -rf "$work/store" && mkdir "$work/store"
	"${launcher[@]}" "$PWD/$build/bench/allreduce_peers" "${loaded[@]}" -d "$work/store" "$@" 2>&1 | grep -vE '^(\[|--|$)'
	return "${PIPESTATUS[0]}"
}

# cluster HOSTS RANKS OPTION...: on an emulated 1 Gb/s cluster; the limit is what
# iperf3 gets out of a link, without it a frame's payload at 1 Gb/s
cluster() {
	local hosts=$1 ranks=$2 link=118.6e6 got
	shift 2
	begin_lab --hosts "$hosts" --ranks "$ranks" --rate 1gbit --shaper htb || return
	if command -v iperf3 > /dev/null; then
		local address
		address=$("$lab" exec "$lab_up" h1 ip -4 -o addr show scope global | awk '{sub(/\/.*/, "", $4); print $4; exit}')
		"$lab" exec "$lab_up" h1 timeout 20 iperf3 -s -1 > /dev/null 2>&1 &
		sleep 0.5
		got=$("$lab" exec "$lab_up" h0 timeout 15 iperf3 -J -O 1 -t 3 -c "$address" |
			jq '.end.sum_received.bits_per_second / 8')
		wait $!
		[ -n "$got" ] && [ "$got" != null ] && link=$got
	fi
	echo "$hosts hosts x $ranks ranks, 1 Gb/s each, $(printf '%.1f' "$(bc -l <<< "$link / 1000000")") MB/s by $([ -n "$got" ] && echo iperf3 || echo arithmetic)"
	peers "$lab" run "$lab_up" --timeout 300 -- -l "$link" "$@" || failed "$hosts hosts x $ranks ranks: status $?"
	end_lab
}

# Medians of allreduce_peers -v as a row for each size: the peers' best of each
# library, and ours over each transport
transport_rows() { # link in bytes per second, hosts
	awk -v link="$1" -v hosts="$2" '
		$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9.]+$/ {bytes = $1; if (!(bytes in seen)) {seen[bytes] = 1; order[++n] = bytes}}
		$3 == "ms" {
			kind = $1
			if (kind ~ /^gf-/) {if (kind !~ /-auto:/) next; sub(/-auto:.*/, "", kind)}
			else if (kind == "mpi-default") kind = "default"
			else sub(/-.*/, "", kind)
			out = $4 == "out"
			if (!((bytes, kind) in t) || $2 < t[bytes, kind]) {t[bytes, kind] = $2; o[bytes, kind] = out}
		}
		function cell(kind) {
			if (!((b, kind) in t)) return "-"
			return (o[b, kind] ? "> " : "") sprintf(t[b, kind] < 0.1 ? "%.3f" : t[b, kind] < 10 ? "%.2f" : "%.1f", t[b, kind])
		}
		function least(kind) {if ((b, kind) in t && t[b, kind] < best) best = t[b, kind]}
		END {
			print "| bytes | limit | Open MPI default | its best | gloo | UCC | ours, MPI | ours, UCX | of the limit | x best of others |"
			print "|---|---|---|---|---|---|---|---|---|---|"
			for (i = 1; i <= n; i++) {
				b = order[i]; best = 1e9
				least("default"); least("mpi"); least("gloo"); least("ucc")
				limit = link > 0 ? 1e3 * b * 2 * (hosts - 1) / hosts / link : 0
				x = t[b, "gf-ucx"]
				share = limit && b >= 1048576 ? sprintf("%.0f %%", 100 * limit / x) : "-"
				printf "| %d | %.3g | %s | %s | %s | %s | %s | %s | %s | %.2f |\n", b, limit, cell("default"), cell("mpi"), cell("gloo"), cell("ucc"), cell("gf-mpi"), cell("gf-ucx"), share, best / x
			}
		}'
}

bench_transports() {
	[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; return; }
	plugins
	local cluster hosts ranks rate link sizes shaper rc
	read -ra sizes <<< "${TRANSPORTS_SIZES:-4096 67108864 4}"
	[ $# -gt 0 ] || set -- 4x1@1gbit 8x1@1gbit 4x2@1gbit 4x1@10gbit 2x1@none
	for cluster; do
		IFS=x@ read -r hosts ranks rate <<< "$cluster"
		heading "transports, $cluster, median ms; load average $(cut -d' ' -f1-3 /proc/loadavg)"
		link=0 shaper=(--shaper none)
		if [ "$rate" != none ]; then
			# a frame's payload
			link=$(bc <<< "${rate%gbit} * 118600000") shaper=(--rate "$rate" --shaper htb)
		fi
		begin_lab --hosts "$hosts" --ranks "$ranks" "${shaper[@]}" || continue
		# UCX between hosts of one kernel would share memory
		UCX_TLS=tcp,self peers "$lab" run "$lab_up" --timeout 600 -- -l "$link" -t mpi,ucx -b "${sizes[0]}" -e "${sizes[1]}" \
			-f "${sizes[2]}" -s "${TRANSPORTS_SECONDS:-.5}" -a ring -m default,recdbl,ring,segring -v > "$work/transports.txt"
		rc=$?
		transport_rows "$link" "$hosts" < "$work/transports.txt"
		[ $rc -eq 0 ] || failed "$cluster: status $rc; its last lines:" $'\n'"$(tail -n 5 "$work/transports.txt")"
		end_lab
	done
}

bench_allreduce() {
	heading "all-reduce of f32 in shared memory: gf-allreduce's ways (auto), Open MPI's, gloo, UCC"
	plugins
	local ranks
	for ranks in 2 4; do
		peers run "$ranks" --oversubscribe -- -b 1024 -e $((256 << 20)) -f 4 -s 2 -a all || failed "$ranks ranks: status $?"
	done
	heading "all-reduce of f32 over emulated links"
	[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; return; }
	cluster 4 1 -b 1024 -e $((64 << 20)) -f 4 -s 1 -a ring,rhd,butterfly
	cluster 8 1 -b 65536 -e $((64 << 20)) -f 4 -s 1 -a ring,rhd
	cluster 4 2 -b 65536 -e $((64 << 20)) -f 4 -s 1 -a ring,blueconnect,hierarchical
}

# "LABEL BYTES SECONDS" of each contestant, one after the other
# On a core each while there are cores: two that find themselves on one seem ten
# times as slow with short messages, whichever library sends them.
contest_round() { # ranks sizes...
	local ranks=$1 bind=none
	[ "$1" -gt "$(nproc)" ] || bind=core
	shift
	for size in "$@"; do
		timeout 300 mpirun --bind-to "$bind" --oversubscribe -np "$ranks" gf-allreduce -q -c 0 -n $((size > 1 << 20 ? 6 : 20)) -b "$size" -e "$size" --table=json 2> /dev/null |
			jq -r 'select(.placement == "in_place") | "auto \(.size_bytes) \(.time_s)"'
	done
	timeout 300 mpirun --bind-to "$bind" --oversubscribe -np "$ranks" "$build/bench/mpi_peer" openmpi 20 "$@" 2> /dev/null
	[ ! -x "$work/mpich_peer" ] ||
		timeout 300 mpirun.mpich -np "$ranks" -bind-to "$bind" "$work/mpich_peer" mpich 20 "$@" 2> /dev/null
}

bench_contestants() {
	local round sizes ranks=${RANKS:-2}
	heading "all-reduce of f32 in shared memory, $ranks ranks: gf-allreduce's auto, Open MPI, MPICH; median ms"
	mpicc.mpich -O2 -o "$work/mpich_peer" tests/bench/mpi_peer.c 2> /dev/null || echo "no MPICH: mpicc.mpich is not here"
	read -ra sizes <<< "${SIZES:-1024 16384 262144 1048576 4194304 16777216 67108864 268435456}"
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		contest_round "$ranks" "${sizes[@]}"
	done > "$work/contest"
	sort -k1,1 -k2,2n -k3,3g "$work/contest" | awk '
		{n[$1, $2]++; t[$1, $2, n[$1, $2]] = $3; size[$2] = 1}
		function median(who, s, k) {k = n[who, s]; return k ? 1e3 * t[who, s, int((k + 1) / 2)] : 0}
		END {
			printf "%10s %10s %10s %10s %10s %8s\n", "bytes", "auto", "Open MPI", "MPICH", "x Open MPI", "x MPICH"
			for (s in size) {
				a = median("auto", s); o = median("openmpi", s); m = median("mpich", s)
				printf "%10d %10.4f %10.4f %10.4f %10.2f %8.2f\n", s, a, o, m, a ? o / a : 0, a ? m / a : 0 | "sort -n"
			}
		}'
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
[ $# -gt 0 ] || set -- kernels train plan predict post allreduce
while [ $# -gt 0 ]; do
	part=$1
	case $part in
	kernels | train | plan | quality | predict | post | allreduce | contestants) "bench_$part" ;;
	transports) shift; bench_transports "$@"; break ;;
	lab-*) heading "$part"; tests/bench/lab.sh "${part#lab-}" ;;
	*) echo "bench: want kernels, train, plan, quality, predict, post, allreduce, contestants, transports or lab-PART (tests/bench/lab.sh), got $part" >&2; exit 2 ;;
	esac
	shift
done
[ $status -eq 0 ]
