#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The command over a real mpirun: every algorithm, type, codec; plans; ranks
# that differ; ranks that die, stop or come late.
load ../cli/common
load job

quick="-n 2 -w 0"

# right: no element was wrong, and something was measured
right() {
	prints '# Out of bounds values : 0 OK'
	grep -qv '^#' out.txt
}

@test "every algorithm sums right, on 3 and 6 ranks" {
	local ranks
	for ranks in 3 6; do
		wants 0 mpi $ranks gf-allreduce $quick -a all,auto -b 4 -e 64K -f 16 -c 3
		right
		diff <(awk '!/^#/ && $5 !~ /^auto:|:blocking$/ {print $5}' out.txt | sort | uniq -c | awk '{print $1, $2}') \
			<(names_of algorithms | sort | sed 's/^/4 /')
		[ "$(awk '!/^#/ {print $5}' out.txt | grep -c '^auto:')" -eq 4 ]
		[ "$(awk '!/^#/ {print $5}' out.txt | grep -c '^library:blocking$')" -eq 4 ]
	done
	prints '# MPI_Iallreduce is library; MPI_Allreduce, which most programs call, is library:blocking and the variants'
	grep -qE '^# blocking : MPI_Allreduce takes [0-9.]+ to [0-9.]+ of the time of MPI_Iallreduce, and less than the best at [0-4] of 4 sizes$' out.txt
}

@test "the library's blocking all-reduce: any MPI's, and refused where it cannot go" {
	wants 0 mpi 2 gf-allreduce $quick -a library:blocking,library -b 8 -e 32K -f 16 --op avg -d f64 --table=json
	jq -se 'length == 16 and all(.wrong == 0 and .chosen == "library") and
		(map(.variant) | unique == ["", "blocking"])' out.txt
	cp out.txt rows.jsonl
	wants 0 gf-profile --import rows.jsonl
	jq -e '.network | [.allreduce[].algorithm] == ["library"] and (has("variants") | not)' out.txt
	says 'rows of the blocking MPI_Allreduce, which no plan runs (4, '
	while IFS='|' read -r options why; do
		wants 1 mpi 2 gf-allreduce -a library:blocking -b 4 -e 4 $options
		says "library:blocking$why"
	done <<- 'END'
		--lanes 2|: want one message at once, without a codec, got several
		--codec f16|: want one message at once, without a codec, got a codec
		--verify| has no steps of its own
	END
	# all leaves it out, and says why
	wants 0 mpi 2 gf-allreduce $quick -v -a all -b 4 -e 4 --lanes 2
	says 'left out: library:blocking: want one message at once'
}

# what each rank's communicators got last, as Open MPI says itself
@test "a variant goes before every component of Open MPI, or is refused" {
	mpirun --version | grep -q "Open MPI" || skip "only Open MPI can be told"
	OMPI_MCA_coll_sm_priority=90 OMPI_MCA_coll_base_verbose=10 \
		wants 0 mpi 2 gf-allreduce $quick -a library:ring,library:default -b 4 -e 4
	prints ' with sm (90) before tuned (30)'
	[ "$(grep ' selecting ' err.txt | sort -s -k1,1 | awk '$4 == "tuned," && last == "sm," {n[$1]++} {last = $4} END {print length(n)}')" -eq 2 ]
	# what passes calls on, and han on one host, stands before nothing
	wants 0 mpi 2 gf-allreduce $quick -a library:default -b 4 -e 4
	! grep -q ' before tuned' out.txt
	printf '%s\n' 1 2 1 2 1 0 1 0 0 > rules.txt
	while IFS='|' read -r setting why; do
		for variant in ring all; do
			wants 1 env "OMPI_MCA_$setting" mpirun --oversubscribe -np 2 gf-allreduce $quick -a library:$variant -b 4 -e 4
			says "cannot be told an algorithm here: $why"
		done
	done <<- END
		coll=^tuned|coll_tuned is left out of it
		coll_tuned_priority=-1|coll_tuned is left out of it
		coll_tuned_use_dynamic_rules=0|coll_tuned_use_dynamic_rules is 0
	END
	# rules come before what is forced up to Open MPI 4, and after it since 5
	printf '%s\n' 1 2 1 2 1 0 1 0 0 > rules.txt
	local status=0
	! mpirun --version | grep -q ' 4\.' || status=1
	wants $status env "OMPI_MCA_coll_tuned_dynamic_rules_filename=$PWD/rules.txt" \
		mpirun --oversubscribe -np 2 gf-allreduce $quick -a library:ring -b 4 -e 4
	[ $status -eq 0 ] || says 'the rules of coll_tuned_dynamic_rules_filename come first'
}

