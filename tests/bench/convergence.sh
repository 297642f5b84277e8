#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Trains digits-mlp and digits-cnn by every method at 4 and 8 ranks from three
# seeds. All runs have one global batch, rate and number of epochs. Writes a table
# and pictures of accuracy and loss by step and by bytes sent, with their numbers
# as CSV, to $OUT (build/convergence). Takes minutes. Methods that this build
# cannot run are skipped aloud.
#   tests/bench/convergence.sh [model...]       RANKS, SEEDS, EPOCHS, METHODS (a regex)
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
out=${OUT:-$build/convergence}
export PATH="$build/bin:$PATH"
. tests/launcher.sh plain
export OMPI_MCA_mpi_yield_when_idle=1
# An epoch is 22 steps of 64 samples. Gradients are stale after five epochs, as in
# the paper, at a rate at which they are stable under a momentum of 0.9.
global=64 epochs=${EPOCHS:-25} rate=.05
read -ra ranks_list <<< "${RANKS:-4 8}"
read -ra seeds <<< "${SEEDS:-1 2 3}"
[ $# -gt 0 ] || set -- digits-mlp digits-cnn
rm -rf "$out"
mkdir -p "$out" || exit 1

# name, options of gf-plan, options of gf-train. Chunks are as small beside the
# model as the paper's 32,000 are beside AlexNet's 61 million. randomk's authors
# train without momentum: an element waits ten steps for its turn here.
methods() { # chunk ranks
	cat << EOF
dense||
csc-15|--selection csc --keep .15 --chunk $1|
csc-5|--selection csc --keep .05 --chunk $1|
csc-5-decay-1|--selection csc --keep .05 --chunk $1 --decay 1|
topk-01|--selection topk --density .01|
gtopk-01|--selection gtopk --density .01|
gtopk-01-conserve|--selection gtopk --density .01 --putback conserve|
dgc-01|--selection dgc --density .01|
onebit|--selection onebit --chunk 128|
powersgd-2|--selection powersgd --powersgd-rank 2|
randomk-10|--selection randomk --density .1|--momentum 0 --lr .3
pipe-2|--staleness 2 --pipeline-warmup 110|
pipe-2-trunc16|--staleness 2 --pipeline-warmup 110 --codecs trunc16|
pipe-2-q8|--staleness 2 --pipeline-warmup 110 --codecs q8|
fp8|--codecs fp8|
fp4|--codecs fp4|
fp4-ring|--codecs fp4 --algorithm ring|
EOF
	others
}
# Selections that the table above leaves out, as tests run them.
others() {
	local name options
	while IFS='|' read -r name options _; do
		[[ $name =~ ^# ]] || grep -q -- "--selection $name" <(declare -f methods) || [ "$name" = dense ] ||
			echo "$name|$options|"
	done < tests/data/selections.txt
}

# our command's own message among those of mpirun
reason() { grep -m 1 '^gf-' "$out/errors.txt" || tail -n 1 "$out/errors.txt"; }

train() { # model ranks seed method plan options...
	local model=$1 ranks=$2 seed=$3 method=$4 plan=$5 log
	shift 5
	log=$out/$model.$ranks.$method.$seed.jsonl
	timeout 300 mpirun --bind-to none --oversubscribe -np "$ranks" gf-train -q --plan "$plan" \
		--model "$model" --data digits --batch $((global / ranks)) --epochs "$epochs" --threads 1 --lr $rate \
		--seed "$seed" --log "$log" "$@" > /dev/null 2> "$out/errors.txt" && { echo "$log" >> "$out/logs.txt"; return; }
	# a loss that is not finite is a result, too; a run that cannot start is none
	if grep -q 'diverged\|not finite\|not a number\|infinite' "$out/errors.txt"; then
		echo "$model, $ranks ranks, $method, seed $seed: $(reason)"
		echo "$log" >> "$out/logs.txt"
	else
		echo "skipped: $model, $ranks ranks, $method: $(reason)"
		rm -f "$log"
		return 1
	fi
}

for model; do
	chunk=128
	[ "$model" = digits-cnn ] && chunk=256
	for ranks in "${ranks_list[@]}"; do
		gf-topo -q --synthetic "host:$ranks@8GB/s,1us" > "$out/topo.json" || exit 1
		while IFS='|' read -r name plan_options train_options; do
			# shellcheck disable=SC2086 # options are words
			if ! gf-plan -q --model "$model" --ranks "$ranks" $plan_options "$out/topo.json" > "$out/plan.json" 2> "$out/errors.txt"; then
				echo "skipped: $model, $ranks ranks, $name: $(reason)"
				continue
			fi
			for seed in "${seeds[@]}"; do
				# shellcheck disable=SC2086
				train "$model" "$ranks" "$seed" "$name" "$out/plan.json" $train_options < /dev/null || break
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
