#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases of share/python/gradflow: check_gradflow.py CASE [RANKS]. Each runs in
RANKS processes over gloo and fails by an exception in one of them."""
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import gradflow  # noqa: E402

NAMES = ["d", "c", "b", "a"]
COUNTS = {"a": 5, "b": 1, "c": 7, "d": 3}


class Branches(nn.Module):
    """Four vectors; the gradient of each is what forward multiplies it by."""

    def __init__(self):
        super().__init__()
        for n in sorted(COUNTS):
            setattr(self, n, nn.Parameter(torch.ones(COUNTS[n])))

    def forward(self, factors):
        return sum((getattr(self, n) * f).sum() for n, f in factors.items())


def plan(messages, **more):
    """messages: a list of {"first", "last", ...}."""
    tensors = [{"name": n, "count_elems": COUNTS[n], "dtype": "f32", "ready_s": 0}
               for n in NAMES]
    return {"format": "gf-plan", "version": 1, "ranks": dist.get_world_size(),
            "lanes": 1, "tensors": tensors, "messages": messages, **more}


def cut(*lasts, **more):
    firsts = [0] + [e + 1 for e in lasts[:-1]]
    return [{"first": f, "last": e, **more} for f, e in zip(firsts, lasts)]


class Wire:
    """Records what is given to the network, in its order."""

    def __init__(self):
        self.sent = []
        self.real = dist.all_reduce
        dist.all_reduce = self

    def __call__(self, tensor, **more):
        self.sent.append((tensor.numel(), tensor.dtype))
        return self.real(tensor, **more)

    def numbers(self):
        return [n for n, _ in self.sent]


def rank():
    return dist.get_rank()


def factors(order=NAMES, scale=1):
    """Integers that differ by rank and place: sums are exact."""
    return {n: torch.arange(COUNTS[n]) * (rank() + 1.0) * scale + NAMES.index(n) for n in order}


def mean_of(name, scale=1):
    ranks = dist.get_world_size()
    sums = sum(torch.arange(COUNTS[name]) * (r + 1.0) * scale + NAMES.index(name)
               for r in range(ranks))
    return sums / ranks


def same(found, wanted, what):
    assert torch.equal(found, wanted), f"{what}: want {wanted}, got {found}"


def exact():
    model = Branches()
    reducer = gradflow.Reducer(model, plan(cut(0, 2, 3)))
    wire = Wire()
    for step in range(3):
        # the ranks' gradients become ready in different orders
        order = NAMES[rank() % 4:] + NAMES[:rank() % 4]
        model(factors(order, step + 1)).backward()
        reducer.finish()
        for n in NAMES:
            # every rank divides first: exact where the division is
            close = torch.allclose(getattr(model, n).grad, mean_of(n, step + 1), rtol=1e-6)
            assert close, (n, getattr(model, n).grad)
            if dist.get_world_size() == 2:
                same(getattr(model, n).grad, mean_of(n, step + 1), n)
        model.zero_grad(set_to_none=step == 1)
    assert wire.numbers() == [3, 8, 5] * 3, wire.numbers()


def replicas():
    model = Branches()
    with torch.no_grad():
        model.a.fill_(rank() + 7)
    reducer = gradflow.Reducer(model, plan(cut(1, 3)))
    same(model.a.detach(), torch.full((5,), 7.0), "rank 0's parameters")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        model(factors()).backward()
        reducer.step(optimizer)
    both = [torch.zeros(5) for _ in range(dist.get_world_size())]
    dist.all_gather(both, model.a.detach())
    for other in both:
        same(other, both[0], "replicas")


def wires():
    model = Branches()
    reducer = gradflow.Reducer(model, plan(cut(3, codec="f16")))
    wire = Wire()
    model(factors(scale=1 / 3)).backward()
    reducer.finish()
    assert wire.sent == [(16, torch.float16)], wire.sent
    # what is on the wire is each rank's share, rounded, and their rounded sum
    shares = [(torch.arange(7) * (r + 1.0) / 3 + NAMES.index("c")) / 2 for r in range(2)]
    wanted = (shares[0].half() + shares[1].half()).float()
    same(model.c.grad, wanted, "c")
    dist.all_reduce = wire.real
    try:
        dist.all_reduce(torch.zeros(1, dtype=torch.bfloat16))
    except RuntimeError:
        refused(lambda: gradflow.Reducer(Branches(), plan(cut(3, codec="bf16"))),
                "want a codec that gloo can add, got torch.bfloat16")


def late():
    model = Branches()
    messages = cut(0, 3)
    messages[1]["release"] = "backward_end"
    reducer = gradflow.Reducer(model, plan(messages))
    wire = Wire()
    model(factors()).backward()
    assert wire.numbers() == [3], wire.numbers()
    reducer.finish()
    assert wire.numbers() == [3, 13], wire.numbers()


def lanes():
    for most in (1, 2, 3):
        model = Branches()
        reducer = gradflow.Reducer(model, plan(cut(0, 1, 2, 3), lanes=most))
        seen = []
        real = reducer._launch

        def launch(step, real=real, seen=seen, reducer=reducer):
            seen.append(reducer.flying + 1)
            real(step)

        reducer._launch = launch
        for _ in range(5):
            model(factors()).backward()
            reducer.finish()
            same(model.d.grad, mean_of("d"), "d")
            model.zero_grad()
        assert len(seen) == 20 and max(seen) <= most, seen


def weights(staleness, warmup, steps, steps_between=None):
    """w' = w - .1 w: the weights at which gradients are taken."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1)
    document = {"format": "gf-plan", "version": 1, "ranks": dist.get_world_size(), "lanes": 1,
                "tensors": [{"name": "weight", "count_elems": 1, "dtype": "f32", "ready_s": 0}],
                "messages": [{"first": 0, "last": 0}],
                "pipeline": {"staleness": staleness, "warmup_steps": warmup}}
    reducer = gradflow.Reducer(model, document)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(steps):
        found.append(round(model.weight.item(), 4))
        (model.weight ** 2 / 2).sum().backward()
        reducer.step(optimizer)
    return found


