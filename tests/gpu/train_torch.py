#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A shipped model's training step in PyTorch: f16 samples per second.

usage: train_torch.py MODEL.json BATCH STEPS [eager|compiled...]

The model is built from the same document that gf-train reads (torch_model.py); the
step is forward, loss, backward under autocast to f16 with a gradient scaler, and SGD
with momentum (of a model with attention AdamW, as in gf-train), on samples that
lie on the GPU. Prints "WAY SAMPLES/S" per way, the median of STEPS steps timed
by events after warming up. Each position of a text counts, as in gf-train's log.
Exits 77 without PyTorch or a GPU.
"""
import json
import os
import sys

from torch_gpu import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from torch_model import Model  # noqa: E402

WARM_UP = 10


def batch_of(document, batch):
    """Samples and labels: images of a class, or words and the next ones."""
    classes = document["classes"]
    if len(document["input"]) == 3:
        images = torch.randn(batch, *document["input"], device="cuda")
        return (images.to(memory_format=torch.channels_last),
                torch.randint(classes, (batch,), device="cuda"))
    shape = (batch, *document["input"])
    return (torch.randint(classes, shape, device="cuda"),
            torch.randint(classes, shape, device="cuda"))


def samples_per_s(document, batch, steps, compiled):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    model = Model(document).cuda()
    samples, labels = batch_of(document, batch)
    if len(document["input"]) == 3:
        model = model.to(memory_format=torch.channels_last)
    run = torch.compile(model) if compiled else model
    if any(spec["type"] == "attention" for spec in document["layers"]):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9,
                                    weight_decay=1e-4)
    scaler = torch.cuda.amp.GradScaler()
    times_ms = []
    for step in range(WARM_UP + steps):
        before = torch.cuda.Event(enable_timing=True)
        after = torch.cuda.Event(enable_timing=True)
        before.record()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            logits = run(samples)
            loss = nn.functional.cross_entropy(logits.flatten(0, -2),
                                               labels.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        after.record()
        after.synchronize()
        if step >= WARM_UP:
            times_ms.append(before.elapsed_time(after))
    times_ms.sort()
    return labels.numel() / (times_ms[len(times_ms) // 2] * 1e-3)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        document = json.load(f)
    batch, steps = int(sys.argv[2]), int(sys.argv[3])
    for way in sys.argv[4:] or ["eager", "compiled"]:
        try:
            rate = samples_per_s(document, batch, steps, way == "compiled")
        except Exception as problem:  # a compiler that is not there
            if way == "eager":
                raise
            print(f"{way} failed: {str(problem).splitlines()[0]}", flush=True)
            continue
        print(f"{way} {rate:.1f}", flush=True)


main()
