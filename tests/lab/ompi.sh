#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Does Open MPI between hosts do as it is told? Bytes that a host sends for an all-reduce tell
# its algorithm whatever the load: on two hosts of two ranks basic_linear sends 2 M, a ring
# 1.5 M, and coll_tuned's and han's own choice 1 M. The variants of gf-allreduce, and the
# rules of gf-plan in a program that knows nothing of them (-a library:default).
#   tests/lab/ompi.sh          commands and mpirun in PATH; root
set -u
cd "$(dirname "$0")/../.." || exit 1
export GF_SHARE=${GF_SHARE:-$PWD/share}
lab() { share/lab/gf-lab "$@"; }
name=ompi$((RANDOM % 1000)) failed=0
work=$(mktemp -d) || exit 1
[ "$(id -u)" -eq 0 ] || { echo 'skipped: needs root'; exit 77; }
ip netns add gf-try 2> /dev/null || { echo 'skipped: network namespaces are not permitted here'; exit 77; }
ip netns del gf-try
lab up $name --hosts 2 --ranks 2 --shaper none 2> /dev/null || exit 1
trap 'lab down $name; rm -rf "$work"' EXIT

sent() { ip netns exec gflab-$name-h0 cat /sys/class/net/eth0/statistics/tx_bytes; }

# sends HALVES SIZE VARIANT [VARIABLE=VALUE...]: an all-reduce of SIZE bytes, in halves of it;
# what the job sends besides is in a second job of fewer
sends() {
	local want=$1 size=$2 variant=$3 bytes=() n before
	shift 3
	for n in 1 5; do
		before=$(sent)
		env "$@" share/lab/gf-lab run $name --timeout 60 gf-allreduce -q -a "library:$variant" -b "$size" -e "$size" \
			-n $n -w 0 -c 0 > "$work/out" 2> "$work/err" || { cat "$work/err"; failed=1; return; }
		bytes+=($(($(sent) - before)))
	done
	# four repeats more, out of place and in place
	awk -v want="$want" -v d=$((bytes[1] - bytes[0])) -v size="$size" -v what="library:$variant of $size B $*" 'BEGIN {
		got = d / 8 / size
		bad = got < want / 2 - 0.15 || got > want / 2 + 0.3
		printf "%-4s %s sends %.2f, want %.1f\n", bad ? "FAIL" : "ok", what, got, want / 2
		exit bad }' || failed=1
}

sends 2 4194304 default
sends 4 4194304 basic_linear
sends 3 4194304 ring
# a profile of this library whose default is slow from 64 KiB on
version=$(sed -n 's/^# library //p' "$work/out")
for variant in default basic_linear; do
	for size in 16384 32768 131072 262144; do
		jq -nc --arg v $variant --arg l "$version" --argjson s $size '{ranks: 4, ranks_per_host: 2, size_bytes: $s, library: $l,
			chosen: "library", variant: $v, dtype: "f32", codec: "f32", density: 1, lanes: 1, placement: "in_place",
			busbw_bytes_per_s: 1, time_s: ($s * 1e-9 * (if ($v == "default") == ($s < 65536) then 1 else 2 end))}'
	done
done > "$work/rows.jsonl"
gf-profile -q --import "$work/rows.jsonl" > "$work/told.json" && gf-plan -q --emit ompi "$work/told.json" > "$work/rules" || exit 1
rules=(OMPI_MCA_coll_tuned_use_dynamic_rules=1 "OMPI_MCA_coll_tuned_dynamic_rules_filename=$work/rules")
if grep -q 'dynamic_rules_filename HAN' "$work/rules"; then
	gf-plan -q --emit ompi-han "$work/told.json" > "$work/han" || exit 1
	rules+=(OMPI_MCA_coll_han_use_dynamic_file_rules=1 "OMPI_MCA_coll_han_dynamic_rules_filename=$work/han")
fi
sends 2 32768 default "${rules[@]}"
sends 4 262144 default "${rules[@]}"
exit $failed