@test "--collective: reduce-scatters and all-gathers, by every algorithm that has them, on 2 and 3 ranks" {
	local ranks half
	wants 0 mpi 2 gf-allreduce $quick -v -a all --collective all_gather -b 64 -e 64
	says 'left out: butterfly: want an algorithm that comes as a reduce-scatter and an all-gather'
	for ranks in 2 3; do
		for half in reduce_scatter all_gather; do
			# sizes that ranks do not divide become those that they do, in parts of whole 16 bytes
			wants 0 mpi $ranks gf-allreduce $quick -a all,auto --collective $half -b 4 -e 64K -f 16 -c 3 --table=json
			jq -se --arg half $half --argjson n $ranks 'all(.collective == $half and .wrong == 0 and .size_bytes % (16 * $n) == 0 and .count_elems * 4 * $n == .size_bytes
				and (.busbw_bytes_per_s / .algbw_bytes_per_s * $n / ($n - 1) - 1 | fabs) < 1e-9
				and .op == (if $half == "all_gather" then "none" else "sum" end))
				and (map(.size_bytes) | unique) == ([64, 1024, 16384] | map(. - . % (16 * $n)))
				and (map(.chosen) | unique | length) >= 7 and any(.variant == "blocking") and any(.algorithm == "auto")' out.txt
			# a ring sends all parts but one, a library does not tell
			jq -se --argjson n $ranks 'all(if .algorithm == "ring" then .wire_bytes == .size_bytes / $n * ($n - 1)
				elif .algorithm == "library" then .wire_bytes == 0 else true end)' out.txt
		done
	done
	# several at once, other types, averages, pieces
	wants 0 mpi 3 gf-allreduce $quick -a all --collective reduce_scatter -b 40K -e 40K -d f16 --op avg --lanes 2 -c 2
	right
	wants 0 mpi 3 gf-allreduce $quick -a all --collective all_gather -b 40K -e 40K -d i32 --segment 1K --lanes 3 -c 2
	right
}

@test "--collective: the table, the library's two calls, and the answer" {
	wants 0 mpi 3 gf-allreduce -n 5 -w 1 -a ring,library,library:blocking --collective reduce_scatter_perf -b 1K -e 16K -f 16
	right
	prints '# reduce_scatter: size is that of all ranks'
	prints '# MPI_Ireduce_scatter is library; MPI_Reduce_scatter_block, which most programs call, is library:blocking'
	grep -qE '^# blocking : MPI_Reduce_scatter_block takes [0-9.]+ to [0-9.]+ of the time of MPI_Ireduce_scatter, ' out.txt
	grep -qE '^ +1008 +84 +f32 +sum +ring ' out.txt
	says 'fastest reduce_scatter: '
	says " x as fast as the library's own"
	wants 0 mpi 2 gf-allreduce $quick -a library,library:blocking --collective all_gather_perf -b 1K -e 1K
	prints '# MPI_Iallgatherv is library; MPI_Allgather, which'
	grep -qE '^ +1024 +128 +f32 +none +library ' out.txt
}

@test "--collective: codecs, errors, proofs, traces, and what is spoilt" {
	local half codec
	for half in reduce_scatter all_gather; do
		for codec in f16 q8 fp4; do
			wants 0 mpi 3 gf-allreduce $quick -a all --collective $half -b 100K -e 100K --codec $codec -c 2 --verify --table=json
			jq -se 'length >= 12 and all(.wrong == 0 and .wire_bytes > 0 and .wire_bytes < .size_bytes)' out.txt
		done
		wants 1 mpi 3 gf-allreduce $quick -a ring,library --collective $half -b 40K -e 40K --spoil 4 --table=json
		jq -se 'length == 4 and all(.wrong == 4)' out.txt
		wants 0 mpi 3 gf-allreduce $quick -v -a ring --collective $half -b 3K -e 3K --verify
		says "ring, 768 elements, ${half/_/-}, f32, 3 ranks, segments of 65536: "
		wants 0 mpi 3 gf-allreduce $quick -a ring --collective $half -b 3K -e 3K --trace trace.json
		jq -e --arg half $half '[.traceEvents[] | select(.cat == "message")] | length == 3 and all(.args.collective == $half)' trace.json
	done
	wants 0 mpi 2 gf-allreduce $quick -a ring --collective all_gather -b 4K -e 16K --table=json
	cp out.txt rows.jsonl
	wants 0 gf-profile --import rows.jsonl
	jq -e '.network.allreduce | map(.collective) == ["all_gather"]' out.txt
	jq -e '[.traceEvents[] | select(.cat == "transfer") | .name | sub(" .*"; "")] | unique == ["receive", "send"]' trace.json
	wants 0 mpi 3 gf-allreduce $quick -a ring,rhd,library --collective reduce_scatter --error -b 64K -e 64K --table=json
	jq -se 'length == 6 and all(.error_rms > 0 and .error_rms < 1e-6 and .error_max > .error_rms)' out.txt
}

@test "--collective: what is of all-reduces alone, and ranks that differ" {
	local args reason half
	while IFS='|' read -r half args reason; do
		wants 2 mpi 3 gf-allreduce --collective $half -b 48 -e 1K $args
		says "$reason"
	done <<- 'END'
		reduce_scatter|--best rule.json|--best: want none with --collective reduce_scatter: a rule is of all-reduces
		all_gather|--plan plan.json|--plan: want none with --collective all_gather: plans and rules are of all-reduces
		all_gather|-a gather --density .1|--density: want none with --collective all_gather
		reduce_scatter|-a library:ring|libraries are told of all-reduces alone; library:blocking goes
		all_gather|--op max|--op: want none with --collective all_gather: nothing is reduced
		all_gather|--error|--error: want none with --collective all_gather: nothing is added
	END
	wants 2 mpi 3 gf-allreduce --collective all_gather -b 4 -e 32
	says '--max-bytes: want at least 48, 16 for each of 3 ranks, got 32'
	wants 1 mpi 3 gf-allreduce --collective all_gather -b 48 -e 48 -a tree
	says 'tree: want an algorithm that comes as a reduce-scatter and an all-gather'
	wants 1 mpi 2 gf-allreduce --collective all_gather -b 48 -e 48 -a library --codec f16
	says "library: rank 0: the transport's own collectives move values as they are, without f16"
	unlike gf-allreduce -b 1K -e 4K -- -b 1K -e 4K --collective all_gather
	says 'all_gather, sum of f32'
}

