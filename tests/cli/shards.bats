#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Shards: plans that cut parameters, gradients and optimiser state, and memory.
load common

job() { # OPTIONS...: of a model whose step waits for its messages
	gf-plan -q --model resnet50 "$share/topologies/4x2-1gbe.json" "$@"
}

@test "--shard: what each stage keeps is in the plan's memory" {
	local method
	for method in none zero1 zero2 zero3; do
		job --shard "$method" > "$method.json"
	done
	# resnet50 has 25.6 million parameters on 8 ranks; AdamW keeps 8 bytes of each
	jq -e '.predicted.memory | .parameters_bytes == .gradients_bytes and
		.state_bytes == 2 * .parameters_bytes' none.json
	jq -es '.[0].predicted.memory as $none | .[1].predicted.memory |
		.state_bytes == $none.state_bytes / 8 and .parameters_bytes == $none.parameters_bytes' \
		none.json zero1.json
	jq -es '.[0].predicted.memory as $one | .[1].predicted.memory |
		.gradients_bytes < $one.gradients_bytes and .peak_bytes < $one.peak_bytes' \
		zero1.json zero2.json
	jq -es '.[0].predicted.memory as $none | .[1].predicted.memory |
		.parameters_bytes == $none.parameters_bytes / 8 and .gathered_bytes > 0' \
		none.json zero3.json
	jq -e '.shard.method == "zero3" and .shard.group_ranks == 8 and
		all(.messages[]; .half == "split")' zero3.json
	# the plan is read, and predicted as it was
	gf-sim -q zero3.json | jq -e --slurpfile p zero3.json \
		'(.iteration_s - $p[0].predicted.iteration_s | fabs) < 1e-9 and
		.memory_bytes == $p[0].predicted.memory.peak_bytes'
}

@test "--shard zero1 is a step of dear with an eighth of the update" {
	job --policy dear --lanes 1 > dear.json
	jq '.model.update_s = 0.8' dear.json > slow.json
	jq '.shard = {method: "zero1", group_ranks: 8}' slow.json > zero1.json
	jq -es '.[0].iteration_s - .[1].iteration_s - 0.7 | fabs < 1e-6' \
		<(gf-sim -q slow.json) <(gf-sim -q zero1.json)
}

@test "--memory: the fastest that fits, or nothing and the least that there is" {
	local least
	job --memory 3G > large.json
	job --memory 2700M > small.json
	jq -es '.[0].predicted.iteration_s <= .[1].predicted.iteration_s and
		.[1].predicted.memory.peak_bytes <= .[1].memory.limit_bytes' large.json small.json
	wants 1 job --memory 100M
	says "--memory: want a plan that fits into 100 MiB, found at least"
	says "with zero3: give more ranks, a smaller --batch, or recompute=yes"
	# what is made again in backward is not kept
	wants 0 job --memory 1700M:recompute=yes
	jq -e '.predicted.memory.peak_bytes <= .memory.limit_bytes and .memory.recompute and
		.model.backward_s > 1.4 * '"$(jq .model.backward_s small.json)" out.txt
	# and an optimiser that keeps less takes less
	jq -es '.[0].predicted.memory.state_bytes == .[1].predicted.memory.state_bytes / 2' \
		<(job --shard zero1 --memory 8G:optimizer=sgd) <(job --shard zero1 --memory 8G)
	wants 0 job --shard zero1 --memory 8G:state=0
	jq -e '.predicted.memory.state_bytes + 0 == 0' out.txt
	wants 2 job --memory 8G:optimizer=sgd,state=100
	says '--memory: want optimizer or state, got both'
	for size in 0 5000P; do
		wants 2 job --memory $size
		says '--memory: want at '
	done
	# what a period holds counts
	job --memory 8G --period local-sgd:steps=10 > period.json
	jq -e '.predicted.memory | .state_bytes == 4 * .parameters_bytes and
		.peak_bytes == .parameters_bytes * 6 + .activations_bytes' period.json
	wants 1 job --memory 3G --period local-sgd:steps=10
	says 'with period local-sgd, which holds 195 MiB of it'
	gf-sim -q period.json --table=json | jq -e --slurpfile p period.json '.memory_bytes == $p[0].predicted.memory.peak_bytes'
	wants 2 job --memory 8G:optimizer=adamm
	says '--memory: optimizer: want'
	gf-plan --model resnet50 "$share/topologies/4x2-1gbe.json" --memory 3G 2>&1 > /dev/null |
		grep -q 'fits into 3 GiB: a rank holds .* at the most: parameters .*, activations '
	wants 0 gf-plan --model resnet50 "$share/topologies/4x2-1gbe.json" --memory 2850M
	says 'and holds 2.94 GiB a rank, which does not fit'
}

