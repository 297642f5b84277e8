#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sets predictions beside measurements on emulated clusters (share/lab, root), in
# tables. tests/bench/run.sh lab-PART makes one of them:
#   lab-replay   plans of four policies of three models replayed, measured beside
#                predicted
#   lab-levels   BlueConnect, two-level and one ring: gains beside Eq. 7's
#   lab-lanes    two all-reduces at once beside a + gamma*b*m (ASC-WFBP, Figs 4, 5)
#   lab-link     point to point beside alpha + beta*m (gTop-k, Fig. 8)
# In the environment: LAB_RATE (1gbit) is the rate of a host's link, and LAB_SHAPER
# (htb) its queue (gf-lab). LAB_MAX is the largest message of the profile, and
# LAB_BUDGET (30s) the profile's time. LAB_ROUNDS says how often contestants take
# turns; the median counts. LAB_MODELS are the models of lab-replay, each as
# NAME:FORWARD:BACKWARD:STEPS. LAB_MODEL (resnet18) is the model of lab-levels, and
# LAB_CLUSTERS (two-level two-rack) are its clusters. A table takes minutes. A busy
# machine does not keep up with a fast link: look at the load average that is
# printed first, or take slower links.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PATH="$PWD/${BUILD:-build}/bin:$PATH"
rate=${LAB_RATE:-1gbit}
shaper=${LAB_SHAPER:-htb}
work=$(mktemp -d) || exit 1
name=
finish() {
	[ -z "$name" ] || share/lab/gf-lab down "$name"
	rm -rf "$work"
}
trap finish EXIT

up() { # NAME OPTION...
	name=$1
	share/lab/gf-lab up "$@" --shaper "$shaper" 2> "$work/up.log" || { cat "$work/up.log"; name=; return 1; }
	grep -v '^Warning: sch_htb' "$work/up.log"
}
down() {
	share/lab/gf-lab down "$name"
	name=
}
run() {
	share/lab/gf-lab run "$name" --timeout "${limit:-300}" "$@" 2> "$work/err.txt"
	local rc=$?
	grep '^gf-lab: ' "$work/err.txt" >&2
	return "$rc"
}
failed() { echo "failed:"; head -n 5 "$work/err.txt"; return 1; }

# bits per second of "100mbit"
bits() {
	case $1 in
	*gbit) echo "${1%gbit} * 1000000000" ;;
	*mbit) echo "${1%mbit} * 1000000" ;;
	*kbit) echo "${1%kbit} * 1000" ;;
	esac | bc | cut -d. -f1
}

# measured iteration of a plan, in seconds, from a replay's trace of steps
replay() { # plan steps
	run gf-train --replay --plan "$1" --steps "$2" > "$work/out.txt" || { failed >&2; return 1; }
	cat "$work/out.txt" "$work/err.txt" | sed -n 's/.*measured\/predicted //p' | tail -n 1
}

