#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

quick="--batch 2 --repeats 3:warmup=1 --threads 1"

@test "the model half of a shipped model" {
	wants 0 gf-profile --model digits-mlp $quick
	says 'one rank: no network half'
	jq -e '.format == "gf-profile" and has("model") and (has("network") | not)' out.txt
	jq -e '.model | .name == "digits-mlp" and .batch_per_rank == 2' out.txt
	jq -e '.model | .forward_s > 0 and .backward_s > 0 and .update_s > 0' out.txt
	jq -e '.model.tensors | map(.ready_s) | . == sort and .[0] >= 0' out.txt
	jq -e '.model | .tensors[-1].ready_s <= .backward_s' out.txt
	jq -e '.measured.model | .repeats == 3 and .threads == 1 and .backward_spread_s >= 0' out.txt
}

@test "tensors stand in generation order: last layer first" {
	wants 0 gf-profile -q --model digits-mlp $quick --device ref
	[ -z "$errors" ]
	jq -r '.layers[] | select(.type == "fc") | .name' "$share/models/digits-mlp.json" |
		tac | sed 'h; s/$/.bias/p; g; s/$/.weight/' > want.txt
	jq -r '.model.tensors[].name' out.txt | diff want.txt -
	# the net has the last layer's ten outputs and their gradients, of two samples
	jq -e '.model.tensors | (.[0] | has("activation_bytes") | not) and .[1].activation_bytes == 2 * 10 * 2 * 4' out.txt
}

@test "a model from a file, as an argument, on standard input" {
	wants 0 gf-profile -q $quick --model "$share/models/digits-mlp.json"
	wants 0 gf-profile -q $quick "$share/models/digits-mlp.json"
	jq -se 'length == 1 and .[0].format == "gf-profile"' out.txt
	stdin=$share/models/digits-mlp.json wants 0 gf-profile -q $quick
	jq -se 'map(.format) == ["gf-model", "gf-profile"]' out.txt
}

@test "documents on standard input are passed on, files are not" {
	gf-topo --synthetic "net:4@1Gb/s,50us" > topo.json
	stdin=topo.json wants 0 gf-profile -q $quick --model digits-mlp
	jq -se 'map(.format) == ["gf-topology", "gf-profile"]' out.txt
	jq -s '.[0]' out.txt | diff <(jq . topo.json) -
	wants 0 gf-profile -q $quick --model digits-mlp topo.json
	jq -se 'map(.format) == ["gf-profile"]' out.txt
}

@test "a half that is there already is not measured again" {
	wants 0 gf-profile -q $quick --model digits-mlp -o prof.json
	wants 2 gf-profile -q $quick --model digits-mlp prof.json
	says 'prof.json: there is a model half in it already'
	one_line
}

@test "nothing to measure" {
	wants 2 gf-profile
	says 'nothing to measure'
	[ -z "$output" ]
}

@test "bad input: one line, the right status, no output" {
	wants 2 gf-profile --model no-such-model
	says 'no-such-model'
	one_line
	gf-topo --synthetic "net:4@1Gb/s,50us" > topo.json
	wants 2 gf-profile -q --model topo.json
	says 'want a gf-model document'
	one_line
	echo '{"format": "gf-model", "version": 1, "name": ' > cut.json
	wants 2 gf-profile -q --model cut.json
	says 'cut.json'
	one_line
	wants 3 gf-profile -q $quick --model digits-mlp -o no/such/folder/p.json
	one_line
	status=0
	gf-profile -q $quick --model digits-mlp > /dev/full 2> err.txt < /dev/null || status=$?
	[ "$status" -eq 3 ]
}

