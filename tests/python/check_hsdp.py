#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.hsdp: check_hsdp.py 4 CASE... (forked.py): two replicas of two shards each,
beside fully_shard's own all-reduce on the same mesh."""
import io
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
import gradflow  # noqa: E402

RULE = {"format": "gf-plan", "version": 1, "system": "auto", "policy": "threshold",
        "rule": {"threshold_bytes": 4096, "lanes": 1,
                 "algorithms": [{"min_bytes": 0, "algorithm": "ring"}]},
        "selection": {"method": "dense"}, "pipeline": {"staleness": 1, "warmup_steps": 0}}


def build():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(12, 30), nn.ReLU(), nn.Linear(30, 21), nn.ReLU(),
                         nn.Linear(21, 4))


def sharded(mesh):
    from torch.distributed.fsdp import fully_shard
    model = build()
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(model, steps=6, parts=1, first=0, make=torch.optim.AdamW, sync="set_requires_gradient_sync"):
    optimizer = make(model.parameters(), lr=0.01)
    for step in range(first, first + steps):
        for part in range(parts):
            generator = torch.Generator().manual_seed(100 * dist.get_rank() + 10 * step + part)
            getattr(model, sync)(part + 1 == parts)
            model(torch.randn(8, 12, generator=generator)).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    return [p.full_tensor().detach() for p in model.parameters()]


def meshes():
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))


def refused(call, *texts):
    try:
        call()
    except (TypeError, ValueError, RuntimeError) as e:
        assert all(text in str(e) for text in texts), str(e)
        return
    raise AssertionError(f"not refused: {texts}")


def same():
    """The bits of fully_shard's own, without a plan and by a rule, also accumulated."""
    mesh = meshes()
    for plan in (None, RULE):
        for parts in (1, 3):
            stock = train(sharded(mesh), parts=parts)
            model = sharded(mesh["shards"])
            replicas = gradflow.hsdp(model, mesh["replicas"].get_group(), plan)
            own = train(model, parts=parts)
            found = max((a - b).abs().max().item() for a, b in zip(stock, own))
            assert found == 0, (plan, parts, found)
            assert [x.steps for x in replicas.exchanges.values()] == [6, 6, 6]
            assert replicas.sent_bytes > 0
            replicas.close()


def accumulated():
    """Steps whose replicas meet in their last part alone: one exchange each."""
    mesh = meshes()
    parts = {"parts": 3, "sync": "set_requires_all_reduce"}
    stock = train(sharded(mesh), **parts)
    model = sharded(mesh["shards"])
    replicas = gradflow.hsdp(model, mesh["replicas"].get_group())
    own = train(model, **parts)
    found = max((a - b).abs().max().item() for a, b in zip(stock, own))
    assert found < 1e-6, found
    assert [x.steps for x in replicas.exchanges.values()] == [6, 6, 6]
    replicas.close()


class Whole(nn.Module):
    """A root with a parameter of its own, and a child named as Hugging Face names it."""

    def __init__(self):
        super().__init__()
        self.model, self.head = nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.model(x).relu())


def named():
    """All modules exchange, whatever their names."""
    from torch.distributed.fsdp import fully_shard
    mesh = meshes()
    trained = []
    for part in (mesh, mesh["shards"]):
        torch.manual_seed(1)
        model = Whole()
        fully_shard(model.model, mesh=part)
        fully_shard(model, mesh=part)
        if part is not mesh:
            replicas = gradflow.hsdp(model, mesh["replicas"].get_group())
        trained.append(train(model))
    assert all(torch.equal(a, b) for a, b in zip(*trained))
    assert sorted(replicas.exchanges) == ["", "model"]
    replicas.close()


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, whole):
        x = self.a(x)
        return self.c(self.b(x) if whole else x)


def lengths():
    """A step with other gradients than the first is refused, unless their lengths stay."""
    from torch.distributed.fsdp import fully_shard
    mesh = meshes()
    for first in (True, False):
        model = fully_shard(Branch(), mesh=mesh["shards"])
        replicas = gradflow.hsdp(model, mesh["replicas"].get_group())
        model(torch.ones(2, 8), first).sum().backward()
        refused(lambda: model(torch.ones(2, 8), not first).sum().backward(),
                "the root module", "want gradients of", "set_reduce_scatter_unused_params(True)"
                if hasattr(model, "set_reduce_scatter_unused_params") else "the same parameters")
        replicas.close()

    class Twins(torch.nn.Module):  # of one length, so that only their names tell
        def __init__(self):
            super().__init__()
            self.left, self.right = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x, left):
            return (self.left if left else self.right)(x)

    model = fully_shard(Twins(), mesh=mesh["shards"])
    replicas = gradflow.hsdp(model, mesh["replicas"].get_group())
    model(torch.ones(2, 8), True).sum().backward()
    refused(lambda: model(torch.ones(2, 8), False).sum().backward(), "left.weight", "right.weight")
    replicas.close()


def selections():
    """What sends less keeps replicas equal."""
    mesh = meshes()
    dense = None
    for selection in ({"method": "dense"}, {"method": "topk", "density": 0.05, "warmup_densities": []},
                      {"method": "gtopk", "density": 0.05, "warmup_densities": [],
                       "putback": "paper"}):
        model = sharded(mesh["shards"])
        replicas = gradflow.hsdp(model, mesh["replicas"].get_group(),
                                 {**RULE, "selection": selection})
        own = torch.cat([t.reshape(-1) for t in train(model)])
        every = [torch.empty_like(own) for _ in range(4)]
        dist.all_gather(every, own)
        assert own.isfinite().all() and all(torch.equal(own, e) for e in every), selection
        dense = dense or replicas.sent_bytes
        assert replicas.sent_bytes < dense or selection["method"] == "dense", selection
        replicas.close()


