#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How often two sites exchange, on an emulated cluster (root; share/lab): two sites of two
# hosts, 10 Gb/s inside, and a trunk of $TRUNKS between them. Each row trains the model by
# one plan: dense, a codec, a selection, a delay, and periods. The plan of the last row is
# found by gf-plan --hide. The table has the time of a step, measured and predicted, and
# how much of it waits for messages. The bytes of a step are those that the trunk's counter
# shows, both directions, headers too; beside them stands their share of dense's. The last
# columns are the accuracy or perplexity of the last test, and the time at which a test
# first reached the target.
# The time of a step also stands as --replay takes it, which sleeps in place of compute:
# four ranks share this machine's cores, and training's compute is not what a profile says.
#   tests/bench/sites.sh [model...]      (digits-cnn cifar100-cnn gpt-text)
# TRUNKS="100mbit 1gbit" ONLY=regex OUT=build/sites. Takes five minutes for a model and
# trunk. $OUT has the logs, pictures of the loss by second and by step, and their numbers.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
export PATH="$build/bin:$PATH"
lab=$PWD/share/lab/gf-lab
read -ra trunks <<< "${TRUNKS:-100mbit 1gbit}"
out=${OUT:-$build/sites} only=${ONLY:-.}
mkdir -p "$out" || exit 1
out=$(realpath "$out")
[ $# -gt 0 ] || set -- digits-cnn cifar100-cnn gpt-text
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 0; }
name=s$(($$ % 1000000))
trap '"$lab" down $name > /dev/null 2>&1' EXIT

# model|data|batch of a rank|steps|target: accuracy, or perplexity from 1 on; 2: none.
# cifar100-cnn has made-up data: its times count.
models() {
	cat << EOF
digits-cnn|$PWD/share/data/digits|16|550|.97
cifar100-cnn|synthetic:2400|16|150|2
gpt-text|text|4|200|2
EOF
}

# label|options of gf-plan. Alone: no exchange between the sites at all.
rows() {
	cat << 'EOF'
dense|
alone|--period local-sgd:steps=1000000
q8|--codecs q8
gtopk .001|--selection gtopk:density=.001
K=2|--staleness 2
local-sgd 16|--period local-sgd
diloco 10|--period diloco:steps=10
diloco 50|--period diloco:steps=50
diloco 50 m .5|--period diloco:steps=50,outer_momentum=.5
diloco 200 m .5|--period diloco:steps=200,outer_momentum=.5
streaming 100|--period streaming
streaming planned|--period streaming:steps=100,hide=5%,codecs=q8
EOF
}

reason() { grep -v ': epoch ' "$out/errors.txt" | grep -m 1 '^gf-' || tail -n 1 "$out/errors.txt"; }

# A log as rows of a picture: the plan, and the mean loss at the end of each fortieth of
# the run.
curve() { # label log
	jq -rs --arg plan "$1" '[.[] | select(.part == "batch")] as $steps | ($steps | length) as $n
		| ([1, ($n / 40 | floor)] | max) as $each
		| reduce range(0; $n; $each) as $i ({s: 0, rows: []}; $steps[$i:$i + $each] as $part
			| .s += ([$part[].time_s] | add)
			| .rows += [[$plan, $part[-1].step, .s, ([$part[].loss] | add / length)]])
		| .rows[] | @csv' "$2"
}
draw() { # csv title x label unit
	gnuplot -d -e "data='$1'; out='${1%.csv}-$3.svg'; title='$2'; subtitle='loss of training, means of a fortieth'; \
		series='plan'; x='$3'; xlabel='$4'; xunit='$5'; y='loss'; ylog=10; columns=2" share/plots/curves.gp
}

# Bytes that the trunk has sent, both ways.
carried() {
	local sw sum=0
	for sw in 0 1; do
		sum=$((sum + $(ip netns exec "gflab-$name-sw$sw" cat /sys/class/net/trunk/statistics/tx_bytes)))
	done
	echo $sum
}

