#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
load common

# records of CIFAR with labels 0, 1, ...: one label byte or two, then an image
# that is brighter the higher its label
records() { # count [fine]
	python3 -c '
import sys
count, prefix = int(sys.argv[1]), "fine" in sys.argv
for i in range(count):
    label = i % 10
    sys.stdout.buffer.write((b"\0" if prefix else b"") + bytes([label]) + bytes([25 * label]) * 3072)' "$@"
}

# a model of two layers for samples of a shape
small() { # shape classes
	jq -n --argjson input "$1" --argjson classes "$2" '{format: "gf-model", version: 1, name: "small",
		input: $input, classes: $classes, layers: [{name: "pool", type: "globalpool"},
		{name: "fc1", type: "fc", outputs: 16}, {name: "relu", type: "relu"},
		{name: "fc2", type: "fc", outputs: $classes}]}'
}

# a language model that reads 8 numbers below $1
reader() { # words
	jq -n --argjson words "$1" '{format: "gf-model", version: 1, name: "reader", input: [8], classes: $words,
		layers: [{name: "encoder", type: "embedding", entries: $words, outputs: 8},
		{name: "rnn", type: "lstm", outputs: 8}, {name: "decoder", type: "fc", outputs: $words}]}'
}

@test "CIFAR-10 and CIFAR-100 are known by their files" {
	mkdir ten hundred
	for i in 1 2 3 4 5; do records 20 > ten/data_batch_$i.bin; done
	gzip ten/data_batch_2.bin
	records 20 > ten/test_batch.bin
	records 100 fine > hundred/train.bin
	records 20 fine > hundred/test.bin
	small '[3, 32, 32]' 10 > small.json
	wants 0 gf-train -q --model small.json --data ten --epochs 1 --log ten.jsonl
	wants 0 gf-train -q --model small.json --data cifar100:hundred --epochs 1 --log hundred.jsonl
	jq -se 'map(select(.part == "train").samples) == [96]' ten.jsonl
	# the same images in the same order
	cmp <(jq -c .loss ten.jsonl) <(jq -c .loss hundred.jsonl)
	# VGG-16 for these images
	wants 0 gf-train -q --model vgg16-cifar10 --data ten --batch 2 --steps 1 --augment flip,crop:4
	wants 3 gf-train -q --model small.json --data cifar10:hundred
	says 'hundred: want a file data_batch_1.bin or .gz, found none'
	one_line
}

@test "shipped models train on made-up data, on every backend" {
	needs_onednn
	for model in mnist-mlp cifar100-cnn resnet20 lstm-text gpt-text; do
		for device in ref onednn; do
			wants 0 gf-train -q --device $device --model $model --data synthetic:4 --batch 2 --steps 2 --log $device.jsonl
		done
		# the same loss, but for rounding
		jq -s 'map(select(.part == "batch").loss)' ref.jsonl onednn.jsonl | jq -se '.[0] | . as $l |
			all(range(2); ($l[.] - $l[. + 2] | fabs) < 1e-3 * $l[.])'
	done
}

# A small transformer whose last layer shares the table of words.
tied() {
	cat <<- 'END'
		{"format": "gf-model", "version": 1, "name": "tied", "input": [8], "classes": 12, "layers": [
		 {"name": "words", "type": "embedding", "entries": 12, "outputs": 24},
		 {"name": "places", "type": "embedding", "from": ["input"], "entries": 2, "outputs": 24,
		  "positional": true, "stretch": 4},
		 {"name": "sum", "type": "add", "from": ["words", "places"]},
		 {"name": "qkv", "type": "fc", "outputs": 72},
		 {"name": "att", "type": "attention", "heads": 2, "causal": true},
		 {"name": "more", "type": "add", "from": ["att", "sum"]},
		 {"name": "dense", "type": "fc", "outputs": 24},
		 {"name": "norm", "type": "layernorm"},
		 {"name": "out", "type": "fc", "outputs": 12, "tied": "words"}]}
	END
}

@test "a tied weight: one tensor, ready last, and the net learns" {
	needs_onednn
	tied > tied.json
	for device in ref onednn; do
		wants 0 gf-train -q --device $device --model tied.json --data synthetic:512 --batch 16 --lr .2 --epochs 6 --log $device.jsonl
		# 12 for guesses that know nothing, 5.9 for one that knows each word's successor
		jq -se 'map(select(.part == "test").perplexity)[-1] < 7.5' $device.jsonl
	done
	# the same first loss, but for rounding
	cat ref.jsonl onednn.jsonl | jq -se 'map(select(.part == "batch" and .step == 1).loss) |
		length == 2 and (.[0] - .[1] | fabs < 1e-4)'
	wants 0 gf-profile --model tied.json --batch 2 --repeats 2:warmup=1 -o profile.json
	wants 0 gf-profile --model tied.json --estimate --flops 1e12 -o estimate.json
	for doc in profile.json estimate.json; do
		jq -e '.model | (.tensors | map(.name)) == ["out.bias", "norm.bias", "norm.weight", "dense.bias",
			"dense.weight", "qkv.bias", "qkv.weight", "places.weight", "words.weight"] and
			(.tensors[-1].ready_s >= .tensors[-2].ready_s)' $doc
	done
}