# adds TYPE:OPERATION...
adds() {
	local pair
	for pair; do
		wants 0 mpi 3 gf-allreduce $quick -a all -b 40K -e 40K -d ${pair%:*} --op ${pair#*:}
		right
	done
}

@test "every type, and every operation" {
	adds f64:prod f16:max bf16:min i32:avg f32:sum
}

# bats test_tags=long
@test "every type with every operation" {
	adds {f32,f64,f16,bf16,i32}:{sum,prod,max,min,avg}
}

# bats test_tags=long
@test "the library's variants: right, searched, and imported" {
	mpirun --version | grep -q "Open MPI" || skip "only Open MPI can be told"
	wants 0 mpi 3 gf-allreduce $quick -a library:all,library,ring -b 4 -e 4K -f 32 -c 2
	right
	prints '# library Open MPI '
	for name in default basic_linear nonoverlapping recursive_doubling ring segmented_ring.64K rabenseifner; do
		grep -qE "^ +4 .* library:$name " out.txt
	done
	# the default stands at every size
	[ "$(grep -c 'library:default' out.txt)" -eq 3 ]
	wants 0 mpi 3 gf-allreduce $quick -a library:all,library,ring -b 4 -e 256K -f 4 -c 2 --table=json
	cp out.txt rows.txt
	wants 0 gf-profile --import rows.txt
	jq -e '.network | .ranks == 3 and .hosts == 1 and (.library | startswith("Open MPI "))
		and ([.variants[].variant] | index("default", "segmented_ring.1M") | . >= 0)
		and ([.allreduce[].algorithm] == ["library", "ring"])' out.txt
	wants 0 mpi 2 gf-allreduce $quick -a library:segmented_ring.4K,library:default --op avg -d f64 -b 64K -e 64K --table=json
	jq -se 'map(.variant) == ["segmented_ring.4K", "segmented_ring.4K", "default", "default"] and all(.wrong == 0 and .chosen == "library")' out.txt
	wants 2 mpi 2 gf-allreduce -a library:carrier
	says 'library:carrier: Open MPI'
	wants 2 mpi 2 gf-allreduce -a library:default --segment 4K
	wants 1 mpi 2 gf-allreduce -a library:default --codec f16
	says "library:default: want one message at once, without a codec, got a codec"
	wants 1 mpi 2 gf-allreduce -a library:default --verify
	says "library:default has no steps of its own"
}

within_bound() { # CODEC...
	local codec
	for codec; do
		wants 0 mpi 4 gf-allreduce $quick -a all -b 100K -e 100K --codec $codec -c 2 --table=json
		jq -se 'length >= 12 and (map(.wrong) | add == 0) and (map(.codec) | unique == ["'$codec'"])' out.txt
	done
}

# bats test_tags=long
@test "codecs: others within their bound" { within_bound f16 bf16 fp8; }

@test "codecs: within their bound, fewer bytes on the wire" {
	within_bound trunc16 fp4 q8
	# a ring sends 2(p-1)/p of the message, and q8 makes about a quarter of it
	jq -se 'map(select(.algorithm == "ring" and .placement == "in_place").wire_bytes)[0] as $w
		| $w > 102400 * 1.5 * 0.25 and $w < 102400 * 1.5 * 0.27' out.txt
	wants 0 mpi 4 gf-allreduce $quick -a ring -b 100K -e 100K --table=json
	jq -se 'all(.wire_bytes == 153600)' out.txt
}

@test "gf-profile --import reads the JSON, and names the table and the CSV" {
	local form
	wants 0 mpi 4 gf-allreduce $quick -a ring,rhd,blueconnect,gather --density 0.1 --factors 2:ring,2:halving \
		-b 4K -e 64K -f 4 --table=json
	cp out.txt rows.txt
	wants 0 gf-profile --import rows.txt
	jq -e '.network | .ranks == 4 and [.allreduce[].algorithm] == ["ring", "rhd", "blueconnect"]
		and .allreduce[2].stages == [{"factor": 2, "algorithm": "ring"}, {"factor": 2, "algorithm": "halving"}]
		and all(.allreduce[]; .fit.size_bytes == [4096, 16384, 65536])' out.txt
	says 'left out: rows of codecs, sparse sets, plans or several messages (3, first in line '
	for form in "" --table=csv; do
		wants 0 mpi 2 gf-allreduce $quick -a ring -b 4K -e 16K -f 4 $form
		cp out.txt rows.txt
		wants 2 gf-profile --import rows.txt
		says 'this is a table or CSV of gf-allreduce: give what gf-allreduce --table=json prints'
	done
}

@test "each stage is carried out as it is named" {
	local stage n=0
	for stage in ring halving shm mpi; do
		wants 0 mpi 4 gf-allreduce $quick -a blueconnect --factors 4:$stage -b 68 -e 68 -c 1 --trace $stage.json
		right
		jq -r '[.traceEvents[] | select(.cat == "transfer") | "\(.pid) \(.name)"] | sort[]' $stage.json > $stage.steps
		[ -s $stage.steps ]
		n=$((n + 1))
	done
	[ "$(sha256sum ./*.steps | cut -d' ' -f1 | sort -u | wc -l)" = $n ]
	[ "$(cut -d' ' -f2 mpi.steps | sort -u | tr '\n' ' ')" = 'all-gather reduce-scatter ' ]
	# with a stage of its own on each level, and parts of unequal length
	wants 0 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:shm,2:mpi -b 4 -e 4K -i 1020 -c 1
	right
	wants 1 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:nccl,2:ring -b 64 -e 64
	says 'stage 0: nccl runs between GPUs'
	wants 1 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:ring,2:mpi --codec f16 -b 64 -e 64
	says 'stage 1: mpi moves f32 as they are, without a codec'
	wants 1 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:ring,2:mpi -b 64 -e 64 --verify
	says 'stage 1: mpi has no steps of its own, which could be proved'
}

@test "factors, stages, lanes" {
	wants 0 mpi 6 gf-allreduce $quick -a blueconnect,hierarchical --factors 3x2 -b 1K -e 1M -f 32
	right
	grep -q ' blueconnect:3x2:ring,halving ' out.txt
	grep -q ' hierarchical:3x2 ' out.txt
	wants 0 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:shm,2:ring -b 64K -e 64K
	right
	grep -q ' blueconnect:2x2:shm,ring ' out.txt
	wants 0 mpi 4 gf-allreduce $quick -a blueconnect,ring --factors 2:shm,2:ring -b 4K -e 4K --segment 1K --table=csv
	[ "$(python3 -c 'import csv, sys; r = list(csv.DictReader(sys.stdin))
print(r[0]["stages"], r[0]["factors"], r[0]["segment_bytes"], r[-1]["stages"] == "", len({len(x) for x in r}))' < out.txt)" = \
		"shm,ring 2x2 1024 True 1" ]
	wants 0 mpi 3 gf-allreduce $quick -a ring,library --lanes 3 -b 64K -e 64K --table=json
	jq -se 'length == 4 and all(.messages == 3 and .lanes == 3 and .wrong == 0)' out.txt
	jq -e '(.algbw_bytes_per_s * .time_s / (3 * 65536) - 1) | fabs < 1e-9' out.txt
	jq -e '(.busbw_bytes_per_s / .algbw_bytes_per_s - 4 / 3) | fabs < 1e-9' out.txt
	# factors of 1 are no stages
	wants 0 mpi 4 gf-allreduce $quick -a blueconnect,hierarchical --factors 1,2,1,2 -b 4K -e 4K --table=json
	jq -se 'length == 4 and all(.factors == "2x2" and .wrong == 0)' out.txt
	wants 2 mpi 3 gf-allreduce -a blueconnect --factors 2x2 -b 1K -e 1K
	says '--factors: want a product of 3 (the ranks), got'
	[ "$(grep -c '^gf-allreduce' err.txt)" -eq 1 ]
}

sets() { # RANKS DENSITY
	wants 0 mpi "$1" gf-allreduce $quick -a gather,gtopk --density "$2" -b 4 -e 64K -f 128 -c 2 --table=json
	jq -se --argjson d "$2" 'length == 12 and all(.wrong == 0 and .density == $d)' out.txt
}

# bats test_tags=long
@test "sparse sets: any density on any ranks" {
	for ranks in 1 2 3 5; do
		for density in 0.001 0.2 1; do sets $ranks $density; done
	done
}

@test "sparse sets: the same sums as selections and merges done apart" {
	sets 1 0.2; sets 2 0.001; sets 3 1; sets 5 0.2
	# pairs of four bytes each: two ranks send a hundredth of the values, once or twice
	wants 0 mpi 2 gf-allreduce $quick -a all --density 0.01 -b 400000 -e 400000 --table=json
	jq -se 'map(select(.placement == "in_place")) | map({(.algorithm): .wire_bytes}) | add
		| .gather == 8000 and .gtopk == 8000 and .ring == 400000' out.txt
	jq -se 'all(.wrong == 0)' out.txt
	wants 1 mpi 3 gf-allreduce $quick -a gather --density 0.01 -b 40K -e 40K --spoil 4 --table=json
	jq -se 'all(.wrong == 4)' out.txt
	wants 2 mpi 2 gf-allreduce $quick -a gather --density 0.01 -b 40K -e 40K -d f64
	says 'gather: want f32 sums for sparse sets'
	# two sets of 1000 values among 100000: two bytes a value, 1071 for the indices
	wants 0 mpi 3 gf-allreduce $quick -a gather,gtopk --codec f16 --density 0.01 -b 400000 -e 400000 -c 2 --table=json
	jq -se 'all(.wrong == 0 and .codec == "f16")' out.txt
	jq -se 'map({(.algorithm): .wire_bytes}) | add | .gather == 6142 and .gtopk == 6142' out.txt
	for codec in q8 fp8; do
		wants 0 mpi 4 gf-allreduce $quick -a gather,gtopk --codec $codec --density 0.05 -b 4 -e 64K -f 128 -c 2 --table=json
		jq -se 'length == 12 and all(.wrong == 0)' out.txt
	done
	wants 1 mpi 2 gf-allreduce $quick -a gtopk --codec f16 --density 0.01 -b 40K -e 40K --spoil 4 --table=json
	jq -se 'all(.wrong == 4)' out.txt
}

@test "--error: the numbers in docs/tables, and of sets" {
	local root=$GF_SOURCE
	timeout 600 "$root/tests/bench/error.sh" 4 > table.txt
	[ "$(wc -l < table.txt)" -eq 8 ]
	while read -r line; do
		grep -qxF "$line" "$root/docs/tables/sum_error.txt" || { echo "not in docs/tables/sum_error.txt: $line"; return 1; }
	done < table.txt
	# of a share of the values, the others are missing
	wants 0 mpi 3 gf-allreduce $quick --error -a gather,ring --density 0.1 -b 64K -e 64K --table=json
	jq -se 'map(select(.algorithm == "gather").error_rms) | length > 0 and all(. > 0.5 and . < 1)' out.txt
	jq -se 'map(select(.algorithm == "ring").error_rms) | length > 0 and all(. != null and . < 1e-6)' out.txt
}

@test "--plan: a selection is run as in training, with its bytes" {
	local selection
	# four ranks gather three sets each; sets of a codec are as long as predicted
	for codec in f32 f16; do
		gf-plan -q --model digits-mlp --selection topk --codecs $codec --ranks 4 \
			"$data/valid/topology-4x2-1gbe.json" > plan.json
		replayed_sends plan.json | jq 'map(select(.pid == 1).args.bytes) | add' > bytes.txt
		wants 0 mpi 4 gf-allreduce $quick --plan plan.json --table=json
		jq -se --argjson bytes "$(cat bytes.txt)" --arg codec $codec 'length == 2 and all(.algorithm == "plan" and .chosen == "gather"
			and .selection == "topk" and .codec == $codec and .density == null and .wire_bytes == $bytes and .wrong == 0 and .time_s > 0)' out.txt
	done
	for selection in $(facts 'select($name != "dense") | $name'); do
		gf-plan -q --model digits-mlp --selection $selection --ranks 2 "$data/valid/topology-4x2-1gbe.json" > plan.json
		wants 0 mpi 2 gf-allreduce $quick --plan plan.json --table=json
		jq -se --arg s $selection 'all(.selection == $s and .wrong == 0 and .wire_bytes > 0
			and .wire_bytes < .size_bytes)' out.txt
	done
	wants 0 mpi 2 gf-allreduce $quick --plan plan.json
	prints "# selection $selection: steps of the exchange"
	wants 1 mpi 2 gf-allreduce $quick --plan plan.json --spoil 3
	says '6 elements came out wrong'
	wants 1 mpi 2 gf-allreduce $quick --plan plan.json --verify
	says "want no --verify (gf-sim has it) with selection $selection, whose steps depend on the gradients"
	# its warm-up is over, however long
	gf-plan -q --model digits-mlp --selection csc:warmup=50% --ranks 2 "$data/valid/topology-4x2-1gbe.json" > plan.json
	wants 0 mpi 2 gf-allreduce $quick --plan plan.json
	# a rule has no tensors to select from
	wants 2 mpi 2 gf-allreduce $quick --plan "$data/../../share/plans/gtopk.json" -b 1K -e 1K
	[ "$(grep -c 'the rule has selection gtopk, got a rule alone$' err.txt)" -eq 1 ]
	# a plan's pipeline is the trainer's
	gf-plan -q --model digits-mlp --selection gtopk --staleness 2 --ranks 2 "$data/valid/topology-4x2-1gbe.json" > plan.json
	wants 0 mpi 2 gf-allreduce $quick --plan plan.json
}

