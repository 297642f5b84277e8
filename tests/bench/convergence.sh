#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Trains small models by every method with its defaults, from three seeds: nothing is
# set but the method, the batch of 64 on all ranks and the epochs. mnist-mlp and
# cifar100-cnn get digits that enlarge.py draws. Writes a table and pictures of accuracy
# and loss by step and by bytes sent, with their numbers as CSV, to $OUT
# (build/convergence). Takes minutes.
# Methods that this build cannot run are skipped aloud.
#   tests/bench/convergence.sh [model...]       RANKS, SEEDS, EPOCHS, METHODS (a regex)
# RESUME=1 keeps the runs that $OUT has.
# A method that ends more than a point below the dense row runs again for LONGER (2 and
# 4) times the epochs, as NAME-x2 and NAME-x4, until it does not.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
out=${OUT:-$build/convergence}
export PATH="$build/bin:$PATH"
. tests/launcher.sh plain
export OMPI_MCA_mpi_yield_when_idle=1
global=64
read -ra ranks_list <<< "${RANKS:-4}"
read -ra seeds <<< "${SEEDS:-1 2 3}"
read -ra longer <<< "${LONGER-2 4}"
[ $# -gt 0 ] || set -- digits-mlp digits-cnn mnist-mlp
[ -n "${RESUME-}" ] || rm -rf "$out"
mkdir -p "$out" || exit 1
rm -f "$out/logs.txt"

# model, data, epochs
small() {
	cat << EOF
digits-mlp|digits|25
digits-cnn|digits|25
digits-cnn-plain|digits|25
mnist-mlp|$out/digits-28|10
cifar100-cnn|$out/pairs-32|10
gpt-text|text|2
lstm-text|text|2
EOF
}

# name, options of gf-plan. A name without more is a method's own defaults. Chunks of csc
# at its paper's share are as small beside the model as the paper's 32,000 are beside
# AlexNet's 61 million.
methods() { # chunk
	cat << EOF
dense|
csc|--selection csc
csc-5|--selection csc:keep=.05,chunk_elems=$1
topk|--selection topk
topk-01|--selection topk:density=.01
gtopk|--selection gtopk
gtopk-01|--selection gtopk:density=.01
gtopk-01-conserve|--selection gtopk:density=.01,putback=conserve
topk-01-q8|--selection topk:density=.01 --codecs q8
gtopk-01-fp4|--selection gtopk:density=.01 --codecs fp4
pipe-2|--staleness 2
pipe-3|--staleness 3
pipe-sgd|--system pipe-sgd
pipe-2-q8|--staleness 2 --codecs q8
local-sgd|--period local-sgd
diloco-10|--period diloco:steps=10
diloco-50-m5|--period diloco:steps=50,outer_momentum=.5
streaming|--period streaming
streaming-q8|--period streaming:codecs=q8
f16|--codecs f16
q8|--codecs q8
fp8|--codecs fp8
fp4|--codecs fp4
fp4-ring|--codecs fp4 --algorithm ring
zero3|--shard zero3
zero3-bf16|--shard zero3 --codecs bf16
zero3-q8|--shard zero3 --codecs q8
EOF
	others
}
# Selections that the table above leaves out, as their facts have it, or as tests run them.
others() {
	local file name
	for file in tests/entries/selection/*.json; do
		name=$(basename "$file" .json)
		grep -q -- "--selection $name" <(declare -f methods) || [ "$name" = dense ] ||
			jq -r --arg name "$name" 'if .measured then .measured[] | "\(.[0])|--selection \($name) \(.[1])"
				else "\($name)|\(.options)" end' "$file"
	done
}

# our command's own message among those of mpirun
reason() { grep -m 1 '^gf-' "$out/errors.txt" || tail -n 1 "$out/errors.txt"; }

train() { # model data epochs ranks seed method plan
	local model=$1 data=$2 epochs=$3 ranks=$4 seed=$5 method=$6 plan=$7 log
	log=$out/$model.$ranks.$method.$seed.jsonl
	# a loss that is not finite is a result, too; a run that cannot start is none
	if [ -s "$log" ]; then
		true
	elif timeout 1200 mpirun --bind-to none --oversubscribe -np "$ranks" gf-train -q --plan "$plan" \
		--model "$model" --data "$data" --batch $((global / ranks)) --epochs "$epochs" --threads 1 \
		--seed "$seed" --log "$log.part" > /dev/null 2> "$out/errors.txt"; then
		mv "$log.part" "$log"
	elif grep -q 'diverged\|not finite\|not a number\|infinite' "$out/errors.txt"; then
		echo "$model, $ranks ranks, $method, seed $seed: $(reason)"
		mv "$log.part" "$log"
	else
		echo "skipped: $model, $ranks ranks, $method: $(reason)"
		rm -f "$log.part"
		return 1
	fi
	echo "$log" >> "$out/logs.txt"
}

# Is it at most a point below dense gradients, or beyond help? The last column but two is
# the difference.
within() { # logs, method
	"$build/bench/convergence_report" "$out" "$1".dense.*.jsonl "$1.$2".*.jsonl |
		awk 'END {exit !(/no result/ || $(NF - 2) >= -1)}'
}

for model; do
	chunk=128
	[ "$model" = digits-cnn ] && chunk=256
	IFS='|' read -r _ data epochs < <(small | grep "^$model|") ||
		{ echo "convergence.sh: want $(small | cut -d'|' -f1 | xargs), got $model" >&2; exit 2; }
	epochs=${EPOCHS:-$epochs}
	pairs=()
	[[ $data != */pairs-* ]] || pairs=(--pairs)
	if [[ $data == "$out"/* && ! -d $data ]] &&
		! python3 tests/bench/enlarge.py "${pairs[@]}" share/data/digits "$data" 2> "$out/errors.txt"; then
		echo "skipped: $model: $(tail -n 1 "$out/errors.txt")"
		continue
	fi
	for ranks in "${ranks_list[@]}"; do
		gf-topo -q --synthetic "host:$ranks@8GB/s,1us" > "$out/topo.json" || exit 1
		while IFS='|' read -r name plan_options; do
			# shellcheck disable=SC2086 # options are words
			if ! gf-plan -q --model "$model" --ranks "$ranks" $plan_options "$out/topo.json" > "$out/plan.json" 2> "$out/errors.txt"; then
				echo "skipped: $model, $ranks ranks, $name: $(reason)"
				continue
			fi
			for times in 1 "${longer[@]}"; do
				[ "$times" = 1 ] || name=${name%-x*}-x$times
				for seed in "${seeds[@]}"; do
					train "$model" "$data" $((times * epochs)) "$ranks" "$seed" "$name" "$out/plan.json" < /dev/null || break 2
				done
				within "$out/$model.$ranks" "$name" && break
			done
		done < <(methods "$chunk" | grep -E "^(${METHODS:-.*})\|")
	done
done
mapfile -t logs < "$out/logs.txt"
"$build/bench/convergence_report" "$out" "${logs[@]}" | tee "$out/table.txt" || exit 1
draw() { # csv x y variables
	local name=${1%.csv}
	gnuplot -d -e "data='$1'; out='$name-$3-$2.svg'; title='$(basename "$name")'; subtitle='mean over the seeds, after each epoch'; \
		series='method'; x='$2'; y='$3'; low='$3_low'; high='$3_high'; columns=2; $4" share/plots/curves.gp
}
if command -v gnuplot > /dev/null; then
	for csv in "$out"/*.csv; do
		draw "$csv" step accuracy "ylabel='test accuracy'; yunit='%'; yfrom=1"
		draw "$csv" step loss "ylabel='test loss'"
		draw "$csv" sent_bytes accuracy "xlabel='sent'; xunit='B'; xlog=2; ylabel='test accuracy'; yunit='%'; yfrom=1"
		draw "$csv" sent_bytes loss "xlabel='sent'; xunit='B'; xlog=2; ylabel='test loss'"
	done || exit 1
	echo "pictures: $out/*.svg, their numbers: $out/*.csv"
else
	echo "skipped: pictures, which need gnuplot (Debian: gnuplot-nox); their numbers: $out/*.csv"
fi
echo "digits-mlp, $((4 * 16)) samples a step, 4 epochs, with one rule broken at a time:"
"$build/tests/test_convergence" --table | tee "$out/failures.txt"