@test "--import: a table, PyTorch's trace, nccl-tests" {
	wants 0 gf-profile --import "$data/import/six.csv" --passes forward=3s
	jq -e '.model | .name == "six" and .forward_s == 3 and .backward_s == 17 and (has("batch_per_rank") | not)' out.txt
	says 'six.csv: csv: 6 tensors'
	one_line
	wants 0 gf-profile -q --import "$data/import/six.csv" --passes forward=3s
	[ -z "$errors" ]
	wants 0 gf-profile --import "$data/import/six.csv" --imported name=other --batch 7
	says 'the forward time is not known and taken as 0'
	jq -e '.model | .name == "other" and .batch_per_rank == 7' out.txt
	# when forward needs a tensor says nothing without the time of forward
	printf 'name,count_elems,ready_s,need_s\na,4,1,2.5\nb,8,2,0\n' > need.csv
	wants 0 gf-profile --import need.csv --passes forward=3s
	jq -e '[.model.tensors[].need_s] == [2.5, 0]' out.txt
	wants 0 gf-profile --import need.csv
	says 'columns need_s, which want --passes forward'
	jq -e 'all(.model.tensors[]; has("need_s") | not)' out.txt
	wants 2 gf-profile --import need.csv --passes forward=2s
	says 'tensors/0/need_s: want a number <= 2, the time of a forward pass, got 2.5'
	wants 0 gf-profile --import "$data/import/kineto-cpu.json" --imported params="$data/import/params.csv"
	jq -e '[.model.tensors[].name] == ["fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight"]' out.txt
	jq -e '.model.device == "cpu" and .measured.imported_from == "kineto"' out.txt
	wants 0 gf-profile --import "$data/import/nccl-tests.txt" --ranks 16
	jq -e '.network.ranks == 16 and .network.allreduce[0].algorithm == "library"' out.txt
	says '--ranks 16 is taken, though busbw/algbw is that of 4 ranks'
}

@test "--import: IMB, all_reduce_bench, MSCCL++" {
	wants 0 gf-profile -q --import "$data/import/imb.txt"
	jq -e '.network | .ranks == 4 and (.allreduce[0].fit | .size_bytes[-1] == 1048576 and (.time_s[-1] * 1e8 | round) == 373368)' out.txt
	wants 0 gf-profile -q --import "$data/import/imb.txt" --ranks 2
	jq -e '.network | .ranks == 2 and (.allreduce[0].fit.time_s[-1] * 1e8 | round) == 117857' out.txt
	wants 0 gf-profile -q --import "$data/import/all-reduce-bench.md"
	jq -e '.network | .ranks == 8 and (.allreduce[0].fit | .size_bytes[0] == 32768 and (.time_s[-1] * 275.58e9 - 17179869184 | fabs) < 1)' out.txt
	# the fastest of three kernels at 1 GiB
	wants 0 gf-profile -q --import "$data/import/mscclpp.jsonl"
	jq -e '.network | .ranks == 8 and (.allreduce[0].fit | .size_bytes[-1] == 1073741824 and (.time_s[-1] * 1e8 | round) == 770198)' out.txt
}

@test "--import: records of one line, events that end before they begin, sizes that are no whole numbers" {
	local all file
	for file in told mscclpp; do
		wants 0 gf-profile -q --import "$data/import/$file.jsonl"
		all=$(jq -cS 'del(.measured, .model.name)' out.txt)
		jq -sc . "$data/import/$file.jsonl" > line.json # [{...},{...}]
		wants 0 gf-profile -q --import line.json
		[ "$(jq -cS 'del(.measured, .model.name)' out.txt)" = "$all" ]
		jq -sj '.[]' "$data/import/$file.jsonl" > joined.json # {...}{...}
		wants 0 gf-profile -q --import joined.json
		[ "$(jq -cS 'del(.measured, .model.name)' out.txt)" = "$all" ]
	done
	wants 0 gf-profile -q --import "$data/import/kineto-ddp.json"
	all=$(jq -cS 'del(.measured, .model.name)' out.txt)
	jq '.traceEvents += [{ph: "X", cat: "python_function", name: "f", pid: 1, tid: 1, ts: .traceEvents[-1].ts, dur: -100}]' \
		"$data/import/kineto-ddp.json" > trace.json
	wants 0 gf-profile -q --import trace.json
	[ "$(jq -cS 'del(.measured, .model.name)' out.txt)" = "$all" ]
	sed '2s/,[0-9]*$/,5.898240e+05/; 2s/,[0-9]*,/,5.898240e+05,/' "$data/import/params.csv" > params.csv
	wants 2 gf-profile --import "$data/import/kineto-cpu.json" --imported params=params.csv
	one_line
	says 'count_elems'
}

