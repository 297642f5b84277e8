#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Predicted beside measured steps of training, with a profile that is made apart
# from the run and nothing fitted on it: does the plan win in truth?
# Each round makes a profile, plans by it and trains by all plans: the memory of a
# machine that others share may be half as fast a minute later. A plan runs TURNS times, in turns
# with a control, one message of fixed size, which runs beside the profile, too. Compute has its
# own: gf-train passes batches without exchange at the start and the end of a run, and says how much
# slower the slowest rank is than in the profile. The column "corrected" has both taken out of
# the measured step. The median turn counts. How much compute changes across a run is what no
# prediction can know.
#   tests/bench/model.sh [SETTING...]
# A setting is shm (RANKS ranks, 2, of this machine) or HOSTSxRATE, such as
# 2x1gbit: emulated hosts with one rank each (share/lab, root).
# In the environment: MODELS, names or files (digits-cnn cifar100-cnn resnet20; "unseen": those of
# tests/bench/models, and gpt-text); PLANS, of those
# below (all); ROUNDS (3), of which the median ratio counts; TURNS (3) of a round; STEPS (20) of a
# turn, and as many as are predicted to take half a second;
# THREADS, which is given to the commands, else their default; BUDGET (10s) of a
# profile; ROWS, a file to which rows go as JSON Lines, and ROUNDS_TO, one for those of each round.
set -u
exec 3>&2
cd "$(dirname "$0")/../.." || exit 1
export PATH="$PWD/${BUILD:-build}/bin:$PATH"
. tests/launcher.sh plain
work=$(mktemp -d) || exit 1
lab=
trap '[ -z "$lab" ] || share/lab/gf-lab down "$lab"; rm -rf "$work"' EXIT
rows=${ROWS:-$work/rows}
rounds=${ROUNDS_TO:-$work/all-rounds}
: > "$rows"
: > "$rounds"
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
models=${MODELS:-digits-cnn cifar100-cnn resnet20}
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

# The turn of a plan, without its end: measured by predicted seconds of a step; the same, predicted
# for a machine as fast as the slowest rank's passes without exchange; and how much slower these were
# than in the profile, at the start and at the end. A run of milliseconds would end before the
# system has given each rank a processor.
measure() { # plan model
	local steps
	steps=$(jq --argjson least "${STEPS:-20}" '[$least, 0.5 / .predicted.iteration_s] | max | ceil' "$1")
	alone "$work/out" gf-train "${threads[@]}" --data synthetic --model "$2" --plan "$1" --epochs 1000000 --steps "$steps" ||
		{ grep -h "^gf-" "$work/err" >&2; return 1; }
	cat "$work/out" "$work/err" | awk '
		# "12.3 % slower", "3.8 x faster"
		function factor(text, word) {
			split(text, word, " ")
			if (word[2] == "x")
				return word[3] == "faster" ? 1 / word[1] : word[1]
			return 1 + (word[3] == "faster" ? -word[1] : word[1]) / 100
		}
		/^step predicted/ {ratio = $NF}
		/^without exchange, / {
			match($0, /at the start [^,]*/)
			start = factor(substr($0, RSTART + 13, RLENGTH - 13))
			match($0, /at the end [^)]*/)
			end = factor(substr($0, RSTART + 11, RLENGTH - 11))
			alone = $NF + 0 ? $NF : "null"
		}
		END {
			if (!ratio)
				exit 1
			if (!start)
				alone = start = end = "null"
			printf "\"ratio\": %s, \"alone\": %s, \"start\": %s, \"end\": %s", ratio, alone, start, end
		}'
}

# One message, in seconds.
message() {
	run gf-allreduce -q -a ring -b 1M -e 1M -n 20 --table=json > "$work/message" && jq -s '.[-1].time_s' "$work/message"
}

