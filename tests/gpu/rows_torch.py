#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's layer norm, softmax, loss and embeddings beside bench_kernels' rows.

usage: rows_torch.py VALUES

Prints "NAME: MS ms", the median of 20 runs by events, for the names and sizes of
bench_kernels, in f16. Backward of layer norm has the gradients of its
parameters; the loss has its gradient. Exits 77 without PyTorch or a GPU.
"""
import sys

from torch_gpu import median_ms, torch
from torch.nn import functional as F

WIDTH, SCORES, CLASSES = 768, 1024, 128


def report(name, run):
    print(f"{name}: {median_ms(run):.3f} ms", flush=True)


def both(name, run, *inputs):
    """Forward, and backward by itself."""
    out = run()
    dout = torch.randn_like(out)
    with torch.no_grad():
        report(name, run)
    report(name + ", backward",
           lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True))


def values(rows, width, most=1.0):
    x = torch.randn(rows, width, device="cuda", dtype=torch.float16) * most
    return x.requires_grad_()


def loss(rows):
    x = values(rows, CLASSES)
    labels = torch.zeros(rows, dtype=torch.long, device="cuda")
    report("loss", lambda: torch.autograd.grad(F.cross_entropy(x, labels), x))


def embedding(count, entries):
    table = torch.randn(entries, WIDTH, device="cuda", dtype=torch.float16)
    table.requires_grad_()
    numbers = torch.randint(entries, (count,), device="cuda")
    both(f"embedding of {entries}", lambda: F.embedding(numbers, table), table)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    n = int(sys.argv[1])
    x = values(n // WIDTH, WIDTH)
    weight = torch.ones(WIDTH, device="cuda", dtype=torch.float16,
                        requires_grad=True)
    bias = torch.zeros_like(weight, requires_grad=True)
    both("layer norm", lambda: F.layer_norm(x, (WIDTH,), weight, bias), x,
         weight, bias)
    scores = values(n // SCORES // SCORES * SCORES, SCORES)
    both("softmax", lambda: F.softmax(scores, -1), scores)
    loss(n // CLASSES)
    embedding(n // WIDTH, 128)
    embedding(n // WIDTH, 50257)


main()