@test "--import: a log as it is; OSU, Inspector" {
	wants 0 gf-profile --import "$data/import/nccl-tests-tagged.log"
	says 'nccl-tests 2.18.0: 2 ranks, library of 8 sizes; left out: lines that are no rows (3, first in line 1)'
	one_line
	jq -e '.measured | .imported_from == "nccl-tests" and .version == "2.18.0" and .found == "2 ranks, library of 8 sizes"
		and .left_out == [{"what": "lines that are no rows", "count": 3, "line": 1}]' out.txt
	wants 0 gf-profile --import "$data/import/osu.log"
	jq -e '.network | .ranks == 2 and .allreduce[0].fit.size_bytes[0] == 4' out.txt
	# a collective's time is that of the rank that waited least
	wants 0 gf-profile --import "$data/import/inspector.jsonl"
	jq -e '.network | .ranks == 2 and (.allreduce[0] | .startup_s / 20e-6 > 0.97 and .startup_s / 20e-6 < 1.03
		and .per_byte_s / 1e-11 > 0.99 and .per_byte_s / 1e-11 < 1.01)' out.txt
	jq 'del(.measured)' out.txt > whole.json
	mkdir dump
	head -n 23 "$data/import/inspector.jsonl" | gzip -c > dump/n1-pid1.log
	tail -n 23 "$data/import/inspector.jsonl" > dump/n1-pid2.log
	wants 0 gf-profile --import dump
	jq 'del(.measured)' out.txt | cmp - whole.json
	wants 0 gf-profile --import dump/n1-pid2.log
	says "it has the records of 1 of 2 ranks, whose times hold the waits for the others: give the folder with all ranks' files"
	cp "$data/import/osu.log" dump/n1-pid1.log
	rm dump/n1-pid2.log
	wants 2 gf-profile --import dump
	says 'dump: want one file of osu, got a folder'
	one_line
	# gf-allreduce's own, from mpirun --tag-output
	sed 's/^/[1,0]<stdout>:/' "$data/import/allreduce.json" > tagged.json
	gf-profile --import "$data/import/allreduce.json" | jq .network > plain.json
	gf-profile --import tagged.json | jq .network | cmp - plain.json
	sed 's/^/[1,0]<stdout>:/' "$data/foreign/allreduce.txt" > tagged.txt
	for file in tagged.txt "$data/foreign/allreduce.csv"; do
		wants 2 gf-profile --import "$file"
		says "$file: this is a table or CSV of gf-allreduce: give what gf-allreduce --table=json prints"
		one_line
		wants 2 gf-profile --import "gf-allreduce:$file"
		says 'give what gf-allreduce --table=json prints'
	done
	# rows after a table, of two runs in one log
	cat tagged.txt tagged.json > both.txt
	gf-profile --import both.txt | jq .network | cmp - plain.json
}

@test "--import: one size that the fit misses by a factor is named, and the plan's interval has it" {
	awk '$1 == 1048576 {$6 *= 4; $7 /= 4; $8 /= 4; $10 *= 4; $11 /= 4; $12 /= 4} {print}' "$data/import/nccl-tests.txt" > slow.txt
	wants 0 gf-profile --import slow.txt --ranks 16
	says 'sizes off by more than a quarter; most at 1 MiB: '
	fails grep -q 'measure again' err.txt
	jq '.model = {name: "one", forward_s: 0, backward_s: 0, update_s: 0, tensors: [{name: "a", count_elems: 262144, dtype: "f32", ready_s: 0}]}' out.txt > one.json
	gf-plan -q --policy single one.json > plan.json
	jq -es '(.[0].network.allreduce[0].fit | .time_s[.size_bytes | index(1048576)]) as $t
		| .[1].predicted | .iteration_low_s < $t and $t < .iteration_high_s' one.json plan.json
}

@test "--import unpacks gzip" {
	gf-profile --import "$data/import/six.csv" --passes forward=3s > plain.json
	gzip -c "$data/import/six.csv" > six.csv.gz
	wants 0 gf-profile --import six.csv.gz --passes forward=3s
	cmp out.txt plain.json
	(head -n 3 "$data/import/six.csv" | gzip -c; tail -n +4 "$data/import/six.csv" | gzip -c) > two
	stdin=two wants 0 gf-profile --import - --passes forward=3s --imported name=six
	cmp out.txt plain.json
	head -c 80 six.csv.gz > cut.gz
	wants 2 gf-profile --import cut.gz
	says 'cut.gz: the gzip stream is truncated'
	one_line
	(head -c 60 six.csv.gz; echo xxxxxxxxxx; tail -c +72 six.csv.gz) > bad.gz
	wants 2 gf-profile --import bad.gz
	says 'bad.gz: the gzip stream is damaged'
	one_line
}