# of the numbers on standard input
median() { sort -g | awk '{v[NR] = $1} END {if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }

# the lines that were fitted
lines() { # profile
	jq -r '.network.allreduce[] | "\(.algorithm): " + ([{from_bytes: 0, startup_s, per_byte_s}, .larger[]?] | map("from \(.from_bytes) B \(.startup_s * 1e6 | round) us + \(.per_byte_s * 1e12 | round / 1000) ns/B") | join(", ")) +
		", R^2 \(.fit.r_squared * 1000 | round / 1000), off by up to \(100 * .fit.residual_max | round) %"' "$1"
}

# Four policies of three models. Forward and backward are set so that they take
# about as long as the messages: then the policies differ.
lab_replay() {
	up breplay --hosts 4 --rate "$rate" || return
	run gf-topo > "$work/topo.json" || { failed; return; }
	run gf-profile -a ring,rhd --lanes 2 --budget "${LAB_BUDGET:-30s}" --max-bytes "${LAB_MAX:-16M}" "$work/topo.json" > "$work/net.json" ||
		{ failed; return; }
	lines "$work/net.json"
	printf '%-12s %-9s %12s %11s %8s\n' model policy 'predicted s' 'measured s' ratio
	local spec model forward backward steps policy round
	: > "$work/rows"
	for spec in ${LAB_MODELS:-resnet50:400ms:800ms:3 densenet201:350ms:700ms:3 bert-base:1500ms:3000ms:2}; do
		IFS=: read -r model forward backward steps <<< "$spec"
		gf-profile --estimate --model "$model" --passes forward="$forward",backward="$backward" > "$work/model.json"
		rm -f "$work"/ratio.*
		for policy in wfbp mg-wfbp asc-wfbp optimal; do
			gf-plan -q --policy $policy "$work/topo.json" "$work/net.json" "$work/model.json" > "$work/$policy.json" || return
		done
		for ((round = 0; round < ${LAB_ROUNDS:-2}; round++)); do
			for policy in wfbp mg-wfbp asc-wfbp optimal; do
				replay "$work/$policy.json" "$steps" >> "$work/ratio.$policy"
			done
		done
		for policy in wfbp mg-wfbp asc-wfbp optimal; do
			awk -v m="$model" -v p=$policy -v t="$(jq .predicted.iteration_s "$work/$policy.json")" -v r="$(median < "$work/ratio.$policy")" \
				'BEGIN {printf "%-12s %-9s %12.4f %11.4f %8.3f\n", m, p, t, t * r, r}' | tee -a "$work/rows"
		done
	done
	# pairs of policies whose predictions differ by 2 % or more, in that order
	awk '{e[NR] = $5 > 1 ? $5 - 1 : 1 - $5; m[NR] = $1; p[NR] = $3; t[NR] = $4}
	END {
		for (i = 1; i <= NR; i++) for (k = i + 1; k <= NR; k++) if (e[k] < e[i]) {x = e[i]; e[i] = e[k]; e[k] = x}
		printf "median error %.1f %% (goal: 10 %%)\n", 100 * (NR % 2 ? e[(NR + 1) / 2] : (e[NR / 2] + e[NR / 2 + 1]) / 2)
		for (i = 1; i <= NR; i++) for (k = 1; k <= NR; k++)
			if (m[i] == m[k] && p[i] * 1.02 < p[k]) {pairs++; right += t[i] < t[k]}
		printf "order: %d of %d pairs of policies as predicted\n", right, pairs
	}' "$work/rows"
	down
}

# one message of a whole model, nothing computed: prediction from the topology
# alone (Eq. 7 for blueconnect), in seconds, then measured
lab_one() { # cluster algorithm
	local plan=$work/$2.json ratio predicted measured
	[ -e "$plan" ] || gf-plan -q --policy single --lanes 1 --algorithm "$2" "$work/topo.json" "$work/model.json" > "$plan" || return
	ratio=$(replay "$plan" 5) || return
	predicted=$(jq '.predicted.messages[0] | .end_s - .start_s' "$plan")
	measured=$(jq --argjson r "$ratio" '.predicted | .iteration_s * $r - (.iteration_s - .messages[0].end_s + .messages[0].start_s)' "$plan")
	echo "$1 $2 $predicted $measured $(jq -r '[.messages[0].stages[]? | "\(.factor)\(.algorithm[:1])"] | join("x") | if . == "" then "-" else . end' "$plan")" >> "$work/rows"
}

lab_levels() {
	local bytes_s algorithm cluster round
	bytes_s=$(($(bits "$rate") / 8))
	gf-profile --estimate --model "${LAB_MODEL:-resnet18}" --passes forward=1ms,backward=1ms > "$work/model.json"
	: > "$work/rows"
	for cluster in ${LAB_CLUSTERS:-two-level two-rack}; do
		if [ "$cluster" = two-level ]; then
			up blevels --hosts 4 --ranks 2 --rate "$rate" || return
			gf-topo --synthetic "host:2@8GB/s,5us,shm net:4@${bytes_s}B/s,100us,ethernet" > "$work/topo.json"
		else
			up blevels --hosts 4 --ranks 2 --racks 2 --rate "$rate" --trunk "$rate" || return
			gf-topo --synthetic "host:2@8GB/s,5us,shm rack:2@${bytes_s}B/s,100us,ethernet trunk:2@${bytes_s}B/s,100us,ethernet" > "$work/topo.json"
		fi
		rm -f "$work"/{ring,hierarchical,blueconnect}.json
		for ((round = 0; round < ${LAB_ROUNDS:-3}; round++)); do
			for algorithm in ring hierarchical blueconnect; do lab_one "$cluster" $algorithm; done
		done
		down
	done
	printf '%-10s %-13s %-12s %11s %11s %14s %14s %8s\n' cluster algorithm stages 'predicted s' 'measured s' 'gain predicted' 'gain measured' ratio
	for cluster in ${LAB_CLUSTERS:-two-level two-rack}; do
		for algorithm in ring hierarchical blueconnect; do
			echo "$(grep -m 1 "^$cluster $algorithm " "$work/rows" | cut -d' ' -f1-3,5) $(grep "^$cluster $algorithm " "$work/rows" | cut -d' ' -f4 | median)"
		done
	done | awk '$2 == "ring" {p = $3; m = $5}
		{printf "%-10s %-13s %-12s %11.4f %11.4f %14.3f %14.3f %8.3f\n", $1, $2, $4, $3, $5, p / $3, m / $5, m / $5 / (p / $3)}'
	echo "goal: gain measured within 15 % of the one predicted (ratio 0.85 to 1.15)"
}

# by the step model: so many equal rings at once, in seconds
together() { # profile bytes messages
	jq --argjson n "$3" --argjson elems "$(($2 / 4))" '.model = {"name": "equal", "forward_s": 0, "backward_s": 0,
		"tensors": [range($n) | {"name": "t\(.)", "count_elems": $elems, "dtype": "f32", "ready_s": 0}]}' "$1" > "$work/equal.json"
	gf-plan -q --policy wfbp --algorithm ring --lanes "$3" "$work/equal.json" |
		jq --argjson n "$3" '.lanes = $n | .messages[].mode = "simultaneous" | .tensors[].type = "simultaneous"' > "$work/equal-plan.json"
	gf-sim -q --table=csv "$work/equal-plan.json" | tail -n 1 | cut -d, -f3
}

