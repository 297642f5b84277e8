#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer of gf-train: the same model, data, batch and optimiser in PyTorch.

usage: torch_peer.py MODEL.json DATA-FOLDER BATCH EPOCHS THREADS [RANK RANKS PORT]

With RANKS > 1 it is one rank of a DistributedDataParallel job over gloo. Prints
one JSON object: samples per second of the last epochs (all ranks together), the
median over epochs after the first, and the test accuracy.
"""
import gzip
import json
import os
import sys
import time

import torch
from torch import nn


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


def build(model):
    shape = model["input"]
    layers = []
    for l in model["layers"]:
        kind = l["type"]
        if kind == "conv":
            layers.append(nn.Conv2d(shape[0], l["filters"], l["kernel"], l["stride"], l["pad"], bias=l["bias"]))
            side = (shape[1] + 2 * l["pad"] - l["kernel"]) // l["stride"] + 1
            shape = [l["filters"], side, side]
        elif kind == "batchnorm":
            layers.append(nn.BatchNorm2d(shape[0]))
        elif kind == "relu":
            layers.append(nn.ReLU(inplace=True))
        elif kind == "maxpool":
            layers.append(nn.MaxPool2d(l["kernel"], l["stride"], l["pad"]))
            side = (shape[1] + 2 * l["pad"] - l["kernel"]) // l["stride"] + 1
            shape = [shape[0], side, side]
        elif kind == "fc":
            if len(shape) > 1:
                layers.append(nn.Flatten())
                shape = [shape[0] * shape[1] * shape[2]]
            layers.append(nn.Linear(shape[0], l["outputs"], bias=l["bias"]))
            shape = [l["outputs"]]
        else:
            sys.exit(f"torch_peer: no layer type {kind} here")
    return nn.Sequential(*layers)


def main():
    model_path, folder, batch, epochs, threads = sys.argv[1:6]
    batch, epochs = int(batch), int(epochs)
    rank, ranks = (int(sys.argv[6]), int(sys.argv[7])) if len(sys.argv) > 6 else (0, 1)
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    net = build(json.load(open(model_path)))
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
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    loss_of = nn.CrossEntropyLoss()
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
            optimiser.zero_grad(set_to_none=True)
            loss = loss_of(net(images[index]), labels[index])
            loss.backward()
            optimiser.step()
            loss.item()
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