@test "a folder holds a trace of each rank" {
	mkdir job empty
	cp "$data/import/kineto-ddp.json" job/rank0.json
	jq '.traceEvents |= map(.ts *= 2 | .dur *= 2)' "$data/import/kineto-ddp.json" > job/rank1.json
	gf-profile -q --import job/rank1.json > slow.json
	wants 0 gf-profile --import job/
	says 'job/: kineto: traces of 2 ranks, 4 tensors, 3 steps'
	says "the ranks' steps take 0.461 to 0.922 ms"
	jq -e --slurpfile slow slow.json '.model.name == "job" and
		(.model | del(.name)) == ($slow[0].model | del(.name))' out.txt
	# each gradient's latest time
	jq '.traceEvents |= map(if .name == "torch::autograd::AccumulateGrad" then .dur -= 1 else . end)' \
		job/rank1.json > job/rank2.json
	wants 0 gf-profile --import job
	jq -e --slurpfile slow slow.json '.model.tensors == $slow[0].model.tensors' out.txt
	cp "$data/import/kineto-mi250.json" job/rank3.json
	wants 2 gf-profile --import job
	says 'job/rank3.json: want the gradients of the other ranks (4, 116 bytes), got others (2, 66048 bytes)'
	one_line
	wants 2 gf-profile --import empty
	says 'empty: want a folder with files, found none'
}

@test "all-reduces in the traces of ranks are the network half" {
	mkdir gloo gpus
	cp "$data"/import/kineto-gloo-[01].json gloo
	wants 0 gf-profile --import gloo
	says 'gloo: kineto: traces of 2 ranks, 4 tensors, 3 steps, 12 all-reduces, 2 ranks, library of 4 sizes'
	# of each the time of the rank that waited less; of each size the median
	jq -e '.model and .network.ranks == 2 and (.network.allreduce[0].fit |
		.size_bytes == [8, 32, 64, 128] and
		(.time_s | map(. * 1e9 | round)) == [144060, 139321, 201510, 232199])' out.txt
	cp out.txt both.json
	wants 0 gf-plan both.json
	jq -e '.ranks == 2 and .model.name == "gloo"' out.txt
	# one rank's times hold its waits
	wants 0 gf-profile --import "$data/import/kineto-gloo-0.json"
	says 'left out: all-reduces of one rank, whose times hold the waits for the others (12)'
	jq -e '.network == null' out.txt
	# what one rank ran beside others does not count
	jq '.traceEvents |= map(if .name == "gloo:all_reduce" and .args."Input Dims" == [[8, 4]]
		then .dur += 500 else . end)' "$data/import/kineto-gloo-1.json" > gloo/kineto-gloo-1.json
	wants 0 gf-profile --import gloo
	says 'all-reduces that ran beside others'
	# NCCL's kernels, of two of eight ranks
	cp "$data/import/kineto-mi300-ddp.json" gpus/0.json
	jq '.traceEvents |= map(if .name | startswith("nccl") then .dur *= .75 else . end)' gpus/0.json > gpus/1.json
	wants 0 gf-profile --import gpus
	says 'gpus: it has the records of 2 of 8 ranks'
	says 'left out: collectives that are no all-reduce (4)'
	jq -e '.network.ranks == 8 and .network.allreduce[0].fit.size_bytes == [5746640, 17632384]' out.txt
}

@test "imported halves go into one plan" {
	gf-profile --import "$data/import/six.csv" --passes forward=3s > a.json
	gf-profile --import "$data/import/nccl-tests.json" --ranks 4 > b.json
	cat a.json b.json > both.json
	stdin=both.json wants 0 gf-plan
	jq -e '.ranks == 4 and .model.name == "six"' out.txt
	stdin=$data/import/six.csv wants 0 gf-profile --import - --passes forward=3s --imported name=six
	cmp out.txt a.json
	stdin=a.json wants 0 gf-profile --import "$data/import/nccl-tests.txt"
	jq -se 'map(.format) == ["gf-profile", "gf-profile"]' out.txt
}