@test "--shard: what does not go with it is refused, and the option named" {
	wants 2 job --shard zero3 --policy wfbp
	says '--policy: want none with --shard zero3, whose units say how tensors are cut (key units)'
	wants 2 job --shard zero3 --selection topk
	says '--selection: want dense with --shard zero3, got topk'
	wants 2 job --shard zero2 --staleness 2
	says '--staleness: want 1 with --shard zero2, got 2'
	wants 2 job --shard zero1 --period local-sgd
	says '--period: want every with --shard zero1, got local-sgd'
	wants 2 job --shard zero3:units=layers
	says '--shard: units: want auto, or bytes, layer, block, model, fsdp2, deepspeed or megatron, got "layers"; did you mean "layer"?'
	wants 2 job --shard zero4
	says '--shard: want none, zero1, zero2, zero3 or auto, got "zero4"'
	wants 2 job --shard zero3 --release backward_end
	says '--release: want ready with --shard zero3, got backward_end'
	job --memory 8G --release backward_end | jq -e 'all(.messages[]; .release == "backward_end")'
	for keys in zero1:ahead=3 zero2:keep=yes; do
		wants 2 job --shard $keys
		says "--shard: want zero3 or auto with $(echo "$keys" | sed 's/.*:\(.*\)=.*/\1/'), got ${keys%%:*}"
	done
	for keys in units=block across=net none:ahead=2; do
		wants 2 job --shard $keys
		says '--shard: want a method with '
	done
	wants 0 job --memory 8G --shard ahead=2,keep=no
	# rows that are compared have the keys that they know
	wants 0 job --compare --over shards --shard units=layer,ahead=2 --table=json
	[ "$(wc -l < out.txt)" -eq 4 ]
	wants 2 gf-plan -q --model resnet50 --shard zero1 --ranks 1 "$share/topologies/4x2-1gbe.json"
	says '--shard: want two ranks or more that share a copy, got 1'
}

@test "--shard: keys choose units, keeps and how far ahead" {
	job --shard zero3:units=layer,ahead=2,keep=no > layers.json
	jq -e '.shard.ahead == 2 and all(.messages[]; .keep | not) and (.messages | length) > 50' layers.json
	job --shard zero3:units=model > model.json
	jq -e '.messages | length == 1' model.json
	job --shard zero3:units=16M,keep=yes > bytes.json
	jq -e 'all(.messages[]; .keep) and .policy == "units"' bytes.json
	job --shard zero3:units=16M,keep=yes --table | grep -c kept
	# no rule is faster than what is found without
	job --shard zero3 > best.json
	for rule in layer block model fsdp2 deepspeed megatron; do
		job --shard "zero3:units=$rule" > rule.json
		jq -es '.[0].predicted.iteration_s <= .[1].predicted.iteration_s * 1.0000001 and
			.[0].predicted.lower_bound_s <= .[1].predicted.iteration_s' best.json rule.json
	done
	# nor are more lanes slower
	for lanes in 1 2 3 4 8; do
		gf-plan -q --gpu h100 --batch 1 --shard zero1 --lanes $lanes gpt2-small dgx-h100-4x8
	done | jq -es 'map(.predicted.iteration_s) | . == (sort | reverse)'
	gf-plan -q --shard zero3 --lanes 1000 digits-mlp 4x2-1gbe | jq -e '(.tensors | length) >= .lanes'
}

@test "gf-sim --steps replays a step with shards as it was predicted" {
	local lanes
	gf-topo --synthetic net:4@10Gb/s,50us > flat.json
	for lanes in 1 2; do
		for method in zero1 zero3; do
			gf-plan -q --model resnet50 --shard "$method" --lanes "$lanes" flat.json > plan.json
			jq -es '.[0].iteration_s / .[1].iteration_s - 1 | fabs < 0.01' \
				<(gf-sim -q plan.json) <(gf-sim -q --steps plan.json)
			# compute issues each reduce-scatter
			jq '.model.issue_s = 0.003' plan.json > issued.json
			jq -es '.[0].iteration_s / .[1].iteration_s - 1 | fabs < 0.01' \
				<(gf-sim -q issued.json) <(gf-sim -q --steps issued.json)
		done
	done
}

