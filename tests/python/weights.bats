#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gf-train's weights and gradients beside PyTorch's.
load ../cli/common

setup_file() { # finds the interpreter that has PyTorch
	for python in ${GF_PYTHON:-python3 /usr/bin/python3} ''; do
		[ -n "$python" ] || skip "no PyTorch"
		"$python" -c 'import torch' 2> /dev/null && break
	done
	needs_onednn
	export python check=$GF_SOURCE/tests/python/check_weights.py
}

check() { # KIND MODEL...
	local kind=$1
	shift
	local models=("${@/#/$GF_SOURCE/share/models/}")
	wants 0 "$python" "$check" "$kind" "${models[@]/%/.json}"
}

@test "PyTorch loads what gf-train's checkpoints hold" {
	check names digits-mlp digits-cnn digits-cnn-plain mnist-mlp cifar100-cnn cifar100-convex resnet20 lstm-text gpt-text
}

# bats test_tags=long
@test "the same of large models" {
	check names resnet18 resnet50 resnet152 densenet201 inception-v4 alexnet-bn vgg16 lstm-ptb
}

@test "PyTorch: the loss and the gradients of language models" {
	check gradients lstm-text gpt-text
}
