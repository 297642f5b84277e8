#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# What users type and pipe: names, units, nccl-tests' words, standard input.
load common

@test "shipped documents by name, and the nearest name of a wrong one" {
	wants 0 gf-plan resnet20 gtopk-32-1gbe --gpu v100
	cp out.txt by-name
	wants 0 gf-plan "$share/models/resnet20.json" "$share/topologies/gtopk-32-1gbe.json" --gpu v100
	diff <(jq 'del(.. | .file?)' by-name) <(jq 'del(.. | .file?)' out.txt)
	wants 2 gf-plan resnet-20 gtopk-32-1gbe --gpu v100
	says "resnet-20: want a path or a name in share/topologies, share/models or share/profiles, found neither; did you mean resnet20?"
	wants 2 gf-train --model digitscnn
	says "in share/models, found neither; did you mean digits-cnn?"
	wants 2 gf-train --model llama-3.2
	says "did you mean llama-3.2-1b?"
	wants 3 gf-train --model llama.json
	says "llama.json: No such file"
	wants 2 gf-plan resnet20 gtopk-32-1gbe --gpu v100-sxm2
	says 'got "v100-sxm2"; did you mean "v100"?'
	# none is near: a few of them, each whole
	wants 2 gf-plan mistral-7b gtopk-32-1gbe --gpu v100
	says 'found neither; names that are there: '
	told=$(sed 's/.*names that are there: //' err.txt)
	[ "$(tr ',' '\n' <<< "$told" | grep -c .)" -eq 8 ]
	for name in ${told//,/}; do ls "$share"/{topologies,models,profiles}/"$name.json" 2> /dev/null | grep -q .; done
	# a file of that name comes first
	echo '{}' > resnet20
	wants 2 gf-plan resnet20 gtopk-32-1gbe
	says "resnet20: /format: want"
}

@test "names of files keep their case, and none is empty" {
	printf 'name,count_elems,ready_s\nw,4,1\n' > READY.CSV
	mkdir -p OSU
	cp READY.CSV OSU/ready.csv
	wants 0 gf-profile -q --import READY.CSV --passes forward=3s
	wants 0 gf-profile -q --import CSV:OSU/ready.csv --passes forward=3s
	wants 0 gf-profile -q --import OSU/ready.csv --passes forward=3s
	wants 2 gf-plan ""
}

@test "names are taken in any case" {
	wants 0 gf-plan -q ResNet20 GTOPK-32-1GbE --gpu V100 --policy Threshold --codecs F16,F32
	cp out.txt in-capitals
	wants 0 gf-plan -q resnet20 gtopk-32-1gbe --gpu v100 --policy threshold --codecs f16,f32
	diff in-capitals out.txt
	wants 0 gf-profile -q --estimate --model DIGITS-mlp --gpu H100 --precision BF16
	wants 0 gf-sim -q in-capitals --costs Gtopk-32-1Gbe
}

@test "an unknown name is a wrong use, wherever it stands" {
	for arguments in no-name "--model no-name" "--gpu no-name" "--system no-name" "--policy no-name" "--emit no-name"; do
		wants 2 gf-plan 4x2-1gbe resnet20 $arguments < /dev/null; one_line
	done
	wants 2 gf-sim no-name
	wants 2 gf-train --model no-name
	wants 2 gf-train --training no-name
	wants 3 gf-plan no/name
	wants 3 gf-plan no-name.json
}

@test "what is no option but an option's key is refused, also where an option begins so" {
	wants 2 gf-profile --time 5ms
	says "gf-profile: --time: want an option, got a key of --points: write time=TIME behind that"
	wants 2 gf-profile --time=5ms
	wants 2 gf-train --warmup-epochs 3
	says "got a key of --schedule: write warmup_epochs=EPOCHS behind that"
	# what is an option, too, and what is no option's argument
	wants 2 gf-train --rank 0
	says "--rank: want --join"
	wants 2 gf-plan -- --density
	says "--density: want a path or a name"
}

@test "gf-plan --list: all tables, or those that are named" {
	wants 0 gf-plan --list
	for name in $(cd "$share/models" && ls); do prints "  ${name%.json}"; done
	for name in $(cd "$share/topologies" && ls); do prints "  ${name%.json}"; done
	for name in $(cd "$share/profiles" && ls); do prints "  ${name%.json}"; done
	wants 0 gf-plan --list codecs targets
	[ "$(grep -v '^ ' out.txt | tr '\n' ' ')" = "codecs (--codecs): targets (--emit): " ]
	prints "  q8 "
	wants 2 gf-plan --list codec
	says 'codecs, gpus or targets, got "codec"; did you mean "codecs"?'
}

@test "units as people write them" {
	gf-topo --synthetic "a:2@1.25GB/s,3us net:2@10Gb/s,50us" > want
	for levels in "a:2@10Gbps,3us net:2@10Gbit/s,50us" "a:2@10gb/s,3µs net:2@1250MB/s,0.05ms"; do
		gf-topo --synthetic "$levels" | diff want -
	done
	wants 2 gf-topo --synthetic "a:2@10G,3us"
	says "want a rate > 0 such as 12.5GB/s, 100Gb/s or 8x100Gb/s"
	wants 0 gf-profile --estimate --model resnet50 --flops 15TF
	cp out.txt by-unit
	wants 0 gf-profile --estimate --model resnet50 --flops 15e12
	diff by-unit out.txt
	wants 2 gf-profile --estimate --model resnet50 --flops 15TB/s
	says '--flops: want FLOP/s > 0 such as 7e12 or 15TF, got "15TB/s"'
}

@test "nccl-tests' words mean the same, or are refused with advice" {
	wants 0 gf-allreduce --minbytes 1KB --maxbytes 2k --stepfactor 2 --iters 2 --warmup_iters 0 -d float -g 1 -t 1 --table=json
	[ "$(jq -r '.dtype' out.txt | sort -u)" = f32 ]
	wants 2 gf-allreduce -o sum
	says '-o: want a file, got "sum"; the operation is --op sum'
	[ ! -e sum ]
	wants 2 gf-allreduce -g 2
	says "--ngpus: want 1: each process is one rank with one GPU; start more with mpirun -np N"
	wants 2 gf-allreduce -d int8
	says '--datatype: want f32, f64, f16, bf16 or i32, got "int8"'
}

@test "one rank is said plainly, and has no best algorithm" {
	wants 0 gf-allreduce -e 2K -n 2
	prints "# 1 rank, 1 on this host"
	prints "# one rank has nothing to reduce: these are times of copies; start more with mpirun -np N"
	fails grep -q '^# best' out.txt
}

@test "a loop keeps its list: only documents are read from standard input" {
	printf 'resnet20\nresnet50\n' > list
	while read -r model; do
		gf-profile --estimate --model "$model" --gpu v100 2> /dev/null | jq -r .model.name
	done < list > read.txt
	diff list read.txt
	cat list | while read -r model; do
		gf-profile --estimate --model "$model" --gpu v100 2> /dev/null | jq -r .model.name
	done > piped.txt
	diff list piped.txt
	# a topology is a document, from a file and through a pipe
	stdin=$share/topologies/4x2-1gbe.json wants 0 gf-profile --estimate --model resnet20 --gpu v100
	[ "$(jq -s length out.txt)" -eq 2 ]
	cat "$share/topologies/4x2-1gbe.json" | gf-profile --estimate --model resnet20 --gpu v100 2> /dev/null > out.txt
	[ "$(jq -s length out.txt)" -eq 2 ]
	# an input that stays silent is named
	: > err.txt
	for ((tries = 0; tries < 300; tries++)); do
		! grep -q waiting err.txt || break
		sleep 0.1
	done | timeout 60 gf-profile --estimate --model resnet20 --gpu v100 > out.txt 2> err.txt
	says "waiting for documents on standard input (</dev/null: there are none)"
	# commands that want a document read whatever there is
	stdin=list wants 2 gf-plan
	says "standard input:1:6: '[' or '{' expected"
}

@test "a terminal that is read is named" {
	command -v script > /dev/null || skip "script is not installed"
	printf '\004' | timeout 120 script -qec "gf-plan" /dev/null > typed.txt 2>&1 || true
	grep -q "gf-plan: reading documents from the terminal (--help)" typed.txt
}

@test "integers written 6.0, a byte order mark, CRLF" {
	topo=$share/topologies/4x2-1gbe.json
	gf-plan --model resnet20 --gpu v100 "$topo" 2> /dev/null | jq 'del(.. | .file?, .sha256?, .digest?)' > want
	sed -E 's/("size": *[0-9]+)/\1.0/' "$topo" > real.json
	fails cmp -s "$topo" real.json
	printf '\xef\xbb\xbf' > bom.json
	sed 's/$/\r/' "$topo" >> bom.json
	for file in real.json bom.json; do
		gf-plan --model resnet20 --gpu v100 $file 2> /dev/null | jq 'del(.. | .file?, .sha256?, .digest?)' | diff want -
	done
	sed -E 's/("size": *[0-9]+)/\1.5/' "$topo" > half.json
	wants 2 gf-plan --model resnet20 --gpu v100 half.json
	says "want an integer, got"
	printf '\xef\xbb\xbf{}' > mark.json
	wants 2 gf-plan mark.json
	says "mark.json: /format: want"
}

@test "--help has groups in the order of use" {
	for command in gf-topo gf-profile gf-plan gf-sim gf-allreduce gf-train; do
		$command --help > help.txt
		# a heading comes first, each is there once, and none is empty
		awk '/^  [A-Z].*:$/ { n++; if (seen[$0]++ || bare) exit 1; bare = 1; next }
			/^  +[-a-z]/ { bare = 0; if (!n) exit 1 } END { exit !(n > 2 && !bare) }' help.txt ||
			{ cat help.txt; false; }
	done
	# an option stands after the one that its text speaks of
	[ "$(gf-profile --help | grep -oE '^ +--(estimate|passes)' | tr -d ' \n')" = --estimate--passes ]
}

@test "what is wrong is found before work begins, and its option is named" {
	for command in gf-topo gf-profile gf-plan gf-sim gf-allreduce gf-train; do
		wants 2 "$command" -o ''
		says '--output: want FILE, got ""'
	done
	wants 2 gf-train --model ''
	says '--model: want NAME, got ""'
	mkfifo pipe
	while read -r status arguments; do
		wants "$status" gf-train --steps 2 $arguments
		[ "$(grep '^gf-train' err.txt | grep -vc 'plain C')" -eq 1 ] || { cat err.txt; return 1; }
	done <<- 'END'
		3 --trace no/such/file
		3 --log no/such/file
		3 -o no/such/file
		2 --optimizer exclude=nothing.like.this
		3 --checkpoint no/such/folder
	END
	wants 3 gf-profile --estimate --flops 1e12 --model digits-cnn -o no/such/file
	one_line
	wants 3 mpirun --oversubscribe -np 2 gf-profile --budget 1s -o no/such/file
	fails grep measuring err.txt
	gf-plan -q resnet20 4x2-1gbe > plan.json
	# a pipe is not opened for a trial, which would end its reader's input
	timeout 60 cat pipe > read &
	wants 0 gf-sim plan.json --table=json -o pipe
	wait $!
	jq -e '.iteration_s > 0' read
	wants 2 gf-plan plan.json --plot a.svg -o a.svg
	says '--plot and --output: want two files, got one'
	wants 2 gf-sim plan.json --plot a.csv --trace ./a.csv
	says '--trace and --plot: want two files, got one'
	wants 2 gf-plan plan.json --emit nonsense
	says '--emit: want ddp, fsdp2, horovod, nccl-env, nccl-tuner, rccl-tuner, ncclx-tuner, ompi, ompi-han, deepspeed, megatron, xla, torchft or maxtext, got "nonsense"'
	wants 2 gf-sim plan.json --slow-link 3
	says '--slow-link: want RANK:FACTOR or RANK:FACTOR@LEVEL, got "3"'
	wants 2 gf-plan plan.json --refine plan.json
	says 'plan.json: want a trace of gf-train --trace, found no traceEvents'
	wants 3 gf-plan no/such.json
	says 'gf-plan: no/such.json: No such file or directory'
	wants 2 gf-profile --estimate --flops 1e12 --model zzz
	says 'zzz: want a path or a name in share/models, found neither; names that are there: '
}

@test "commands write and read the same under a locale with a comma and another i" {
	makes_locale
	six() { # FOLDER: what each command makes
		mkdir "$1"
		gf-topo --synthetic "host:2@12.5GB/s,1.5us net:2@1.25GB/s,20.5us" > "$1/topology"
		gf-profile --import "$data/import/nccl-tests.json" --ranks 4 > "$1/profile"
		gf-profile --estimate --model resnet20 --gpu v100 > "$1/model"
		gf-plan "$1/model" "$1/topology" --codecs f16 > "$1/plan"
		gf-sim "$1/plan" --jitter 0.1 > "$1/sim"
		gf-allreduce -a ring -b 4K -e 4K -c 1 --table=json > "$1/allreduce"
		gf-train --model digits-mlp --data digits --steps 3 --lr 0.05 --log "$1/train" > "$1/said"
	}
	six C
	LC_ALL=$locale six here
	for file in topology profile model plan sim; do
		diff "C/$file" "here/$file"
	done
	# what is measured differs, but by its numbers alone
	for file in allreduce train; do
		jq -c 'walk(if type == "number" then 0 else . end)' "here/$file" > "here/shape"
		jq -c 'walk(if type == "number" then 0 else . end)' "C/$file" | diff - "here/shape"
	done
	jq -e -n --slurpfile a C/train --slurpfile b "here/train" \
		'[$a, $b | [.. | .loss?]] | .[0] == .[1]'
}

@test "-h is short: what it does, the options that matter, an example; --help is whole" {
	local command
	for command in gf-topo gf-profile gf-plan gf-sim gf-allreduce gf-train gf-report; do
		wants 0 "$command" -h
		[ "$(wc -l < out.txt)" -le 40 ]
		[ "$(grep -cE '^ +(-[a-z], )?--[a-z]' out.txt)" -le 10 ]
		[ "$(head -n 1 out.txt | cut -d ' ' -f 1-3)" = "Usage: $command [OPTION...]" ]
		grep -A 1 '^Examples*:' out.txt | tail -n 1 | grep -q '^  [a-z]'
		prints "$command --help prints all options"
		grep -oE '\-\-[a-z-]+' out.txt | sort -u > short.txt
		wants 0 "$command" --help
		[ -z "$(grep -oE '\-\-[a-z-]+' out.txt | sort -u | comm -13 - short.txt)" ]
	done
}
