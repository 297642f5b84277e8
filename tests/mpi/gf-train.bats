#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load ../cli/common

quick="-q --epochs 1 --threads 1"

# largest DIR DIR STEP: the largest difference of a parameter between rank 0's
# files of two checkpoints
largest() {
	python3 - "$1/step-$3/rank-0.safetensors" "$2/step-$3/rank-0.safetensors" <<- 'END'
		import array, json, struct, sys
		def read(path):
		    data = open(path, 'rb').read()
		    n = struct.unpack('<Q', data[:8])[0]
		    head = json.loads(data[8:8 + n])
		    head.pop('__metadata__')
		    out = {}
		    for name, t in head.items():
		        if t['dtype'] == 'F32':
		            begin, end = t['data_offsets']
		            out[name] = array.array('f', data[8 + n + begin:8 + n + end])
		    return out
		a, b = read(sys.argv[1]), read(sys.argv[2])
		assert a.keys() == b.keys() and a
		print(max(abs(x - y) for k in a for x, y in zip(a[k], b[k])))
	END
}

# bats test_tags=long
@test "the defaults on 4 ranks: at least 95 % in 10 epochs, replicas alike" {
	wants 0 mpi 4 gf-train --target 0.95 --check-replicas 20 --threads 1
	tail -n 1 out.txt | grep -qE '^test accuracy 9[5-9]\.'
	[ "$(grep -c 'epoch 10/10' err.txt)" -eq 1 ]
}

# one_rank MODEL RANKS...: each number of ranks with its share of the batch does what one does.
# Sums are taken in another order; 20 steps let that grow to about 1e-6.
one_rank() {
	command -v python3 > /dev/null || skip "python3 is not installed"
	local model=$1 ranks
	wants 0 gf-train $quick --model $model --batch 48 --steps 20 --checkpoint one-$model
	for ranks in "${@:2}"; do
		wants 0 mpi $ranks gf-train $quick --model $model --batch $((48 / ranks)) --steps 20 \
			--checkpoint $model-$ranks --check-replicas 1
		largest one-$model $model-$ranks 20 > difference.txt
		echo "$model on $ranks ranks: $(cat difference.txt)"
		awk '{exit !($1 < 1e-4)}' difference.txt
	done
}

@test "P ranks with batch B are one rank with batch P*B" {
	one_rank digits-mlp 3
	one_rank digits-cnn-plain 4
}

# bats test_tags=long
@test "P ranks with batch B are one rank with batch P*B, on other numbers of ranks" {
	one_rank digits-mlp 2 4
	one_rank digits-cnn-plain 2 3
}

@test "replicas stay alike on any number of ranks, by every way to reduce" {
	for ranks in 2 3; do
		for algorithm in ring butterfly library; do
			jq -n --arg a $algorithm '{format: "gf-plan", version: 1, policy: "threshold",
				rule: {threshold_bytes: 20000, lanes: 2, algorithms: [{min_bytes: 0, algorithm: $a}]}}' > rule.json
			wants 0 mpi $ranks gf-train $quick --batch 8 --steps 12 --plan rule.json --check-replicas 1
		done
	done
}

