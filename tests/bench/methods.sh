#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every method on an emulated cluster (root; share/lab), side by side in one run: 4
# and 8 hosts of one rank with links of 1 Gb/s. A network of 1.1 million weights
# learns the digits. The table has for each method the time of a step with its
# parts, the bytes that a rank sends in a step, and the time at which the test
# accuracy first reaches $TARGET.
#   tests/bench/methods.sh [compare] [ladder] [pipeline] [density]       (all)
#   HOSTS="4 8" EPOCHS=8 TARGET=0.85 ONLY=regex OUT=build/methods
# Each part at one number of hosts takes a minute or two and can be run by itself
# (HOSTS=8 tests/bench/methods.sh ladder). ONLY takes the methods whose names match
# it. $OUT/PART-HOSTS.svg shows the parts of a step, PART-HOSTS.csv has its numbers.
# compare   all methods                    ladder    GradientFlow's, step by step
# pipeline  K = 2, one message or several  density   gTop-k's sweep
#
# All hosts share this machine's cores: compute does not scale, the links do.
# A step is compute + update + handling + network, means over the run. In the last
# two the step waits for messages: in handling the communication thread is busy with
# selection and codecs, in network data moves. select and codec are the whole time
# that rank 0's communication thread spends in them, including time that backward
# hides. Methods that this build cannot run are skipped aloud.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
export PATH="$build/bin:$PATH"
lab=$PWD/share/lab/gf-lab
read -ra hosts_list <<< "${HOSTS:-4 8}"
out=${OUT:-$build/methods} only=${ONLY:-.}
mkdir -p "$out" || exit 1
epochs=${EPOCHS:-8} target=${TARGET:-0.85} global=64
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 0; }
work=$(mktemp -d) || exit 1
name=m$(($$ % 1000000))
trap '"$lab" down $name > /dev/null 2>&1; rm -rf "$work"' EXIT

jq -n '{format: "gf-model", version: 1, name: "digits-wide", input: [1, 8, 8], classes: 10, layers: [
	{name: "fc1", type: "fc", outputs: 1024}, {name: "relu1", type: "relu"},
	{name: "fc2", type: "fc", outputs: 1024}, {name: "relu2", type: "relu"},
	{name: "fc3", type: "fc", outputs: 10}]}' > "$work/digits-wide.json"

# label, options of gf-plan
compare() {
	cat << 'EOF'
dense|
dense, halves (DeAR)|--policy dear
csc 15 %|--selection csc:keep=.15,chunk_elems=8192
csc 5 %|--selection csc:keep=.05,chunk_elems=8192
csc 15 %, K=2|--selection csc:keep=.15,chunk_elems=8192 --staleness 2
top-k .01|--selection topk:density=.01,warmup_densities=none
gTop-k .01|--selection gtopk:density=.01,warmup_densities=none
K=2|--staleness 2
K=2 trunc16|--staleness 2 --codecs trunc16
K=2 q8|--staleness 2 --codecs q8
PS-Sync|--algorithm ps --servers 1
EOF
}
ladder() {
	cat << 'EOF'
MPI all-reduce|--policy sequential --algorithm library --release backward_end
ring|--policy sequential --algorithm ring --release backward_end
+ f16 wire|--policy sequential --algorithm ring --codecs f16 --release backward_end
+ overlap|--policy wfbp --algorithm ring --codecs f16
+ lazy|--policy threshold --algorithm ring --codecs f16
+ csc 15 %|--policy threshold --algorithm ring --selection csc:keep=.15,chunk_elems=8192
EOF
}
pipeline() {
	cat << 'EOF'
K=1, one message|--policy single
K=2, one message|--policy single --staleness 2
K=2, several|--policy wfbp --staleness 2
K=2, one, q8|--policy single --staleness 2 --codecs q8
K=2, several, q8|--policy wfbp --staleness 2 --codecs q8
EOF
}
density() {
	local d
	for d in .1 .05 .01 .005 .001; do
		echo "top-k $d|--selection topk:density=$d,warmup_densities=none"
		echo "gTop-k $d|--selection gtopk:density=$d,warmup_densities=none"
	done
}

reason() { grep -v ': epoch ' "$work/errors.txt" | grep -m 1 '^gf-' || tail -n 1 "$work/errors.txt"; }

