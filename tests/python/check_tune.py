#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.ddp(..., tune=...): check_tune.py RANKS CASE... Cases run in turns in RANKS
processes that meet over gloo. One that fails ends in an exception."""
import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import gradflow  # noqa: E402

STEPS = {"steps": 4, "budget_s": 1}
ALL = 2 * 5 + 2 * 4 + 2  # settled, measured, settled, tried, and what remains


def build():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(40, 300), torch.nn.ReLU(), torch.nn.Linear(300, 90))


def train(model, steps=ALL):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        model(torch.randn(4, 40, generator=generator)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def same_everywhere(value):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, json.dumps(value))
    assert len(set(found)) == 1, found


def tuned(**settings):
    """Two ranks have the bits of DistributedDataParallel by any plan in f32."""
    model = gradflow.ddp(build(), tune={**STEPS, **settings})
    end = train(model)
    assert torch.equal(end, train(DistributedDataParallel(build()))), "not DDP's result"
    same_everywhere(model.gradflow.plan)
    assert model.gradflow.exchange.steps == ALL, model.gradflow.exchange.steps
    model.gradflow.close()
    return model.gradflow


def kept():
    state = tuned(margin=-1e9)
    assert state.plan["format"] == "gf-plan" and "kept" in state.tuner.report(), state.tuner.report()


def dropped():
    """What is not faster does not stay."""
    state = tuned(margin=1)
    assert state.plan is None and "dropped" in state.tuner.report(), state.tuner.report()


def accumulated():
    """A step of several passes is one step."""
    model = gradflow.ddp(build(), tune={**STEPS, "margin": -1e9})
    for _ in range(ALL):
        with model.no_sync():
            model(torch.ones(4, 40)).sum().backward()
        model(torch.ones(4, 40)).sum().backward()
    assert "kept" in model.gradflow.tuner.report(), model.gradflow.tuner.report()
    model.gradflow.close()


def failed():
    """A job that cannot be tuned goes on, on all ranks."""
    state = tuned(options=["--nonsense"])
    assert state.plan is None and "--nonsense" in state.tuner.report(), state.tuner.report()
    state = tuned(options=["--selection", "gtopk"])
    assert state.plan is None and "holds some back" in state.tuner.report(), state.tuner.report()
    path, os.environ["PATH"] = os.environ["PATH"], "/nonexistent"
    state = tuned()
    os.environ["PATH"] = path
    assert state.plan is None and "gf-profile: want it in PATH" in state.tuner.report(), \
        state.tuner.report()


def work(own, ranks, meeting, cases):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=own, world_size=ranks)
    for case in cases:
        globals()[case]()
        dist.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (int(sys.argv[1]), os.path.join(folder, "meeting"), sys.argv[2:]),
                 int(sys.argv[1]))
