#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.ddp(..., tune=...): check_tune.py RANKS CASE... (forked.py)"""
import contextlib
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
import gradflow  # noqa: E402

STEPS = {"steps": 4, "budget_s": 1}
NETWORK = {"format": "gf-profile", "version": 1, "network": {
    "ranks": 2, "allreduce": [{"algorithm": "ring", "startup_s": 1e-4, "per_byte_s": 1e-9}]}}
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
    return torch.cat([p.detach().flatten() for p in map(whole, model.parameters())])


def whole(parameter):
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


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


@contextlib.contextmanager
def given():
    """A file of rank 0's, in place of measuring."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(NETWORK, f)
        f.flush()
        yield f.name if dist.get_rank() == 0 else "/nonexistent"


def kept():
    state = tuned(margin=-1e9)
    assert state.plan["format"] == "gf-plan" and "kept" in state.tuner.report(), state.tuner.report()
    # another run of the job goes on by the plan that this one had found
    model = gradflow.ddp(build(), tune={**STEPS, "margin": -1e9})
    train(model)
    saved, plan = model.gradflow.state_dict(), model.gradflow.plan
    again = gradflow.ddp(build(), tune=STEPS)
    again.gradflow.load_state_dict(saved)
    assert again.gradflow.plan == plan and again.gradflow.exchange.steps == ALL
    end = train(again)
    assert again.gradflow.plan == plan and torch.equal(end, train(DistributedDataParallel(build())))


def dropped():
    """What is not faster does not stay."""
    with given() as network:
        state = tuned(margin=1, network=network)
    assert state.plan is None and "dropped" in state.tuner.report(), state.tuner.report()


@forked.of_shards("set_custom_all_gather")
def sharded():
    """A model of gradflow.shard begins as fully_shard moves it, and has its bits by any plan in f32."""
    from torch.distributed.fsdp import fully_shard
    end = train(fully_shard(build()))
    for margin, kept_s in ((-1e9, "kept"), (1, "dropped")):
        model = gradflow.shard(build(), tune={**STEPS, "margin": margin})
        assert not model.gradflow.sent_bytes
        assert torch.equal(train(model), end), "not fully_shard's result"
        report = model.gradflow.tuner.report()
        assert kept_s in report and "predicted" in report, report
        assert bool(model.gradflow.sent_bytes) == (kept_s == "kept"), model.gradflow.report()
        same_everywhere(model.gradflow.plan)
        model.gradflow.close()
    for wrong, text in (({"rounds": 3}, "tune: want steps"), (3, "tune: want True, False")):
        try:
            gradflow.shard(build(), tune=wrong)
        except TypeError as e:
            assert text in str(e), e
        else:
            raise AssertionError(wrong)


def accumulated():
    """A step of several passes is one step."""
    with given() as network:
        model = gradflow.ddp(build(), tune={**STEPS, "margin": -1e9, "network": network})
        for _ in range(ALL):
            with model.no_sync():
                model(torch.ones(4, 40)).sum().backward()
            model(torch.ones(4, 40)).sum().backward()
    assert "kept" in model.gradflow.tuner.report(), model.gradflow.tuner.report()
    model.gradflow.close()


def failed():
    """A job that cannot be tuned goes on, on all ranks."""
    with given() as network:
        state = tuned(options=["--nonsense"], network=network)
        assert state.plan is None and "--nonsense" in state.tuner.report(), state.tuner.report()
        state = tuned(options=["--selection", "gtopk"], network=network)
    assert state.plan is None and "holds some back" in state.tuner.report(), state.tuner.report()
    path, os.environ["PATH"] = os.environ["PATH"], "/nonexistent"
    state = tuned()
    assert state.plan is None and "gf-profile: want it in PATH" in state.tuner.report(), \
        state.tuner.report()
    # where rank 1 alone lacks it, rank 0 does not wait for its own time-out
    os.environ["PATH"] = "/nonexistent" if dist.get_rank() == 1 else path
    begun = time.monotonic()
    forked.raises(lambda: gradflow.exchange_costs("network.json"), "gf-profile: want it in PATH")
    os.environ["PATH"] = path
    assert time.monotonic() - begun < 30


class Routed(torch.nn.Module):
    """Of experts, of which rank 0 never needs one."""

    def __init__(self):
        super().__init__()
        self.shared, self.expert = torch.nn.Linear(40, 90), torch.nn.Linear(40, 90)

    def forward(self, x):
        return self.shared(x) + (self.expert(x) if dist.get_rank() else 0)


def routed():
    with given() as network:
        model = gradflow.ddp(Routed(), find_unused_parameters=True,
                             tune={**STEPS, "margin": -1e9, "network": network})
        train(model)
    assert "kept" in model.gradflow.tuner.report(), model.gradflow.tuner.report()
    model.gradflow.close()


def single():
    """On one rank nothing is exchanged, and the job goes on."""
    groups = [dist.new_group([r]) for r in range(dist.get_world_size())]
    model = gradflow.ddp(build(), tune=STEPS, process_group=groups[dist.get_rank()])
    train(model)
    assert "one has nothing to exchange" in model.gradflow.tuner.report(), \
        model.gradflow.tuner.report()
    model.gradflow.close()


def recorded():
    """Each message of each step once, inside its step, beside the prediction."""
    names = [n for n, _ in reversed(list(build().named_parameters()))]
    counts = [p.numel() for p in reversed(list(build().parameters()))]
    times = dict.fromkeys(("forward_s", "backward_s", "update_s"), 0.0)
    message = {"algorithm": "ring", "codec": "f32", "mode": "normal"}
    plan = {"format": "gf-plan", "version": 1, "system": "auto", "policy": "single",
            "ranks": dist.get_world_size(), "lanes": 1, "model": {"name": "net", **times},
            "tensors": [{"name": n, "count_elems": c, "dtype": "f32", "ready_s": 0.0, "type": t}
                        for n, c, t in zip(names, counts, ["merged", "normal"] * 2)],
            "messages": [{"first": 0, "last": 1, **message}, {"first": 2, "last": 3, **message}],
            "predicted": {"iteration_s": 0.5, "compute_s": 0.3, "exposed_comm_s": 0.2,
                          "lower_bound_s": 0.3, "messages": [
                              {"ready_s": 0.1, "start_s": 0.1, "end_s": 0.2},
                              {"ready_s": 0.2, "start_s": 0.2, "end_s": 0.4}]}}
    model = gradflow.ddp(build(), plan)
    train(model, 4)
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    record = gradflow.Record(model, lines=True)
    os.sched_setaffinity(0, processors)
    train(model, 6)  # the last of them has no end yet
    path = [os.path.join(tempfile.gettempdir(), f"record-{os.getpid()}.json")]
    dist.broadcast_object_list(path)
    record.write(path[0])
    lines = record.report().splitlines()
    assert lines[1].split() == ["0", "predicted", "100.000", "200.000"], lines
    assert lines[4].split()[:2] == ["1", "measured"] and "(medians of 5)" in lines[5], lines
    assert "predicted 500.0 ms" in lines[5], lines
    assert lines[6].startswith("2 ranks of this machine compute by 2 threads and exchange by 2, "
                               "on 1 processors"), lines
    if dist.get_rank() == 0:
        with open(path[0], encoding="utf-8") as f:
            events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        os.unlink(path[0])
        for rank in range(dist.get_world_size()):
            own = [e for e in events if e["pid"] == rank]
            assert sum(e["cat"] == "message" for e in own) == 10, own
            forward = sorted(e["ts"] for e in own if e["cat"] == "forward")
            for e in own:
                begun = max(t for t in forward if t <= e["ts"])
                later = [t for t in forward if t > begun]
                assert e["dur"] >= 0 and (not later or e["ts"] + e["dur"] <= later[0]), (e, forward)
    record.close()
    train(model, 2)
    assert len(record.steps) == 5
    model.gradflow.close()
    # stale: messages leave at the end of backward, and end in the next step at the latest
    model = gradflow.ddp(build(), {**plan, "pipeline": {"staleness": 2, "warmup_steps": 2}})
    record = gradflow.Record(model)
    train(model, 9)
    events = [e for e in record.events if e["cat"] in ("message", "wait")]
    messages = [e for e in events if e["cat"] == "message"]
    assert len(messages) == 2 * 7, events  # of 8 steps that have ended, all but the last's
    waits = [e["ts"] for e in events if e["cat"] == "wait"]
    for i, e in enumerate(messages[4:]):
        assert waits[2 + i // 2] < e["ts"] < e["ts"] + e["dur"], (i, e, waits)
    record.close()
    model.gradflow.close()


class Told(torch.nn.Module):
    """Its gradients are what forward is given."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(3000))
        self.b = torch.nn.Parameter(torch.zeros(5))
        self.unused = torch.nn.Parameter(torch.zeros(2))

    def forward(self, w, b):
        return (self.w * w).sum() + (self.b * b).sum() + 0 * self.unused.sum()


