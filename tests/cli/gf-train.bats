#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

# a short run, one epoch of a small model
quick="-q --model digits-mlp --epochs 1 --threads 1"

# a whole plan of one message for digits-mlp on RANKS ranks
plan_for() { # ranks [model name]
	gf-train $quick --steps 1 --log log.jsonl > /dev/null
	jq -n --argjson ranks "$1" --arg name "${2:-digits-mlp}" '
		[["fc3.bias", 10], ["fc3.weight", 640], ["fc2.bias", 64],
		 ["fc2.weight", 8192], ["fc1.bias", 128], ["fc1.weight", 8192]] as $t |
		{format: "gf-plan", version: 1, policy: "single", ranks: $ranks, lanes: 1,
		 model: {name: $name, device: "cpu", forward_s: 0.002, backward_s: 0.006,
			update_s: 0.001, overlap_slowdown: 1.5},
		 network: {ranks: $ranks, allreduce: [{algorithm: "ring", startup_s: 1e-5, per_byte_s: 1e-9}]},
		 tensors: [$t | to_entries[] | {name: .value[0], count_elems: .value[1], dtype: "f32",
			ready_s: ((.key + 1) / 1000), type: (if .key == 5 then "normal" else "merged" end)}],
		 messages: [{first: 0, last: 5, mode: "normal", release: "ready", half: "all",
			algorithm: "ring", codec: "f32"}]}'
}

@test "without a plan, a model, data or mpirun: digits" {
	wants 0 gf-train --epochs 2
	tail -n 1 out.txt | grep -qE '^test accuracy [0-9.]+ % \([0-9]+ of 360\)$'
	grep -qE '^step .* \(medians of [0-9]+ steps\)$' out.txt
	says 'epoch 2/2: loss '
	# more than 9 of 10 after two epochs
	tail -n 1 out.txt | awk '{exit !($3 > 90)}'
}

@test "-q says nothing, -o takes the table" {
	wants 0 gf-train $quick -o table.txt
	[ -z "$errors" ]
	[ -z "$output" ]
	tail -n 1 table.txt | grep -q '^test accuracy '
}

@test "a seed decides everything" {
	wants 0 gf-train $quick --seed 3 --checkpoint a --log a.jsonl
	wants 0 gf-train $quick --seed 3 --checkpoint b --log b.jsonl
	wants 0 gf-train $quick --seed 4 --checkpoint c
	cmp a/step-*/rank-0.safetensors b/step-*/rank-0.safetensors
	fails cmp -s a/step-*/rank-0.safetensors c/step-*/rank-0.safetensors
	untimed='with_entries(select(.key | endswith("_s") or endswith("_rss_bytes") | not))'
	diff <(jq -c "$untimed" a.jsonl) <(jq -c "$untimed" b.jsonl)
}

@test "the log: a row per step, epoch and test" {
	wants 0 gf-train $quick --epochs 2 --batch 100 --log log.jsonl
	# 1437 samples: 14 whole steps an epoch
	jq -se 'map(.part) | . == [range(14) | "batch"] + ["train", "test"] + [range(14) | "batch"] + ["train", "test"]' log.jsonl
	jq -se 'map(select(.part == "batch") | .step) == [range(1; 29)]' log.jsonl
	jq -se 'all(.model == "digits-mlp" and .method == "dense" and .ranks == 1 and .batch_per_rank == 100 and .seed == 1)' log.jsonl
	jq -se 'all(.accuracy == .correct / .samples and .loss > 0 and .time_s > 0 and .samples_per_s > 0)' log.jsonl
	jq -se 'map(select(.part == "test").samples) == [360, 360] and map(select(.part == "train").samples) == [1400, 1400]' log.jsonl
	# the epoch is the mean of its steps
	jq -se '(map(select(.part == "batch" and .epoch == 2).loss) | add / 14) as $mean |
		map(select(.part == "train" and .epoch == 2).loss)[0] - $mean | fabs < 1e-12' log.jsonl
	# two batches of 100 samples of 64 values and a label wait beside what a net works in
	jq -se 'map(select(.part == "train")) | all(.parameters_bytes == 4 * 17226 and .gradients_bytes == .parameters_bytes and
		.optimizer_bytes == .parameters_bytes and .activations_bytes > 100 * 64 * 4 and
		.buffers_bytes > 2 * 100 * 65 * 4 and .peak_rss_bytes > .before_rss_bytes)' log.jsonl
	wants 0 gf-train --model digits-mlp --steps 2 --optimizer adamw
	grep -qE '^memory: parameters 67.3 KiB, gradients 67.3 KiB, optimizer 135 KiB, activations [^,]*, tests [^,]*, buffers [^,]*; .* in all, and the process had .* more at its peak than before$' out.txt
}

@test "learning rates: warm-up, schedules, scaling" {
	rates() { jq -s 'map(select(.part == "batch").learning_rate)' log.jsonl; }
	wants 0 gf-train $quick --batch 100 --lr 1e-3 --schedule constant:warmup_epochs=0.5 --log log.jsonl
	rates | jq -e '.[0] * 7 - 1e-3 | fabs < 1e-15'
	rates | jq -e '.[6:] | all(. == 1e-3)'
	wants 0 gf-train $quick --batch 100 --lr 1e-3 --schedule linear:warmup_epochs=0 --log log.jsonl
	rates | jq -e '(.[0] == 1e-3) and (.[7] - 5e-4 | fabs < 1e-15)'
	# a run that stops early keeps the schedule of all its epochs
	rates > whole.txt
	wants 0 gf-train $quick --batch 100 --lr 1e-3 --schedule linear:warmup_epochs=0 --log log.jsonl --steps 5
	rates | jq -e --slurpfile whole whole.txt '. == $whole[0][:5]'
	wants 0 gf-train $quick --batch 100 --lr 1e-3 --schedule constant:for_batch=25,warmup_epochs=0 --log log.jsonl
	rates | jq -e 'all(. - 4e-3 | fabs < 1e-15)'
	wants 0 gf-train $quick --batch 128 --schedule constant:warmup_epochs=0 --log log.jsonl
	rates | jq -e 'all(. - 0.2 | fabs < 1e-15)'
}

@test "stopped and resumed: the same files, byte for byte" {
	wants 0 gf-train $quick --model digits-cnn --checkpoint through --checkpoint-every 30
	wants 0 gf-train $quick --model digits-cnn --checkpoint stopped --checkpoint-every 13 --steps 29
	ls stopped | diff - <(printf 'step-26\nstep-29\n')
	wants 0 gf-train $quick --model digits-cnn --checkpoint stopped --resume
	ls stopped | diff - <(printf 'step-29\nstep-89\n')
	cmp through/step-89/rank-0.safetensors stopped/step-89/rank-0.safetensors
}