@test "frozen layers: only the last one is in the plan" {
	wants 0 gf-train --model cifar100-convex --data synthetic:20 --batch 2 --steps 10 --lr 0
	sed -n 2p out.txt | grep -qE '^ *0 +0-1 +[0-9.]+ KiB'
	[ "$(grep -c measured out.txt)" -eq 1 ]
}

@test "changed images: other weights, the same after a resume" {
	quick="-q --model digits-mlp --epochs 2 --threads 1 --augment flip,crop:1"
	wants 0 gf-train $quick --checkpoint whole
	wants 0 gf-train $quick --checkpoint parts --steps 100
	wants 0 gf-train $quick --checkpoint parts --resume
	cmp whole/step-178/rank-0.safetensors parts/step-178/rank-0.safetensors
	wants 0 gf-train $quick --augment none --checkpoint plain
	fails cmp -s whole/step-178/rank-0.safetensors plain/step-178/rank-0.safetensors
	wants 2 gf-train -q --augment sideways
	says 'augment: want none, flip, crop:N or resized-crop, got "sideways"'
	wants 2 gf-train -q --augment crop:8
	says "augment: want to crop by less than the images' 8 x 8 pixels, got 8"
	wants 2 gf-train -q --model lstm-text --data text --augment flip
	says 'the data are text'
	wants 0 gf-train --augment flip --print-training
	prints '"augment": "flip"'
}

# train and val of two classes, larger and smaller than samples are
pictures() { # folder, train files of a class
	command -v cjpeg > /dev/null || skip "no cjpeg"
	grep -q 'libjpeg-turbo on' "$GF_SOURCE/$BUILD/config.txt" || skip "built without libjpeg-turbo"
	python3 -c '
import os, subprocess, sys
folder, count = sys.argv[1], int(sys.argv[2])
for part, n in (("train", count), ("val", 2)):
    for label, name in enumerate(("light", "dark")):
        os.makedirs(f"{folder}/{part}/{name}")
        for i in range(n):
            w, h = 90 + 7 * i, 60 + 5 * i
            pixels = bytes((200 - 150 * label + (x + 3 * y + 5 * i) % 50) for y in range(h) for x in range(3 * w))
            subprocess.run(["cjpeg", "-outfile", f"{folder}/{part}/{name}/{i}.jpg"] + ["-progressive"] * (i % 2),
                           input=b"P6\n%d %d\n255\n" % (w, h) + pixels, check=True)' "$@"
}

@test "AlexNet-BN and ResNet-50 train on a folder of JPEG files" {
	pictures set 2
	while read -r model side; do
		# the smallest pictures that its layers take
		jq ".input = [3, $side, $side]" "$GF_SOURCE/share/models/$model.json" > model.json
		wants 0 gf-train -q --model model.json --data set --augment flip,resized-crop --batch 2 --steps 2 --lr .001 --loaders 2 --log log.jsonl
		jq -se 'map(select(.part == "batch")) | length == 2 and all(.loss > 0)' log.jsonl
		rm log.jsonl
	done <<- END
		alexnet-bn 67
		resnet50 32
	END
}

@test "JPEG files: the same bits by any threads and after a resume, and the net learns" {
	pictures set 8
	small '[3, 24, 24]' 2 > small.json
	train=(gf-train -q --model small.json --data jpeg:set --augment flip,resized-crop:.3 --batch 4 --schedule warmup_epochs=0 --optimizer weight_decay=0)
	wants 0 "${train[@]}" --epochs 10 --target 1 --checkpoint one
	wants 0 "${train[@]}" --epochs 10 --loaders 3 --steps 17 --checkpoint ckpt
	wants 0 "${train[@]}" --epochs 10 --loaders 4 --checkpoint ckpt --resume
	cmp {one,ckpt}/step-40/rank-0.safetensors
	wants 0 "${train[@]}" --epochs 10 --augment none --checkpoint plain
	fails cmp -s <(tensors_of one/step-40/rank-0.safetensors) <(tensors_of plain/step-40/rank-0.safetensors)

	# a picture that cannot be read ends the run when its turn comes, by name
	head -c 700 set/train/dark/3.jpg > cut && mv cut set/train/dark/3.jpg
	wants 2 "${train[@]}" --epochs 1 --log log.jsonl
	says 'set/train/dark/3.jpg: want a whole JPEG file, its end is missing (mend or remove the file)'
	one_line
	wants 2 gf-train -q --data set
	says 'set: want a model that takes pictures of 3 channels'
	wants 2 gf-train -q --data digits --augment resized-crop
	says 'want pictures that are cropped (jpeg), the data are idx'
}

