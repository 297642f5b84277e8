#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PyTorch job that is profiled, planned for, and run by the plan.

One process is one rank of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT):

    torchrun --nproc_per_node 2 pytorch_job.py profile model.json network.json
    gf-plan model.json network.json > plan.json
    torchrun --nproc_per_node 2 pytorch_job.py train plan.json trace.json
    torchrun --nproc_per_node 2 pytorch_job.py ddp

The data are random images in classes that differ in their means. GF_WIDTH sets the
model's width, GF_STEPS the number of steps, and GF_BUDGET for how many seconds the
network is measured. Without torchrun, GF_MEETING names the place where ranks meet:
file:///path?rank=0&world_size=2.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import gradflow  # noqa: E402

BATCH = 16
WIDTH = int(os.environ.get("GF_WIDTH", "64"))
STEPS = int(os.environ.get("GF_STEPS", "30"))
BUDGET_S = float(os.environ.get("GF_BUDGET", "20"))


def build():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, WIDTH // 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(WIDTH // 4, WIDTH // 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(WIDTH // 2 * 16, WIDTH * 4), nn.ReLU(),
        nn.Linear(WIDTH * 4, WIDTH * 4), nn.ReLU(), nn.Linear(WIDTH * 4, 10))


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        labels = torch.randint(10, (BATCH,), generator=generator)
        images = torch.randn(BATCH, 1, 16, 16, generator=generator)
        yield images + labels.view(-1, 1, 1, 1) * 0.3, labels


def train(model, optimizer):
    data, times, loss = batches(100 + dist.get_rank()), [], None
    for _ in range(STEPS):
        images, labels = next(data)
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - start)
    return loss.item(), statistics.median(times[len(times) // 3:])


def main():
    mode, files = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if (mode, len(files)) not in [("profile", 2), ("train", 1), ("train", 2), ("ddp", 0)]:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=os.environ.get("GF_MEETING"))
    model, record = build(), None
    if mode == "profile":
        images, labels = next(batches(1))
        gradflow.exchange_costs(files[1], budget_s=BUDGET_S)
        gradflow.profile(model, lambda model: nn.functional.cross_entropy(model(images), labels),
                         files[0], name="pytorch-job", batch=BATCH, network=files[1])
        return
    if mode == "train":
        model = gradflow.ddp(model, files[0])
        record = gradflow.Record(model) if len(files) > 1 else None
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss, seconds = train(model, optimizer)
    report = record and record.report()
    if record:
        record.write(files[1])
    if dist.get_rank() == 0:
        print((report or "") + f"{mode}: loss {loss:.6f}, {seconds * 1e3:.3f} ms a step, "
              f"{dist.get_world_size()} ranks")


if __name__ == "__main__":
    main()
    if dist.is_initialized():
        dist.destroy_process_group()  # gloo's threads end before the interpreter does