@test "--verify: every schedule is proved before it runs" {
	wants 0 mpi 4 gf-allreduce $quick --verify -v -a all --density .1 --factors 2x2 -b 1K -e 64K -f 64
	right
	# two sizes of all algorithms but library, and of two sparse ones
	proved=$((2 * ($(names_of algorithms | wc -l) - 1 + 2)))
	prints "# Proved schedules     : $proved OK"
	says 'left out: library has no steps of its own'
	[ "$(grep -cE '^gf-allreduce: .*, 4 ranks, .*: [0-9]+ steps, every contribution exactly once, no race, no deadlock$' err.txt)" -eq "$proved" ]
	[ "$(grep -c '^gf-allreduce: blueconnect 2:halving,2:halving, 16384 elements, f32, ' err.txt)" -eq 1 ]
	# as they run: with the codec and the segments
	wants 0 mpi 3 gf-allreduce $quick --verify -v -a ring,auto --codec q8 --segment 4K -b 64K -e 64K --lanes 2
	says 'ring, 16384 elements, q8, 3 ranks, segments of 1024: '
	gf-plan -q --model digits-mlp --policy single --algorithm ring --ranks 3 "$data/valid/topology-4x2-1gbe.json" > plan.json
	wants 0 mpi 3 gf-allreduce $quick --verify --plan plan.json
	prints '# Proved schedules     : 1 OK'
	wants 1 mpi 2 gf-allreduce $quick --verify -a library -b 1K -e 1K
	[ "$(grep -c '^gf-allreduce: library has no steps of its own, which could be proved$' err.txt)" -eq 1 ]
	wants 1 mpi 2 gf-allreduce $quick --verify -a ring --segment 4 -b 4M -e 4M
	[ "$(grep -c 'want at most 1000000 steps of all ranks for a proof, got more' err.txt)" -eq 1 ]
	[ ! -s out.txt ]
}