@test "the papers' plans: trained, replicas alike, and bytes told" {
	gf-topo --synthetic "node:3@125MB/s,50us" > topo.json
	while read -r system most options; do
		gf-plan topo.json --model digits-cnn --system "$system" $options > plan.json
		wants 0 mpi 3 gf-train -q --threads 1 --plan plan.json --epochs 8 --check-replicas 5 \
			--target 0.8 --log log.jsonl
		grep -qE '^sent .* per rank and step, .* % of dense f32' out.txt
		grep -qE '^per step: packing, selection and scaling .*s, codecs and merging .*s$' out.txt
		grep -qE '^of waiting, .*s are selection and codecs, .*s communication$' out.txt
		jq -se 'map(select(.part == "train")) | length == 8 and all(
			.select_s > 0 and .codec_s >= 0 and (.method != "gtopk" or .codec_s > 0) and .select_s + .codec_s < .time_s and
			.exposed_handling_s <= .exposed_s and .exposed_handling_s <= .select_s + .codec_s + 1e-9 and
			.compute_s > 0 and .load_s > 0 and
			.load_s + .compute_s + .update_s + .exposed_s <= .time_s)' log.jsonl
		jq -se 'map(select(.part != "train")) | all(has("select_s") or has("codec_s") | not)' log.jsonl
		# after the warm-up a step sends this share of a dense step
		tail -n 40 log.jsonl | jq -se --argjson most "$most" 'map(select(.part == "batch")) |
			length > 20 and all(.sent_bytes > 0 and .sent_bytes < $most * .dense_bytes)'
		rm log.jsonl
	done <<- 'END'
		gtopk 0.02
		gtopk 0.1 --selection topk:density=0.01
		gradientflow 0.2 --selection chunk_elems=1000
	END
}

@test "sets under codecs: the bytes that the simulator sends" {
	gf-topo --synthetic "node:3@125MB/s,50us" > topo.json
	while read -r method codec; do
		gf-plan -q topo.json --model digits-mlp --policy wfbp \
			--selection "$method:density=.05,warmup_densities=none" --codecs "$codec" > plan.json
		sent=$(replayed_sends plan.json | jq 'map(.args.bytes) | add')
		wants 0 mpi 3 gf-train -q --threads 1 --plan plan.json --steps 3 --check-replicas 1 --log log.jsonl
		jq -se --argjson sent "$sent" 'map(select(.part == "batch").sent_bytes) | length == 3 and all(. == $sent)' log.jsonl
		rm log.jsonl
	done < <(facts 'select(.set_codec) | "\($name) \(.set_codec)"')
}

@test "stopped and resumed: the same files on every rank" {
	wants 0 mpi 3 gf-train $quick --epochs 2 --checkpoint through
	wants 0 mpi 3 gf-train $quick --epochs 2 --checkpoint stopped --steps 41
	wants 0 mpi 3 gf-train $quick --epochs 2 --checkpoint stopped --resume
	last=$(ls through | sort -t - -k 2 -n | tail -n 1)
	for rank in 0 1 2; do
		cmp "through/$last/rank-$rank.safetensors" "stopped/$last/rank-$rank.safetensors"
	done
	# each rank's own statistics of batch norm differ
	fails cmp -s "through/$last/rank-1.safetensors" "through/$last/rank-2.safetensors"
	wants 2 mpi 2 gf-train $quick --checkpoint stopped --resume
	[ "$(grep -c '^gf-train: rank 0: stopped[^:]*: was written with ranks 3, this run has 2 (--resume=any goes on with others)$' err.txt)" -eq 1 ]
}

# goes_on SELECTION
goes_on() {
	pipe_plan 4 --policy wfbp --selection $1 > four.json
	pipe_plan 2 --policy wfbp --selection $1 > two.json
	wants 0 mpi 4 gf-train $quick --plan four.json --batch 8 --steps 6 --checkpoint ckpt
	wants 2 mpi 2 gf-train $quick --plan two.json --batch 8 --steps 14 --checkpoint ckpt --resume
	grep -q 'was written with ranks 4, this run has 2' err.txt
	wants 0 mpi 2 gf-train $quick --plan two.json --batch 8 --steps 14 --checkpoint ckpt --resume=any --check-replicas 1
	[ -f ckpt/step-12/rank-1.safetensors ]
	[ ! -e ckpt/step-12/rank-2.safetensors ]
	# fewer steps than were done, and yet the newest
	wants 0 mpi 4 gf-train $quick --plan four.json --batch 8 --steps 8 --checkpoint ckpt --resume=any --check-replicas 1
	[ "$(ls ckpt | sort | tr '\n' ' ')" = 'step-7 step-8 ' ]
	wants 0 mpi 4 gf-train $quick --plan four.json --batch 8 --steps 9 --checkpoint ckpt --resume
}

