# SPDX-License-Identifier: BSD-3-Clause
# share/examples: the sweeps that a user would script.

load common

@test "systems.sh: a row for each system on each number of ranks, at each rate" {
	OUT=out SYSTEMS="ddp gtopk pipe-sgd" RANKS=8,64 RATES=1Gb/s,10Gb/s \
		wants 0 "$share/examples/systems.sh" resnet20 4x2-1gbe v100
	[ "$(grep -cE '^(ddp|gtopk|pipe-sgd) ' out.txt)" -eq 12 ]
	grep -qE '^gtopk +gtopk +single +f32 +gtopk +1 +1 +64 +10 Gb/s ' out.txt
	prints "the picture"
	grep -q 'efficiency' out/systems.svg
	# the rates of the table are those of gf-sim
	wants 0 gf-sim out/ddp.json --ranks 8,64
	jq -c 'select(.plan == "ddp") | .iteration_s' out/systems.jsonl > together.txt
	diff together.txt <(jq -c .iteration_s out.txt)
}

@test "systems.sh: what does not fit is left out, and the status says so" {
	OUT=out SYSTEMS="ddp nothing blueconnect" RANKS=8,9 RATES=10Gb/s \
		wants 1 "$share/examples/systems.sh" resnet20 4x2-1gbe v100
	says 'nothing is left out'
	[ "$(grep -cE '^ddp ' out.txt)" -eq 2 ]
	[ "$(grep -cE '^blueconnect ' out.txt)" -eq 2 ]
	prints "want a multiple of the plan's inner factors"
}

@test "buckets.sh: every cap as gf-plan predicts it, and the best one" {
	local job=(--model resnet50 --gpu v100 asc-wfbp-8x4-10gbe)
	OUT=out CAPS="4 25 100" wants 0 "$share/examples/buckets.sh" "${job[@]}"
	cp out.txt table.txt
	for cap in 4 25 100; do
		wants 0 gf-plan -q --system ddp --threshold ${cap}M "${job[@]}"
		jq -r '"\(.predicted.iteration_s) \(.messages | length)"' out.txt > want.txt
		read -r time buckets < want.txt
		[ "$(awk -F, -v cap=$((cap * 1048576)) '$1 == cap { print $2 }' out/buckets.csv)" = "$time" ]
		grep -qE "^ +$cap +[0-9.]+ ms +$buckets$" table.txt
	done
	best=$(tail -n +2 out/buckets.csv | sort -t, -g -k2 | head -n 1 | cut -d, -f1)
	grep -qF "best cap" table.txt
	grep -qF "($((best / 1048576)) MiB)" table.txt
	grep -q 'bucket cap' out/buckets.svg
}

@test "shards.sh: the fastest stage that fits, for each number of ranks, or the least there is" {
	local job=(--model gpt2-small --gpu v100 --batch 4 4x2-1gbe)
	RANKS="2 8" wants 0 "$share/examples/shards.sh" 4050M "${job[@]}"
	cp out.txt table.txt
	grep -qE '^ +2 +does not fit into 4050M: at least [0-9.]+ GiB' table.txt
	wants 0 gf-plan -q --ranks 8 --memory 4050M "${job[@]}"
	grep -qE "^ +8 +$(jq -r '.shard.method' out.txt) " table.txt
	wants 2 "$share/examples/shards.sh" 4050M --model resnet 4x2-1gbe
	says 'resnet'
}