@test "what is spoilt on one rank is found" {
	wants 1 mpi 3 gf-allreduce $quick -a ring,tree -b 4K -e 4K --spoil 3 --table=json
	jq -se 'length == 4 and all(.wrong == 3)' out.txt
	[ "$(grep -c 'came out wrong' err.txt)" -eq 1 ]
}

# rows: no slice of a row begins before the one before it has ended
rows() {
	jq -e '[.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid]) |
		all(.[]; sort_by(.ts, .ts + .dur) | . as $r | all(range(1; length); $r[.].ts >= $r[. - 1].ts + $r[. - 1].dur - 1e-3))' "$1"
}

@test "--trace: every step of every rank, of the largest size" {
	wants 0 mpi 4 gf-allreduce $quick -a ring,blueconnect,library --factors 2x2 -b 4K -e 256K -f 64 --segment 16K --trace trace.json
	right
	rows trace.json
	jq -e '[.traceEvents[] | select(.name == "process_name").args.name] == ["rank 0", "rank 1", "rank 2", "rank 3"]' trace.json
	jq -e '.otherData | (.producer | startswith("gf-allreduce")) and (.clock_offset_s | length == 4 and .[0] == 0)' trace.json
	jq -e '[.traceEvents[] | select(.cat == "message")] | length == 12 and all(.args.bytes == 262144)
		and (map(.name) | unique == ["blueconnect", "library", "ring"])' trace.json
	# a ring's 2 x 3 parts, in four segments each, to the right neighbour
	jq -e '.traceEvents as $all | all(range(4); . as $r |
		($all | map(select(.pid == $r and .name == "ring"))[0]) as $m |
		[$all[] | select(.pid == $r and .cat == "transfer" and (.name | startswith("send")) and .ts >= $m.ts and .ts <= $m.ts + $m.dur)] |
		length == 24 and (map(.tid) | unique == [4 + 2 * (($r + 1) % 4)]) and (map(.args.bytes) | add == 6 * 65536))' trace.json
	# what one sends the other receives; a message of the first size is in none
	jq -e '[.traceEvents[] | select(.cat == "transfer")] | (map(select(.name | startswith("send")).args.bytes) | add) as $out |
		(map(select(.name | startswith("send") | not).args.bytes) | add) as $in | $out == $in and all(.[]; .args.bytes == 16384)' trace.json
	jq -e '[.traceEvents[] | select(.cat == "transfer") | .args.posted_us <= .ts + 1e-3] | all' trace.json
}

