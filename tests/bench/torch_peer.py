#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer of gf-train: the same model, data, batch and optimiser in PyTorch.

usage: torch_peer.py MODEL.json DATA-FOLDER BATCH EPOCHS THREADS [RANK RANKS PORT]
       torch_peer.py MODEL.json synthetic BATCH STEPS THREADS [compile]

With RANKS > 1 it is one rank of a DistributedDataParallel job over gloo. Prints
one JSON object: samples per second of the last epochs (all ranks together), the
median over epochs after the first, and the test accuracy. Of made-up data, the
median of the seconds of the second half of the steps.
"""
import gzip
import json
import os
import sys
import time

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from torch_model import Model  # noqa: E402


def read_idx(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as f:
        raw = f.read()
    dims = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(dims)]
    return torch.frombuffer(bytearray(raw[4 + 4 * dims:]), dtype=torch.uint8).reshape(shape)


def load(folder, split):
    ending = ".gz" if os.path.exists(f"{folder}/{split}-images-idx3-ubyte.gz") else ""
    images = read_idx(f"{folder}/{split}-images-idx3-ubyte{ending}").float()
    labels = read_idx(f"{folder}/{split}-labels-idx1-ubyte{ending}").long()
    return images.unsqueeze(1), labels


def sgd(net):
    return torch.optim.SGD((p for p in net.parameters() if p.requires_grad), lr=0.05,
                           momentum=0.9, weight_decay=1e-4)


def step_of(net, optimiser, x, labels):
    optimiser.zero_grad(set_to_none=True)
    logits = net(x)
    loss = nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
    loss.backward()
    optimiser.step()
    return loss.item()


def time_steps(document, batch, steps, compiled):
    net = Model(document)
    optimiser = torch.optim.AdamW(net.parameters()) if any(
        layer["type"] == "attention" for layer in document["layers"]) else sgd(net)
    text = document["layers"][0]["type"] == "embedding"
    shape = (batch, *document["input"])
    x = torch.randint(document["classes"], shape) if text else torch.randn(shape)
    labels = torch.randint(document["classes"], shape if text else (batch,))
    run = torch.compile(net) if compiled else net
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step_of(run, optimiser, x, labels)
        seconds.append(time.perf_counter() - start)
    seconds = sorted(seconds[steps // 2:])
    print(json.dumps({"peer": f"PyTorch {torch.__version__}",
                      "step_s": seconds[len(seconds) // 2]}))


def main():
    model_path, folder, batch, epochs, threads = sys.argv[1:6]
    batch, epochs = int(batch), int(epochs)
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    with open(model_path, encoding="utf-8") as f:
        document = json.load(f)
    if folder == "synthetic":
        time_steps(document, batch, epochs, sys.argv[6:] == ["compile"])
        return
    rank, ranks = (int(sys.argv[6]), int(sys.argv[7])) if len(sys.argv) > 6 else (0, 1)
    net = Model(document)
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[8])
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        net = nn.parallel.DistributedDataParallel(net)
    images, labels = load(folder, "train")
    scale = 1.0 / float(images.max())
    images *= scale
    test_split = "t10k" if any(n.startswith("t10k") for n in os.listdir(folder)) else "test"
    test_images, test_labels = load(folder, test_split)
    test_images *= scale
    optimiser = sgd(net)
    steps = len(labels) // (batch * ranks)
    rates = []
    for _ in range(epochs):
        generator = torch.Generator().manual_seed(7)
        order = torch.randperm(len(labels), generator=generator)
        net.train()
        start = time.perf_counter()
        for step in range(steps):
            first = (step * ranks + rank) * batch
            index = order[first:first + batch]
            step_of(net, optimiser, images[index], labels[index])
        rates.append(steps * batch * ranks / (time.perf_counter() - start))
    net.eval()
    with torch.no_grad():
        correct = (net(test_images).argmax(1) == test_labels).sum().item()
    rates = sorted(rates[1:] or rates)
    if rank == 0:
        print(json.dumps({"peer": f"PyTorch {torch.__version__}", "ranks": ranks,
                          "samples_per_s": rates[len(rates) // 2],
                          "samples_per_s_best": rates[-1],
                          "test_accuracy": correct / len(test_labels)}))


main()