def pipeline():
    assert weights(1, 0, 4) == [1, .9, .81, .729]
    assert weights(2, 0, 8) == [1, 1, .9, .8, .71, .63, .559, .496], weights(2, 0, 8)
    assert weights(3, 0, 8) == [1, 1, 1, .9, .8, .7, .61, .53]
    # two synchronous steps, then the pipeline fills again
    assert weights(2, 2, 6) == [1, .9, .81, .81, .729, .648], weights(2, 2, 6)


def accumulate():
    model = Branches()
    reducer = gradflow.Reducer(model, plan(cut(1, 3)))
    wire = Wire()
    with reducer.no_sync():
        model(factors()).backward()
    assert not wire.sent
    model(factors()).backward()
    reducer.finish()
    same(model.c.grad, 2 * mean_of("c"), "c")
    model.zero_grad(set_to_none=True)
    partial = {n: f for n, f in factors().items() if n != "b"}
    model(partial).backward()
    reducer.finish()
    same(model.b.grad, torch.zeros(1), "b, without a gradient")
    same(model.c.grad, mean_of("c"), "c")
    model.zero_grad(set_to_none=True)
    model(factors()).backward()
    refused(lambda: model(factors()).backward(), "want one backward for each finish()")


def halves():
    """A message is not whole when a part of it has come twice."""
    model = Branches()
    reducer = gradflow.Reducer(model, plan(cut(3)))
    wire = Wire()
    part = {n: f for n, f in factors().items() if n in ("d", "c")}
    with reducer.no_sync():
        with reducer.no_sync():
            model(part).backward()
        model(part).backward()
    model(part).backward()
    refused(lambda: model(part).backward(), "want one backward for each finish()")
    assert not wire.sent, wire.sent
    reducer.finish()


class Slow:
    """Work that takes so long at least."""

    def __init__(self, work, seconds):
        self.work, self.until = work, time.perf_counter() + seconds

    def wait(self):
        self.work.wait()
        time.sleep(max(self.until - time.perf_counter(), 0))


