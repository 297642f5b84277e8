#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.Periodic: check_periodic.py RANKS CASE... (forked.py), beside all ranks' training
done here, one after the other, with an outer step of torch.optim.SGD."""
import copy
import gc
import io
import json
import os
import sys
import weakref

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
import gradflow  # noqa: E402

# The library adds ranks in another order than the reference, and fuses other sums.
NEAR = 1e-6


def build(seed=1, dtype=torch.float32):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3), nn.Tanh(),
                         nn.Linear(3, 2)).to(dtype)


def adam(model):
    return torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)


def inner(model, optimizer, rank, step):
    """A step of a rank's own training."""
    generator = torch.Generator().manual_seed(100 * rank + step)
    x = torch.randn(5, 6, generator=generator).to(next(model.parameters()).dtype)
    optimizer.zero_grad()
    (model(x) - x[:, :2].sin()).square().mean().backward()
    optimizer.step()


def plan(model, codec="f32", ends=(2, 4, 6), group_ranks=1, **period):
    """Messages end there in the order of backward."""
    named = [(n, p) for n, p in reversed(list(model.named_parameters())) if p.requires_grad]
    messages = [{"first": first, "last": end - 1, "mode": "normal", "algorithm": "ring",
                 "codec": codec} for first, end in zip((0, *ends), ends)]
    return {"format": "gf-plan", "version": 1, "ranks": dist.get_world_size(), "lanes": 1,
            "model": {"name": "net", "forward_s": 0, "backward_s": 0},
            "tensors": [{"name": n, "count_elems": p.numel() << p.is_complex(), "dtype": "f32", "ready_s": 0}
                        for n, p in named],
            "messages": [{**messages[0], "first": 0, "last": len(named) - 1, "codec": "f32"}],
            "period": {"group_ranks": group_ranks, "lanes": 1, "messages": messages, **period}}


LOCAL = {"method": "local-sgd", "steps": 4}
DILOCO = {"method": "diloco", "steps": 4, "outer_rate": 0.7, "outer_momentum": 0.9}
STREAMING = {**DILOCO, "method": "streaming", "steps": 6, "fragments": 3, "delay": 1, "mix": 0.25}
PERIODS = {
    "every step": {**LOCAL, "steps": 1}, "local-sgd": LOCAL,
    "post-local": {**LOCAL, "method": "post-local", "begin_steps": 3}, "diloco": DILOCO,
    "streaming": STREAMING, "no delay": {**STREAMING, "delay": 0},
    "two fragments of three messages": {**STREAMING, "fragments": 2, "delay": 2, "mix": 0.5}}


def train(model, document, first=0, steps=14, optimizer=None, saved=None, rank=None, **how):
    optimizer = optimizer or adam(model)
    periodic = gradflow.Periodic(model, optimizer, document, saved=saved, **how)
    for step in range(first, first + steps):
        inner(model, optimizer, dist.get_rank() if rank is None else rank, step)
        periodic.step()
    return periodic