def statistics():
    """What gradients are like is found, where it is known; the file is one for gf-plan."""
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        forked.raises(lambda: gradflow.Record(gradflow.ddp(build()), statistics=True), "gradflow.Record", "2.1")
        return
    message = {"algorithm": "ring", "codec": "f32", "mode": "normal"}
    plan = {"format": "gf-plan", "version": 1, "ranks": 2, "lanes": 1, "messages": [{"first": 0, "last": 2, **message}],
            "model": {"name": "told", "forward_s": 0.1, "backward_s": 0.1},
            "tensors": [{"name": n, "count_elems": c, "dtype": "f32", "ready_s": 0.0, "type": t}
                        for n, c, t in (("unused", 2, "merged"), ("b", 5, "merged"), ("w", 3000, "normal"))]}
    model = gradflow.ddp(Told(), plan)
    record = gradflow.Record(model, statistics=True)
    shared, own = torch.Generator(), torch.Generator()
    for step in range(301):
        shared.manual_seed(step)
        own.manual_seed(1000 * (dist.get_rank() + 1) + step)
        w, b = (2 * (torch.randn(n, generator=shared) + torch.randn(n, generator=own)) for n in (3000, 5))
        w[::4] = 0
        model.zero_grad()
        model(w, b).backward()
        if dist.get_rank() == 0:  # a forward by one rank alone
            with torch.no_grad():
                model(w, b)
        dist.barrier()
    path = [os.path.join(tempfile.gettempdir(), f"statistics-{os.getpid()}.json")]
    dist.broadcast_object_list(path)
    record.write_statistics(path[0])
    dist.barrier()
    if dist.get_rank() == 0:
        with open(path[0], encoding="utf-8") as f:
            found = {t["name"]: t["gradient"] for t in json.load(f)["model"]["tensors"]}
        os.unlink(path[0])
        assert found["unused"] == {"rms": 0, "zeros": 1, "peak": 0, "correlation": 0}, found
        rms, zeros, peak, correlation = (found["w"][k] for k in ("rms", "zeros", "peak", "correlation"))
        assert abs(rms / 6 ** 0.5 - 1) < 0.02 and abs(zeros - 0.25) < 0.01 and abs(correlation - 0.5) < 0.03, found
        assert 3.3 < peak / (4 / 3) ** 0.5 < 3.45, found  # a quarter is 0
        assert abs(found["b"]["rms"] / 8 ** 0.5 - 1) < 0.2 and abs(found["b"]["correlation"] - 0.5) < 0.3, found
    dist.barrier()
    record.close()
    model.gradflow.close()
    record = gradflow.Record(gradflow.ddp(build()), statistics=True)
    forked.raises(lambda: record.write_statistics("model.json"), "gradflow.Record", "more than 10 steps")


if __name__ == "__main__":
    forked.main(globals())
