#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gf-plan --emit fsdp2 in PyTorch: check_fsdp2.py RANKS CASE... (forked.py). A plan's units are
fully_shard's, and train as one process does."""
import json
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn

import forked


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(24))
        self.up, self.down = nn.Linear(24, 48), nn.Linear(48, 24)

    def forward(self, x):
        return x + self.down(self.up(x * self.scale).relu())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(24))
        self.h = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(24, 24)

    def forward(self, x):
        x = x + self.bias
        for block in self.h:
            x = block(x)
        return self.head(x)


def build():
    torch.manual_seed(1)
    return Model()


def build_tied():
    """The head's weight is that of a layer within a block, and two layers of another block share theirs."""
    model = build()
    model.h.append(nn.Sequential(nn.Linear(24, 24), nn.Linear(24, 24)))
    model.h[3][1].weight = model.h[3][0].weight
    model.h.insert(0, nn.Sequential(nn.Linear(24, 24)))
    model.head.weight = model.h[0][0].weight
    return model


def planned(ranks, *options, latency="5us", build=build):
    tensors = [{"name": n, "count_elems": p.numel(), "dtype": "f32", "ready_s": 1e-3 * (i + 1)}
               for i, (n, p) in enumerate(reversed(list(build().named_parameters())))]
    profile = {"format": "gf-profile", "version": 1,
               "model": {"name": "tree", "forward_s": 0.01, "backward_s": 0.03, "tensors": tensors}}
    levels = f"host:2@1GB/s,{latency}" + (f" net:{ranks // 2}@1GB/s,{latency}" if ranks > 2 else "")
    topology = subprocess.run(["gf-topo", "--synthetic", levels], capture_output=True, text=True, check=True).stdout
    run = subprocess.run(["gf-plan", *options], input=json.dumps(profile) + topology,
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def emitted(ranks, units, rest="", build=build):
    """Its functions. The default needs more memory, so any units are written."""
    by_default, peak = (json.loads(planned(ranks, "-q", "--shard", "zero3:units=" + u, build=build))["predicted"]["memory"]["peak_bytes"]
                        for u in ("fsdp2" + rest, units + rest))
    assert peak < by_default
    found = {}
    text = planned(ranks, "--shard", f"zero3:units={units}{rest}", "--memory", str(int(peak)), "--emit", "fsdp2", build=build)
    exec(compile(text, "shard.py", "exec"), found)
    return found


def trains(shard, build=build):
    """As the mean of what all ranks see does in one process."""
    whole, model = build(), build()
    shard(model)
    ranks, rank = dist.get_world_size(), dist.get_rank()
    steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (whole, model)]
    for step in range(3):
        x = torch.randn(ranks, 8, 24, generator=torch.Generator().manual_seed(step))
        for m, seen, optimizer in zip((whole, model), (x, x[rank]), steps):
            m(seen).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    for want, got in zip(whole.parameters(), model.parameters()):
        torch.testing.assert_close(got.full_tensor(), want)
    return model


def groups(model):
    """Of each unit in PyTorch: its parameters, and whether they are resharded after forward."""
    states = {id(m._get_fsdp_state()): m._get_fsdp_state() for m in model.modules() if hasattr(m, "_get_fsdp_state")}
    return {tuple(sorted(p._param_fqn for p in g.fsdp_params)): g._reshard_after_forward
            for s in states.values() for g in [s._fsdp_param_group] if g}


def layers():
    """Each layer is a unit; what a block has itself is sharded after its layers, and what the model has last."""
    found = emitted(2, "layer", ",ahead=2,keep=no")
    model = trains(found["shard"])
    want = {("bias",): False, ("head.bias", "head.weight"): False}
    for i in range(3):
        want[(f"h.{i}.scale",)] = True
        for layer in ("up", "down"):
            want[(f"h.{i}.{layer}.bias", f"h.{i}.{layer}.weight")] = True
    assert groups(model) == want, groups(model)
    # two ahead in each pass
    order = [names[0] for names, _ in found["units"]]
    state = {n: model.get_submodule(n)._get_fsdp_state() for n in order}
    for i, name in enumerate(order):
        assert state[name]._states_to_forward_prefetch == [state[n] for n in order[i + 1:i + 3]]
        assert state[name]._states_to_backward_prefetch == [state[n] for n in order[max(i - 2, 0):i][::-1]]


def tied():
    """What shares a parameter with another module is no unit of its own; a block that has all such modules is."""
    pair = ("h.4.0.bias", "h.4.0.weight", "h.4.1.bias")
    found = {}
    exec(planned(2, "--shard", "zero3:units=block,ahead=2,keep=yes", "--emit", "fsdp2", latency="2ms", build=build_tied), found)
    for shard, root in ((emitted(2, "layer", ",ahead=2,keep=no", build_tied)["shard"], pair), (found["shard"], ())):
        model = trains(shard, build_tied)
        got = groups(model)
        assert tuple(sorted(("bias", "h.0.0.bias", "h.0.0.weight", "head.bias", *root))) in got, got
        assert root or pair in got, got
        assert model.head.weight is model.h[0][0].weight and model.h[4][0].weight is model.h[4][1].weight


def copies():
    """Two replicas of two shards each."""
    found = emitted(4, "layer", ",ahead=1,keep=no,across=host")
    model = trains(found["shard"])
    assert model.head.weight.device_mesh.shape == (2, 2)
    assert not model.head._get_fsdp_state()._states_to_backward_prefetch


def blocks():
    """Where each message costs much, units have several whole blocks, and stay until backward. The
    second has a layer of the block that the first begins."""
    found = {}
    exec(planned(2, "--shard", "zero3:units=16K,keep=yes", "--emit", "fsdp2", latency="2ms"), found)
    assert [names for names, _ in found["units"]] == [["h.0", "h.1", "h.1.up"], ["h.1.down", "h.2", "head"]]
    got = groups(trains(found["shard"]))
    assert not any(got.values())
    assert any("h.1.scale" in g and "h.1.up.bias" in g and "h.1.down.bias" not in g for g in got)


if __name__ == "__main__":
    forked.main(globals(), ["set_modules_to_forward_prefetch"])
