#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Predicted beside measured steps of training, with a profile that is made apart
# from the run and nothing fitted on it: does the plan win in truth?
# Each round makes a profile, plans by it and trains by all plans: the memory of a
# machine that others share may be half as fast a minute later.
#   tests/bench/model.sh [SETTING...]
# A setting is shm (RANKS ranks, 2, of this machine) or HOSTSxRATE, such as
# 2x1gbit: emulated hosts with one rank each (share/lab, root).
# In the environment: MODELS (digits-cnn cifar100-cnn resnet20); PLANS, of those
# below (all); ROUNDS (3), of which the median ratio counts; STEPS (60) of a run,
# and as many as are predicted to take a second;
# THREADS, which is given to the commands, else their default; BUDGET (10s) of a
# profile; ROWS, a file to which rows go as JSON Lines.
set -u
exec 3>&2
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
	csc) echo "--selection csc:keep=0.15,warmup_steps=0" ;;
	topk | gtopk) echo "--selection $1:density=0.01,warmup_densities=none" ;;
	stale) echo "--staleness 2" ;;
	two-lanes) echo "--lanes 2" ;;
	halves) echo "--policy dear" ;;
	zero?) echo "--shard $1" ;;
	zero?-*) echo "--shard ${1%%-*} --codecs ${1#*-}" ;;
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
	local rc=$?
	grep -h '^gf-lab: ' "$work/err" >&3
	return "$rc"
}

# seconds that all processors have worked
busy() { awk '/^cpu / {print ($2 + $3 + $4 + $7 + $8) / '"$(getconf CLK_TCK)"'}' /proc/stat; }

# Runs a command, and again where other programs worked for more than a twentieth of its
# time, three times at most. A lab's ranks are no children of this program: there the links
# tell.
alone() { # FILE COMMAND...
	local before tries=0 TIMEFORMAT='%U %S'
	[ -z "$lab" ] || { run "${@:2}" > "$1"; return; }
	until [ "$tries" -eq 3 ]; do
		before=$(busy)
		{ time run "${@:2}" > "$1"; } 2> "$work/own" || return
		awk -v all="$(busy)" -v before="$before" '{exit all - before - $1 - $2 > 0.05 * ($1 + $2)}' "$work/own" && return
		tries=$((tries + 1))
	done
}

# measured by predicted seconds of a step, the median of a run's. A run of milliseconds would
# end before the system has given each rank a processor.
measure() { # plan
	local steps
	steps=$(jq --argjson least "${STEPS:-60}" '[$least, 1 / .predicted.iteration_s] | max | ceil' "$1")
	alone "$work/out" gf-train "${threads[@]}" --data synthetic --plan "$1" --epochs 1000000 --steps "$steps" ||
		{ tail -n 3 "$work/err" >&2; return 1; }
	cat "$work/out" "$work/err" | sed -n 's|.*step predicted.*measured/predicted \(.*\)|\1|p' | head -n 1
}

# A row of each plan and round.
one_round() { # setting model
	local plan ratio
	local -A measured=()
	alone "$work/profile" gf-profile -q "${threads[@]}" --model "$2" --budget "${BUDGET:-10s}" || { cat "$work/err"; return 1; }
	for plan in $plans; do
		# shellcheck disable=SC2046
		gf-plan -q $(options "$plan") "$work/profile" > "$work/$plan.json" 2> "$work/err" ||
			{ echo "$1 $2 $plan: $(head -n 1 "$work/err")"; continue; }
		# plans that run alike are one contestant
		ratio=$(jq -cS '{lanes, pipeline, selection, messages, shard}' "$work/$plan.json" | md5sum)
		[ -n "${measured[$ratio]:-}" ] || measured[$ratio]=$(measure "$work/$plan.json")
		[ -n "${measured[$ratio]}" ] || continue
		jq -c --arg setting "$1" --arg model "$2" --arg plan "$plan" --argjson ratio "${measured[$ratio]}" '
			.predicted.iteration_s as $s
			| {setting: $setting, model: $model, plan: $plan, policy, messages: (.messages | length), predicted_s: $s, measured_s: ($s * $ratio), ratio: $ratio}' \
			"$work/$plan.json" >> "$work/rounds"
	done
}

one_model() { # setting model
	local round
	: > "$work/rounds"
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		one_round "$1" "$2" || return 1
	done
	# the median round of each plan
	jq -cs 'group_by(.plan)[] | sort_by(.ratio) | .[(length - 1) / 2 | floor]' "$work/rounds" |
		tee -a "$rows" | jq -r '[.setting, .model, .plan, .policy, .messages, (.predicted_s * 1e5 | round / 100), (.measured_s * 1e5 | round / 100), (.ratio * 1e3 | round / 1e3)] | @tsv' | column -t
}

# errors, pairs that are predicted more than 5 % apart, and does auto win? It may
# take what dear does if it may split messages in halves.
summary() {
	jq -sr '
		def quantile(q): sort as $s | ((length - 1) * q) as $p | $s[$p | floor] * (1 - $p + ($p | floor)) + $s[$p | ceil] * ($p - ($p | floor));
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
		cat "$work/err"
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