@test "--table: a profile for people" {
	wants 0 gf-profile --table six
	[ "$errors" = 'gf-profile: the network bounds a step of six: it computes for 20.0 s, and ring takes 48.0 s for its 180 B on 4 ranks' ]
	head -n 1 out.txt | grep -qx 'six on none, 1 sample per rank: forward 3.00 s, backward 17.0 s, update 0 s; 6 tensors of 180 B'
	grep -qE '^ +5 +12 B +17.0 s +l1$' out.txt
	# 3 s and 0.25 s a byte, half as much again for two at once
	grep -qE '^ring +f32 +3.00 s +4 B/s +48.0 s +259 s .* 1.50 x +-$' out.txt
	# many tensors are runs, and no line is lost
	wants 0 gf-profile --estimate --gpu v100 --model resnet152 --table
	rows=$(grep -cE '^ *[0-9]+-[0-9]+ ' out.txt)
	[ "$rows" -gt 10 ]
	[ "$rows" -le 24 ]
	[ "$(head -n 1 out.txt | grep -oE '[0-9]+ tensors' | cut -d' ' -f1)" -eq $(($(grep -oE '^ *[0-9]+-[0-9]+ ' out.txt | tail -n 1 | tr -d ' ' | cut -d- -f2) + 1)) ]
	# of what is measured, too, in place of the documents
	stdin=$share/topologies/4x2-1gbe.json wants 0 gf-profile --model digits-mlp --repeats 2:warmup=1 --table
	head -n 1 out.txt | grep -q '^digits-mlp on cpu, 16 samples per rank: '
	fails grep -q gf-topology out.txt
	says 'measuring digits-mlp takes 3 steps of 16 samples (--repeats)'
	wants 2 gf-profile --table
	says 'nothing to measure'
}

@test "--imported variant: what the library was told, where the log does not say it" {
	wants 0 gf-profile -q --import "$data/import/osu.log" --imported variant=Segmented_Ring.64k
	jq -e '.network | .library == "Open MPI" and .ranks == 2 and (has("allreduce") | not)
		and [.variants[].variant] == ["segmented_ring.64K"]' out.txt
	cp out.txt ring.json
	wants 0 gf-profile -q --import "$data/import/osu.log" --imported variant=default
	jq -e '.network | .allreduce[0].algorithm == "library" and .allreduce[0].fit == .variants[0].fit' out.txt
	cp out.txt default.json
	# either order makes one network, which has no gain in it
	for files in "ring.json default.json" "default.json ring.json"; do
		wants 1 gf-plan --emit ompi $files
		says "MPI_Allreduce as it is is as good as all that was measured"
	done
	jq '.producer = "another"' ring.json > again.json
	wants 2 gf-plan --emit ompi default.json ring.json again.json
	says 'want each variant once, got "segmented_ring.64K" again'
	jq '.network.library = "Open MPI 5"' ring.json > five.json
	wants 2 gf-plan --emit ompi default.json five.json
	says "want variants of one library between the same ranks"
	wants 2 gf-profile --import "$data/import/osu.log" --imported variant=ring.ll
	one_line
	says "--imported: variant: Open MPI's MPI_Allreduce: ring is not cut into segments"
	wants 2 gf-profile --import "$data/import/nccl-tests.txt" --imported variant=ring
	says "--imported: variant: NCCL's ncclAllReduce: "
	wants 0 gf-profile -q --import "$data/import/nccl-tests.txt" --imported variant=ring.simple.8
	jq -e '.network | .library == "NCCL" and .variants[0].variant == "ring.simple.8"' out.txt
	wants 2 gf-profile --import "$data/import/told.jsonl" --imported variant=ring
	says "says itself what the library was told"
	wants 2 gf-profile --import "$data/import/six.csv" --imported variant=ring
	one_line
	says "--imported: variant: want all-reduces, got csv"
	[ -z "$output" ]
}