@test "a checkpoint is plain safetensors" {
	wants 0 gf-train $quick --model digits-cnn --steps 2 --checkpoint ckpt
	file=ckpt/step-2/rank-0.safetensors
	length=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
	[ $((length % 8)) -eq 0 ]
	tail -c +9 "$file" | head -c "$length" > header.json
	jq -e '.__metadata__ | .step == "2" and .ranks == "1" and .model == "digits-cnn"' header.json
	jq -e '.["conv1.weight"] | .dtype == "F32" and .shape == [32, 1, 3, 3]' header.json
	jq -e '.["bn1.running_mean"].shape == [32] and .["optim.fc.bias.momentum"].shape == [10]' header.json
	# covered without a hole, to the end of the file
	jq -e --argjson size $(($(stat -c %s "$file") - 8 - length)) '
		del(.__metadata__) | [.[].data_offsets] | sort as $o |
		$o[0][0] == 0 and $o[-1][1] == $size and ([range(1; $o | length) | $o[.][0] == $o[. - 1][1]] | all)' header.json
}

@test "--checkpoint-every without a folder" {
	wants 2 gf-train $quick --steps 3 --checkpoint-every 2
	says 'gf-train: --checkpoint-every goes with --checkpoint'
	[ -z "$output" ]
}

# forget KEY...: the newest checkpoint of ckpt/ without these in its metadata
forget() {
	python3 - "$(ls -d ckpt/step-* | tail -n 1)/rank-0.safetensors" "$@" <<- 'END'
		import json, struct, sys
		data = open(sys.argv[1], 'rb').read()
		n = struct.unpack('<Q', data[:8])[0]
		head = json.loads(data[8:8 + n])
		for key in sys.argv[2:]:
		    del head['__metadata__'][key]
		head['__metadata__'].pop('run', None)
		head['__metadata__'].pop('rank', None)
		text = json.dumps(head).encode()
		text += b' ' * (-len(text) % 8)
		open(sys.argv[1], 'wb').write(struct.pack('<Q', len(text)) + text + data[8 + n:])
	END
	rm -f "$(ls -d ckpt/step-* | tail -n 1)/manifest.json"
}

@test "a folder that cannot have checkpoints is refused before the first step" {
	wants 3 gf-train $quick --steps 3 --checkpoint nowhere/ckpt
	one_line
	wants 3 gf-train $quick --steps 3 --checkpoint /dev/null/ckpt
	one_line
	[ -z "$output" ]
}

@test "a folder with checkpoints is not mixed with another run's" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	wants 0 gf-train $quick --steps 3 --checkpoint ckpt
	wants 2 gf-train $quick --steps 3 --checkpoint ckpt
	one_line
	says 'gf-train: ckpt: holds checkpoints of an earlier run: --resume goes on from the last of them'
	wants 2 gf-train $quick --checkpoint ckpt --resume --seed 2
	one_line
	says 'ckpt/step-3/rank-0.safetensors: was written with seed 1, this run has 2'
	wants 2 gf-train -q --model digits-cnn --checkpoint ckpt --resume
	says 'was written with model "digits-mlp", this run has "digits-cnn"'
	wants 3 gf-train $quick --checkpoint none --resume
	one_line
	says 'gf-train: none: No such file or directory'
	mkdir empty
	wants 3 gf-train $quick --checkpoint empty --resume
	says 'empty: want a checkpoint (a folder step-N), found none'
	# what an earlier version did not write down
	forget servers codecs loss_scale pipeline_warmup_steps chunk_elems
	wants 0 gf-train $quick --steps 4 --checkpoint ckpt --resume
	forget batch_per_rank
	wants 2 gf-train $quick --checkpoint ckpt --resume
	one_line
	says 'ckpt/step-4/rank-0.safetensors: /__metadata__/batch_per_rank: '
	rm -r ckpt/step-4
	truncate -s -1 ckpt/step-3/rank-0.safetensors
	wants 2 gf-train $quick --checkpoint ckpt --resume
	one_line
	says 'ckpt: want a whole checkpoint, found none: step 3 is not whole: ckpt/step-3/rank-0.safetensors: want '
}

# flip TENSOR FILE: one bit of its data
flip() {
	python3 - "$@" <<- 'END'
		import json, struct, sys
		data = bytearray(open(sys.argv[2], 'rb').read())
		n = struct.unpack('<Q', data[:8])[0]
		data[8 + n + json.loads(data[8:8 + n])[sys.argv[1]]['data_offsets'][0] + 2] ^= 1
		open(sys.argv[2], 'wb').write(data)
	END
}

@test "a resume with nothing left to train says so" {
	wants 0 gf-train $quick --steps 4 --checkpoint ckpt
	wants 0 gf-train --model digits-mlp --threads 1 --steps 3 --checkpoint ckpt --resume
	says 'gf-train: ckpt: nothing is left to train: it was made after step 4, and the run has 3'
	prints 'test accuracy'
	wants 0 gf-train --model digits-mlp --threads 1 --steps 5 --checkpoint ckpt --resume
	fails says 'left to train'
}

@test "a resumed log goes on after its last whole row" {
	wants 0 gf-train $quick --steps 4 --checkpoint ckpt --log log.jsonl
	# as a full disk leaves it
	cp log.jsonl whole.jsonl
	head -n 1 whole.jsonl | head -c 100 >> log.jsonl
	wants 0 gf-train $quick --steps 6 --checkpoint ckpt --resume --log log.jsonl
	cmp -n "$(stat -c %s whole.jsonl)" whole.jsonl log.jsonl
	[ "$(jq -s -c 'map(select(.part == "batch").step)' log.jsonl)" = '[1,2,3,4,5,6]' ]
	# however long it is
	cp whole.jsonl long.jsonl
	{ printf '{"model": "'; head -c 70000 /dev/zero | tr '\0' m; } >> long.jsonl
	wants 0 gf-train $quick --steps 6 --checkpoint ckpt --resume --log long.jsonl
	cmp -n "$(stat -c %s whole.jsonl)" whole.jsonl long.jsonl
	[ "$(jq -s -c 'map(select(.part == "batch").step)' long.jsonl)" = '[1,2,3,4]' ]
	# what is no log stays as it is
	printf 'some notes' > notes
	wants 2 gf-train $quick --steps 8 --checkpoint ckpt --resume --log notes
	one_line
	says 'notes: want a log to append to, found a last line without an end that is no row'
	[ "$(cat notes)" = 'some notes' ]
}

