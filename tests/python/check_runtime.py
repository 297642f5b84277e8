#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""share/python/gradflow.Runtime under mpirun: check_runtime.py PLAN CASE. Each
rank also computes what all ranks together should come to, by PyTorch alone."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import gradflow  # noqa: E402


def build(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def loss(model, rank, step):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(8, 6, generator=generator)
    return nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long() + (x[:, 1] > 0).long())


def reference(ranks, steps, halves=1, **settings):
    """Synchronous SGD on the mean of the ranks' losses."""
    model = build(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **settings)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(halves):
            (sum(loss(model, r, step * halves + part) for r in range(ranks)) / ranks).backward()
        optimizer.step()
    return model


def distance(a, b):
    return max((x - y).abs().max().item() for x, y in zip(a.parameters(), b.parameters()))


def dense(plan):
    model = build(int(os.environ["OMPI_COMM_WORLD_RANK"]) + 1)  # rank 0's shall count
    runtime = gradflow.Runtime(model, plan, momentum=0.9, weight_decay=0.01)
    for step in range(10):
        loss(model, runtime.rank, step).backward()
        runtime.step(0.1)
    assert runtime.steps == 10 and (runtime.ranks == 1 or runtime.sent_bytes > 0)
    found = distance(model, reference(runtime.ranks, 10, momentum=0.9, weight_decay=0.01))
    assert found < 1e-5, f"parameters differ by {found} from synchronous SGD's"
    runtime.close()
    assert distance(model, reference(runtime.ranks, 10, momentum=0.9, weight_decay=0.01)) == found


def adamw(plan, ours={}, theirs={}):
    """torch.optim.AdamW to rounding, with its defaults."""
    model, other = build(1), build(1)
    optimizer = torch.optim.AdamW(other.parameters(), lr=1e-3, **theirs)
    runtime = gradflow.Runtime(model, plan, optimizer="adamw", **ours)
    for step in range(50):
        # the same gradient for both, so that only the steps are compared
        other.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})
        optimizer.zero_grad()
        loss(model, 0, step).backward()
        loss(other, 0, step).backward()
        runtime.step(1e-3)
        optimizer.step()
        found = distance(model, other)
        assert found < 2e-7, f"step {step + 1}: parameters differ by {found}"


def adamw_otherwise(plan):
    adamw(plan, {"beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1, "epsilon": 1e-6},
          {"betas": (0.8, 0.95), "weight_decay": 0.1, "eps": 1e-6})


def accumulated(plan):
    model = build(1)
    runtime = gradflow.Runtime(model, plan)
    for step in range(4):
        with runtime.no_sync():
            loss(model, runtime.rank, 2 * step).backward()
        loss(model, runtime.rank, 2 * step + 1).backward()
        runtime.step(0.1)
    found = distance(model, reference(runtime.ranks, 4, halves=2))
    assert found < 1e-5, f"parameters differ by {found}"


def only_within(plan):
    """Everything accumulated, and nothing left over for the next step."""
    model = build(1)
    runtime = gradflow.Runtime(model, plan)
    for step in range(3):
        with runtime.no_sync():
            loss(model, runtime.rank, step).backward()
        runtime.step(0.1)
        assert all(p.grad is None for p in model.parameters())
    found = distance(model, reference(runtime.ranks, 3))
    assert found < 1e-5, f"parameters differ by {found}"


def raises(call, text):
    try:
        call()
    except RuntimeError as e:
        assert text in str(e), e
    else:
        raise AssertionError(f"not refused: {text}")


def misused(plan):
    model = build(1)
    runtime = gradflow.Runtime(model, plan)
    loss(model, runtime.rank, 0).backward()
    raises(lambda: loss(model, runtime.rank, 1).backward(), "want one backward for each step()")
    raises(lambda: runtime.save("set"), "within step 1")
    runtime.step(0.1)
    place = model[0].weight.data
    model[0].weight.data = place.clone()
    raises(lambda: runtime.step(0.1), "0.weight: want its data left")
    model[0].weight.data = place
    runtime.step(0.1)
    runtime.close()
    for call in (lambda: runtime.step(0.1), lambda: runtime.steps, lambda: runtime.save("set"),
                 lambda: runtime.load("set"), lambda: runtime.sent_bytes):
        raises(call, "closed")
    loss(model, 0, 2).backward()


def sparse(plan):
    """A selection sends less, and still learns."""
    model = build(1)
    runtime = gradflow.Runtime(model, plan)
    before = loss(model, 0, 10 ** 6).item()
    for step in range(60):
        loss(model, runtime.rank, step).backward()
        runtime.step(0.2)
    after = loss(model, 0, 10 ** 6).item()
    assert after < 0.8 * before, (before, after)
    assert runtime.sent_bytes < 0.8 * 60 * 4 * runtime.count, runtime.sent_bytes


def refused(plan):
    for call, text in (
            (lambda: gradflow.Runtime(build(1).double(), plan), "want f32 on the CPU"),
            (lambda: gradflow.Runtime(build(1), plan, momentum=7), "momentum")):
        try:
            call()
        except (RuntimeError, ValueError) as e:
            assert text in str(e), e
        else:
            raise AssertionError(f"not refused: {text}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[2]](None if sys.argv[1] == "-" else sys.argv[1])