# A row of each plan and round.
one_round() { # setting model
	local plan as turn now profiled turns
	local -A seen=()
	profiled="$(message), $(message)"
	alone "$work/profile" gf-profile -q "${threads[@]}" --model "$2" --budget "${BUDGET:-10s}" || { cat "$work/err"; return 1; }
	now=$(message)
	profiled="[$profiled, $(message), $now]"
	for plan in $plans; do
		# shellcheck disable=SC2046
		gf-plan -q $(options "$plan") "$work/profile" > "$work/$plan.json" 2> "$work/err" ||
			{ echo "$1 $2 $plan: $(head -n 1 "$work/err")"; continue; }
		# plans that run alike are one contestant
		as=$(jq -cS '{lanes, pipeline, selection, messages, shard}' "$work/$plan.json" | md5sum)
		[ -z "${seen[$as]:-}" ] || continue
		seen[$as]=1
		turns=
		for ((turn = 0; turn < ${TURNS:-3}; turn++)); do
			turns+="{$(measure "$work/$plan.json" "$2"), \"before\": $now, " || continue 2
			now=$(message)
			turns+="\"after\": $now}, "
		done
		jq -c --arg setting "$1" --arg model "$(basename "$2" .json)" --arg plan "$plan" \
			--argjson profiled "$profiled" --argjson turns "[${turns%, }]" '
			def middle(key): map(key) | sort | .[(length - 1) / 2 | floor];
			.predicted as $p
			| ($p.exposed_comm_s / $p.iteration_s) as $exposed
			| ($turns | map(. + {message: ((.before + .after) / 2 / ($profiled | add / length)),
				compute: (if .start then (.start + .end) / 2 else null end),
				moved: (if .start then .end / .start else null end)}
				| .corrected = (.alone // .ratio) / (1 + $exposed * (.message - 1)))) as $turns
			| {$setting, $model, $plan, policy, messages: (.messages | length), predicted_s: $p.iteration_s,
			   measured_s: ($p.iteration_s * ($turns | middle(.ratio))), ratio: ($turns | middle(.ratio)), corrected: ($turns | middle(.corrected)),
			   compute_drift: ($turns | middle(.compute)), message_drift: ($turns | middle(.message)), moved: ($turns | map(.moved)),
			   low_s: $p.iteration_low_s, high_s: $p.iteration_high_s}' \
			"$work/$plan.json" >> "$work/rounds"
	done
}

one_model() { # setting model
	local round
	: > "$work/rounds"
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		one_round "$1" "$2" || return 1
	done
	cat "$work/rounds" >> "$rounds"
	# the median round of each plan
	jq -cs 'group_by(.plan)[] | (sort_by(.ratio) | .[(length - 1) / 2 | floor])
		+ {corrected: (map(.corrected) | sort | .[(length - 1) / 2 | floor])}' "$work/rounds" |
		tee -a "$rows" | jq -r 'def digits(n): . * n | round / n;
			[.setting, .model, .plan, .policy, .messages, (.predicted_s * 1e3 | digits(100)), (.measured_s * 1e3 | digits(100)),
			(.ratio, .corrected, .compute_drift // 0, .message_drift | digits(1e3))] | @tsv' | column -t
}

# errors, pairs that are predicted more than 5 % apart, intervals, and does auto win? It may
# take what dear does if it may split messages in halves.
summary() {
	jq -sr --slurpfile rounds "$rounds" '
		def quantile(q): sort as $s | ((length - 1) * q) as $p | $s[$p | floor] * (1 - $p + ($p | floor)) + $s[$p | ceil] * ($p - ($p | floor));
		def percent: . * 1000 | round / 10;
		def error(key): map(key - 1 | if . < 0 then -. else . end) | "median \(quantile(0.5) | percent) %, p90 \(quantile(0.9) | percent) %";
		([group_by([.setting, .model])[] | . as $g | $g[] as $a | $g[] | select($a.predicted_s * 1.05 < .predicted_s)
			| {raw: ($a.measured_s < .measured_s), corrected: ($a.predicted_s * $a.corrected < .predicted_s * .corrected),
			   apart: ($a.measured_s > .measured_s * 1.05)}]) as $pairs
		| ($rounds | map(select(.low_s))) as $ranged
		| "error: \(error(.ratio)); corrected: \(error(.corrected))",
		  "of a round: \($rounds | error(.ratio)); corrected: \($rounds | error(.corrected))",
		  "passes that exchange nothing, after a run beside before it: they differ by \([$rounds[].moved[] | numbers] | error(.))",
		  "order: \($pairs | map(select(.raw)) | length) of \($pairs | length) pairs that are predicted more than 5 % apart, corrected: \($pairs | map(select(.corrected)) | length); measured more than 5 % apart the other way: \($pairs | map(select(.apart)) | length)",
		  ($ranged | select(length > 0) | "interval: \(map(select(.measured_s >= .low_s and .measured_s <= .high_s)) | length / ($ranged | length) | percent) % of \(length) runs lie inside; its width is +-\(map((.high_s - .low_s) / 2 / .predicted_s) | quantile(0.5) | percent) % in the median"),
		  (group_by([.setting, .model])[]
		   | (["auto", "wfbp", "threshold", "single"], ["halves", "wfbp", "threshold", "single", "dear"]) as $names
		   | (map(select(.plan == $names[0])) | first) as $auto | select($auto)
		   | (map(select(.plan | IN($names[1:][]))) | min_by(.measured_s)) as $best | select($best)
		   | "\($auto.setting) \($auto.model): \($names[0]) takes \($auto.measured_s / $best.measured_s * 1000 | round / 1000) of \($best.plan)")' "$rows"
}

echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) processors"
echo "setting model plan policy messages predicted-ms measured-ms ratio corrected compute-drift message-drift"
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
	for model in ${models//unseen/tests/bench/models/*.json gpt-text}; do
		one_model "$setting" "$model" || bad=1
	done
	[ -z "$lab" ] || share/lab/gf-lab down "$lab"
	lab=
done
[ -s "$rows" ] || { echo "nothing was measured" >&2; exit 1; }
summary
exit "$bad"