@test "--memory recompute=yes: forward runs once more, with micro-batches, of a plan that does so, too" {
	job --shard zero1 > kept.json
	job --shard zero1 --memory 8G:recompute=yes > again.json
	job --shard zero1 --memory 8G:recompute=yes --accumulate 2 > twice.json
	gf-plan -q --shard zero1 --memory 8G:recompute=yes again.json > planned.json
	jq -es 'map(.model) | .[0].forward_s as $f | .[0].backward_s as $b | def near($x): . / $x - 1 | fabs < 1e-9;
		(.[1] | (.forward_s | near($f)) and (.backward_s | near($b + $f))) and
		(.[2] | (.forward_s | near(3 * $f + $b)) and (.backward_s | near($b + $f))) and
		(.[3].backward_s | near($b + $f))' kept.json again.json twice.json planned.json
	# micro-batches are added up in gradients of their own
	job --shard zero2 > one.json
	job --shard zero2 --accumulate 2 > two.json
	jq -es 'map(.predicted.memory) | .[1].gradients_bytes - .[0].gradients_bytes == .[0].parameters_bytes' one.json two.json
	job --shard zero3 > plan.json
	wants 1 gf-sim --accumulate 4 plan.json
	says '--accumulate: want 1 with --shard zero3, which gathers anew for each micro-batch, got 4'
}

@test "gf-sim --ranks: shards of as many ranks, and of a copy's where there are fewer" {
	job --policy dear --lanes 1 | jq '.model.update_s = 0.8 | .shard = {method: "zero1", group_ranks: 8}' > zero1.json
	gf-sim -q --ranks 2,64 --table=json zero1.json |
		jq -es '.[0].compute_s - .[1].compute_s - 0.8 * (1 / 2 - 1 / 64) | fabs < 1e-9'
	gf-plan -q --model gpt2-small --gpu h100 --shard zero3:across=gpu dgx-h100-4x8 > plan.json
	gf-sim -q --ranks 4,8,16 --table=json plan.json |
		jq -es '.[0].memory_bytes > .[1].memory_bytes and .[1].memory_bytes == .[2].memory_bytes'
}

@test "--shard across a level: shards within it, all-reduces of shards between" {
	job --shard zero3:across=host > plan.json
	jq -e '.shard.group_ranks == 2 and all(.messages[]; .algorithm == "blueconnect" and
		.stages[0].factor == 2)' plan.json
	# half of the parameters, not an eighth
	jq -es '.[0].predicted.memory.parameters_bytes == 4 * .[1].predicted.memory.parameters_bytes' \
		plan.json <(job --shard zero3)
	wants 0 gf-sim --verify plan.json
	prints 'reduce-scatter, f32, 8 ranks'
	jq -es '.[0].iteration_s / .[1].iteration_s - 1 | fabs < 0.01' \
		<(gf-sim -q plan.json) <(gf-sim -q --steps plan.json)
	wants 2 job --shard zero3:across=rack
	says '--shard: across: want a level of the topology (host, net), got rack'
	jq '.messages[0].stages[0].factor = 4 | .messages[0].stages[1].factor = 2 |
		.messages[0].stages[].algorithm = "ring"' plan.json > other.json
	wants 2 gf-sim other.json
	says '/messages/0/stages: want those of an algorithm whose inner ones are the ranks of a copy'
}

@test "--compare --over shards,units: a row for each, with what a rank holds" {
	job --compare --over shards,units --table=json > rows.txt
	jq -es '[.[] | select(.memory_bytes > 0)] | length >= 8' rows.txt
	jq -es 'map(.over.shards // empty) | sort | index(["none", "zero1", "zero2", "zero3"]) == 0' rows.txt
	jq -es 'map(.over.units // empty) | contains(["deepspeed", "fsdp2", "megatron"])' rows.txt
	wants 2 job --compare --over shards --shard zero1
	says '--compare goes without --shard where shards are compared'
	job --shard zero3 > plan.json
	wants 2 gf-plan --refine trace.json plan.json
	says '--refine: want a plan without shards, whose traces say what all-reduces take, got zero3'
	gf-sim -q --replan --ranks 16 plan.json | jq -es 'any(.shard == "zero3")'
	# copies stay as large
	gf-plan -q --gpu h100 --batch 1 --shard zero3:across=gpu gpt2-small dgx-h100-4x8 > copies.json
	gf-sim -q --replan copies.json | jq -es 'map(.memory_bytes) | length == 2 and .[0] == .[1]'
	fails gf-sim -q --replan --ranks 12 copies.json
	gf-sim -q --ranks 4,8,16 plan.json | jq -es '.[0].memory_bytes > .[2].memory_bytes'
	gf-plan --explain --model resnet50 --shard zero3 "$share/topologies/4x2-1gbe.json" | grep -q '^lane 1 '
}