def simulate(period, steps, messages=3, make=build):
    """Douillard et al. 2025, algorithm 2, for all ranks: fragment p is sent in the steps t with
    (t - t_p) mod H = 0, and received tau steps later. Returns the ranks' models and w."""
    h, parts = period["steps"], period.get("fragments", 1)
    tau, alpha = period.get("delay", 0), period.get("mix", 0)
    models = [make() for _ in range(dist.get_world_size())]
    optimizers = [adam(m) for m in models]
    params = [list(reversed(list(m.parameters()))) for m in models]
    w = [p.detach().clone() for p in params[0]]
    outer, sent = [], [{} for _ in range(parts)]
    members = []
    for p in range(parts):
        # a message is a weight and a bias
        members.append(range(2 * (p * messages // parts), 2 * ((p + 1) * messages // parts)))
        outer.append(torch.optim.SGD([w[i] for i in members[p]], lr=period.get("outer_rate", 1),
                                     momentum=period.get("outer_momentum", 0),
                                     nesterov=period.get("outer_momentum", 0) > 0))
    for t in range(1, steps + 1):
        for rank, (model, optimizer) in enumerate(zip(models, optimizers)):
            inner(model, optimizer, rank, t - 1)
        for p in range(parts):
            t_p = (p + 1) * h // parts
            if t >= t_p and (t - t_p) % h == 0 or t <= period.get("begin_steps", 0):
                sent[p][t] = [sum(w[i] - x[i].detach() for x in params) / len(params)
                              for i in members[p]]
            if t - tau in sent[p]:
                for i, delta in zip(members[p], sent[p].pop(t - tau)):
                    w[i].grad = delta
                outer[p].step()
                with torch.no_grad():
                    for x in params:
                        for i in members[p]:
                            x[i].copy_(alpha * x[i] + (1 - alpha) * w[i])
    return models, w


def simulate_sites(period, steps):
    """Of two sites that are each one rank."""
    ranks, dist.get_world_size = dist.get_world_size, lambda *_: 2
    try:
        return simulate(period, steps)[0]
    finally:
        dist.get_world_size = ranks


def distance(a, b):
    return max((p.detach().double() - q.detach().double()).abs().max().item()
               for p, q in zip(a, b))


def check(holds, *found):
    if not holds:
        raise AssertionError(found)


def same_on_all(tensors, *what):
    flat = torch.cat([t.detach().double().reshape(-1) for t in tensors])
    others = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(others, flat)
    check(all(torch.equal(flat, other) for other in others), "ranks differ", *what)


def refused(call, *texts):
    try:
        call()
    except (OSError, RuntimeError, TypeError, ValueError) as e:
        check(all(t in str(e) for t in texts) and "\n" not in str(e), texts, str(e))
    else:
        raise AssertionError(f"not refused: {texts}")


# --- cases ---

def same():
    """Every period gives the parameters and the w of the simulation."""
    for name, period in PERIODS.items():
        model = build()
        periodic = train(model, plan(model, **period))
        models, w = simulate(period, 14)
        found = distance(model.parameters(), models[dist.get_rank()].parameters())
        check(found < NEAR, name, found)
        found = distance(reversed(list(periodic.anchors.values())), w)
        check(found < NEAR, name, "w", found)
        same_on_all(periodic.anchors.values(), name)
        moved = distance(model.parameters(), build().parameters())
        check(moved > 0.05, name, moved)
        periodic.close()


def by_hand():
    """H steps and an outer step, written down with all ranks' parameters."""
    model, first = build(), [p.detach().clone() for p in build().parameters()]
    optimizer = adam(model)
    periodic = gradflow.Periodic(model, optimizer, json.dumps(plan(model, **DILOCO)))
    v = [torch.zeros_like(p) for p in first]
    for outer in range(2):
        for step in range(4):
            inner(model, optimizer, dist.get_rank(), 4 * outer + step)
            if step == 3:
                means = [p.detach().clone() for p in model.parameters()]
            periodic.step()
        for i, mean in enumerate(means):
            dist.all_reduce(mean)
            d = first[i] - mean / dist.get_world_size()
            v[i] = 0.9 * v[i] + d
            first[i] = first[i] - 0.7 * (d + 0.9 * v[i])
        check(distance(first, model.parameters()) < NEAR, outer)
        same_on_all(model.parameters())
    check(periodic.sent_bytes > 0, periodic.sent_bytes)
    periodic.close()


def codecs():
    """Codecs that round leave the same w on all ranks, near the dense one."""
    sent = {}
    for codec in ("f32", "f16", "q8", "fp8", "fp4"):
        model = build()
        periodic = train(model, plan(model, codec, **STREAMING))
        same_on_all(periodic.anchors.values(), codec)
        dense = [*periodic.anchors.values()] if codec == "f32" else dense
        found = distance(periodic.anchors.values(), dense)
        check(codec == "f32" or 0 < found < 0.1, codec, found)
        sent[codec] = periodic.sent_bytes
        periodic.close()
    check(sent["q8"] < sent["f16"] < sent["f32"], sent)


def resumed():
    """A job that stops after any step of a period goes on bit for bit, also in flight."""
    flown = set()
    for codec, period in (("f32", STREAMING), ("q8", {**STREAMING, "fragments": 2}),
                          ("f32", DILOCO)):
        straight = build()
        document = plan(straight, codec, **period)
        train(straight, document, steps=12).close()
        for stop in (2, 3, 6):
            model = build()
            optimizer = adam(model)
            periodic = train(model, document, steps=stop, optimizer=optimizer)
            saved = io.BytesIO()
            torch.save((model.state_dict(), optimizer.state_dict(), periodic.state_dict()), saved)
            flown.add(periodic.flight)
            for step in range(stop, 12):
                inner(model, optimizer, dist.get_rank(), step)
                periodic.step()
            check(distance(model.parameters(), straight.parameters()) == 0, codec, stop)
            periodic.close()
            saved.seek(0)
            parameters, moments, state = torch.load(saved)
            model = build(seed=9)
            model.load_state_dict(parameters)
            optimizer = adam(model)
            optimizer.load_state_dict(moments)
            periodic = train(model, document, stop, 12 - stop, optimizer, state)
            check(periodic.steps == 12, periodic.steps)
            check(distance(model.parameters(), straight.parameters()) == 0, codec, stop, period)
            refused(lambda: periodic.load_state_dict({**state, "anchors": {}}), "state: anchors")
            periodic.close()
    check(flown == {None, 0, 1, 2}, flown)


def joined():
    """A rank that comes back with fresh parameters and no state takes the others' w, v, steps,
    and what is in flight; the others go on from their own parameters."""
    late = dist.get_world_size() - 1
    for stop in (4, 5):  # in flight, and not
        model = build()
        document = plan(model, **STREAMING)
        periodic = train(model, document, steps=stop)
        state = periodic.state_dict()
        periodic.close()
        kept = [p.detach().clone() for p in model.parameters()]
        if dist.get_rank() == late:
            model, state = build(seed=7), None
        periodic = gradflow.Periodic(model, adam(model), document, saved=state)
        check(periodic.steps == stop and (periodic.flight is not None) == (stop == 4), stop,
              periodic.flight)
        same_on_all(periodic.anchors.values())
        same_on_all(periodic.velocities.values())
        w = [periodic.anchors[n] for n, _ in model.named_parameters()]
        found = distance(model.parameters(), w if dist.get_rank() == late else kept)
        check(found == 0, found)
        optimizer = adam(model)
        for step in range(stop, stop + 7):
            inner(model, optimizer, dist.get_rank(), step)
            periodic.step()
        same_on_all(periodic.anchors.values())
        periodic.close()
    # at the beginning all have the first rank's, frozen ones and buffers, too
    model = nn.Sequential(build(seed=dist.get_rank()), nn.BatchNorm1d(2))
    model[0][0].weight.requires_grad_(False)
    model[1].running_mean.fill_(dist.get_rank())
    gradflow.Periodic(model, adam(model), plan(model, ends=(2, 5, 7), **LOCAL)).close()
    same_on_all([*model.parameters(), *model.buffers()])
    check(distance(model[0].parameters(), build(seed=0).parameters()) == 0)
    check(not model[1].running_mean.any())


def kinds():
    """Parameters of other types have w in f32, and in f64; frozen ones stay, and those that a
    rank does not use take the others' changes; gradients may be accumulated."""
    for dtype, wide in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        model = build(dtype=dtype)
        periodic = train(model, plan(model, **STREAMING))
        check({w.dtype for w in periodic.anchors.values()} == {wide}, dtype)
        same_on_all(periodic.anchors.values(), dtype)
        models, w = simulate(STREAMING, 14, make=lambda: build(dtype=dtype))
        found = distance(reversed(list(periodic.anchors.values())), w)
        check(found < (1e-12 if dtype == torch.float64 else 0.05), dtype, found)
        periodic.close()
    model = build()
    model[0].requires_grad_(False)
    model[2].weight = nn.Parameter(model[2].weight.t().contiguous().t())
    optimizer = adam(model)
    periodic = gradflow.Periodic(model, optimizer, plan(model, ends=(2, 4), **LOCAL))
    own = dist.get_rank() == 0
    for step in range(4):
        for part in range(2):
            x = torch.full((3, 6), float(step + part))
            (model[2](x.mean() * model[0](x)).sum() if own else model(x).square().sum()).backward()
        optimizer.step()
        periodic.step()
    same_on_all(model.parameters())
    check(model[4].weight.grad is None if own else True)
    check(distance(model[0].parameters(), build()[0].parameters()) == 0)
    model[0].requires_grad_(True)
    for _ in range(3):
        periodic.step()
    refused(periodic.step, "also trains 0.weight")
    periodic.close()
    model = nn.ParameterDict({"a": nn.Parameter(torch.zeros(3, dtype=torch.cfloat))})
    periodic = gradflow.Periodic(model, adam(model), plan(model, ends=(1,), **DILOCO))
    with torch.no_grad():
        model["a"].add_(2j * dist.get_rank() - 1)
    for _ in range(4):
        periodic.step()
    check(torch.allclose(model["a"], torch.tensor(0.7 * 1.9 * (1j - 1))), model["a"])
    periodic.close()


def sites():
    """Two sites of two ranks by one plan: gradflow.ddp in a site by its messages, and the
    period between all. The ranks of a site have the same batches here."""
    own, pair = dist.get_rank() // 2, [dist.new_group(ranks) for ranks in ((0, 1), (2, 3))]
    module = build()
    document = plan(module, group_ranks=2, **STREAMING)
    # what is predicted slower than none are steps of all ranks
    times = dict.fromkeys(("compute_s", "exposed_comm_s", "lower_bound_s"), 0.0)
    times["messages"] = [{"ready_s": 0.0, "start_s": 0.0, "end_s": 1.0}]
    cost = {"algorithm": "ring", "startup_s": 1e-5, "per_byte_s": 1e-9}
    document.update(predicted={"iteration_s": 2.0, **times},
                    network={"ranks": 4, "allreduce": [cost], "x-step-without-plan-s": 1.0})
    model = gradflow.ddp(module, document, process_group=pair[own])
    check(model.gradflow.plan is not None)
    optimizer = adam(model)
    periodic = gradflow.Periodic(model, optimizer, document)
    for step in range(12):
        inner(model, optimizer, own, step)
        periodic.step()
    same_on_all(periodic.anchors.values())
    found = distance(module.parameters(), simulate_sites(STREAMING, 12)[own].parameters())
    check(found < NEAR, found)
    refused(lambda: gradflow.Periodic(model, optimizer, document, group=pair[own]),
            "plan: /ranks: want 2, as the group has", "got 4")
    refused(lambda: gradflow.Periodic(model, optimizer, document, group=pair[1 - own]),
            "want a group of this rank")
    periodic.close()
    model.gradflow.close()


@forked.of_shards()
def sharded():
    """fully_shard in a site, and the shards' replicas between two sites."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("sites", "shards"))
    model = build()
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh["shards"])
    fully_shard(model, mesh=mesh["shards"])
    optimizer, own = adam(model), dist.get_rank() // 2
    document = {**plan(build(), **STREAMING), "ranks": 2}
    periodic = gradflow.Periodic(model, optimizer, document, mesh["sites"].get_group())
    for step in range(12):
        inner(model, optimizer, own, step)
        periodic.step()
    found = distance([p.full_tensor() for p in model.parameters()],
                     simulate_sites(STREAMING, 12)[own].parameters())
    check(found < NEAR, found)
    periodic.close()


def refusals():
    model = build()
    optimizer = adam(model)

    def make(document, **how):
        return gradflow.Periodic(model, how.pop("optimizer", optimizer), document, **how)

    every = {k: v for k, v in plan(model, **LOCAL).items() if k != "period"}
    for document in (every, {**every, "period": {"method": "every"}}, None):
        refused(lambda: make(document), "plan: /period: want local-sgd, diloco", "gradflow.ddp")
    refused(lambda: make("none.json"), "none.json")
    refused(lambda: make("{"), "plan: want JSON")
    refused(lambda: make(plan(model, **{**LOCAL, "steps": 0})), "/period/steps")
    refused(lambda: make(plan(model, **{**STREAMING, "fragments": 4, "steps": 8})),
            "/period/fragments", "3 messages")
    refused(lambda: make(plan(model, **{**STREAMING, "delay": 2})), "/period/steps", "delay of 2")
    refused(lambda: make({**plan(model, **LOCAL), "ranks": 7}), "/ranks: want 2", "got 7")
    refused(lambda: make(plan(build()[:3], ends=(2, 4), **LOCAL)), "lacks 4.weight and 1 more")
    refused(lambda: make(plan(model, **LOCAL), optimizer=adam(build())), "optimizer: want one of")
    refused(lambda: gradflow.Periodic(nn.Linear, optimizer, every), "want a torch.nn.Module")
    sparse = nn.ModuleList([model, nn.EmbeddingBag(3, 2, sparse=True)])
    kept = nn.ModuleList([model])
    refused(lambda: gradflow.Periodic(sparse, optimizer, plan(kept, **LOCAL)),
            "1.weight: want dense gradients")
    # of one rank alone, and then of all
    fresh = {"version": 1, "steps": 0, "ranks": 2, "ways": {}, "fragment": None, "anchors": {},
             "velocities": {}, "means": {}}
    for saved, text in ((fresh, "state: anchors: want those of this model"),
                        ({}, "state: version: want 1, of gradflow.Periodic's state_dict(), got None"),
                        ([], "state: version: want 1"), ({**fresh, "version": 2}, "got 2"),
                        ({"version": 1}, "state: steps: want that of gradflow.Periodic"),
                        ({**fresh, "steps": "4"}, "state: steps: want"),
                        ({**fresh, "anchors": {"0.weight": 1}}, "state: anchors: want values"),
                        ({**fresh, "fragment": 1}, "state: fragment: want less than the plan's 1"),
                        (model.state_dict(), "state: version")):
        refused(lambda: make(plan(model, **LOCAL), saved=saved if dist.get_rank() else None), text)
    wrapped = nn.parallel.DistributedDataParallel(build())
    refused(lambda: gradflow.Periodic(wrapped, adam(wrapped), plan(model, **LOCAL)),
            "plan: /period/group_ranks: want 2, which the DistributedDataParallel", "got 1")
    periodic = make(plan(model, **{**DILOCO, "steps": 1}))
    before = copy.deepcopy(periodic.anchors)
    if dist.get_rank():
        with torch.no_grad():
            model[0].weight.fill_(float("nan"))
    refused(periodic.step, "step 1: 0.weight: want finite parameters on all ranks")
    check(distance(periodic.anchors.values(), before.values()) == 0)
    periodic.close()


def replaced():
    """Parameters that take the place of others are exchanged; others of another shape refused."""
    for change in ("assign", "head", "later"):
        model = build()
        periodic = gradflow.Periodic(model, adam(model), plan(model, **{**DILOCO, "steps": 2}))
        for step in range(6):
            if step == (3 if change == "later" else 0) and change != "head":
                state = {n: t.clone() for n, t in model.state_dict().items()}
                if torch.__version__ >= "2.1":
                    model.load_state_dict(state, assign=True)
            elif step == 0:
                model[4] = nn.Linear(model[4].in_features, model[4].out_features)
            inner(model, adam(model), dist.get_rank(), step)
            periodic.step()
        same_on_all(model.parameters(), change)
        same_on_all(periodic.anchors.values(), change)
        model[4] = nn.Linear(model[4].in_features, 9)
        periodic.step()
        refused(periodic.step, "4.weight: want a parameter of", "make Periodic anew")
        model[4] = nn.Identity()
        periodic.steps -= 1
        refused(periodic.step, "4.weight: want a parameter of", "got none")
        periodic.close()
    held = [weakref.ref(x) for x in (periodic, periodic.exchanges[0], model)]
    del periodic, model
    gc.collect()
    check(not any(reference() for reference in held), held)


def checkpointed():
    """torch.distributed.checkpoint keeps what is in flight; a fresh job goes on."""
    try:
        import torch.distributed.checkpoint as dcp
        dcp.load  # pylint: disable=pointless-statement
    except (ImportError, AttributeError):
        return
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    periodic = gradflow.Periodic(model, optimizer, plan(model, **STREAMING))
    for step in range(9):
        inner(model, optimizer, dist.get_rank(), step)
        periodic.step()
        if periodic.flight is not None and step > 4:
            break
    check(periodic.flight is not None)
    own = f"model{dist.get_rank()}"  # sites have models of their own between exchanges
    dcp.save({own: model.state_dict(), "periodic": periodic}, checkpoint_id="checkpoint")
    kept = build()
    other = gradflow.Periodic(kept, adam(kept), plan(model, **STREAMING))
    dcp.load({own: kept.state_dict(), "periodic": other}, checkpoint_id="checkpoint")
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, kept)]
    for after in range(step + 1, step + 9):
        for m, o, p in zip((model, kept), optimizers, (periodic, other)):
            inner(m, o, dist.get_rank(), after)
            p.step()
    check(distance(model.parameters(), kept.parameters()) == 0)
    periodic.close()
    other.close()


def lost():
    """Where a rank does not come to an outer exchange, the others stop in time, and have a state
    from which they can go on."""
    model = build()
    optimizer, document = adam(model), plan(model, **{**DILOCO, "steps": 2})
    periodic = gradflow.Periodic(model, optimizer, document, timeout_s=10)
    for step in range(2):
        inner(model, optimizer, dist.get_rank(), step)
        periodic.step()
    kept = copy.deepcopy(periodic.anchors)
    if dist.get_rank() == 0:
        for step in range(2, 4):
            inner(model, optimizer, 0, step)
            if step == 3:
                refused(periodic.step, "gradflow: Periodic's step 4: ", "exchange")
            else:
                periodic.step()
        state = periodic.state_dict()
        check(state["fragment"] is None and state["steps"] == 4, state["steps"])
        anchors = state[f"rank {dist.get_rank()}"][0]["anchors"]
        check(distance(anchors.values(), kept.values()) == 0)
    dist.barrier()
    periodic.close()


if __name__ == "__main__":
    forked.main(globals())