@test "on with other ranks: replicas, and a checkpoint of their own" { goes_on csc:keep=.1,chunk_elems=512; }

# bats test_tags=long
@test "on with other ranks: sets that each rank chooses" { goes_on gtopk:density=.01,warmup_densities=none; }

@test "on with other ranks beside a server, which has nothing to hand over" {
	for ranks in 2 3 4; do pipe_plan $ranks --servers 1 --staleness 2 --policy single > $ranks.json; done
	wants 0 mpi 4 gf-train $quick --plan 4.json --batch 8 --steps 6 --checkpoint ckpt
	wants 2 mpi 3 gf-train $quick --plan 3.json --batch 8 --steps 14 --checkpoint ckpt --resume
	grep -q 'was written with ranks 4, this run has 3 (--resume=any goes on with others)$' err.txt
	wants 0 mpi 3 gf-train $quick --plan 3.json --batch 8 --steps 14 --checkpoint ckpt --resume=any --check-replicas 1
	wants 0 mpi 2 gf-train $quick --plan 2.json --batch 8 --steps 30 --checkpoint ckpt --resume=any --check-replicas 1
	[ -f ckpt/step-30/rank-1.safetensors ]
	[ ! -e ckpt/step-30/rank-2.safetensors ]
	# as many ranks, none of which serves
	pipe_plan 2 --staleness 2 --policy single > plain.json
	wants 2 mpi 2 gf-train $quick --plan plain.json --batch 8 --steps 40 --checkpoint ckpt --resume
	grep -q 'was written with servers 1, this run has 0$' err.txt
	wants 0 mpi 2 gf-train $quick --plan plain.json --batch 8 --steps 40 --checkpoint ckpt --resume=any --check-replicas 1
}