@test "--import refuses" {
	wants 3 gf-profile --import no-such-file.csv
	one_line
	wants 2 gf-profile --import "$data/import/six.csv" --passes backward=16s
	says '--passes: backward: want at least 17 s, when the last gradient of'
	[ -z "$output" ]
	wants 0 gf-profile --import "$data/import/six.csv" --passes backward=17s
	wants 2 gf-profile --import "$share/models/digits-mlp.json"
	says 'digits-mlp.json: this is a model of gradflow: give it by --model'
	one_line
	# the halves by name, by their busbw, beside an all-reduce and alone
	awk '/^ +[0-9]/ {$8 = sprintf("%.2f", 0.75 * $7); $12 = sprintf("%.2f", 0.75 * $11)} {print}' "$data/import/nccl-tests.txt" > scatter.txt
	(cat "$data/import/nccl-tests.txt"; echo '# Collective test starting: all_gather_perf'; cat scatter.txt) > both.txt
	wants 0 gf-profile --import both.txt
	says 'library, all_gather of '
	jq '.network | .allreduce |= map(select(.collective | not))' out.txt > both.json
	jq -e '.network.allreduce | map(.collective) == [null, "all_gather"] and .[0].startup_s == .[1].startup_s' out.txt
	gf-profile --import "$data/import/nccl-tests.txt" | jq .network | cmp - both.json
	wants 0 gf-profile --import scatter.txt
	jq -e '.network.allreduce | map(.collective) == ["reduce_scatter"]' out.txt
	for name in Allgather Reduce_scatter; do
		sed "s/MPI Allreduce/MPI $name/; s/osu_allreduce/osu_${name,}/" "$data/import/osu.log" > osu.txt
		wants 0 gf-profile --import osu.txt
		jq -e --arg name "$(tr A-Z a-z <<< "$name" | sed 's/allg/all_g/')" \
			'.network.allreduce | length == 1 and .[0].collective == $name' out.txt
	done
	# all_gather_perf, from the README of skypilot-org/skypilot's gcp_gpu_direct_tcpx
	wants 2 gf-profile --import "$data/import/all-gather-skypilot.log"
	says 'want the table of an all-reduce, got a collective that reduces nothing'
	one_line
	printf 'lorem ipsum' > text
	wants 2 gf-profile --import text
	says "want the format of one of csv, gf-allreduce, nccl-tests, osu, imb"
	one_line
	printf 'lorem\0ipsum' > zero
	wants 2 gf-profile --import zero
	says 'zero: want text, got a zero byte at offset 5'
	one_line
	wants 2 gf-profile --import "$data/import/six.csv" --model digits-mlp
	says '--import goes without --model'
	wants 2 gf-profile --ranks 4 --model digits-mlp
	says '--ranks: want --join'
	grep -v mpirun "$data/import/osu.log" > osu.txt
	wants 2 gf-profile --import osu.txt
	says 'osu.txt: osu: it does not say how many ranks there were: want --ranks'
	[ -z "$output" ]
}

@test "--estimate: what forward keeps, by sample and type" {
	local total='[.model.tensors[].activation_bytes // 0] | add'
	wants 0 gf-profile -q --estimate --flops 1e12 --batch 4 --model resnet50
	# PyTorch 2.15 keeps 344079012 bytes
	jq -e "$total | . / 344079012 > 0.99 and . / 344079012 < 1.01" out.txt
	jq -e '.model.tensors[-1] | .name == "conv1.weight" and .activation_bytes == 4 * 4 * 3 * 224 * 224' out.txt
	jq "$total" out.txt > f32
	wants 0 gf-profile -q --estimate --gpu h100 --precision bf16 --batch 4 --model resnet50
	# but for indices and statistics it is half of that
	jq -e "$total / $(cat f32) | . > 0.5 and . < 0.52" out.txt
	wants 0 gf-profile -q --import "$data/import/six.csv"
	jq -e 'all(.model.tensors[]; has("activation_bytes") | not)' out.txt
}

