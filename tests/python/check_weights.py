#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gf-train's weights and gradients beside PyTorch's, with modules made of the same documents:

check_weights.py names MODEL.json...       PyTorch loads what is in gf-train's checkpoints
check_weights.py gradients MODEL.json...   of one batch of text, and its loss
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

from torch_model import Model

BATCH = 8


def read(path):
    """The tensors of a safetensors file, and its metadata."""
    with open(path, "rb") as f:
        raw = bytearray(f.read())
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        dtype = {"F32": torch.float32, "U64": torch.int64, "F64": torch.float64}[about["dtype"]]
        part = raw[8 + size + begin:8 + size + end]
        tensors[name] = (torch.frombuffer(part, dtype=dtype) if part else
                         torch.zeros(0, dtype=dtype)).reshape(about["shape"])
    return tensors, metadata


def gf_train(*arguments):
    subprocess.run(["gf-train", "-q", "--threads", "1", "-o", os.devnull, *arguments], check=True)


def load(document):
    with open(document, encoding="utf-8") as f:
        return Model(json.load(f))


def own_name(name):
    """rnn.weight_ih_l1 is layer rnn.1's."""
    return re.sub(r"\.((?:weight|bias)_[ih]h)_l(\d+)$", r".\2.\1", name)


def of_checkpoint(net, part):
    """PyTorch's state in a part, with the names and shapes that PyTorch has."""
    kept, _ = read(part)
    wanted = [name for name in net.state_dict() if not name.endswith("num_batches_tracked")]
    return {name: kept[name if name in kept else own_name(name)] for name in wanted}, kept


def names(document, folder):
    gf_train("--model", document, "--data", "synthetic:8", "--batch", "2", "--steps", "1",
             "--checkpoint", folder)
    net = load(document)
    state, _ = of_checkpoint(net, os.path.join(folder, "step-1", "rank-0.safetensors"))
    net.load_state_dict(state, strict=False)


def write_text(document, folder):
    """Of one batch, in whatever order. Inputs and labels, as numbers."""
    with open(document, encoding="utf-8") as f:
        length = json.load(f)["input"][0]
    random.seed(1)
    symbols = bytes(range(33, 113))
    text = symbols + bytes(random.choices(symbols, k=BATCH * length + 1 - len(symbols)))
    for part in "train", "test":
        with open(os.path.join(folder, part + ".txt"), "wb") as f:
            f.write(text)
    numbers = torch.tensor([byte - symbols[0] for byte in text])
    return numbers[:-1].view(BATCH, length), numbers[1:]


def gradients(document, folder):
    """After a step of SGD the momentum is the gradient, and tells where the step began."""
    values, labels = write_text(document, folder)
    log = os.path.join(folder, "log")
    gf_train("--model", document, "--data", f"chars:{folder}", "--batch", str(BATCH), "--epochs",
             "1", "--optimizer", "sgd:clip_norm=0,weight_decay=0", "--lr", "1e-6",
             "--log", log,
             "--checkpoint", os.path.join(folder, "kept"))
    with open(log, encoding="utf-8") as f:
        row = json.loads(f.readline())
    net = load(document)
    state, kept = of_checkpoint(net, os.path.join(folder, "kept", "step-1", "rank-0.safetensors"))
    momentum = {name: kept[f"optim.{own_name(name)}.momentum"]
                for name, _ in net.named_parameters()}
    for name, gradient in momentum.items():
        state[name] += row["learning_rate"] * gradient
    net.load_state_dict(state, strict=False)
    loss = F.cross_entropy(net(values).flatten(0, 1), labels)
    loss.backward()
    assert row["part"] == "batch" and abs(row["loss"] - loss.item()) < 2e-6 * loss.item(), row
    for name, parameter in net.named_parameters():
        off = torch.dist(momentum[name], parameter.grad) / parameter.grad.norm()
        assert off < 2e-5, f"the gradient of {name} is off by {off} of its norm"


if __name__ == "__main__":
    torch.manual_seed(2)
    for path in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as scratch:
            {"names": names, "gradients": gradients}[sys.argv[1]](path, scratch)
        print(path)