@test "a profile, a plan, training by it, a trace of every rank" {
	gf-topo > topo.json
	wants 0 mpi 2 gf-profile -q --model digits-mlp --batch 8 --repeats 3:warmup=1 --threads 1 --points time=1ms --max-bytes 64K --lanes 2 -a ring
	mv out.txt prof.json
	gf-plan topo.json prof.json > plan.json
	wants 0 mpi 2 gf-train -q --epochs 1 --threads 1 --plan plan.json --trace trace.json
	grep -qE '^step predicted .*, measured .*, measured/predicted [0-9.]+$' out.txt
	grep -qE ' predicted ' out.txt
	jq -e '[.traceEvents[] | select(.name == "process_name").args.name] | sort == ["predicted", "rank 0", "rank 1"]' trace.json
	# as many messages on every rank, and predicted, as the plan has in the steps shown
	jq -e --slurpfile plan plan.json '
		([.traceEvents[] | select(.name == "forward" and .pid == 0)] | length) as $steps |
		[.traceEvents[] | select(.ph == "X" and .cat == "message")] |
		group_by(.pid) | map(length) | . == [range(3) | $steps * ($plan[0].messages | length)]' trace.json
	jq -e '[.traceEvents[] | select(.cat == "message").args | .bytes > 0 and .algorithm == "ring" and .first <= .last] | all' trace.json
	# lanes: messages of one thread do not overlap
	jq -e '[.traceEvents[] | select(.cat == "message")] | group_by([.pid, .tid]) |
		map(sort_by(.ts) | . as $m | [range(1; length) | $m[.].ts >= $m[. - 1].ts + $m[. - 1].dur - 0.0005] | all) | all' trace.json
	jq -e '.otherData.clock_offset_s | length == 2 and .[0] == 0' trace.json
	wants 0 mpi 2 gf-train -q --replay --plan plan.json --steps 30
	grep -qE '^step predicted .*, measured ' out.txt
	# chunks are chosen in a replay, too, and a plan's micro-batches are those of the run
	pipe_plan 2 --selection csc:warmup_steps=0,keep=.1 > plan.json
	wants 0 mpi 2 gf-train -q --replay --plan plan.json --steps 20
	grep -qE '^sent .*, 1[0-9].* % of dense' out.txt
	# blocks, and steps that a codec rounds: as many bytes as gf-sim's steps have
	while read -r options; do
		pipe_plan 4 --policy single $options | jq '.segment_bytes = 400' > plan.json
		replayed_sends plan.json | jq 'map(.args.bytes) | add' > bytes.txt
		wants 0 mpi 4 gf-train $quick --plan plan.json --steps 1 --log log.jsonl
		jq -se --argjson bytes "$(cat bytes.txt)" 'map(select(.part == "batch").sent_bytes) == [$bytes]' log.jsonl
		rm log.jsonl
	done < <(echo '--algorithm ring --codecs q8'
		echo '--algorithm hierarchical --codecs f16'
		facts 'select(.summed_codec) | "--selection \($name) --codecs \(.summed_codec)"')
	# chunks go whole
	pipe_plan 4 --policy single --selection csc:warmup_steps=0,keep=.1 > plan.json
	replayed_sends plan.json | jq 'map(.args.bytes) | add' > bytes.txt
	wants 0 mpi 4 gf-train $quick --plan plan.json --steps 3 --log log.jsonl
	jq -se --argjson bytes "$(cat bytes.txt)" 'map(select(.part == "batch").sent_bytes)[1:] == [$bytes, $bytes]' log.jsonl
	rm log.jsonl
	# and the packs of a step are told as they are
	pipe_plan 4 --policy wfbp --selection csc:warmup_steps=0,keep=.1 --threshold 1M > plan.json
	pack=$(gf-sim -q plan.json --steps --table | awk '$1 == 0 {print "{\"bytes\": " $3 ", \"by\": \"" $4 "\"}"; exit}')
	wants 0 mpi 4 gf-train $quick --plan plan.json --steps 4 --trace trace.json
	jq -e --argjson pack "$pack" '
		[.traceEvents[] | select(.cat == "message" and .pid == 0).args] |
		any(.first == 0 and .last == 5 and .bytes == $pack.bytes and .algorithm == $pack.by)' trace.json
	wants 0 gf-plan -q --refine trace.json plan.json
	pipe_plan 2 --accumulate 3 > plan.json
	wants 0 mpi 2 gf-train $quick --plan plan.json --steps 1 --log log.jsonl
	jq -se 'map(select(.part == "batch") | [.accumulate, .samples, .codecs, .staleness, .precision]) ==
		[[3, 48, "f32", 1, "f32"]]' log.jsonl
}

@test "rank 0 reads standard input for all" {
	gf-topo | gf-plan > rule.json
	# here, too, that each rank ends MPI: mpirun itself is late at times (docs/reliability.md)
	for _ in 1 2 3; do
		status=0
		OMPI_MCA_orte_allowed_exit_without_sync=0 PRTE_MCA_prte_allowed_exit_without_sync=0 \
			mpi 3 gf-train $quick --steps 5 --plan - < rule.json > out.txt || status=$?
		tail -n 1 out.txt | grep -q '^test accuracy '
		[ $status -ne 0 ] || break
	done
	[ $status -eq 0 ]
}

@test "the log is written once, by rank 0" {
	wants 0 mpi 3 gf-train $quick --batch 16 --log log.jsonl
	jq -se '(map(select(.part == "batch")) | length) == 29 and all(.ranks == 3)' log.jsonl
	jq -se 'map(select(.part == "test").samples) == [360]' log.jsonl
}