@test "--trace: of a plan all messages at once" {
	gf-profile -q --estimate --model digits-cnn --passes forward=1ms,backward=2ms -o model.json
	gf-topo -q --synthetic "host:2@8GB/s,5us,shm" -o topo.json
	gf-plan -q --policy wfbp topo.json model.json -o plan.json
	wants 0 mpi 2 gf-allreduce $quick --plan plan.json --trace trace.json
	rows trace.json
	jq -e --slurpfile plan plan.json '[.traceEvents[] | select(.cat == "transfer" and .pid == 0).args.message] | unique ==
		[range($plan[0].messages | length)]' trace.json
	jq -e '[.traceEvents[] | select(.cat == "message")] | length == 2' trace.json
}

@test "the best per size is a rule that training and auto take" {
	wants 0 mpi 2 gf-allreduce $quick -a ring,library -b 1K -e 256K -f 16 --best rule.json
	jq -e '.format == "gf-plan" and .rule.algorithms[0].min_bytes == 0
		and (.rule.algorithms | map(.algorithm) - ["ring", "library"] == [])
		and .rule.threshold_bytes >= 1' rule.json
	jq '.rule.algorithms = [{min_bytes: 0, algorithm: "tree"}, {min_bytes: 65536, algorithm: "rhd"}]' rule.json > own.json
	wants 0 mpi 2 gf-allreduce $quick --plan own.json -b 16K -e 64K -f 4
	right
	[ "$(awk '!/^#/ {printf "%s ", $5}' out.txt)" = "auto:tree auto:rhd " ]
	wants 0 mpi 2 gf-train -q --model digits-mlp --data synthetic:64 --plan rule.json --steps 2 --threads 1
}