def resumed():
    """A job that stops after 4 steps and goes on is one that never stopped."""
    mesh = meshes()
    group = mesh["replicas"].get_group()
    for plan in (None, {**RULE, "selection": {"method": "gtopk", "density": 0.05,
                                              "warmup_densities": [], "putback": "paper"}}):
        straight = sharded(mesh["shards"])
        replicas = gradflow.hsdp(straight, group, plan)
        train(straight, 4, make=torch.optim.SGD)
        parameters = [p.detach().clone() for p in straight.parameters()]
        saved = io.BytesIO()
        torch.save(replicas.state_dict(), saved)
        wanted = train(straight, 4, first=4, make=torch.optim.SGD)
        saved.seek(0)
        state = torch.load(saved)
        model = sharded(mesh["shards"])
        other = gradflow.hsdp(model, group, plan)
        train(model, 2, make=torch.optim.SGD)  # what it has held back until now is dropped
        with torch.no_grad():
            for p, kept in zip(model.parameters(), parameters):
                p.copy_(kept)
        other.load_state_dict(state)
        found = train(model, 4, first=4, make=torch.optim.SGD)
        assert all(torch.equal(a, b) for a, b in zip(wanted, found)), plan
        assert [x.steps for x in other.exchanges.values()] == [8, 8, 8]
        refused(lambda: other.load_state_dict({**state, "ranks": 9}), "ranks", "9")
        refused(lambda: other.load_state_dict({**state, "modules": {"x": {}}}), "modules: x")
        replicas.close()
        other.close()


def factors():
    """The divisor of the sum over all ranks, whatever came first; and what reset_iter_state()
    forgets."""
    mesh = meshes()
    for wanted in (1.0, 4.0):
        trained = []
        for part in (mesh, mesh["shards"]):
            model = sharded(part)
            for module in model.modules():
                if hasattr(module, "set_gradient_divide_factor"):
                    module.set_force_sum_reduction_for_comms(True)
                    module.set_gradient_divide_factor(wanted)
            if part is not mesh:
                gradflow.hsdp(model, mesh["replicas"].get_group())
            if hasattr(model, "set_gradient_divide_factor"):
                trained.append(train(model, make=torch.optim.SGD))
        assert all(torch.equal(a, b) for a, b in zip(*trained)), wanted
    trained = []
    for part in (mesh, mesh["shards"]):
        model = sharded(part)
        if not hasattr(model, "reset_iter_state"):
            return
        if part is not mesh:
            replicas = gradflow.hsdp(model, mesh["replicas"].get_group())
        model.set_requires_all_reduce(False)
        model(torch.ones(8, 12) * dist.get_rank()).square().mean().backward()
        model.reset_iter_state()
        trained.append(train(model))
    assert not replicas.held
    assert all(torch.equal(a, b) for a, b in zip(*trained))


def lets_go():
    """The Replicas and their connections go with the model."""
    import gc
    import weakref

    def life():
        model = sharded(mesh["shards"])
        replicas = gradflow.hsdp(model, mesh["replicas"].get_group())
        train(model, 2)
        return [weakref.ref(x) for x in (model, replicas, replicas.exchanges[""])]

    mesh = meshes()
    held = life()
    gc.collect()
    assert not any(reference() for reference in held), held


def checkpointed():
    """torch.distributed.checkpoint keeps what each rank holds back; a fresh job goes on."""
    import torch.distributed.checkpoint as dcp
    mesh = meshes()
    plan = {**RULE, "selection": {"method": "gtopk", "density": 0.05, "warmup_densities": [],
                                  "putback": "paper"}}
    models = []
    for _ in range(2):
        models.append(sharded(mesh["shards"]))
        models.append(gradflow.hsdp(models[-1], mesh["replicas"].get_group(), plan))
    straight, replicas, other, fresh = models
    train(straight, 4, make=torch.optim.SGD)
    dcp.save({"model": straight.state_dict(), "gradflow": replicas}, checkpoint_id="checkpoint")
    wanted = train(straight, 4, first=4, make=torch.optim.SGD)
    dcp.load({"model": other.state_dict(), "gradflow": fresh}, checkpoint_id="checkpoint")
    found = train(other, 4, first=4, make=torch.optim.SGD)
    assert all(torch.equal(a, b) for a, b in zip(wanted, found))


def refusals():
    mesh = meshes()
    group = mesh["replicas"].get_group()
    refused(lambda: gradflow.hsdp(build(), group), "fully_shard", "Sequential")
    model = sharded(mesh["shards"])
    refused(lambda: gradflow.hsdp(model, group, {"tensors": []}), "/format: want")
    for wrong in (None, mesh["shards"].get_group()):
        refused(lambda: gradflow.hsdp(model, wrong), "0.weight: want a group of its replicas")
    # fully_shard reduces between these replicas itself
    refused(lambda: gradflow.hsdp(sharded(mesh), group), "want a group of its replicas",
            'mesh=mesh["shards"]')
    for path in pathlib.Path(__file__).parent.glob("../entries/selection/*.json"):
        keys = json.loads(path.read_text(encoding="utf-8")).get("shapes")
        if keys:
            gradflow.hsdp(model, group, {**RULE, "selection": {"method": path.stem, **keys}})
            refused(lambda: train(model, 1), f"selection {path.stem}: it works on the shapes of tensors")


if __name__ == "__main__":
    forked.main(globals(), [])