measure() { # trunk model data batch steps target label options...
	local trunk=$1 model=$2 data=$3 batch=$4 steps=$5 target=$6 label=$7 file before after replayed
	shift 7
	file=$out/$model.$trunk.${label// /_}
	if ! gf-plan "$@" "$out/$model.$trunk.profile.json" "$out/$trunk.topo.json" > "$file.plan.json" 2> "$out/errors.txt"; then
		echo "skipped: $label: $(reason)"
		return
	fi
	before=$(carried)
	# no look at the links: it would count as carried
	if ! GF_LAB_LINKS=true "$lab" run "$name" --timeout 280 gf-train --plan "$file.plan.json" --data "$data" --batch "$batch" \
		--epochs 25 --steps "$steps" --threads 1 --log "$file.jsonl" > "$file.txt" 2> "$out/errors.txt"; then
		echo "skipped: $label: $(reason)"
		return
	fi
	after=$(carried)
	replayed=$("$lab" run "$name" --timeout 120 gf-train -q --plan "$file.plan.json" --replay --steps 210 2> "$out/errors.txt" |
		sed -n 's/^step predicted .*measured\/predicted \(.*\)/\1/p')
	jq -rs --argjson target "$target" --argjson trunk $((after - before)) --slurpfile plan "$file.plan.json" '
		map(select(.part != "batch")) as $r | ($r | last) as $final |
		($final.perplexity // 0) as $p |
		([$r[] | select(.part == "test" and (if $p > 0 then .perplexity <= $target else .accuracy >= $target end)).epoch]
			| first) as $at |
		[$r[] | select(.part == "train")] as $e | [.[] | select(.part == "batch").time_s] as $steps |
		[1e3 * ($steps | add / length), (if $e == [] then "-" else 1e3 * ([$e[].exposed_s] | add) / $e[-1].step end),
		 1e3 * ($plan[0].predicted.iteration_s // 0), $trunk / $final.step / 1e3,
		 (if $p > 0 then $p else 100 * $final.accuracy end),
		 (if $at then [$r[] | select(.part == "train" and .epoch <= $at).time_s] | add else "never" end)] | @tsv' \
		"$file.jsonl" > "$out/figures.txt"
	curve "$label" "$file.jsonl" >> "$out/$model.$trunk.csv"
	read -ra f < "$out/figures.txt"
	[ "$label" != dense ] || dense=${f[3]}
	[ "${f[5]}" = never ] || f[5]=$(printf '%.2f s' "${f[5]}")
	printf '%-18s %8.2f %8.6s %9.2f %9s %10.2f %9s %9.2f %9s\n' "$label" "${f[@]:0:3}" "${replayed:--}" "${f[3]}" \
		"$([ -z "$dense" ] || jq -n "1000 * ${f[3]} / $dense | round / 10")" "${f[@]:4}"
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
for trunk in "${trunks[@]}"; do
	"$lab" up "$name" --hosts 4 --ranks 1 --rate 10gbit --racks 2 --trunk "$trunk" > "$out/errors.txt" 2>&1 || {
		echo "skipped: no emulated cluster here: $(tail -n 1 "$out/errors.txt")"
		exit 0
	}
	rate=${trunk/mbit/Mb\/s}
	gf-topo -q --synthetic "site:2@10Gb/s,50us between:2@${rate/gbit/Gb\/s},100us" > "$out/$trunk.topo.json" || exit 1
	for model; do
		IFS='|' read -r _ data batch steps target < <(models | grep "^$model|") ||
			{ echo "sites.sh: want $(models | cut -d'|' -f1 | xargs), got $model" >&2; exit 2; }
		dense=
		"$lab" run "$name" --timeout 250 gf-profile -q --model "$model" --batch "$batch" --threads 1 --budget 30s \
			"$out/$trunk.topo.json" -o "$out/$model.$trunk.profile.json" 2> "$out/errors.txt" ||
			{ echo "skipped: $model: $(reason)"; continue; }
		printf '\n== %s, two sites of two hosts, %s between them; times in ms, replayed by predicted, the trunk in kB a step\n' "$model" "$trunk"
		printf '%-18s %8s %8s %9s %9s %10s %9s %9s %9s\n' plan step waits predicted "by that" trunk "dense, %" "last test" reached
		echo plan,step,seconds,loss > "$out/$model.$trunk.csv"
		while IFS='|' read -r label options; do
			[[ $label =~ $only ]] || continue
			# shellcheck disable=SC2086 # options are words
			measure "$trunk" "$model" "$data" "$batch" "$steps" "$target" "$label" $options < /dev/null
		done < <(rows)
		if command -v gnuplot > /dev/null; then
			draw "$out/$model.$trunk.csv" "$model, two sites, $trunk between them" step step "" &&
				draw "$out/$model.$trunk.csv" "$model, two sites, $trunk between them" seconds time s || exit 1
			echo "pictures: $out/$model.$trunk-*.svg"
		fi
	done
	"$lab" down "$name" > /dev/null 2>&1
done
