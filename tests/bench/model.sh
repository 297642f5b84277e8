#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Predicted beside measured steps of training, with a profile that is made apart
# from the run and nothing fitted on it: does the plan win in truth?
#   tests/bench/model.sh [SETTING...]
# A setting is shm (RANKS ranks, 2, of this machine) or HOSTSxRATE, such as
# 2x1gbit: emulated hosts with one rank each (share/lab, root).
# In the environment: MODELS (digits-cnn cifar100-cnn resnet20); PLANS, of those
# below (all); ROUNDS (3) of all plans in turns, of which the median counts; STEPS
# (60) of a run; THREADS, which is given to the commands, else their default;
# BUDGET (20s) of a profile; ROWS, a file to which rows go as JSON Lines.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PATH="$PWD/${BUILD:-build}/bin:$PATH"
. tests/launcher.sh plain
work=$(mktemp -d) || exit 1
lab=
trap '[ -z "$lab" ] || share/lab/gf-lab down "$lab"; rm -rf "$work"' EXIT
rows=${ROWS:-$work/rows}
: > "$rows"
threads=(${THREADS:+--threads "$THREADS"})

# the options of a plan
options() {
	case $1 in
	auto) ;;
	f16 | q8 | trunc16) echo "--codecs $1" ;;
	auto-codecs) echo "--codecs f32,f16,q8" ;;
	csc) echo "--selection csc --keep 0.15 --csc-warmup 0" ;;
	topk | gtopk) echo "--selection $1 --density 0.01 --warmup-densities none" ;;
	stale) echo "--staleness 2" ;;
	two-lanes) echo "--lanes 2" ;;
	halves) echo "--halves" ;;
	*) echo "--policy $1" ;;
	esac
}
plans=${PLANS:-auto optimal wfbp threshold single dear halves two-lanes f16 q8 trunc16 auto-codecs csc topk gtopk stale}

run() {
	if [ -n "$lab" ]; then
		share/lab/gf-lab run "$lab" --timeout 300 "$@"
	else
		timeout 300 mpirun --bind-to none --oversubscribe -np "${RANKS:-2}" "$@"
	fi 2> "$work/err"
}

# seconds of a step, the median of a run's
measure() { # plan
	run gf-train "${threads[@]}" --data synthetic --plan "$1" --steps "${STEPS:-60}" > "$work/out" ||
		{ tail -n 3 "$work/err" >&2; return 1; }
	cat "$work/out" "$work/err" | sed -n 's|.*measured/predicted \(.*\)|\1|p' | tail -n 1
}

# The ratios of a plan. Plans that run alike share them: they are one contestant.
ratios() { # plan
	local same
	same=$(jq -cS '{lanes, pipeline, selection, messages}' "$work/$1.json" | md5sum)
	echo "$work/${same%% *}.ratio"
}

one_model() { # setting model
	local plan round ratio
	local -A ratio_of=() plan_of=()
	run gf-profile -q "${threads[@]}" --model "$2" --budget "${BUDGET:-20s}" > "$work/profile" || { cat "$work/err"; return 1; }
	for plan in $plans; do
		# shellcheck disable=SC2046
		gf-plan -q $(options "$plan") "$work/profile" > "$work/$plan.json" 2> "$work/err" ||
			{ echo "$1 $2 $plan: $(head -n 1 "$work/err")"; rm -f "$work/$plan.json"; }
	done
	rm -f "$work"/*.ratio
	for plan in $plans; do
		[ -e "$work/$plan.json" ] || continue
		ratio_of[$plan]=$(ratios "$plan")
		plan_of[${ratio_of[$plan]}]=$plan
	done
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		for ratio in "${!plan_of[@]}"; do
			measure "$work/${plan_of[$ratio]}.json" >> "$ratio"
		done
	done
	for plan in $plans; do
		ratio=${ratio_of[$plan]:-}
		[ -s "$ratio" ] || continue
		jq -cn --arg setting "$1" --arg model "$2" --arg plan "$plan" --slurpfile p "$work/$plan.json" --slurpfile r "$ratio" '
			$p[0].predicted.iteration_s as $s | ($r | sort | .[(length - 1) / 2 | floor]) as $ratio
			| {setting: $setting, model: $model, plan: $plan, policy: $p[0].policy, messages: ($p[0].messages | length), predicted_s: $s, measured_s: ($s * $ratio), ratio: $ratio}' |
			tee -a "$rows" | jq -r '[.setting, .model, .plan, .policy, .messages, (.predicted_s * 1e5 | round / 100), (.measured_s * 1e5 | round / 100), (.ratio * 1e3 | round / 1e3)] | @tsv'
	done | column -t
}

# errors, pairs that are predicted more than 5 % apart, and does auto win? It may
# take what dear does if it may split messages in halves.
summary() {
	jq -sr '
		def quantile(q): sort | .[((length - 1) * q) | round];
		(map(.ratio - 1 | if . < 0 then -. else . end)) as $e
		| ([group_by([.setting, .model])[] | . as $g | $g[] as $a | $g[] | select($a.predicted_s * 1.05 < .predicted_s) | $a.measured_s < .measured_s]) as $pairs
		| "error: median \($e | quantile(0.5) * 1000 | round / 10) %, p90 \($e | quantile(0.9) * 1000 | round / 10) %",
		  "order: \($pairs | map(select(.)) | length) of \($pairs | length) pairs that are predicted more than 5 % apart",
		  (group_by([.setting, .model])[]
		   | (["auto", "wfbp", "threshold", "single"], ["halves", "wfbp", "threshold", "single", "dear"]) as $names
		   | (map(select(.plan == $names[0])) | first) as $auto | select($auto)
		   | (map(select(.plan | IN($names[1:][]))) | min_by(.measured_s)) as $best | select($best)
		   | "\($auto.setting) \($auto.model): \($names[0]) takes \($auto.measured_s / $best.measured_s * 1000 | round / 1000) of \($best.plan)")' "$rows"
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) processors"
echo "setting model plan policy messages predicted-ms measured-ms ratio"
[ $# -gt 0 ] || set -- shm 2x1gbit
bad=0
for setting; do
	if [ "$setting" != shm ]; then
		[ "$(id -u)" -eq 0 ] || { echo "$setting is skipped: the lab needs root"; continue; }
		lab=bmodel
		share/lab/gf-lab up "$lab" --hosts "${setting%%x*}" --rate "${setting#*x}" --shaper htb 2> "$work/err" ||
			{ cat "$work/err"; lab=; exit 3; }
	fi
	for model in ${MODELS:-digits-cnn cifar100-cnn resnet20}; do
		one_model "$setting" "$model" || bad=1
	done
	[ -z "$lab" ] || share/lab/gf-lab down "$lab"
	lab=
done
[ -s "$rows" ] || { echo "nothing was measured" >&2; exit 1; }
summary
exit "$bad"