@test "a log has the rows of every Nth step, and one writer" {
	for every in 5:2 0:0 100:0; do
		wants 0 gf-train $quick --epochs 1 --batch 100 --log-every "${every%:*}" --log log.jsonl
		[ "$(jq -s -c 'map(.part)' log.jsonl)" = "$(jq -nc "[range(${every#*:}) | \"batch\"] + [\"train\", \"test\"]")" ]
	done
	[ "$(wc -l < log.jsonl)" -eq 2 ]
	wants 2 gf-train $quick --steps 1 --log-every 2
	says '--log-every goes with --log'
	# another job's log
	cp log.jsonl before.jsonl
	exec 9< log.jsonl
	flock 9
	wants 3 gf-train $quick --steps 1 --log log.jsonl
	exec 9<&-
	one_line
	says 'log.jsonl: want a log of this job alone, another process writes to it'
	cmp log.jsonl before.jsonl
}

@test "a bit that has flipped in a checkpoint is not restored" {
	command -v python3 > /dev/null || skip "python3 is not installed"
	wants 0 gf-train $quick --steps 4 --checkpoint ckpt --checkpoint-every 2
	flip optim.fc2.bias.momentum ckpt/step-4/rank-0.safetensors
	wants 0 gf-train --model digits-mlp --threads 1 --steps 3 --checkpoint ckpt --resume
	says 'gf-train: ckpt: on from step 2, since step 4 is not whole: ckpt/step-4/rank-0.safetensors: want the contents that were written, with the SHA-256 '
	# without a manifest, as earlier versions wrote, and without checksums
	forget
	flip optim.fc2.bias.momentum ckpt/step-3/rank-0.safetensors
	wants 2 gf-train $quick --steps 4 --checkpoint ckpt --resume
	one_line
	says 'gf-train: ckpt/step-3/rank-0.safetensors: "optim.fc2.bias.momentum": want data with the CRC-32 '
	[ -z "$output" ]
	forget $(tail -c +9 ckpt/step-3/rank-0.safetensors | tr -d '\0' | grep -aoE 'crc32:[a-z0-9._]+' | sort -u)
	wants 0 gf-train --model digits-mlp --threads 1 --steps 4 --checkpoint ckpt --resume
	says 'gf-train: ckpt/step-3: written by an earlier version, without a manifest'
}

@test "two jobs in one folder, and one that was killed" {
	SLURM_JOB_ID=47 gf-train --model digits-cnn --threads 1 --epochs 1000 --checkpoint ckpt --checkpoint-every 10 > out.0 2> err.0 3>&- &
	first=$!
	# a set stays for two more only
	until ls -d ckpt/step-*[0-9] > /dev/null 2>&1; do
		kill -0 $first
		sleep 0.05
	done
	wants 3 gf-train $quick --checkpoint ckpt --resume
	one_line
	says "gf-train: ckpt: is in use by job 47 (process $first on "
	kill -KILL $first
	wait $first || true
	[ -f ckpt/lock ]
	at=$(ls -d ckpt/step-*[0-9] | sed 's/.*-//' | sort -n | tail -n 1)
	wants 0 gf-train --model digits-cnn --threads 1 --epochs 1000 --steps $((at + 1)) --checkpoint ckpt --resume
	says "gf-train: ckpt/lock: job 47 (process $first on "
	says 'is no more: taken over'
	[ ! -e ckpt/lock ]
}

@test "a resume that passes over the newest checkpoint says so" {
	wants 0 gf-train $quick --steps 4 --checkpoint ckpt --checkpoint-every 2
	truncate -s -1 ckpt/step-4/rank-0.safetensors
	wants 0 gf-train --model digits-mlp --threads 1 --steps 6 --checkpoint ckpt --resume
	says 'gf-train: ckpt: on from step 2, since step 4 is not whole: ckpt/step-4/rank-0.safetensors: want '
	wants 0 gf-train --model digits-mlp --threads 1 --steps 8 --checkpoint ckpt --resume
	fails says 'on from step'
}

@test "the trace: slices nest, messages lie in lanes" {
	wants 0 gf-train $quick --steps 20 --trace trace.json
	jq -e '[.traceEvents[] | select(.ph == "X" and .name == "forward")] | length == 20' trace.json
	jq -e '[.traceEvents[] | select(.ph == "M" and .name == "process_name").args.name] == ["rank 0"]' trace.json
	# on one thread a slice begins where another ends, or lies inside it
	jq -e '[.traceEvents[] | select(.ph == "X" and .tid == 0)] | sort_by(.ts, -.dur) |
		reduce .[] as $s ({ends: [], ok: true};
			.ends |= map(select(. > $s.ts + 0.0005)) |
			(if (.ends | length) > 0 and ($s.ts + $s.dur) > .ends[-1] + 0.0005 then .ok = false else . end) |
			.ends += [$s.ts + $s.dur]) | .ok' trace.json
	jq -e '.otherData.clock_offset_s == [0]' trace.json
}

@test "a plan names a shipped model, not a file" {
	plan_for 1 > plan.json
	mkfifo pipe
	cp "$share/models/digits-mlp.json" digits
	local name
	for name in pipe /dev/zero ./digits ../models/digits-mlp none; do
		jq --arg name "$name" '.model.name = $name' plan.json > named.json
		wants 2 timeout 120 gf-train -q --plan named.json --steps 1
		one_line
		says "gf-train: the plan's model: want the name of a shipped model, got \"$name\" (--model FILE names another)"
	done
}

@test "a whole plan: its model is taken, predicted beside measured" {
	plan_for 1 > plan.json
	wants 0 gf-train -q --plan plan.json --epochs 1 --log log.jsonl
	jq -se 'all(.model == "digits-mlp")' log.jsonl
	# it predicts nothing
	fails grep -q predicted out.txt
	jq '.predicted = {iteration_s: 0.009, compute_s: 0.009, exposed_comm_s: 0, lower_bound_s: 0.009,
		messages: [{ready_s: 0.008, start_s: 0.008, end_s: 0.008}]} | .model.batch_per_rank = 8' plan.json > with.json
	wants 0 gf-train -q --plan with.json --epochs 1 --log log.jsonl
	jq -se 'all(.batch_per_rank == 8)' log.jsonl
	grep -qE 'predicted +8.00 ms +8.00 ms +8.00 ms +0 s$' out.txt
	grep -qE '^step predicted 9.00 ms, measured .*, measured/predicted [0-9.]+$' out.txt
	fails grep -q doubt out.txt
	local end
	for end in "1e-9 1000 inside" "500 1000 below" "1e-9 2e-9 above"; do
		set -- $end
		jq ".predicted += {iteration_low_s: $1, iteration_high_s: $2}" with.json > doubtful.json
		wants 0 gf-train -q --plan doubtful.json --epochs 1
		grep -q "^the prediction's interval is .*: the measured step is $3 it\$" out.txt
	done
	# times for batch 8 say nothing about batch 9
	wants 0 gf-train --plan with.json --epochs 1 --batch 9
	says "no prediction: the plan's times are for batch 8, this run has 9"
	fails grep -q predicted out.txt
	stdin=plan.json wants 0 gf-train $quick --plan -
}

@test "a replay sleeps as the plan says and computes nothing" {
	plan_for 1 > plan.json
	wants 0 gf-train -q --replay --plan plan.json --steps 12 --trace trace.json
	# 2 ms forward, 6 backward, 10 us + 68,904 ns on the network, 1 ms update
	grep -qE '^step predicted 9.08 ms, measured ' out.txt
	fails grep -q accuracy out.txt
	# gradients come when the profile says, never before; slowdown is not slept
	# (an oversleep of forward is made up for: count from forward's start)
	jq -e '[.traceEvents[] | select(.pid == 0 and .ph == "X")] |
		[map(select(.name == "forward").ts), map(select(.name == "backward") | .ts + .dur)] | transpose |
		length == 12 and all(.[1] - .[0] >= 7999)' trace.json
	jq -e '[.traceEvents[] | select(.pid == 0 and .ph == "X" and .name == "step").dur] | all(. >= 8999)' trace.json
	wants 2 gf-train --replay
	says '--replay goes with --plan'
	gf-topo | gf-plan > rule.json
	wants 2 gf-train --replay --plan rule.json
	one_line
	says "rule.json: want a plan with a model's times to replay, got a rule"
}

@test "plans that do not fit" {
	plan_for 4 > four.json
	wants 2 gf-train -q --plan four.json
	one_line
	says 'gf-train: four.json: the plan is for 4 ranks, this job has 1'
	plan_for 1 > one.json
	wants 2 gf-train -q --plan one.json --model digits-cnn
	one_line
	says 'gf-train: one.json: the plan (digits-mlp) has 6 tensors, this job has 14'
	plan_for 1 unheard-of > other.json
	wants 2 gf-train -q --plan other.json
	says 'want the name of a shipped model, got "unheard-of" (--model FILE names another)'
	jq '.tensors[3].count_elems = 8193' one.json > count.json
	wants 2 gf-train -q --plan count.json
	says 'tensor 3: the plan (digits-mlp) has fc2.weight of 8193 elements, this job has fc2.weight of 8192'
	jq '.pipeline = {staleness: 91, warmup_steps: 0}' one.json > pipe.json
	wants 2 gf-train -q --plan pipe.json --epochs 1
	says 'staleness 91: want at most the 89 steps of the run'
	head -c 100 one.json > cut.json
	wants 2 gf-train -q --plan cut.json
	one_line
	says 'cut.json:'
	wants 3 gf-train -q --plan missing.json
	one_line
	says 'missing.json: No such file or directory'
	wants 2 gf-train -q --plan "$share/models/digits-mlp.json"
	says 'digits-mlp.json: want a gf-plan document, found a gf-model'
	wants 2 gf-train -q --model four.json
	says 'four.json: want a gf-model document, found a gf-plan'
}

@test "a resume learns at its start that no checkpoint can be written" {
	needs_permissions
	wants 0 gf-train $quick --steps 4 --checkpoint kept
	chmod a-w kept
	wants 3 plain gf-train $quick --steps 8 --checkpoint kept --resume --checkpoint-every 1000
	one_line
	says 'gf-train: kept: Permission denied'
	chmod u+w kept
}

@test "data that is damaged, lying or missing" {
	wants 3 gf-train -q --data nowhere
	one_line
	says 'nowhere: want a folder with data of a known format'
	copy() { rm -rf d; cp -r "$share/data/digits" d; }
	copy; rm d/test-labels-idx1-ubyte.gz
	wants 3 gf-train -q --data d
	one_line
	says 'd: want a file t10k-labels-idx1-ubyte, -short, -int or .gz (or test-...), found none'
	copy; truncate -s 5000 d/train-images-idx3-ubyte.gz
	wants 2 gf-train -q --data d
	one_line
	says 'd/train-images-idx3-ubyte.gz: the gzip stream is truncated'
	copy; gunzip d/train-images-idx3-ubyte.gz; truncate -s 5000 d/train-images-idx3-ubyte
	wants 2 gf-train -q --data d
	one_line
	says 'd/train-images-idx3-ubyte: want 91968 bytes of data as the header says, got 4984'
	copy; gunzip d/train-images-idx3-ubyte.gz
	printf '\377\377\377\377' | dd of=d/train-images-idx3-ubyte bs=1 seek=4 conv=notrunc status=none
	wants 2 gf-train -q --data d
	one_line
	says 'd/train-images-idx3-ubyte: want at most '
	copy; gunzip d/train-labels-idx1-ubyte.gz
	printf '\012' | dd of=d/train-labels-idx1-ubyte bs=1 seek=20 conv=notrunc status=none
	wants 2 gf-train -q --data d
	one_line
	says 'd/train-labels-idx1-ubyte: want labels of 0 to 9, label 12 is 10'
	wants 2 gf-train -q --model resnet20
	one_line
	says 'want samples of 3x32x32 for this model, got 1x8x8'
	wants 2 gf-train -q --data synthetic:20 --batch 21
	one_line
	says 'want at least 21 training samples (1 ranks, batch 21), the data has 20'
}

@test "a full disk: one line, status 3, no part of a file" {
	[ -w /dev/full ] || skip "no /dev/full"
	wants 3 gf-train $quick --steps 3 --log /dev/full
	one_line
	says 'gf-train: /dev/full: No space left on device'
	wants 3 gf-train $quick --steps 3 --trace /dev/full
	one_line
	says 'gf-train: /dev/full: No space left on device'
	wants 3 gf-train $quick --steps 3 -o /dev/full
	one_line
	says 'gf-train: /dev/full: No space left on device'
	gf-train $quick --steps 3 > /dev/full 2> err.txt && return 1
	says 'gf-train: standard output: No space left on device'
	# a file that cannot be is found out before, not after training
	wants 3 gf-train $quick --trace no/such/folder/t.json --log log.jsonl
	one_line
	says 'no/such/folder/t.json: No such file or directory'
	[ ! -e log.jsonl ]
}

@test "answers of no: the target, a loss that is not finite" {
	wants 1 gf-train $quick --steps 2 --target 0.999
	one_line
	says 'gf-train: want test accuracy 0.9990, got 0.'
	prints 'test accuracy '
	wants 0 gf-train $quick --target 0.5
	wants 1 gf-train $quick --lr 1e9 --schedule warmup_epochs=0 --checkpoint ckpt --checkpoint-every 5
	one_line
	grep -qE 'the gradient of [a-z0-9.]+ is infinite or not a number in step [0-9]+ .*: training has diverged' err.txt
	# nothing of that is worth keeping
	[ -z "$(ls ckpt 2> /dev/null)" ]
}

@test "what a selection cannot be: one line each" {
	plan_for 1 > one.json
	while IFS='|' read -r change options text; do
		jq "$change" one.json > plan.json
		wants 2 gf-train $quick --plan plan.json $options
		one_line
		[ "$errors" = "gf-train: $text" ]
	done <<- 'END'
		.selection = {method: "topk", density: 0}||plan.json: /selection/density: want a number > 0, got 0
		.selection = {method: "gtopk", density: 1.5}||plan.json: /selection/density: want a number <= 1, got 1.5
		.selection = {method: "csc", chunk_elems: 100, keep: 0}||plan.json: /selection/keep: want a number > 0, got 0
		.selection = {method: "csc", chunk_elems: 17227, keep: 0.1}||plan.json: /selection: want chunk_elems of 1 to 17226, the model's elements, got 17227
		.selection = {method: "topk", density: 0.1}|--loss-scale dynamic|loss_scale: selection "topk" sends gradients as they are, want "none"
		.pipeline = {staleness: 2, warmup_steps: 0}|--batch 1000|staleness 2: want at most the 1 steps of the run
	END
	jq '.selection = {method: "csc", chunk_elems: 500, keep: 0.5}' one.json > csc.json
	jq '.selection = {method: "topk", density: 0.1}' one.json > topk.json
	wants 0 gf-train $quick --plan csc.json --steps 3 --checkpoint ckpt
	wants 2 gf-train $quick --plan topk.json --checkpoint ckpt --resume
	[ "$errors" = 'gf-train: ckpt/step-3/rank-0.safetensors: was written with method "csc", this run has "topk"' ]
	for plan in csc topk; do
		wants 1 gf-train $quick --plan $plan.json --lr 1e9 --schedule warmup_epochs=0
		one_line
		[[ $errors =~ ^'gf-train: the gradient of '[a-z0-9.]+' is infinite or not a number in step '[0-9]+' (element '[0-9]+'): training has diverged'$ ]]
		wants 1 gf-train $quick --plan $plan.json --lr 1e9 --schedule warmup_epochs=0 --bad-gradients skip
		one_line
		[[ $errors =~ ^'gf-train: the loss is '('not a number'|infinite)' in step '[0-9]+' on rank 0: training has diverged'$ ]]
	done
}

@test "usage" {
	while IFS='|' read -r arguments text; do
		wants 2 gf-train $arguments
		says "$text"
	done <<- 'END'
		--epochs 0|--epochs: want an integer from 1
		--epochs many|--epochs: want an integer from 1
		--batch 0|--batch: want
		--steps -3|--steps: want
		--optimizer adam|--optimizer: want sgd, nesterov, lars, lars-paper or adamw, got "adam"; did you mean "adamw"?
		--optimizer momentum=1.5|--optimizer: momentum: want
		--lr nan|--lr: want
		--schedule for_batch=64|--schedule: for_batch goes with --lr or --training
		--schedule steps|--schedule: want constant, linear, cosine, step or poly, got "steps"
		--schedule drop_epochs=3,x|--schedule: drop_epochs: want a number from 0 to 1e+09, got "x"
		--device quantum|--device: want auto, cpu, cuda, cuda:N or a backend of this build, got "quantum"
		--timeout soon|--timeout: want
		--target 95|--target: want
		--threads 0|--threads: want
		--resume|--resume goes with --checkpoint
		--resume=other --checkpoint ckpt|--resume: want no, same or any
		--replay --plan p --model m|--replay goes without --model
		--replay --plan p --data digits|--replay goes without --data
		--replay --plan p --training digits-lars|--replay goes without --training
		--replay --plan p --epochs 2|--replay goes without --epochs
		--replay --plan p --batch 2|--replay goes without --batch
		--replay --plan p --lr 2|--replay goes without --lr
		--replay --plan p --log l|--replay goes without --log
		--replay --plan p --target 0.5|--replay goes without --target
		--replay --plan p --device cpu|--replay goes without --device
		--replay --plan p --print-training|--replay goes without --print-training
		--list --plan p|--list goes without --plan
		--list --print-training|--list goes without --print-training
		--log l --trace l|--log and --trace: want two files, got one
		--log l -o l|--log and --output: want two files, got one
		--trace l -o ./l|--trace and --output: want two files, got one
		--optimizer eta=1|--optimizer: eta: want lars or lars-paper, got sgd
		--schedule power=3|--schedule: power: want poly, got cosine
		--schedule linear:floor=0.1|--schedule: floor: want cosine, got linear
		--schedule linear:drop_factor=0.5|--schedule: drop_factor: want step, got linear
		--schedule drop_epochs=1,2|--schedule: drop_epochs: want step, got cosine
		--training digits-lars --optimizer nesterov:eta=1|--optimizer: eta: want lars or lars-paper, got nesterov
		--optimizer adamw:momentum=0.9|--optimizer: momentum: want sgd, nesterov, lars or lars-paper, got adamw
		--optimizer beta2=0.99|--optimizer: beta2: want adamw, got sgd
		--optimizer epsilon=1e-8|--optimizer: epsilon: want lars, lars-paper or adamw, got sgd
		surplus|gf-train
	END
}

@test "help and version" {
	wants 0 gf-train --help
	prints 'Usage: gf-train'
	wants 0 gf-train -h
	prints 'Usage: gf-train'
	wants 0 gf-train --version
	prints 'gf-train (gradflow)'
}

@test "a training: options before the document before the defaults" {
	wants 0 gf-train --print-training
	jq -e '.format == "gf-training" and .optimizer.name == "sgd" and .rate.peak == 0.1 and .rate.for_batch == 64' out.txt
	# convolutions without batch normalisation
	wants 0 gf-train --print-training --model digits-cnn-plain
	jq -e '.rate.peak == 0.02 and .rate.for_batch == 64' out.txt
	# momentum for a selection that corrects it, where dense gradients have adamw
	gf-topo -q --synthetic "net:1@1Gb/s,50us" > alone.json
	while read -r name model optimizer peak; do
		gf-plan -q --model "$model" --selection "$name" alone.json > printed.json
		wants 0 gf-train --print-training --model "$model" --plan printed.json
		jq -e --arg name "$optimizer" ".optimizer.name == \$name and .rate.peak == $peak" out.txt
	done < <(facts '.printed | select(.) | "\($name) \(.model) \(.optimizer) \(.peak)"')
	wants 0 gf-train --print-training --model gpt-text
	jq -e '.optimizer.name == "adamw"' out.txt
	wants 0 gf-train --print-training --training digits-lars --optimizer momentum=0 --lr 2 --schedule step:drop_epochs=1,2.5 --seed 0
	jq -e '.optimizer | .name == "lars" and .momentum == 0 and .eta == 0.02' out.txt
	jq -e '.rate | .peak == 2 and .schedule == "step" and .drop_epochs == [1, 2.5] and (has("for_batch") | not)' out.txt
	jq -e '.seed == 0 and .epochs == 10' out.txt
	# what is printed trains the same, and prints the same
	cp out.txt whole.json
	wants 0 gf-train --print-training --training whole.json
	diff whole.json out.txt
	wants 0 gf-train $quick --checkpoint a --training digits-lars --steps 20
	gf-train --training digits-lars --print-training --epochs 1 > again.json
	wants 0 gf-train -q --model digits-mlp --threads 1 --checkpoint b --training again.json --steps 20
	cmp a/step-20/rank-0.safetensors b/step-20/rank-0.safetensors
	# a checkpoint says how it was made
	file=a/step-20/rank-0.safetensors
	tail -c +9 "$file" | head -c "$(od -An -t u8 -N 8 "$file" | tr -d ' ')" |
		jq -j '.__metadata__.training' > kept.json
	diff kept.json again.json
}

@test "recipes: a training names its model and its plan, options name others" {
	local f name
	for f in "$share"/training/*-*.json; do
		name=$(basename "$f" .json)
		wants 0 gf-train -q --print-training --training "$name"
		jq -e --slurpfile r "$f" '.model == $r[0].model and .plan == $r[0].plan' out.txt
	done
	for name in gtopk-resnet20 pipe-sgd-mnist-mlp pipe-sgd-cifar100-cnn pipe-sgd-cifar100-convex; do
		wants 0 gf-train --training $name --data synthetic:16 --batch 4 --steps 3 --epochs 1 --log log.jsonl
		jq -es --slurpfile r "$share/training/$name.json" '.[0].model == $r[0].model' log.jsonl
	done
	wants 0 gf-train --training gtopk-resnet20 --model digits-mlp --data digits --batch 16 --steps 3 --log small.jsonl
	jq -es '.[0] | .model == "digits-mlp" and .method == "gtopk"' small.jsonl
	wants 0 gf-train --print-training --training gtopk-resnet20 --model digits-mlp
	jq -e '(has("model") | not) and .plan == "gtopk"' out.txt
	gf-plan -q --model digits-mlp --ranks 1 "$data/valid/topology-4x2-1gbe.json" > plan.json
	wants 2 gf-train --training gtopk-resnet20 --plan plan.json
	says "want a plan for the training's model resnet20, got one for digits-mlp (--model names the one to train)"
	wants 0 gf-train --print-training --training gtopk-resnet20 --plan plan.json --model digits-mlp
	jq -e '(has("model") or has("plan")) | not' out.txt
	# data of another shape, and names of nothing that is shipped
	wants 2 gf-train --training gtopk-resnet20 --data digits
	says 'digits'
	jq -n '{format: "gf-training", version: 1, model: "./resnet20"}' > path.json
	wants 2 gf-train --training path.json
	says "the training's model: want the name of a shipped model, got \"./resnet20\" (--model FILE names another)"
	jq -n '{format: "gf-training", version: 1, plan: "nothing"}' > path.json
	wants 2 gf-train --training path.json
	says "the training's plan: want the name of a shipped plan, got \"nothing\" (--plan FILE names another)"
}

@test "a training that contradicts itself, or is none" {
	while IFS='|' read -r arguments text; do
		wants 2 gf-train -q --epochs 1 $arguments
		one_line
		says "gf-train: $text"
	done <<- 'END'
		--optimizer exclude=fc9.*|--optimizer: exclude: want names of tensors, none is like "fc9.*"
		--schedule step|schedule "step": want the epochs at which the rate drops
		--schedule drop_epochs=3,2|the training: /rate/drop_epochs/1: want at least 3, the one before, got 2
		--accumulate 100000|want at least 1600000 training samples (1 ranks, batch 16 times 100000), the data has 1437
	END
	echo '{"format": "gf-training", "version": 1, "rate": {"for_batch": 256}}' > half.json
	wants 2 gf-train -q --training half.json
	says 'rate: want a peak (--lr) for the batch of 256'
	wants 2 gf-train -q --training "$share/models/digits-mlp.json"
	says 'digits-mlp.json: want a gf-training document, found a gf-model'
	# keys that what else is named does not use
	while IFS='|' read -r keys text; do
		echo "{\"format\": \"gf-training\", \"version\": 1, $keys}" > idle.json
		wants 2 gf-train -q --training idle.json
		one_line
		says "gf-train: idle.json: $text"
	done <<- 'END'
		"optimizer": {"name": "adamw", "momentum": 0.3}|/optimizer/momentum: want optimizer sgd, nesterov, lars or lars-paper, got adamw
		"optimizer": {"name": "sgd", "beta2": 0.3}|/optimizer/beta2: want optimizer adamw, got sgd
		"rate": {"schedule": "cosine", "drop_epochs": [1]}|/rate/drop_epochs: want schedule step, got cosine
		"rate": {"schedule": "linear", "floor": 0.9}|/rate/floor: want schedule cosine, got linear
		"loss_scale": {"mode": "none", "initial": 8}|/loss_scale/initial: want a mode that scales, got none
		"loss_scale": {"mode": "static", "growth_steps": 8}|/loss_scale/growth_steps: want mode dynamic or auto, got static
	END
	# an option may name another optimizer than the document
	echo '{"format": "gf-training", "version": 1, "optimizer": {"name": "sgd", "momentum": 0.3}}' > sgd.json
	wants 0 gf-train --print-training --training sgd.json --optimizer adamw
	jq -e '.optimizer.name == "adamw" and (.optimizer | has("momentum") | not)' out.txt
	wants 2 gf-train -q --training nowhere
	one_line
}

@test "backends on the host compute in f32" {
	wants 0 gf-train -q --device cpu --precision f32 --steps 2
	wants 1 gf-train -q --device ref --precision f16 --steps 2
	says 'gf-train: ref computes in f32, not in f16'
	wants 2 gf-train -q --precision f8
	says 'gf-train: --precision: want f32, f16 or bf16, got "f8"'
}

@test "onednn computes in bf16, where the processor does" {
	needs_onednn
	wants 1 gf-train -q --device cpu --precision f16 --steps 2
	says 'gf-train: onednn computes in f32 or bf16, not in f16'
	wants 1 env DNNL_MAX_CPU_ISA=AVX2 gf-train -q --device cpu --precision bf16 --steps 2
	says 'gf-train: onednn computes in bf16 on processors with AVX512-BF16, and this one has none'
	wants 2 gf-profile --device cpu --model digits-mlp --precision tf32
	says '--precision: want f32, f16 or bf16 for a measurement, got tf32'
	wants 2 gf-profile --device cpu --model digits-mlp --precision pure-bf16
	says 'for a measurement, got pure-bf16'
	grep -qs avx512_bf16 /proc/cpuinfo || skip "no AVX512-BF16"
	wants 0 gf-train -q --device cpu --threads 1 --model digits-cnn --precision bf16 --epochs 3 --target .92 --log bf16.jsonl
	wants 0 gf-train -q --device cpu --threads 1 --model digits-cnn --epochs 1 --log f32.jsonl
	fails cmp -s <(jq 'select(.step == 5).loss' bf16.jsonl) <(jq 'select(.step == 5).loss' f32.jsonl)
	wants 0 gf-profile --device cpu --threads 1 --model digits-mlp --precision bf16 --repeats 2:warmup=1 -o profile.json
	jq -e '.. | objects | select(has("forward_spread_s")) | .precision == "bf16"' profile.json
}

@test "--device cuda says what is missing, auto does without" {
	[ ! -e /dev/nvidia0 ] || skip "this machine has a GPU"
	wants 3 gf-train --device cuda --steps 1
	grep -q "^gf-train: \(no GPU that CUDA can use: \|built without CUDA\)" err.txt
	[ "$(wc -l < err.txt)" = 1 ]
	wants 0 gf-train --device auto --steps 1 --log log
	jq -e '.device == "cpu"' log
	wants 3 gf-train --cuda-graph on --steps 1
	says '--cuda-graph: it captures what GPUs compute'
	wants 2 gf-train --device cuda:x --steps 1
	grep -q 'want auto, cpu, cuda, cuda:N or a backend' err.txt
}

@test "--help has the defaults that --print-training prints" {
	gf-train --help | tr -s ' \n' ' ' > help.txt
	told() { # KEY TASK...: what stands in its brackets for the first of these tasks, else for any
		local key=$1 list task
		shift
		list=$(grep -oP "[ -]$key=[A-Z]+ [^(]*\(\K[^)]*" help.txt | head -n 1 | sed 's/; /\n/g')
		for task; do ! grep -oP "^$task: \K.*" <<< "$list" || return 0; done
		grep -v : <<< "$list"
	}
	while IFS='|' read -r options tasks; do
		# shellcheck disable=SC2086
		wants 0 gf-train -q --print-training $options
		jq -r 'paths(scalars) as $p | "\($p | join("/")) \(getpath($p) | if type == "number" then . + 0 else . end)"' out.txt > values.txt
		IFS=, read -ra tasks <<< "$tasks"
		for place in lr/rate/peak epochs/epochs seed/seed augment/augment momentum/optimizer/momentum \
			weight_decay/optimizer/weight_decay beta1/optimizer/beta1 beta2/optimizer/beta2 eta/optimizer/eta \
			epsilon/optimizer/epsilon clip_norm/optimizer/clip_norm warmup_epochs/rate/warmup_epochs \
			drop_factor/rate/drop_factor power/rate/power; do
			want=$(sed -n "s,^${place#*/} ,,p" values.txt)
			got=$(told "${place%%/*}" "${tasks[@]}")
			[ -z "$want" ] || [ "$got" = "$want" ] || awk -v a="$got" -v b="$want" 'BEGIN {exit !(a != "" && a + 0 == b + 0 && b + 0 != 0)}' ||
				{ echo "$options: ${place%%/*}: $want, --help has $got"; return 1; }
		done
	done <<- 'END'
		--model digits-cnn-plain|convolutions without norms
		--model resnet20|
		--model resnet20 --schedule step:drop_epochs=1|
		--model resnet20 --schedule poly --optimizer lars|lars
		--model lstm-text|text
		--model gpt-text|adamw,text
		--model gpt-text --optimizer sgd|text with attention,text
	END
}

@test "--cuda-graph wants something that computes on a GPU" {
	wants 2 gf-train --device cpu --cuda-graph on --steps 1
	says '--cuda-graph: it captures what GPUs compute, and this run computes on the CPU'
	wants 2 gf-train --replay --plan x.json --cuda-graph off
	says '--replay goes without --cuda-graph'
	wants 0 gf-train -q --device cpu --cuda-graph off --steps 1
}

@test "--list: selections, optimizers, schedules" {
	wants 0 gf-train --list
	for name in dense sgd nesterov lars constant linear cosine step poly; do
		grep -qE "^  $name " out.txt
	done
}

@test "accumulated batches are one larger batch" {
	wants 0 gf-train $quick --batch 100 --log one.jsonl
	wants 0 gf-train $quick --batch 25 --accumulate 4 --log four.jsonl
	jq -se 'map(select(.part == "batch")) | all(.samples == 100 and .accumulate == 4 and .batch_per_rank == 25)' four.jsonl
	# the same samples in the same steps: losses differ by rounding
	paste <(jq -r 'select(.part == "batch").loss' one.jsonl) <(jq -r 'select(.part == "batch").loss' four.jsonl) |
		awk '{d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) exit 1}'
}

@test "staleness: stopped and resumed, byte for byte; the old gradient counts" {
	local quick="$quick --optimizer sgd --lr .05"
	plan_for 1 | jq '.pipeline = {staleness: 2, warmup_steps: 3}' > pipe.json
	wants 0 gf-train $quick --plan pipe.json --checkpoint through --steps 12
	for stop in 2 3 4 9; do
		rm -rf stopped
		wants 0 gf-train $quick --plan pipe.json --checkpoint stopped --steps $stop
		wants 0 gf-train $quick --plan pipe.json --checkpoint stopped --steps 12 --resume
		cmp through/step-12/rank-0.safetensors stopped/step-12/rank-0.safetensors
	done
	# the same warm-up as a share of the run, and of an epoch, which is all of it
	wants 0 gf-train $quick --plan pipe.json --log whole.jsonl
	total=$(jq -s 'map(select(.part == "batch").step) | max' whole.jsonl)
	for part in run_share epochs; do
		jq ".pipeline.warmup_steps = {$part: (3 / $total)}" pipe.json > part.json
		wants 0 gf-train $quick --plan part.json --checkpoint $part --steps 12
		cmp through/step-12/rank-0.safetensors $part/step-12/rank-0.safetensors
	done
	prints 'gradients are applied 1 step late'
	jq -se 'all(.staleness > 1 and .pipeline_warmup_steps == 3)' whole.jsonl
	# a replay has no epochs, and its run is of --steps or of 50
	while IFS='|' read -r part options steps; do
		jq ".pipeline.warmup_steps = {$part}" pipe.json > part.json
		wants 0 gf-train --replay --plan part.json $options
		[ "$(sed -n 's/ of the .* steps are in the pipeline.*//p' out.txt)" = "$steps" ]
	done <<- 'END'
		"epochs": 2|--steps 20|
		"run_share": 0.75|--steps 20|5
		"run_share": 0.75||28
	END
	# the warm-up is that of synchronous SGD, the later steps are not
	plan_for 1 > one.json
	for plan in one pipe; do
		wants 0 gf-train $quick --plan $plan.json --log $plan.jsonl --steps 12
		jq -c 'select(.part == "batch") | [.step, .loss]' $plan.jsonl > $plan.txt
	done
	diff <(head -4 one.txt) <(head -4 pipe.txt)
	fails diff -q <(sed -n 6p one.txt) <(sed -n 6p pipe.txt)
	wants 2 gf-train $quick --plan one.json --checkpoint stopped --resume
	one_line
	says 'was written with staleness 2, this run has 1'
	jq '.pipeline.warmup_steps = 50' pipe.json > later.json
	wants 2 gf-train $quick --plan later.json --checkpoint stopped --resume
	one_line
	says 'was written with warm-up steps of the pipeline 3, this run has 50'
	# gradients in flight are means under a loss scale, sums without one
	wants 2 gf-train $quick --plan pipe.json --checkpoint stopped --resume --loss-scale 64
	one_line
	says 'was written with loss scale "none", this run has "static"'
	jq '.messages[].codec = "q8"' pipe.json > coded.json
	wants 2 gf-train $quick --plan coded.json --checkpoint stopped --resume
	one_line
	says 'was written with codecs "f32", this run has "q8"'
	jq '.pipeline = {staleness: 3, warmup_steps: 0}' pipe.json > three.json
	wants 0 gf-train --model digits-mlp --threads 1 --plan three.json --steps 12
	says 'optimizer nesterov (--optimizer) instead of sgd, peak rate 0.0161 (--lr) instead of 0.025, because gradients are 2 steps late'
	wants 0 gf-train --model digits-mlp --threads 1 --plan three.json --steps 12 --optimizer sgd --lr .1
	says 'at most 0.1 times a rate that suits dense gradients is stable, because gradients are 2 steps late'
}

@test "the loss scale: options, and in the log" {
	wants 0 gf-train --print-training
	jq -e '.loss_scale == {mode: "auto", initial: 65536, growth_steps: 1000}' out.txt
	wants 0 gf-train --print-training --loss-scale 1024
	jq -e '.loss_scale | .mode == "static" and .initial == 1024' out.txt
	for bad in 1000 static -2 0; do
		wants 2 gf-train --loss-scale $bad
		says "--loss-scale: want auto, none, dynamic or a power of two, got \"$bad\""
	done
	wants 0 gf-train $quick --steps 3 --loss-scale dynamic --log log.jsonl
	jq -se 'map(select(.part == "batch").loss_scale) == [65536, 65536, 65536]' log.jsonl
	wants 0 gf-train $quick --steps 3 --log log.jsonl
	jq -se 'map(select(has("loss_scale"))) == []' log.jsonl
}

@test "the machine's speed is measured, and changes nothing" {
	gf-topo -q --synthetic "host:1@8GB/s,1us" > topo.json
	gf-plan -q --model digits-cnn --ranks 1 topo.json > plan.json
	jq 'del(.predicted)' plan.json > silent.json
	for p in silent plan; do
		wants 0 gf-train --model digits-cnn --threads 1 --plan $p.json --steps 12 --checkpoint $p --trace $p-trace.json
		mv out.txt $p.txt
	done
	grep -q '^without exchange, the slowest rank is .* than in the profile' plan.txt
	fails grep 'without exchange' silent.txt
	cmp {plan,silent}/step-12/rank-0.safetensors
	[ "$(jq '[.traceEvents[] | select(.cat == "alone")] | length' plan-trace.json)" -eq 2 ]
}

@test "--test-samples: a test of so many, evenly spread" {
	wants 0 gf-train -q --data digits --model digits-mlp --steps 30 --log log.jsonl
	[[ "$(tail -1 out.txt)" == *'of 360)' ]]
	for samples in 7 90; do
		wants 0 gf-train -q --data digits --model digits-mlp --steps 30 --test-samples "$samples" --log log.jsonl
		[[ "$(tail -1 out.txt)" == *"of $samples)" ]]
		jq -es --argjson n "$samples" 'last | .part == "test" and .samples == $n' log.jsonl
	done
}

@test "a warm-up that outlasts the run is shortened, aloud" {
	local options
	while read -r options; do
		# shellcheck disable=SC2086
		gf-plan -q --policy single $options digits-mlp --ranks 1 4x2-1gbe > plan.json
		wants 0 gf-train --plan plan.json --data digits --epochs 1 --log log.jsonl
		says "the plan's warm-up outlasts the 44 steps of the run, and takes half of them"
		wants 0 gf-train --plan plan.json --data digits --epochs 20 --steps 3
		fails grep -q outlasts err.txt
	done < <(echo '--staleness 2:warmup=300'
		facts 'select(.outlasts) | "--selection \($name) \(.outlasts)"')
}

@test "a test before the first outer exchange says which parameters it is of" {
	gf-topo --synthetic 'host:1@8GB/s,1us net:2@1Gb/s,50us' > sites.json
	gf-plan -q --model digits-mlp --batch 16 --period local-sgd:steps=60 sites.json > plan.json
	wants 0 mpirun -np 2 gf-train --plan plan.json --data digits --epochs 3 --log log.jsonl
	says 'tested are the parameters of step 0, the last outer exchange'
	says 'tested are the parameters of step 60, the last outer exchange'
	jq -es 'map(select(.part == "test")) | map([.step, .outer_step]) == [[44, 0], [88, 60], [132, null]]' log.jsonl
}

@test "a signal that is handled while layers are computed changes nothing" {
	strike=$(realpath -m "$GF_SOURCE/$BUILD/faults/strike.so")
	[ -e "$strike" ] || skip "a sanitizer cannot be preloaded into"
	gf-train $quick --steps 20 | tail -n 1 > want.txt
	for tries in 1 2 3 4; do
		LD_PRELOAD=$strike GF_TIMER_US=300 wants 0 gf-train $quick --steps 20
		tail -n 1 out.txt | cmp - want.txt
	done
}