@test "refusals end every rank, and are printed once" {
	jq -n '{format: "gf-plan", version: 1, policy: "single", ranks: 4, lanes: 1,
		model: {name: "digits-mlp", device: "cpu", forward_s: 1, backward_s: 1, update_s: 0, overlap_slowdown: 1},
		network: {ranks: 4, allreduce: [{algorithm: "ring", startup_s: 1, per_byte_s: 1}]},
		tensors: [{name: "a", count_elems: 3, dtype: "f32", ready_s: 0.5, type: "normal"}],
		messages: [{first: 0, last: 0, mode: "normal", release: "ready", half: "all", algorithm: "ring", codec: "f32"}]}' > plan.json
	while IFS='|' read -r status arguments text; do
		wants "$status" mpi 3 gf-train -q $arguments
		[ "$(grep -cF -- "$text" err.txt)" -eq 1 ] || { cat err.txt; return 1; }
	done <<- 'END'
		2|--plan plan.json|plan.json: the plan is for 4 ranks, this job has 3
		3|--plan missing.json|missing.json: No such file or directory
		2|--model missing|missing: want a path or a name in share/models, found neither
		3|--data missing|missing: want a folder with data of a known format
		2|--data synthetic:30 --batch 16|want at least 48 training samples (3 ranks, batch 16)
		3|--trace no/such/t.json|no/such/t.json: No such file or directory
		3|--log /dev/full --epochs 1|/dev/full: No space left on device
		3|--trace /dev/full --epochs 1|/dev/full: No space left on device
		3|-o /dev/full --epochs 1|/dev/full: No space left on device
		1|--target 1 --steps 2|want test accuracy 1.0000, got 0.
		1|--lr 1e9 --schedule warmup_epochs=0 --epochs 1|training has diverged
		2|--epochs 0|--epochs: want an integer
		2|--resume|--resume goes with --checkpoint
	END
}

@test "data that only one rank finds damaged" {
	cp -r "$share/data/digits" good
	cp -r good bad
	truncate -s 100 bad/train-images-idx3-ubyte.gz
	cat > choose.sh <<- 'END'
		#!/bin/bash
		[ "$OMPI_COMM_WORLD_RANK" -eq 1 ] && mine=bad || mine=good
		exec gf-train -q --epochs 1 --data $mine
	END
	chmod +x choose.sh
	wants 2 mpi 3 ./choose.sh
	[ "$(grep -c 'rank 1: bad/train-images-idx3-ubyte.gz: the gzip stream is truncated' err.txt)" -eq 1 ]
}

@test "help and version under mpirun" {
	wants 0 mpi 3 gf-train --version
	[ "$(wc -l < out.txt)" -eq 1 ]
	wants 0 mpi 3 gf-train --help
	[ "$(grep -c '^Usage' out.txt)" -eq 1 ]
}

# what gf-plan makes of a profile that nobody measured: the axes count here
pipe_plan() { # ranks, options of gf-plan
	local ranks=$1
	shift
	gf-profile --model digits-mlp --batch 8 --estimate --flops 1e10 < /dev/null > model.json
	echo '{"format": "gf-topology", "version": 1, "name": "n", "source": "s", "ranks": '"$ranks"', "levels": [{"name": "net", "size": '"$ranks"',
		"link": "ethernet", "bandwidth_bytes_per_s": 1.25e8, "latency_s": 5e-5}]}' > net.json
	gf-plan net.json model.json "$@"
}

# split_as_whole: MODEL DEVICE OPTIONS... in each line
split_as_whole() {
	while read -r model device options; do
		rm -rf split whole
		gf-topo -q --synthetic "net:3@1Gb/s,50us" | gf-plan --model $model --policy dear --algorithm ring > split.json
		jq -e '[.messages[].half] | index("split")' split.json
		jq '.messages[].half = "all"' split.json > whole.json
		for plan in split whole; do
			wants 0 mpi 3 gf-train $quick --plan $plan.json --device $device --steps 12 --check-replicas 4 \
				--checkpoint $plan --checkpoint-every 5 --log $plan.jsonl $options
		done
		for step in 10 12; do
			for rank in 0 1 2; do
				cmp split/step-$step/rank-$rank.safetensors whole/step-$step/rank-$rank.safetensors
			done
		done
		diff <(jq -c '[.part, .step, .loss, .accuracy]' split.jsonl) <(jq -c '[.part, .step, .loss, .accuracy]' whole.jsonl)
	done
}