# Two all-reduces at once: measured, beside what a profile of the network
# predicts and beside the paper's line with one gamma for all sizes
lab_lanes() {
	up blanes --hosts 4 --rate "$rate" || return
	local k round bytes one two
	run gf-profile -a ring --lanes 2 --budget "${LAB_BUDGET:-30s}" --max-bytes "${LAB_MAX:-16M}" > "$work/net.json" || { failed; return; }
	lines "$work/net.json"
	jq -r '.network.allreduce[0].contention[] | "gamma_2 at \(.size_bytes) B: \(.gamma[1] * 1000 | round / 1000)"' "$work/net.json"
	for ((round = 0; round < ${LAB_ROUNDS:-3}; round++)); do
		for k in 1 2; do
			run gf-allreduce -a ring --table=json -b 64K -e 4M -f 2 -n 7 -w 2 -c 0 --lanes $k >> "$work/lanes$k.jsonl" || { failed; return; }
		done
	done
	down
	jq -rs --slurpfile two "$work/lanes2.jsonl" '
		def medians: map(select(.placement == "in_place")) | group_by(.size_bytes) | map([.[0].size_bytes, (map(.time_s) | sort | .[length / 2 | floor])]);
		[medians, ($two | medians)] | transpose[] | "\(.[0][0]) \(.[0][1]) \(.[1][1])"' "$work/lanes1.jsonl" |
		while read -r bytes one two; do
			echo "$bytes $one $two $(together "$work/net.json" "$bytes" 1) $(together "$work/net.json" "$bytes" 2)"
		done |
		awk '{m[NR] = $1; one[NR] = $2; two[NR] = $3; p1[NR] = $4; p2[NR] = $5; w = 1 / ($2 * $2)
			sw += w; sx += w * $1; sy += w * $2; sxx += w * $1 * $1; sxy += w * $1 * $2}
		END {
			b = (sw * sxy - sx * sy) / (sw * sxx - sx * sx); a = (sy - b * sx) / sw
			for (i = 1; i <= NR; i++) {w = 1 / (two[i] * two[i]); gw += w * (b * m[i]) ^ 2; gs += w * b * m[i] * (two[i] - a)}
			gamma = gs / gw
			printf "one line and one gamma: a = %.1f us, b = %.3f ns/B, gamma = %.3f\n", 1e6 * a, 1e9 * b, gamma
			printf "%10s %8s %10s %7s %8s %10s %7s %12s %7s\n", "bytes", "one, ms", "predicted", "error %", "two, ms", "predicted", "error %", "a+gamma b m", "error %"
			for (i = 1; i <= NR; i++) {
				f = a + gamma * b * m[i]
				printf "%10d %8.3f %10.3f %7.1f %8.3f %10.3f %7.1f %12.3f %7.1f\n", m[i], 1e3 * one[i], 1e3 * p1[i], 100 * (p1[i] / one[i] - 1), 1e3 * two[i], 1e3 * p2[i], 100 * (p2[i] / two[i] - 1), 1e3 * f, 100 * (f / two[i] - 1)
			}
		}'
}

lab_link() {
	up blink --hosts 2 --rate "$rate" || return
	run gf-profile -a ring --lanes 1 --budget 20s --max-bytes "${LAB_MAX:-16M}" > "$work/net.json" || { failed; return; }
	jq -r '.network.levels[0] | ([{from_bytes: 0, alpha_s, beta_s_per_byte}, .larger[]?] | map("from \(.from_bytes) B alpha = \(.alpha_s * 1e7 | round / 10) us, beta = \(.beta_s_per_byte * 1e12 | round / 1000) ns/B") | join("; ")) + "; R^2 \(.fit.r_squared * 1e4 | round / 1e4)"' "$work/net.json"
	printf '%10s %12s %12s %9s\n' bytes 'measured ms' 'a + b m, ms' 'error %'
	# by the line that holds for so many bytes
	jq -r '.network.levels[0] | . as $l | [.fit.size_bytes, .fit.time_s] | transpose[] | .[0] as $m
		| ([$l, $l.larger[]?] | map(select((.from_bytes // 0) <= $m)) | last) as $at
		| "\($m) \(.[1]) \($at.alpha_s + $at.beta_s_per_byte * $m)"' "$work/net.json" |
		awk '{printf "%10d %12.4f %12.4f %9.1f\n", $1, 1e3 * $2, 1e3 * $3, 100 * ($3 / $2 - 1)}'
	down
}

if [ "$(id -u)" -ne 0 ]; then
	echo "skipped: the lab needs root"
	exit 0
fi
echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores, links of $rate"
case ${1:-} in
replay | levels | lanes | link) "lab_$1" ;;
*) echo "lab: want replay, levels, lanes or link, got ${1:-nothing}" >&2; exit 2 ;;
esac
