#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# One rank, without mpirun: options, output, refusals. tests/mpi has the rest.
load common

@test "one rank without mpirun: nccl-tests' table" {
	wants 0 gf-allreduce -b 1K -e 4K -n 2 -w 0
	[ "$(grep -vc '^#' out.txt)" -eq 3 ]
	awk '!/^#/ {if (NF != 13 || $3 != "f32" || $4 != "sum" || $9 != 0 || $13 != 0) exit 1}' out.txt
	prints '# Out of bounds values : 0 OK'
	# plain numbers, in microseconds
	[ "$(grep -v '^#' out.txt | grep -c '[0-9]e[+-]')" -eq 0 ]
	# a fit needs sizes by one algorithm, where auto may take one for each
	wants 0 gf-allreduce -a ring -b 1K -e 4K -n 2 -w 0 --table=json
	cp out.txt rows.jsonl
	wants 0 gf-profile --import rows.jsonl --ranks 2
}

@test "sizes by factor and by step, as nccl-tests counts them" {
	wants 0 gf-allreduce -b 1000 -e 9000 -f 3 -n 1 -w 0 -c 0
	[ "$(awk '!/^#/ {printf "%s ", $1}' out.txt)" = "1000 3000 9000 " ]
	wants 0 gf-allreduce -b 1K -e 4K -i 1K -n 1 -w 0 -c 0
	[ "$(awk '!/^#/ {printf "%s ", $1}' out.txt)" = "1024 2048 3072 4096 " ]
	# whole elements, each count once
	wants 0 gf-allreduce -b 9 -e 17 -i 1 -d f64 -n 1 -w 0
	[ "$(awk '!/^#/ {printf "%s ", $1}' out.txt)" = "8 16 " ]
	[ "$(awk '!/^#/ {printf "%s ", $9}' out.txt)" = "0 0 " ]
	wants 0 gf-allreduce -b 1K -e 1K -n 1 -w 0 -c 0
	[ "$(awk '!/^#/ {printf "%s", $9}' out.txt)" = "N/A" ]
}

@test "JSON Lines and CSV hold the same rows" {
	wants 0 gf-allreduce -b 1K -e 2K -n 3 -w 0 --table=json
	[ "$(wc -l < out.txt)" -eq 4 ]
	jq -se 'map(.placement) == ["out_of_place", "in_place", "out_of_place", "in_place"]' out.txt
	jq -e '.ranks == 1 and .dtype == "f32" and .algorithm == "auto" and .wrong == 0 and .checks == 1
		and .min_s <= .p50_s and .p50_s <= .p90_s and .p90_s <= .p99_s and .p99_s <= .max_s
		and .time_s == .p50_s and .busbw_bytes_per_s == 0' out.txt
	jq -rs '.[0] | keys_unsorted | join(",")' out.txt > names
	wants 0 gf-allreduce -b 1K -e 2K -n 3 -w 0 --table=csv
	[ "$(head -n 1 out.txt)" = "$(cat names)" ]
	[ "$(wc -l < out.txt)" -eq 5 ]
	awk -F, -v n="$(head -n 1 out.txt | tr -dc , | wc -c)" 'NF != n + 1 {exit 1}' out.txt
}

@test "--error: of sums and averages of real numbers" {
	wants 0 gf-allreduce -b 1K -e 2K -n 1 -w 0 --error -a ring,tree
	[ "$(awk '!/^#/ {print NF, $6, $7}' out.txt | sort -u)" = "15 0.00e+00 0.00e+00" ]
	wants 0 gf-allreduce -b 1K -e 1K -n 1 -w 0 --error --table=csv -d bf16 --op avg
	[ "$(head -n 1 out.txt | tr , '\n' | tail -n 2 | xargs)" = "error_rms error_max" ]
	[ "$(sed -n 2p out.txt | tr , '\n' | tail -n 2 | xargs)" = "0.0 0.0" ]
	wants 2 gf-allreduce -b 1K -e 1K --error -d i32
	says "--error: want sum or avg of f32, f64, f16 or bf16, got sum of i32"
	wants 2 gf-allreduce -b 1K -e 1K --error --op max
	says "got max of f32"
}