# bats test_tags=long
@test "all-gathers in the next forward: as whole all-reduces, of each device and optimizer" {
	split_as_whole <<- 'END'
		digits-cnn auto --batch 8
		digits-mlp auto --optimizer clip_norm=0.5
	END
}

@test "all-gathers in the next forward: what whole all-reduces make, bit for bit" {
	split_as_whole <<- 'END'
		digits-cnn ref --batch 2 --accumulate 3 --optimizer lars
		digits-mlp auto --bad-gradients skip
	END
	# and without compute: waits in forward, as predicted
	gf-topo -q --synthetic "net:3@1Gb/s,50us" | gf-plan --model digits-mlp --policy dear --algorithm ring |
		jq '.model.forward_s = 0.004 | .model.backward_s = 0.004 | .tensors |= [to_entries[] | .value.ready_s = 0.0005 * (.key + 1) | .value]' > split.json
	wants 0 mpi 3 gf-train -q --replay --plan split.json --steps 20 --trace late.json
	grep -q '^step ' out.txt
	jq -e '[.traceEvents[] | select(.ph == "X")] | map(select(.cat == "late")) as $late |
		map(select(.cat == "forward")) as $forward | ($late | length > 0) and
		($late | all(. as $l | $forward | any(.pid == $l.pid and .ts <= $l.ts and .ts + .dur + 0.002 >= $l.ts + $l.dur)))' late.json
}

@test "all-gathers may not be late where a step looks at its whole gradient first: messages go whole" {
	local whole options why
	gf-topo -q --synthetic "net:2@1Gb/s,50us" | gf-plan --model digits-mlp --batch 16 --flops 1e10 --policy dear --algorithm ring > split.json
	whole=$(jq '.messages[].half = "all"' split.json | gf-sim 2>&1 > rows.txt | sed -n 's/^gf-sim: \(.*\) a step on .*/\1/p')
	[ -n "$whole" ]
	wants 0 mpi 2 gf-train --epochs 1 --threads 1 --plan split.json --steps 12
	grep '^step predicted ' out.txt
	fails grep -F "step predicted $whole," out.txt
	fails grep -F "split messages" err.txt
	while IFS='|' read -r options why; do
		wants 0 mpi 2 gf-train --epochs 1 --threads 1 --plan split.json --steps 12 $options
		says "split messages go whole, beside backward: $why"
		grep -F "step predicted $whole," out.txt
	done <<- 'END'
		--optimizer clip_norm=1|gradients are clipped at a norm
		--loss-scale dynamic|a loss scale may skip the step
		--bad-gradients skip|bad gradients skip the step
	END
}

# resumes: RANKS|OPTIONS in each line
resumes() {
	while IFS='|' read -r ranks options; do
		rm -rf through stopped
		pipe_plan "$ranks" $options > plan.json
		wants 0 mpi "$ranks" gf-train $quick --plan plan.json --batch 8 --steps 9 --check-replicas 1 --checkpoint through
		wants 0 mpi "$ranks" gf-train $quick --plan plan.json --batch 8 --steps 4 --checkpoint stopped
		wants 0 mpi "$ranks" gf-train $quick --plan plan.json --batch 8 --steps 9 --checkpoint stopped --resume
		for ((r = 0; r < ranks; r++)); do
			cmp through/step-9/rank-$r.safetensors stopped/step-9/rank-$r.safetensors
		done
	done
}

# bats test_tags=long
@test "a rank that serves, stale gradients, codecs: each alone" {
	resumes <<- 'END'
		3|--servers 1 --policy single
		3|--staleness 2 --policy wfbp --algorithm ring --codecs f16
	END
}