def traced():
    """Two steps' messages under way at once have times of their own."""
    model = Branches()
    document = plan(cut(3), lanes=2, pipeline={"staleness": 2, "warmup_steps": 0})
    reducer = gradflow.Reducer(model, document, trace=True)
    real = dist.all_reduce
    dist.all_reduce = lambda *a, **k: Slow(real(*a, **k), 0.5)
    for _ in range(3):
        model(factors()).backward()
        reducer.finish()
    reducer.drain()
    dist.all_reduce = real
    times = [e["dur"] * 1e-6 for e in reducer.trace.events if e["cat"] == "message"]
    assert len(times) == 3 and min(times) > 0.45, times


def rule():
    model = Branches()
    document = {"format": "gf-plan", "version": 1, "rule": {"threshold_bytes": 32, "lanes": 1}}
    reducer = gradflow.Reducer(model, document)
    # d 12 bytes, c 28 more: 40 > 32; b 4, a 20 more are left over
    assert [m.names for m in reducer.messages] == [["d", "c"], ["b", "a"]]
    model(factors()).backward()
    reducer.finish()
    same(model.a.grad, mean_of("a"), "a")


def refused(call, text):
    try:
        call()
    except Exception as e:
        assert text in str(e), f"want ...{text}..., got {e}"
        return
    raise AssertionError(f"not refused: {text}")


def refusals():
    whole = plan(cut(0, 3))

    def reducer(document):
        return lambda: gradflow.Reducer(Branches(), document)

    def without(*path, **change):
        document = json.loads(json.dumps(whole))
        at = document
        for key in path:
            at = at[key]
        at.update(change)
        return document

    refused(reducer({**whole, "format": "gf-profile"}), "want a document of format gf-plan, got gf-profile")
    refused(reducer([1]), "plan: want a file's name or a dictionary, got list")
    refused(reducer({**whole, "version": 2}), "/version: want 1, got 2")
    refused(reducer({**whole, "ranks": 9}), "/ranks: want 2, the job's, got 9")
    refused(reducer({**whole, "selection": {"method": "gtopk"}}), "/selection/method: want dense, got gtopk")
    refused(reducer({**whole, "servers": 1}), "/servers: want none, got 1")
    refused(reducer({**whole, "lanes": 0}), "/lanes: want 1 or more, got 0")
    refused(reducer(without("messages", 0, half="split")), "/messages/0/half: want all (gf-plan without --halves), got split")
    refused(reducer(without("messages", 1, codec="q8")), "/messages/1/codec: want f32 or f16 or bf16, got q8")
    refused(reducer(without("messages", 1, first=2)), "/messages/1: want a range of tensors that begins with 1, got 2 to 3")
    refused(reducer(without("messages", 1, last=2)), "/messages: want all 4 tensors in them, got 3")
    refused(reducer(without("tensors", 2, name="x")), "/tensors/2/name: want a trained parameter of the model, got x")
    refused(reducer(without("tensors", 2, count_elems=4)), "/tensors/2/count_elems: want 1, as b has, got 4")
    refused(reducer({k: v for k, v in whole.items() if k != "messages"}), "want a plan as gf-plan writes it, got KeyError: 'messages'")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write('{"format": ')
        f.flush()
        refused(reducer(f.name), f"{f.name}: want JSON")
    mine = plan(cut(rank(), 3))
    refused(reducer(mine), "want the same messages on all ranks, got others on rank 1 than on rank 0")


CASES = {f.__name__: f for f in (exact, replicas, wires, late, lanes, pipeline, accumulate,
                                 halves, traced, rule, refusals)}


def run(r, ranks, case, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=r, world_size=ranks)
    CASES[case]()
    # not dist.barrier(): gloo's also waits for earlier messages, and raises the error of a
    # refused one anew if its end has not been booked yet
    dist.all_reduce(torch.zeros(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in CASES:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(CASES)} [RANKS]")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with tempfile.TemporaryDirectory() as folder:
        # forked: a rank that is spawned imports torch anew, for a second and a half
        mp.start_processes(run, (count, sys.argv[1], os.path.join(folder, "meeting")),
                           nprocs=count, start_method="fork")