measure() { # hosts label plan-options...
	local hosts=$1 label=$2 ranks=$1
	shift 2
	case "$*" in *--servers*) ranks=$((hosts + 1)) ;; esac
	if ! gf-plan -q --model "$work/digits-wide.json" --ranks "$hosts" "$@" "$work/topo.json" \
		> "$work/plan.json" 2> "$work/errors.txt"; then
		echo "skipped: $label: $(reason)"
		return
	fi
	if ! "$lab" run "$name" --np "$ranks" --timeout 150 gf-train --plan "$work/plan.json" \
		--model "$work/digits-wide.json" --data "$PWD/share/data/digits" --batch $((global / hosts)) \
		--epochs "$epochs" --lr .05 --threads 1 --log "$work/log.jsonl" \
		> "$work/report.txt" 2> "$work/errors.txt"; then
		echo "skipped: $label: $(reason)"
		return
	fi
	# milliseconds per step of rank 0; what a rank sends; and the time of the
	# epochs up to the first whose test reaches the target
	jq -rs --argjson target "$target" '
		map(select(.part != "batch")) as $r |
		([$r[] | select(.part == "test" and .accuracy >= $target).epoch] | first) as $at |
		($r | last) as $final |
		[$r[] | select(.part == "train")] as $epochs |
		def each(f): 1e3 * ([$epochs[] | f] | add) / $final.step;
		[each(.compute_s + .update_s + .exposed_s), each(.compute_s), each(.update_s), each(.exposed_handling_s),
		 each(.exposed_s - .exposed_handling_s), each(.select_s), each(.codec_s),
		 ([$epochs[].sent_bytes] | add) / $final.step / ($final.ranks + ($final.servers // 0)) / 1e6, 100 * $final.accuracy,
		 (if $at then [$r[] | select(.part == "train" and .epoch <= $at).time_s] | add else "never" end)] | @tsv' \
		"$work/log.jsonl" > "$work/figures.txt"
	read -ra f < "$work/figures.txt"
	# commas part cells, and these are seconds
	jq -nr --arg method "${label//,/;}" '[$method] + ($ARGS.positional | map(tonumber / 1e3)) | map(tostring) | join(",")' \
		--args "${f[@]:1:4}" >> "$work/rows.txt"
	[ "${f[9]}" = never ] || f[9]=$(printf '%.2f s' "${f[9]}")
	printf '%-20s %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %9.3f %8.2f %% %10s\n' "$label" "${f[@]}"
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
[ $# -gt 0 ] || set -- compare ladder pipeline density
for hosts in "${hosts_list[@]}"; do
	# one host more, for a server
	"$lab" up "$name" --hosts $((hosts + 1)) --ranks 1 --rate 1gbit > "$work/errors.txt" 2>&1 || {
		echo "skipped: no emulated cluster here: $(tail -n 1 "$work/errors.txt")"
		exit 0
	}
	gf-topo -q --synthetic "net:$hosts@1Gb/s,50us" > "$work/topo.json" || exit 1
	for part; do
		case $part in
		compare | ladder | pipeline | density) ;;
		*) echo "methods: want compare, ladder, pipeline or density, got $part" >&2; exit 2 ;;
		esac
		printf '\n== %s: %d hosts, 1 Gb/s; times of a step in ms, means; to %s accuracy\n' "$part" "$hosts" "$target"
		printf '%-20s %8s %8s %8s %8s %8s %8s %8s %9s %10s %10s\n' method step compute update handling network select codec MB/rank accuracy reached
		: > "$work/rows.txt"
		while IFS='|' read -r label options; do
			[[ $label =~ $only ]] || continue
			# shellcheck disable=SC2086 # options are words
			measure "$hosts" "$label" $options < /dev/null
		done < <("$part")
		[ -s "$work/rows.txt" ] || continue
		{ echo "method,compute,update,selection and codecs,network"; cat "$work/rows.txt"; } > "$out/$part-$hosts.csv"
		if command -v gnuplot > /dev/null; then
			gnuplot -d -e "data='$out/$part-$hosts.csv'; out='$out/$part-$hosts.svg'; title='$part, $hosts hosts, 1 Gb/s'; \
				subtitle='the parts of a step, means over the run'; ylabel='time of a step'; unit='s'; stacked=1" \
				share/plots/bars.gp || exit 1
			echo "picture: $out/$part-$hosts.svg"
		else
			echo "skipped: the picture, which needs gnuplot (Debian: gnuplot-nox); its numbers: $out/$part-$hosts.csv"
		fi
	done
	"$lab" down "$name" > /dev/null 2>&1
done