@test "the rule keeps stages, segments, codec and lanes, to training and back" {
	wants 0 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:shm,2:ring --segment 2K --codec f16 --lanes 2 \
		-b 1K -e 64K -f 8 --best best.json
	jq -e '.rule == {threshold_bytes: .rule.threshold_bytes, lanes: 2, segment_bytes: 2048, algorithms: [{min_bytes: 0,
		algorithm: "blueconnect", codec: "f16", stages: [{factor: 2, algorithm: "shm"}, {factor: 2, algorithm: "ring"}]}]}' best.json
	# gf-allreduce runs what it wrote
	wants 0 mpi 4 gf-allreduce $quick --plan best.json -b 4K -e 4K --table=json
	jq -se 'all(.algorithm == "auto" and .chosen == "blueconnect" and .factors == "2x2" and .stages == "shm,ring"
		and .codec == "f16" and .segment_bytes == 2048 and .wrong == 0)' out.txt
	cp out.txt chosen.txt
	wants 0 mpi 4 gf-allreduce $quick -a blueconnect --factors 2:shm,2:ring --codec f16 -b 4K -e 4K --table=json
	jq -se --slurpfile c chosen.txt '.[0].wire_bytes == $c[0].wire_bytes' out.txt
	# what is said beside a rule takes the place of what it says
	wants 0 mpi 4 gf-allreduce $quick --plan best.json --codec q8 --segment 1K -b 4K -e 4K --table=json
	jq -se 'all(.chosen == "blueconnect" and .codec == "q8" and .segment_bytes == 1024 and .wrong == 0)' out.txt
	# on other ranks the stages do not fit, the rest holds: those of one host are one stage
	wants 0 mpi 2 gf-allreduce $quick --plan best.json -b 4K -e 4K --table=json
	jq -se 'all(.chosen == "blueconnect" and .factors == "2" and .stages == "halving" and .codec == "f16" and .wrong == 0)' out.txt
	# gf-plan binds it to a model, with a prediction
	wants 0 gf-plan -q --model digits-cnn --ranks 4 best.json "$share/topologies/4x2-1gbe.json"
	jq -e '.ranks == 4 and .lanes == 2 and .segment_bytes == 2048 and .predicted.iteration_s >= .predicted.lower_bound_s
		and all(.messages[]; .algorithm == "blueconnect" and .codec == "f16" and [.stages[].algorithm] == ["shm", "ring"])' out.txt
	cp out.txt plan.json
	wants 0 mpi 4 gf-allreduce $quick --plan plan.json --table=json
	jq -se 'all(.wrong == 0) and .[0].stages == "shm,ring" and .[0].codec == "f16" and .[0].segment_bytes == 2048' out.txt
	# training takes either, and both come to the same
	wants 0 mpi 4 gf-train -q --model digits-cnn --data synthetic:64 --batch 8 --plan plan.json --steps 2 --threads 1 --check-replicas 1 --log whole.jsonl
	wants 0 mpi 4 gf-train -q --model digits-cnn --data synthetic:64 --batch 8 --plan best.json --steps 2 --threads 1 --check-replicas 1 --log rule.jsonl
	jq -se --slurpfile w whole.jsonl 'map(select(.part == "batch").loss) == ($w | map(select(.part == "batch").loss))' rule.jsonl
}

@test "a plan's messages, each and all" {
	gf-topo --synthetic "net:2@1Gb/s,50us" > topo.json
	gf-plan -q --model digits-cnn topo.json > plan.json
	wants 0 mpi 2 gf-allreduce $quick --plan plan.json --table=json
	jq -s --slurpfile p plan.json -e '($p[0].messages | length) as $n
		| length == 2 * ($n + 1) and all(.wrong == 0)
		and (map(select(.placement == "in_place")) | .[-1].algorithm == "plan" and .[-1].messages == $n
			and (.[:-1] | map(.size_bytes) | add) == .[-1].size_bytes
			and (.[:-1] | map(.algorithm)) == ($p[0].messages | map(.algorithm)))' out.txt
	wants 2 mpi 3 gf-allreduce --plan plan.json
	says 'the plan is for 2 ranks, this job has 3'
	wants 2 mpi 2 gf-allreduce --plan plan.json -d f64
	says 'want sum or avg of f32'
	wants 2 mpi 2 gf-allreduce --plan plan.json --codec q8
	says 'which sets them'
}

@test "ranks that differ find out at the start" {
	unlike gf-allreduce -b 1K -e 4K -- -b 1K -e 8K
	says '1024 to 4096 bytes by x2'
	says '1024 to 8192 bytes by x2'
	unlike gf-allreduce -b 1K -e 4K -a ring -- -b 1K -e 4K -a tree
	says 'ring'
	says 'tree'
	unlike gf-allreduce -b 1K -e 4K -d f32 -- -b 1K -e 4K -d i32
	unlike gf-allreduce --plan one.json -- --plan two.json
	says 'plan: '
	says 'one.json'
	says 'two.json'
	unlike gf-allreduce -b 1K -e 4K -- -b 1K -e 4K --lanes 2
	says 'lanes'
	# by which variants are searched
	unlike gf-allreduce -b 1K -e 4K -- -b 1K -e 4K -n 20:across=mean
	says 'across max'
	unlike gf-allreduce -b 1K -e 4K -- -b 1K -e 4K --verify
	says 'schedules proved'
	unlike gf-allreduce -b 1K -e 4K -- -b 1K -e 4K --trace trace.json
	says 'a trace'
	[ ! -e trace.json ]
	# one that would be done before the others begin
	unlike gf-allreduce --list -- -b 1K -e 4K
	says 'command: '
	says '--list'
	[ ! -s out.txt ]
	gf-plan -q --model digits-mlp --gpu v100 --ranks 2 "$share/topologies/4x2-1gbe.json" > plan.json
	unlike gf-allreduce --plan plan.json --best best.json -- --plan plan.json
	says 'which sets them'
}