@test "a rank that serves, stale gradients, codecs: replicas, resumed byte for byte" {
	resumes <<- 'END'
		4|--servers 1 --staleness 2 --policy single
		3|--system pipe-sgd
		4|--staleness 2 --policy single --algorithm rhd --codecs q8
	END
	pipe_plan 3 --servers 1 --policy single > plan.json
	wants 0 mpi 3 gf-train $quick --plan plan.json --steps 1 --trace trace.json --log log.jsonl # the server's passes are none
	# what the server sends counts, too
	replayed_sends plan.json | jq 'map(.args.bytes) | add' > bytes.txt
	jq -se --argjson bytes "$(cat bytes.txt)" 'map(select(.part == "batch").sent_bytes) == [$bytes]' log.jsonl
	wants 2 mpi 3 gf-allreduce -q --plan plan.json
	grep -q 'want a plan without a server (gf-train runs them), got 1' err.txt
	jq -e '[.traceEvents[] | select(.cat == "alone").pid] | sort == [0, 0, 1, 1]' trace.json
	wants 2 mpi 2 gf-train $quick --plan plan.json
	grep -q 'the plan is for 2 ranks and a server, this job has 2' err.txt
}

@test "ranks that differ find out at the start" {
	unlike gf-train --epochs 2 -- --epochs 3
	says 'training: rank 0 has "epochs": 2, rank 1 has "epochs": 3'
	unlike gf-train --list -- --steps 3
	says 'command: rank 0 has --list, rank 1 has train'
	unlike gf-train --plan one.json -- --plan two.json
	says 'plan: rank 0 has one.json, rank 1 has two.json'
	unlike gf-train --model digits-mlp -- --steps 3
	says 'model: rank 0 has digits-mlp'
	unlike gf-train --steps 3 --trace t.json -- --steps 3
	says 'options: '
	unlike gf-train --steps 3 --reproducible -- --steps 3
	says ' --reproducible'
	unlike gf-train --print-training -- --steps 3
	says 'rank 0 has --print-training'
	unlike gf-train --device cpu --steps 3 -- --device auto --steps 3
	says 'device: rank 0 has cpu, rank 1 has auto'
	unlike gf-train --device cuda --steps 3 -- --steps 3
	says 'device: rank 0 has cuda, rank 1 has auto'
	unlike gf-train --transport mpi --steps 3 -- --steps 3
	says 'transport: rank 0 has mpi, rank 1 has auto'
	unlike gf-train --precision f16 --steps 3 -- --steps 3
	says 'precision: rank 0 has f16, rank 1 has f32'
	unlike gf-train --cuda-graph on --steps 3 -- --steps 3
	says 'options: '
	unlike gf-train --data synthetic:1000 --steps 3 -- --data synthetic:2000 --steps 3
	says 'data: rank 0 has '
	# which GPU, and how many threads, is each rank's own affair
	by_rank gf-train $quick --device cuda:900 -- gf-train $quick --device cuda:901
	wants 3 mpi 2 ./by_rank
	by_rank gf-train $quick --steps 3 --device cpu -- gf-train $quick --steps 3 --device ref
	wants 0 mpi 2 ./by_rank
	wants 0 mpi 2 gf-train --list
	[ "$(grep -c '^  dense' out.txt)" -eq 1 ]
}

@test "steps that a loss scale costs are told, and a fixed scale is blamed" {
	pipe_plan 2 --codecs f16 --algorithm ring --policy single > plan.json
	echo '{"format": "gf-training", "version": 1, "loss_scale": {"mode": "dynamic", "initial": 16777216}}' > scale.json
	wants 0 mpi 2 gf-train $quick --plan plan.json --training scale.json --steps 8 --log log.jsonl
	skipped=$(jq -s 'map(select(.part == "batch").skipped // 0) | max' log.jsonl)
	[ "$skipped" -gt 0 ]
	grep -qE "^$skipped of 8 steps were skipped, since a gradient was infinite or not a number; the loss scale is [0-9]+ now$" out.txt
	wants 1 mpi 2 gf-train $quick --plan plan.json --loss-scale 16777216 --steps 8
	says 'the loss scale of 16777216 is too large, or training has diverged'
}