@test "whole passes: --estimate and gf-plan share them out over the layers" {
	wants 0 gf-profile -q --estimate gtopk-resnet50
	cp out.txt spread.json
	# 16 micro-batches of 16, of which the last overlaps with messages
	jq -e '.model | .batch_per_rank == 16 and .accumulate == 16 and (.tensors | length) == 161 and
		(.forward_s + .backward_s - 4.842 | fabs) < 1e-9 and (.backward_s - 4.842 / 24 | fabs) < 1e-9' spread.json
	wants 0 gf-profile -q --estimate --model resnet50 --batch 16 \
		--passes forward="$(jq .passes.forward_s "$share/profiles/gtopk-resnet50.json")" \
		--passes backward="$(jq .passes.backward_s "$share/profiles/gtopk-resnet50.json")"
	jq -e --slurpfile s spread.json '.model.tensors == $s[0].model.tensors' out.txt
	# a plan has them, too
	cp out.txt passes.json
	wants 0 gf-plan gtopk-resnet50 gtopk-32-1gbe
	jq -e --slurpfile s passes.json '[.tensors[].activation_bytes] == [$s[0].model.tensors[].activation_bytes]' out.txt
	says "times of resnet50's layers are shares of the profile's passes"
	cp out.txt plan.json
	wants 0 gf-plan -q spread.json gtopk-32-1gbe
	jq -e --slurpfile p plan.json '.predicted == $p[0].predicted and .model == $p[0].model' out.txt
	# in a stream, the layers' times take the place of the passes that came with them
	stdin=$share/profiles/gtopk-resnet50.json wants 0 gf-profile -q --estimate
	jq -es 'map(keys) | map(contains(["passes"])) == [true, false]' out.txt
	cp out.txt stream.json
	stdin=$PWD/stream.json wants 0 bash -c "gf-plan -q - gtopk-32-1gbe > streamed.json"
	jq -e --slurpfile p plan.json '.predicted == $p[0].predicted' streamed.json
	wants 0 gf-profile --table gtopk-resnet50
	[[ $output == 'resnet50 on P102-100, 16 samples per rank, 16 micro-batches a step: '*'; nothing is known of its layers' ]]
	local options
	while IFS='|' read -r reason options; do
		wants 2 $options
		says "$reason"
	done << 'EOF'
want no time, rate or batch beside a profile with passes, got some|gf-profile --estimate --gpu v100 gtopk-resnet20
want the model resnet20, whose passes the profile has, got resnet50|gf-profile --estimate --model resnet50 gtopk-resnet20
want the model resnet20, whose passes the profile has, got resnet50|gf-plan gtopk-resnet20 resnet50 gtopk-32-1gbe
--gpu: want a model to estimate, found one with times|gf-plan --gpu v100 gtopk-resnet20 gtopk-32-1gbe
there is a model half in it already|gf-profile -a none --model resnet20 gtopk-resnet20
EOF
	# a name in a document is never a path
	jq '.passes.model = "other"' "$share/profiles/gtopk-resnet20.json" > other.json
	touch other
	wants 3 gf-plan other.json gtopk-32-1gbe
	says 'want other in share/models, found none'
}