@test "one rank alone chooses among ways that send nothing" {
	wants 0 gf-allreduce -b 512K -e 2M -f 2 -n 1 -w 0
	[ "$(awk '!/^#/ {printf "%s %s %s\n", $1, $9, $13}' out.txt)" = "524288 0 0
1048576 0 0
2097152 0 0" ]
}

@test "a spoilt result is counted, and the answer is no" {
	wants 1 gf-allreduce -b 4K -e 4K -n 1 -w 0 --spoil 7 -c 3
	# both placements, three checks
	[ "$(awk '!/^#/ {print $9, $13}' out.txt)" = "21 21" ]
	prints '# Out of bounds values : 42 FAILED'
	says '42 elements came out wrong'
	one_line
	local type
	for type in f64 f16 bf16 i32; do
		wants 1 gf-allreduce -b 4K -e 4K -n 1 -w 0 --spoil 5 -d $type
		[ "$(awk '!/^#/ {print $9, $13}' out.txt)" = "5 5" ]
	done
	wants 1 gf-allreduce -b 4K -e 4K -n 1 -w 0 --spoil 5 --codec q8
	[ "$(awk '!/^#/ {print $10, $14}' out.txt)" = "5 5" ]
}

@test "--min-bw decides the exit status" {
	wants 1 gf-allreduce -b 1K -e 1K -n 1 -w 0 --min-bw 1GB/s
	says 'want an average bus bandwidth of 1.00 GB/s, got 0 B/s'
	one_line
	[ -s out.txt ]
}

@test "one file by two names is one file" {
	: > real.json
	ln real.json hard.json
	ln -s real.json soft.json
	mkdir here
	local other
	for other in hard.json soft.json here/../real.json; do
		wants 2 gf-allreduce -b 1K -e 1K --best real.json -o $other
		says 'want two files, got one'
	done
	wants 0 gf-allreduce -b 1K -e 1K -n 1 --best /dev/null -o /dev/null
}

@test "--list names algorithms, codecs and transports" {
	wants 0 gf-allreduce --list
	grep -qE '^algorithm +ring ' out.txt
	grep -qE '^sparse +gtopk ' out.txt
	grep -qE '^codec +q8 ' out.txt
	grep -qE '^codec +fp4 ' out.txt
	grep -qE '^transport +shm ' out.txt
	fails grep -qE '^transport +local ' out.txt
}

@test "what cannot be is said in one line" {
	local args
	while IFS='|' read -r args reason; do
		# shellcheck disable=SC2086
		wants 2 gf-allreduce $args
		[ ! -s out.txt ]
		grep -qF -- "$reason" err.txt || { echo "$args: want $reason"; cat err.txt; return 1; }
		[ "$(grep -c '^gf-allreduce: ' err.txt)" -eq 1 ]
	done << 'CASES'
-b 0|--min-bytes: want at least 4 bytes, one element, got 0
-b 4 -d f64|--min-bytes: want at least 8 bytes, one element, got 4
-b 4K -e 1K|--max-bytes: want at least the 4096 of --min-bytes, got 1024
-b 1K -e 8E|--max-bytes
-e 9223372036854775807|--max-bytes: want a size
-e 5000000000G|--max-bytes: want at most 2^62
-b 99999999999999999999|--min-bytes
-b 1K -e 1G -i 4|--step-bytes: want at most 10000 sizes
-f 1|--step-factor
-i 0|--step-bytes: want at least 1 bytes, got 0
--segment 0|--segment: want at least 1 bytes, got 0
-a ring,nonsense|gather or gtopk, got "nonsense"
-a ring,|gather or gtopk, got ""
-f 2 -i 1K|--step-factor and --step-bytes: want one of them, got both
-a ring,tree,ring|--algorithms: want each once, got "ring" twice
-a auto,auto|--algorithms: want each once, got "auto" twice
-a all,ring|--algorithms: want all or names, got all, which has "ring" in it
--factors 0x2|--factors
--factors 2,|--factors
--factors 2:ring,2|--factors: want a stage for all of them or for none
--factors 4x|--factors
--factors 2x2|--factors: want blueconnect, hierarchical or all in --algorithms
-a ring,auto --factors 2x2|--factors: want blueconnect, hierarchical or all in --algorithms
-a hierarchical --factors 2:ring,2:ring|--factors: want blueconnect or all in --algorithms
--factors 3:halving,2:ring|halving wants a power of two, got factor 3
--factors 2:ring,2:square|want ring, halving, shm, mpi or nccl, got "square"
--stages ring|unrecognized option '--stages'
-d f8|want f32, f64, f16, bf16 or i32
--op mul|want sum, prod, max, min or avg
--codec zip|--codecs: want f32, f16, bf16, trunc16, q8, fp8 or fp4, got "zip"
--codec q8 -d f16|--codecs: want f32, which a codec encodes, got f16
--codec q8 --op max|--codecs: codec q8: want sum or avg, got max
--min-bw fast|--min-bw
-a gather|--algorithms: gather wants a --density
-a gtopk --density 0.1 --lanes 2|--lanes: want 1 with --density, got 2
--density 0.1|--density: want gather, gtopk or all in --algorithms
-a ring,auto --density 0.1|--density: want gather, gtopk or all in --algorithms
-a all --density 0.1 --lanes 2|--lanes: want 1 with --density, got 2
--list -b 1K|--list goes without --min-bytes
--list --plan p|--list goes without --plan
-a library --segment 1K|--segment: want an algorithm whose transfers are cut in --algorithms
-a gather --density 0.1 --segment 1K|--segment: want an algorithm whose transfers are cut in --algorithms
-a gather --density 0.1 --best rule.json|--best: want an algorithm that sends all values, got none
-d f64 --best rule.json|--best: want sum or avg of f32, as gradients are, got sum of f64
--op max --best rule.json|--best: want sum or avg of f32, as gradients are, got max of f32
--best same.json -o same.json|--best and --output: want two files, got one
--best ./same.json -o same.json|--best and --output: want two files, got one
--best same.json --trace same.json|--best and --trace: want two files, got one
--trace same.json -o ./same.json|--trace and --output: want two files, got one
--density 2|--density
--density 0|--density
--spoil 1 -c 0|--spoil goes with --check
-n 0|--repeats
-n across=median|--repeats: across: want max, mean, min or rank0
CASES
	for algorithm in blueconnect hierarchical all; do
		wants 2 gf-allreduce -b 1K -e 1K --factors 2x2 -a $algorithm
		says '--factors: want a product of 1 (the ranks), got 4'
		one_line
	done
}

@test "more memory than there is, is not taken" {
	wants 3 gf-allreduce -b 1K -e 2097152G
	says 'bytes of memory'
	one_line
	wants 3 gf-allreduce -b 1K -e 2147483648G --lanes 64
	says 'no memory'
	one_line
}

@test "files: plans that are none, outputs that cannot be" {
	echo '{"format": "gf-plan", "version": 1, "rule": 7}' > bad.json
	wants 2 gf-allreduce --plan bad.json
	says 'bad.json'
	one_line
	wants 3 gf-allreduce --plan missing.json
	says 'missing.json'
	one_line
	wants 2 gf-allreduce --plan "$share/topologies/4x2-1gbe.json"
	says 'want a gf-plan document, found a gf-topology'
	wants 3 gf-allreduce -b 1K -e 1K -n 1 -o no/such/folder
	says 'no/such/folder'
	one_line
	wants 3 gf-allreduce -b 1K -e 1K -n 1 --trace no/such/folder
	says 'no/such/folder'
	one_line
	wants 3 gf-allreduce -b 1K -e 1K -n 1 --trace /dev/full
	says '/dev/full'
	one_line
	wants 3 gf-allreduce -b 1K -e 1K -n 1 --best no/such/folder
	says 'no/such/folder'
	one_line
	wants 3 gf-allreduce -b 1K -e 1K -n 1 -o /dev/full
	says '/dev/full'
	one_line
	wants 3 gf-allreduce -b 1K -e 1K -n 1 --best /dev/full
	says '/dev/full'
	local status=0
	gf-allreduce -b 1K -e 1K -n 1 > /dev/full 2> err.txt || status=$?
	[ $status -eq 3 ]
	one_line
}

@test "a whole plan sets its messages itself" {
	gf-plan --model digits-mlp --ranks 2 "$share/topologies/4x2-1gbe.json" > plan.json 2> /dev/null ||
		gf-plan "$share/profiles/six.json" > plan.json
	wants 2 gf-allreduce --plan plan.json
	says 'ranks, this job has 1'
	for option in "-a ring" "-b 1K" "-e 1M" "-f 4" "-i 4M" "--lanes 2" "--codec q8" "--best rule.json"; do
		# shellcheck disable=SC2086
		wants 2 gf-allreduce --plan plan.json $option
		says 'got a whole plan, which sets them'
		one_line
	done
	jq '.ranks = 1 | del(.levels)' plan.json > one.json
	for option in "--op max" "--op prod" "-d f64" "-d i32"; do
		# shellcheck disable=SC2086
		wants 2 gf-allreduce --plan one.json $option
		says "a plan's messages: want sum or avg of f32"
		one_line
	done
	jq -n '{format: "gf-plan", version: 1, rule: {threshold_bytes: 1, algorithms: [{min_bytes: 0, algorithm: "ring"}]}}' > rule.json
	wants 2 gf-allreduce --plan rule.json -a ring,tree
	says 'want auto among them with a rule'
	one_line
}

@test "--device: names, and GPUs that are not there" {
	wants 2 gf-allreduce --device tpu
	says '--device: want cpu, cuda, cuda:N or auto, got "tpu"'
	wants 2 gf-allreduce --device cuda:x
	says '--device: want an integer'
	wants 0 gf-allreduce --list
	grep -E '^device +cpu ' out.txt
	grep -E '^(device +cuda:0|device +no cuda) ' out.txt
	grep -E '^between +(nccl|no nccl) ' out.txt
	grep -q '^device *cuda:0' out.txt && skip 'there is a GPU'
	wants 3 gf-allreduce --device cuda -b 1K -e 1K
	one_line
	wants 0 gf-allreduce --device auto -b 1K -e 1K -n 1 --table=json
	jq -e '.device == "cpu" and .transport != "nccl"' out.txt
}