# bats test_tags=long
@test "a rule that says auto: measured, reported, and kept by a resume" {
	jq -n '{format: "gf-plan", version: 1, rule: {threshold_bytes: 20000, lanes: 1, algorithms: [
		{min_bytes: 0, algorithm: "auto"}]}}' > auto.json
	# the sets of a selection do not go by what would be measured
	jq '.selection = {method: "gtopk", density: .1}' auto.json > sets.json
	wants 0 mpi 3 gf-train $quick --plan sets.json --steps 2 --log sets.jsonl
	jq -se 'all(.algorithms == "gtopk" and (has("choose_s") | not))' sets.jsonl
	wants 0 mpi 3 gf-train $quick --plan auto.json --steps 4 --checkpoint auto --log log.jsonl --check-replicas 1
	jq -se 'map(.algorithms) | unique | length == 1' log.jsonl
	chosen=$(jq -rs '.[0].algorithms' log.jsonl)
	# algorithms of this build, and none that promises nothing about bits
	[ -n "$chosen" ]
	if grep -qE 'auto|library' <<< "$chosen"; then false; fi
	jq -se '(.[0].choose_s > 0) and (map(.choose_s) | unique | length) == 1' log.jsonl
	if grep -qE ' (auto|library) ' out.txt; then false; fi
	# what another run chose is taken, whatever is faster now: tree for one
	# size, ps for the others
	jq '.rule.algorithms = [{min_bytes: 0, algorithm: "tree"}, {min_bytes: 30000, algorithm: "ps"}]' auto.json > fixed.json
	wants 0 mpi 3 gf-train $quick --plan fixed.json --steps 4 --checkpoint fixed
	cp -r fixed again
	wants 0 mpi 3 gf-train $quick --plan fixed.json --steps 8 --checkpoint fixed --resume
	wants 0 mpi 3 gf-train $quick --plan auto.json --steps 8 --checkpoint again --resume --log again.jsonl
	jq -se 'any(has("choose_s")) | not' again.jsonl
	jq -se 'all(.algorithms == "ps;tree")' again.jsonl
	cmp <(tail -c 4096 fixed/step-8/rank-0.safetensors) <(tail -c 4096 again/step-8/rank-0.safetensors)
	[ "$(largest fixed again 8)" = 0.0 ]
	# another threshold makes other messages
	jq '.rule.threshold_bytes = 1' auto.json > other.json
	wants 2 mpi 3 gf-train $quick --plan other.json --steps 12 --checkpoint again --resume
	says 'again: was written with'
	# gf-allreduce measures such a rule, too
	wants 0 mpi 2 gf-allreduce -n 2 -w 0 -b 4K -e 4K --plan auto.json --table=json
	jq -se 'all(.algorithm == "auto" and .chosen != "auto" and .wrong == 0)' out.txt
	# a whole plan names its algorithms
	gf-plan -q --model digits-cnn --ranks 2 "$share/topologies/4x2-1gbe.json" | jq '.messages[0].algorithm = "auto" | del(.messages[0].stages)' > whole.json
	wants 1 mpi 2 gf-train $quick --plan whole.json --steps 2
	says 'this build has no algorithm "auto"'
}

@test "ranks that are unlike train together" {
	makes_apart
	wants 0 mpi 3 ./apart gf-train -q --model digits-mlp --steps 2
	by_rank gf-train -q --model digits-mlp --steps 2 --threads 1 -- gf-train -q --model digits-mlp --steps 2
	wants 0 mpi 2 ./by_rank
}