@test "every paper's profile is of a shipped model and makes a plan" {
	local p
	for p in "$share"/profiles/*-*.json; do
		jq -e '."x-source" | length > 60' "$p"
		[[ $p == *-network* ]] || wants 0 gf-plan -q --policy single "$p" pipe-sgd-4-10gbe
	done
	# GradientFlow's 410 times and 780,000 images a second on 512 GPUs
	while IFS='|' read -r options key paper; do
		# shellcheck disable=SC2086 # options are words
		gf-plan -q $options gradientflow-alexnet-volta-mixed gradientflow-network-v > plan.json
		wants 0 gf-sim -q --table=json plan.json
		jq -e --argjson paper "$paper" ".$key / \$paper - 1 | fabs < 0.02" out.txt
	done <<- 'END'
		--system gradientflow --selection keep=.15|speedup|410.2
		--policy threshold --algorithm ring --codecs f16|samples_per_s|780400
	END
}

@test "--estimate needs no hardware" {
	wants 0 gf-profile --estimate --flops 7e12 --model resnet50 --batch 64
	jq -e '.model | .name == "resnet50" and .batch_per_rank == 64 and .backward_s > .forward_s' out.txt
	jq -e '.model.tensors | map(.ready_s) | . == sort' out.txt
	wants 0 gf-profile --estimate --passes forward=80ms,backward=160ms --model resnet50
	jq -e '.model | (.forward_s - 0.08 | fabs) < 1e-9 and (.backward_s - 0.16 | fabs) < 1e-9' out.txt
	wants 2 gf-profile --estimate --model resnet50
	says '--estimate: want --gpu, --flops, --passes or a profile with passes, found none'
	wants 2 gf-profile --estimate --flops 7e12
	says '--estimate: want a model'
	wants 2 gf-profile --estimate --flops 7e12 --passes forward=1s --model resnet50
	says '--flops goes without --passes'
	wants 2 gf-profile --estimate --flops 7e12 --gpu a100 --model resnet50
	says '--gpu goes without --flops'
	wants 0 gf-profile --estimate --gpu a100 --model resnet50
	says '50 % of 156 TFLOP/s (tf32)'
	says 'by default: 32 samples per rank (--batch)'
	wants 2 gf-profile --flops 7e12 --model resnet50
	says '--flops goes with --estimate'
}

@test "options that measure are refused where nothing is measured" {
	while IFS='|' read -r text options; do
		# shellcheck disable=SC2086
		wants 2 gf-profile $options
		says "$text"
		[ -z "$output" ]
	done <<-'END'
	--threads goes without --estimate|--estimate --flops 1e12 --model resnet20 --threads 2
	--algorithms goes without --estimate|--estimate --flops 1e12 --model resnet20 -a ring
	--timeout goes without --import|--import x.csv --timeout 5s
	--lanes, --budget and --collectives go without --algorithms none|-a none --lanes 2 --model digits-mlp
	--pairs goes without --device|--pairs --device ref
	--pairs goes without --lanes|--pairs --lanes 2
	END
}

@test "models of sequences are measured, too" {
	cat > tiny.json <<-'END'
	{"format": "gf-model", "version": 1, "name": "tiny", "input": [4], "classes": 300,
	 "layers": [{"name": "e", "type": "embedding", "entries": 300, "outputs": 8},
	            {"name": "l", "type": "lstm", "outputs": 8},
	            {"name": "f", "type": "fc", "outputs": 300, "bias": true}]}
	END
	wants 0 gf-profile -q $quick --model ./tiny.json
	jq -e '.model.tensors | length >= 4 and .[-1].name == "e.weight"' out.txt
}

@test "usage errors" {
	wants 2 gf-profile --device abacus
	says 'got "abacus"'
	wants 2 gf-profile --batch 0
	says '--batch'
	wants 2 gf-profile --repeats many
	says '--repeats'
	wants 2 gf-profile --algorithms ring,carrier-pigeon
	says "$(choice_of algorithms), got \"carrier-pigeon\""
	wants 2 gf-profile --max-bytes 4K
	says '--max-bytes: want at least 32 times min_bytes of --points, got 4096 and 1024'
	wants 2 gf-profile --points time=soon
	says '--points: time'
	wants 0 gf-profile --help
	prints '--algorithms'
	wants 0 gf-profile --version
	prints 'gf-profile (gradflow)'
}

@test "--device: names, and GPUs that are not there" {
	wants 2 gf-profile --model digits-mlp --device tpu
	says '--device: want cpu, cuda, cuda:N or auto, got "tpu"'
	wants 2 gf-profile --import x.csv --device cuda
	gf-allreduce --list | grep -q '^device *cuda:0' && skip 'there is a GPU'
	wants 3 gf-profile --model digits-mlp --device cuda
	grep -qE '^gf-profile: (no GPU that CUDA can use: |built without CUDA)' err.txt
	[ -z "$output" ]
	local device
	for device in '' '--device auto' '--device ref'; do
		# shellcheck disable=SC2086
		wants 0 gf-profile --model digits-mlp $device --repeats 1:warmup=0
		jq -e '.model.device == "cpu" and (has("copies") | not)' out.txt
	done
}

@test "a build without oneDNN says what its layers cost, unless they were asked for" {
	lean=$GF_SOURCE/$BUILD/lean/gf-profile # as a Python wheel has it
	[ -x "$lean" ] || skip "a sanitizer cannot be brought along"
	wants 0 "$lean" --model digits-mlp $quick
	says 'plain C computes the layers, many times slower than oneDNN'
	wants 0 "$lean" --model digits-mlp $quick --device ref
	fails grep 'plain C' err.txt
}

# A library that changes its algorithm too late, made up: up to 1 MiB 1.3 ns per byte, then a sixth.
table_that_falls() { # which size is slow by chance, in KiB, or none
	echo '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'
	for ((k = 1; k <= 65536; k *= 2)); do
		awk -v k=$k -v slow="$1" 'BEGIN {
			us = k <= 1024 && slow == "none" ? 33 + 1.3 * k : 60 + .15 * k
			us *= k == slow ? 4 : 1
			bw = 1.024 * k / us
			row = sprintf(" %9.2f %9.5f %9.5f 0", us, bw, 1.875 * bw)
			printf "%d %d float sum -1%s%s\n", 1024 * k, 256 * k, row, row
		}'
	done
}

@test "sizes at which the cost of an all-reduce falls are named, and one slow sample is none" {
	table_that_falls none > falls.txt
	run gf-profile --import falls.txt -o falls.json
	[ "$status" -eq 0 ]
	[[ $output == *'library: a message of 2 MiB takes '*', shorter ones from '*' KiB on up to 2.'*' ms: avoid these sizes'* ]]
	jq -e '.network.allreduce[0].larger[0].from_bytes == 2097152' falls.json
	run gf-plan --model resnet50 falls.json -o plan.json
	[[ $output == *'a message of 2 MiB takes '* ]]
	for slow in 64 1024; do
		table_that_falls $slow > slow.txt
		run gf-profile --import slow.txt -o slow.json
		[ "$status" -eq 0 ]
		[[ $output != *'avoid these sizes'* ]]
	done
}