@test "refusals end every rank, and are printed once" {
	wants 2 mpi 3 gf-allreduce -b 0
	[ "$(grep -c '^gf-allreduce' err.txt)" -eq 1 ]
	wants 3 mpi 2 gf-allreduce --plan no-such-plan.json
	[ "$(grep -c 'no-such-plan' err.txt)" -eq 1 ]
	wants 3 mpi 2 gf-allreduce -b 1K -e 1K -n 1 -o no/such/folder
	[ "$(grep -c 'no/such/folder' err.txt)" -eq 1 ]
	wants 3 mpi 2 gf-allreduce -b 1K -e 1K -n 1 -o /dev/full
	[ "$(grep -c '/dev/full' err.txt)" -eq 1 ]
	wants 1 mpi 2 gf-allreduce -b 1K -e 1K -a library --codec trunc16
	[ "$(grep -c 'library: ' err.txt)" -eq 1 ]
	wants 1 mpi 2 gf-allreduce -b 1K -e 1K -n 1 --min-bw 1000000GB/s
	[ "$(grep -c 'average bus bandwidth' err.txt)" -eq 1 ]
}

# --- faults -----------------------------------------------------------------

measures() { [ "$(grep -c ': measuring ' err.txt)" -ge 3 ]; }

# sweeps RANKS ARG...: a job of very many sizes, up to its third
sweeps() {
	local ranks=$1
	shift
	begin "$ranks" measures gf-allreduce -v -b 256K -e 1M -i 128 -n 200 "$@"
}

# is_gone PID: soon after its mpirun
is_gone() {
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		kill -0 "$1" 2> /dev/null || return 0
		sleep 0.1
	done
	echo "rank $1 is left"
	return 1
}

# all_end STATUS PID...: the job ends with that status, by itself, prints nothing, and
# none of its ranks is left
all_end() {
	local pid
	ends "$1"
	for pid in "${@:2}"; do
		is_gone "$pid"
	done
	[ ! -s out.txt ]
}

# silent RANK: it is named, with the message that waits for it. Between two
# messages all ranks meet, and no message waits.
silent() {
	grep -qE "(step [0-9]+, message 0 \([0-9]+ bytes\): .*|waited [0-9.]+ s for all ranks: )rank $1 does not answer \(stopped, dead or cut off\)" err.txt
}

@test "a stopped rank is named, with message and step, and all end with 4" {
	local algorithm pids
	for algorithm in ring library; do
		sweeps 3 -a $algorithm --timeout 5s
		pids="$(pid_of 0) $(pid_of 1) $(pid_of 2)"
		kill -STOP "$(pid_of 1)"
		# shellcheck disable=SC2086
		all_end 4 $pids
		silent 1
	done
}

@test "a rank that dies ends the job at once" {
	local pids
	sweeps 3 -a ring
	pids="$(pid_of 0) $(pid_of 1) $(pid_of 2)"
	kill -KILL "$(pid_of 2)"
	# shellcheck disable=SC2086
	all_end 137 $pids
}

@test "a rank that comes late is waited for, within the timeout" {
	printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && sleep "$1"\nshift\nexec "$@"\n' > late
	chmod +x late
	wants 0 mpi 2 ./late 2 gf-allreduce $quick -b 1K -e 1K
	right
}

# bats test_tags=long
@test "a rank that hangs between two sizes is named, too" {
	local pids
	sweeps 2 -a ring -b 4 -e 36K -i 4 --timeout 5s
	pids="$(pid_of 0) $(pid_of 1)"
	kill -STOP "$(pid_of 0)"
	# shellcheck disable=SC2086
	all_end 4 $pids
	silent 0
}

@test "the components of Open MPI stay as long as its threads" {
	wants 0 mpi 1 env LD_DEBUG=files gf-allreduce $quick -a ring -b 4 -e 4
	grep -q 'opening file=.*mca_' err.txt || skip "an MPI without components"
	fails grep 'mca_state_app.so.*destroying link map' err.txt
}

@test "ranks that are unlike run together" {
	makes_apart
	wants 0 mpi 3 ./apart gf-allreduce -b 1K -e 4K -n 2 -a all --check 1
	if gf-allreduce --list | grep -q '^transport  *ucx'; then
		wants 0 mpi 3 ./apart gf-allreduce -b 1K -e 4K -n 2 -a all,auto --transport ucx
	fi
	makes_short 700000
	wants 3 mpi 2 ./short gf-allreduce -b 1G -e 1G -n 1 -w 0 -a ring
	says 'Cannot allocate memory'
}