@test "IDX files of images with channels" {
	mkdir colour
	records 40 | python3 -c '
import struct, sys
data = sys.stdin.buffer.read()
images = b"".join(data[i + 1:i + 3073] for i in range(0, len(data), 3073))
for part in "train", "test":
    with open("colour/%s-images-idx3-ubyte" % part, "wb") as f:
        f.write(struct.pack(">BBBB4I", 0, 0, 8, 4, 40, 3, 32, 32) + images)
    with open("colour/%s-labels-idx1-ubyte" % part, "wb") as f:
        f.write(struct.pack(">BBBBI", 0, 0, 8, 1, 40) + data[::3073])'
	small '[3, 32, 32]' 10 > small.json
	wants 0 gf-train -q --model small.json --data colour --epochs 1 --batch 8 --log log.jsonl
	jq -se 'map(select(.part != "batch").samples) == [40, 40]' log.jsonl
}

@test "text: by words and by characters, with its perplexity" {
	mkdir book
	for i in $(seq 200); do echo "the cat sat on the mat and the dog sat on the cat"; done > book/story.txt
	reader 20 > reader.json
	wants 0 gf-train --model reader.json --data book --epochs 3 --lr 1 --log chars.jsonl
	tail -n 2 out.txt | head -n 1 | grep -qE '^test perplexity [0-9.]+$'
	says 'symbols/s'
	jq -se 'map(select(.part == "test").perplexity) | .[0] > .[2] and .[2] < 6' chars.jsonl
	jq -se 'all((.loss | exp) - .perplexity | fabs < 1e-9)' chars.jsonl
	wants 0 gf-train --model reader.json --data words:book --epochs 3 --lr 1 --log words.jsonl
	# 180 lines of 13 words and an end: (2520 - 1) / 8 pieces, of which 16 rows take 304
	jq -se 'map(select(.part == "train").samples)[0] == 304 * 8' words.jsonl
	reader 5 > few.json
	wants 2 gf-train -q --model few.json --data book
	says 'book: want at most 5 different characters for this model, found 13'
	wants 0 gf-train -q --model few.json --data words:book --steps 2
	wants 2 gf-train -q --model digits-mlp --data book
	says 'book: want images for this model, got text (--data synthetic, or a model of text, such as --model lstm-text)'
	wants 2 gf-train -q --model reader.json --data digits
	says 'want text for this model, got images (--data text, or synthetic)'
}

# Attention without "causal": its loss is that of masked words.
@test "masked words: told from the words around them, on every backend" {
	needs_onednn
	tied | jq '.input = [9] | (.layers[] | select(.name == "places").entries) = 3 |
		(.layers[] | select(.name == "att").causal) = false' > masked.json
	mkdir book
	for i in $(seq 600); do echo "the cat sat on the mat and the dog sat on the cat"; done > book/story.txt
	for device in ref onednn; do
		wants 0 gf-train --device $device --model masked.json --data words:book --epochs 4 --lr .02 --log $device.jsonl
		says 'on 839 samples, 1 of 9 numbers masked in each, '
		# two words out of seven are "the"
		jq -se 'map(select(.part == "test"))[-1] | .samples == 93 and .correct > 60' $device.jsonl
	done
	jq -se 'map(select(.part == "train").samples)[0] == 832' ref.jsonl
	# the same losses, but for rounding
	jq -s 'map(select(.part == "batch" and .step < 9).loss)' ref.jsonl onednn.jsonl | jq -se '.[0] | . as $l |
		length == 16 and all(range(8); ($l[.] - $l[. + 8] | fabs) < 1e-3)'
	# the mask's number is not the text's
	wants 2 gf-train -q --model masked.json --data chars:book
	says 'book: want at most 11 different characters for this model, found 13'
}

# bats test_tags=long
@test "gpt-text learns more of the shipped text than how frequent characters are" {
	command -v python3 > /dev/null || skip "no python3"
	needs_onednn
	mkdir part
	head -c 120000 "$GF_SOURCE/share/data/text/shakespeare.txt" > part/part.txt
	wants 0 timeout 600 gf-train -q --threads 1 --model gpt-text --training gpt-text --data part --steps 80 --log log.jsonl
	# 3.29: the entropy of its characters, each by itself; the test came to 2.46
	python3 - log.jsonl part/part.txt <<- 'END'
		import collections, json, math, sys
		loss = [json.loads(line) for line in open(sys.argv[1])][-1]["loss"]
		text = open(sys.argv[2], "rb").read()
		shares = [n / len(text) for n in collections.Counter(text).values()]
		entropy = -sum(share * math.log(share) for share in shares)
		assert loss < entropy - 0.5, (loss, entropy)
	END
}
