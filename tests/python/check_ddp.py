#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.ddp and its hook: check_ddp.py RANKS CASE... (forked.py). A case compares with
DistributedDataParallel without the hook, or with all ranks' gradients computed here."""
import argparse
import contextlib
import copy
import gc
import inspect
import io
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import warnings
import weakref

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
from forked import raises  # noqa: E402
import gradflow  # noqa: E402
from gradflow.exchange import runs_between_gpus  # noqa: E402

dist._DEFAULT_FIRST_BUCKET_BYTES = 1000  # so that small models have several
way = sys.modules[gradflow.State.__module__.replace("state", "way")]
gradflow_state = sys.modules[gradflow.State.__module__]


class Net(nn.Module):
    """A convolution, and a branch that odd steps of odd ranks leave out."""

    def __init__(self, branches=False):
        super().__init__()
        self.branches = branches
        self.conv = nn.Conv2d(3, 8, 3)
        self.inner = nn.Linear(8 * 36, 40)
        if branches:
            self.side = nn.Linear(40, 40)
        self.scale = nn.Parameter(torch.ones(()))
        self.outer = nn.Linear(40, 4)

    def forward(self, x, step=0):
        x = torch.relu(self.inner(torch.relu(self.conv(x)).flatten(1))) * self.scale
        if self.branches and step % 2 <= rank() % 2:
            x = x + self.side(x)
        return self.outer(x)


def rank():
    return dist.get_rank()


def build(seed=1, **how):
    torch.manual_seed(seed)
    return Net(**how)


def loss(model, batch, own=None, **how):
    generator = torch.Generator().manual_seed(1000 * (rank() if own is None else own) + batch)
    labels = torch.randint(4, (8,), generator=generator)
    x = torch.randn(8, 3, 8, 8, generator=generator) + labels.view(-1, 1, 1, 1) * 0.5
    return nn.functional.cross_entropy(model(x, **how), labels)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def grouped(model):
    first, *rest = model.parameters()
    return torch.optim.SGD([{"params": [first], "momentum": 0}, {"params": rest}], lr=0.1, momentum=0.9)


def train(model, make=adamw, steps=6, parts=1, clip=None, first=0, **how):
    optimizer = make(model)
    for step in range(first, first + steps):
        for part in range(parts):
            with model.no_sync() if part + 1 < parts else contextlib.nullcontext():
                if model.find_unused_parameters:
                    how["step"] = step
                loss(model, parts * step + part, **how).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
    return model


def distance(a, b):
    """Between parameters; 0: to the last bit."""
    pairs = list(zip(a.parameters(), b.parameters()))
    assert all(p.isfinite().all() for p, _ in pairs)
    return max((p - q).abs().max().item() for p, q in pairs if p.numel())


def check(holds, *found):
    if not holds:
        raise AssertionError(found)


def replicas_are_equal(model):
    flat = torch.cat([p.detach().float().reshape(-1) for p in model.parameters()])
    others = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(others, flat)
    check(all(torch.equal(flat, other) for other in others), "replicas differ")


# --- plans ---

SELECTIONS, SENT = {}, {"f32": 1.01, "f16": 0.51, "bf16": 0.51, "trunc16": 0.51, "q8": 0.3, "fp8": 0.3, "fp4": 0.2}
FACTS = {path.stem: json.loads(path.read_text(encoding="utf-8"))
         for path in sorted(pathlib.Path(__file__).parent.glob("../entries/selection/*.json")) if path.stem != "dense"}
for name, facts in FACTS.items():
    # without epochs
    keys = {key: [] if key == "warmup_densities" else value for key, value in facts["keys"].items()}
    SELECTIONS[name] = {"method": name, **keys, **facts.get("ddp", {})}
    SENT[name] = facts["share"]


def rule(method=None, staleness=1, warmup=0):
    return {"format": "gf-plan", "version": 1, "system": "auto", "policy": "threshold",
            "rule": {"threshold_bytes": 4096, "lanes": 1,
                     "algorithms": [{"min_bytes": 0, "algorithm": "ring"}]},
            "selection": SELECTIONS.get(method, {"method": "dense"}),
            "pipeline": {"staleness": staleness, "warmup_steps": warmup}}


def whole(model, ends=(2, 7), codec="f32", **more):
    """A plan for the model: messages end there in the order of backward."""
    named = list(reversed(list(model.named_parameters())))
    named.insert(2, named.pop())  # scale, which comes first among the model's
    tensors = [{"name": n, "count_elems": p.numel(), "dtype": "f32", "ready_s": 0.0,
                "shape": list(p.shape) or [1], "type": "merged"} for n, p in named]
    for end in ends:
        tensors[end - 1]["type"] = "normal"
    times = dict.fromkeys(("forward_s", "backward_s", "update_s"), 0.0)
    return {"format": "gf-plan", "version": 1, "system": "auto", "policy": "single",
            "ranks": dist.get_world_size(), "lanes": 1, "model": {"name": "net", **times},
            "tensors": tensors,
            "messages": [{"first": first, "last": end - 1, "algorithm": "ring", "codec": codec,
                          "mode": "normal"}
                         for first, end in zip((0, *ends), ends)], **more}


# --- cases ---

def check_copies(model, copied, steps):
    """Once buckets are settled, nothing is copied; or, for neighbours on a host,
    everything once in and once out."""
    size = sum(4 * p.numel() for p in model.parameters())
    check(copied in (0, 2 * size * steps), copied, size, steps)


def same():
    """f32 over a ring: DistributedDataParallel's result to the last bit (2 ranks),
    and nothing is copied twice once buckets are settled."""
    cases = [(adamw, {}, {}), (momentum, {}, {"clip": 0.5}),
             (adamw, {"gradient_as_bucket_view": True}, {"parts": 3, "clip": 0.5}),
             (momentum, {"static_graph": True}, {}),
             (adamw, {"static_graph": True, "gradient_as_bucket_view": True}, {}),
             (momentum, {"find_unused_parameters": True}, {"parts": 2}),
             (momentum, {"find_unused_parameters": True, "gradient_as_bucket_view": True}, {})]
    for make, arguments, how in cases:
        arguments = {"bucket_cap_mb": 0.02, **arguments}
        branches = "find_unused_parameters" in arguments
        stock = train(DDP(build(branches=branches), **arguments), make, **how)
        model = gradflow.ddp(build(branches=branches), **arguments)
        train(model, make, **how)
        found = distance(stock, model)
        check(found == 0 or found < 1e-6 and dist.get_world_size() > 2, arguments, how, found)
        x = model.gradflow.exchange
        before = x.copied_bytes
        check(x.messages > 1, arguments, x.messages)
        train(model, make, steps=2, **how)
        check(x is model.gradflow.exchange, arguments)
        check_copies(model, x.copied_bytes - before, 2)
        check(x.sent_bytes > 0, x.sent_bytes)
        model.gradflow.close()


def worse():
    """A dense plan that is predicted slower than the job was without one is not followed."""
    for predicted, without, more, followed in ((2.0, 1.0, {}, False), (1.0, 2.0, {}, True),
                                               (2.0, 1.0, {"codec": "f16"}, True)):
        times = dict.fromkeys(("compute_s", "exposed_comm_s", "lower_bound_s"), 0.0)
        times["messages"] = [{"ready_s": 0.0, "start_s": 0.0, "end_s": 1.0}] * 2
        cost = {"algorithm": "ring", "startup_s": 1e-5, "per_byte_s": 1e-9}
        plan = whole(build(), predicted={"iteration_s": predicted, **times},
                     network={"ranks": dist.get_world_size(), "allreduce": [cost],
                              "x-step-without-plan-s": without}, **more)
        with contextlib.redirect_stderr(io.StringIO()):
            model = gradflow.ddp(build(), plan)
        check((model.gradflow.plan is not None) == followed, predicted, without, more)
        train(model, steps=2)
        model.gradflow.close()


def whole_job():
    """What jobs do around backward: a fused optimiser, a schedule, clipping, autocast,
    accumulation, channels_last, parameters that are left out."""
    def job(wrap, fused, **arguments):
        model = build().to(memory_format=torch.channels_last)
        model.outer.bias.requires_grad_(False)
        DDP._set_params_and_buffers_to_ignore_for_model(model, ["inner.bias"])
        model = wrap(model, bucket_cap_mb=0.02, **arguments)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, **fused)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=8)
        for step in range(6):
            for part in range(3):
                with model.no_sync() if part < 2 else contextlib.nullcontext(), \
                        torch.autocast("cpu", torch.bfloat16):
                    made = loss(model, 3 * step + part)
                made.backward() if part == 2 else unsynced(model, made)
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=step % 2 == 0)
        return model

    def unsynced(model, made):
        with model.no_sync():
            made.backward()

    fused = [{}] + [{"fused": True}] * (torch.__version__ >= "2.4")
    for how in fused:
        for view in (False, True):
            stock, own = [job(wrap, how, gradient_as_bucket_view=view)
                          for wrap in (DDP, gradflow.ddp)]
            found = distance(stock, own)
            check(found == 0 or found < 1e-5 and dist.get_world_size() > 2, how, view, found)


def cuts():
    """Messages that cut buckets, join them, or both; also as buckets are rebuilt."""
    stock = train(DDP(build(), bucket_cap_mb=0.02))
    for ends in ((1, 2, 3, 4, 5, 6, 7), (7,), (1, 6, 7), (3, 4, 7)):
        for arguments in ({}, {"bucket_cap_mb": 0.02}, {"bucket_cap_mb": 0.0001},
                          {"static_graph": True, "bucket_cap_mb": 0.02}):
            model = gradflow.ddp(build(), whole(build(), ends), **arguments)
            train(model)
            x = model.gradflow.exchange
            check(x.messages == len(ends), x.messages, ends)
            check(distance(stock, model) == 0, ends, arguments, distance(stock, model))
            model.gradflow.close()


class Recorder:
    """An exchange of which the order of calls is kept, in place of one on a GPU."""

    steps = 0

    def __init__(self, calls):
        self.calls, self.given = calls, []

    def post_many(self, gradients, memory):
        self.calls.append("post")
        self.given += [(g.tensor, g.data) for g in gradients]

    def wait(self):
        self.calls.append("wait")

    def restored(self, steps):
        pass

    close = wait


class Stream:
    """Of torch.cuda, without a GPU."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def wait_event(self, event):
        self.calls.append(f"{self.name} waits for {event.stream.name}")

    def __enter__(self):
        self.calls.append("on")

    def __exit__(self, *_):
        self.calls.append("off")


class Event:
    """Of torch.cuda: the second look finds that it has come."""

    def __init__(self, calls):
        self.calls, self.looks = calls, 0

    def record(self, stream=None):
        self.stream = stream
        if not stream:
            self.calls.append("record")

    def query(self):
        self.looks += 1
        return self.looks > 1

    def synchronize(self):
        self.calls.append("there")


@contextlib.contextmanager
def fake_gpu():
    """Calls of torch.cuda are listed; gradients stay in the host's memory."""
    calls = []
    fakes = {"Stream": lambda _: Stream(calls, "side"), "stream": lambda own: own,
             "get_device_properties": lambda device: argparse.Namespace(
                 uuid=device.index and dist.get_rank()),
             "Event": lambda: Event(calls),
             "current_stream": lambda device: Stream(calls, f"backward of {device}")}
    real = {name: getattr(torch.cuda, name) for name in fakes}
    pinned = way._pinned
    for name, fake in fakes.items():
        setattr(torch.cuda, name, fake)
    way._pinned = torch.empty_like
    try:
        yield calls
    finally:
        for name, own in real.items():
            setattr(torch.cuda, name, own)
        way._pinned = pinned


def device():
    """The order on a GPU: the exchange's stream waits for backward's before each post,
    and backward's for that stream before it has results."""
    with fake_gpu() as calls:
        streams = way.InPlace(torch.device("cuda:1"))
        model = gradflow.ddp(build(), bucket_cap_mb=0.02)
        model.gradflow.close()
        calls.clear()
        model.gradflow.way = streams
        model.gradflow.exchange = recorder = Recorder(calls)
        for _ in range(2):
            loss(model, 0).backward()
    count = len(model.gradflow.parameters)
    check(len(recorder.given) == 2 * count, recorder.given)
    check(sorted(i for i, _ in recorder.given[:count]) == list(range(count)), recorder.given)
    text = " ".join(calls)
    check(text.count("side waits for backward of cuda:1 post ") == text.count("post") > 2, text)
    end = "wait backward of cuda:1 waits for side"
    check(text.count(end) == text.count("for side") == 2 and text.endswith(end), text)


def chooses():
    """NCCL where the library runs the plan on every rank, each with a GPU of its own."""
    found = {m for m in SELECTIONS if runs_between_gpus(json.dumps(rule(m)))}
    check(found == {name for name in FACTS if FACTS[name].get("gpu_half")}, found)
    check(runs_between_gpus(json.dumps(rule())), "dense")
    check(runs_between_gpus(None) and not runs_between_gpus("{}"), "no plan")
    with fake_gpu():
        for index, runs, wanted in ((1, lambda: True, way.InPlace), (0, lambda: True, way.Copied),
                                    (1, lambda: dist.get_rank() == 0, way.Copied)):
            found = way.choose(torch.device("cuda", index), None, None, runs)
            check(isinstance(found, wanted), index, found)


def by_host():
    """From a GPU by the host: a copy is posted once it is there, and means are put back
    on the stream of the copies; at once, late, and after some that are not late."""
    for late, synchronous in ((False, 0), (True, 99), (True, 0)):
        with fake_gpu() as calls:
            model = gradflow.ddp(build(), bucket_cap_mb=0.02)
            model.gradflow.way = way.Copied(torch.device("cuda:1"), True, late, synchronous)
            x = model.gradflow.exchange
            x.post_many, post = lambda *a: (calls.append("post"), post(*a)), x.post_many
            train(model, steps=3)
        text = " ".join(calls)
        check(text.startswith("side waits for backward of cuda:1 on record off"), text)
        check(text.count("record") == text.count("there") == text.count("post") > 1, text)
        check(all(b == "post" for a, b in zip(calls, calls[1:]) if a == "there"), text)
        if late and not synchronous:  # means go back before the step's own are posted
            check("on record off on off backward of cuda:1 waits for side there post" in text, text)
        else:
            check(text.endswith("there post on off on off backward of cuda:1 waits for side"), text)
            found = distance(train(DDP(build(), bucket_cap_mb=0.02), steps=3), model)
            check(found == 0 or found < 1e-6 and dist.get_world_size() > 2, late, found)
        model.gradflow.close()


def empty():
    """Parameters of 0 elements, beside others and in buckets of their own."""
    def job(wrap):
        model = build()
        model.first, model.last = [nn.Parameter(torch.zeros(0)) for _ in range(2)]
        model.register_forward_hook(lambda m, _, out: out + m.first.sum() + m.last.sum())
        return train(wrap(model), steps=4)
    for plan in (None, whole(build())):
        for arguments in ({}, {"bucket_cap_mb": 0.0001}):
            found = distance(job(lambda m: DDP(m, **arguments)),
                             job(lambda m: gradflow.ddp(m, plan, **arguments)))
            check(found == 0, plan, arguments, found)


def uneven():
    """Ranks with fewer batches join in with zeros."""
    for first, how in (4, {}), (1, {"find_unused_parameters": True}):
        for divisor in True, False:  # of all ranks, or of those that still train
            results = []
            for wrap in (DDP, gradflow.ddp):
                model = wrap(build(), **how)
                with model.join(divide_by_initial_world_size=divisor):
                    train(model, momentum, steps=first + 2 * rank())
                results.append(model)
            found = distance(*results)
            check(found == 0 or found < 1e-6 and dist.get_world_size() > 2, first, divisor, found)


def formats():
    """channels_last, autocast, and a wrapper around the hook's future."""
    def last(wrap):
        model = wrap(build().to(memory_format=torch.channels_last))
        return train(model)
    check(distance(last(DDP), last(gradflow.ddp)) == 0, "channels_last")

    def cast(wrap):
        model = wrap(build())
        with torch.autocast("cpu", torch.bfloat16):
            return train(model)
    check(distance(cast(DDP), cast(gradflow.ddp)) == 0, "autocast")

    model = DDP(build())
    def halved(state, bucket):
        return gradflow.hook(state, bucket).then(lambda f: f.value() / 2)
    model.register_comm_hook(gradflow.State(model), halved)
    loss(model, 0).backward()
    stock = DDP(build())
    loss(stock, 0).backward()
    for p, q in zip(model.parameters(), stock.parameters()):
        check(torch.equal(p.grad, q.grad / 2), "then")


def widened(tensor):
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


class Typed(nn.Module):
    """Parameters of many types, whose gradients are what forward multiplies them by."""

    def __init__(self, *kinds):
        super().__init__()
        for i, kind in enumerate(kinds):
            shape = (1,) * (9 * (i % 2)) + (1000 + i,)
            self.register_parameter(f"p{i}", nn.Parameter(torch.ones(shape).to(kind)))

    def factors(self, own):
        generator = torch.Generator().manual_seed(own)
        return [torch.randn(p.shape, generator=generator, dtype=widened(p).dtype).to(p.dtype)
                for p in self.parameters()]

    def forward(self):
        return sum((widened(p) * widened(f).conj()).sum().real
                   for p, f in zip(self.parameters(), self.factors(rank())))


def is_sent(kind):
    """Can this PyTorch's gloo broadcast that type, as DistributedDataParallel does?"""
    try:
        dist._broadcast_coalesced(dist.group.WORLD, [torch.zeros(1, dtype=kind)], 1 << 20, 0)
    except RuntimeError:
        return False
    return True


def types():
    """Parameters of many types in one model: the means, rounded to their type; of f64 and
    complex numbers, too, under a plan and without one."""
    bits = {torch.float32: 24, torch.float16: 11, torch.float64: 53, torch.bfloat16: 8,
            torch.complex64: 24, torch.complex128: 53}
    kinds = [kind for kind in bits if is_sent(kind) for _ in range(3)]
    for kinds in (kinds, kinds[::2] + kinds[1::2], kinds[3:6], kinds[6:9], kinds[-3:]):
        for plan in (None, rule()):
            model = Typed(*kinds)
            wrapped = gradflow.ddp(model, plan)
            for _ in range(4):  # on buckets as they were, and as they are
                wrapped.zero_grad()
                wrapped().backward()
                ranks = [model.factors(r) for r in range(dist.get_world_size())]
                for p, *made in zip(model.parameters(), *ranks):
                    wanted = sum(widened(m) for m in made) / len(made)
                    error = (widened(p.grad) - wanted).abs().max() / wanted.abs().max()
                    check(p.grad.dtype == p.dtype and error < 2.0 ** (2 - bits[p.dtype]), kinds,
                          p.dtype, error)
            wrapped.gradflow.close()


def double():
    """A job in f64: DistributedDataParallel's result to the last bit; and a selection,
    which works in f32."""
    def job(wrap, **how):
        model = wrap(build().double(), bucket_cap_mb=0.02, **how)
        optimizer = momentum(model)
        for step in range(6):
            generator = torch.Generator().manual_seed(100 * rank() + step)
            x = torch.randn(8, 3, 8, 8, generator=generator, dtype=torch.float64)
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return model

    stock = job(DDP)
    for how in ({}, {"gradient_as_bucket_view": True}):
        found = distance(stock, job(gradflow.ddp, **how))
        check(found == 0 or found < 1e-14 and dist.get_world_size() > 2, how, found)
    model = job(gradflow.ddp, plan=rule("topk"))
    replicas_are_equal(model)
    check(distance(stock, model) > 0, "the plan was not obeyed")


def sparse():
    """Sparse gradients go by the process group, beside dense ones or alone."""
    class Words(nn.Module):
        def __init__(self, dense):
            super().__init__()
            self.words = nn.Embedding(50, 8, sparse=True)
            self.bag = nn.EmbeddingBag(50, 8, sparse=True)
            self.outer = nn.Linear(8, 4) if dense else nn.Identity()

        def forward(self, x):
            return self.outer(self.words(x).mean(1) + self.bag(x))

    for dense in (True, False):
        results = []
        for wrap in (DDP, gradflow.ddp):
            torch.manual_seed(1)
            model = wrap(Words(dense))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(5):
                generator = torch.Generator().manual_seed(100 * rank() + step)
                x = torch.randint(50, (6, 3), generator=generator)
                model(x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            results.append(model)
        found = distance(*results)
        check(found == 0 or found < 1e-7 and dist.get_world_size() > 2, dense, found)


def skipped():
    """DistributedDataParallel skips the buckets of unused parameters, also the last one."""
    if "skip_all_reduce_unused_params" not in inspect.signature(DDP).parameters:
        return

    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x, used):
            for i in used:
                x = self.parts[i](x)
            return x

    for used in ((1, 2, 3), (0, 1, 3), (0, 1, 2), (2,)):
        for views in (False, True):
            results = []
            for wrap in (DDP, gradflow.ddp):
                torch.manual_seed(1)
                model = wrap(Parts(), find_unused_parameters=True, bucket_cap_mb=0.0003,
                             skip_all_reduce_unused_params=True, gradient_as_bucket_view=views)
                optimizer = momentum(model)
                for step in range(5):
                    generator = torch.Generator().manual_seed(100 * rank() + step)
                    model(torch.randn(4, 8, generator=generator), used).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                results.append(model)
            found = distance(*results)
            check(found == 0 or found < 1e-6 and dist.get_world_size() > 2, used, views, found)
    results = [train(wrap(build(), static_graph=True, skip_all_reduce_unused_params=True)) for wrap in (DDP, gradflow.ddp)]
    check(distance(*results) < 1e-6)


def functional():
    """functional_call with parameters of the caller's: they get their own gradients, and
    what the model has stays as it is, before and after steps of its own."""
    from torch.nn.utils import stateless
    call = getattr(getattr(torch, "func", None), "functional_call", stateless.functional_call)
    results = []
    for wrap in (DDP, gradflow.ddp):
        model, found = wrap(build()), []
        for step in range(5):
            others = {n: (2 * p).detach().requires_grad_() for n, p in model.named_parameters()}
            x = torch.full((2, 3, 8, 8), 1.0 + rank())
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                call(model, others, (x,)).sum().backward()
            check(wrap is DDP or step or torch.__version__ < "2" or
                  "functional_call" in str(told[0].message), told)
            found += [p.grad for p in others.values()]
            check(all(p.grad is None or not p.grad.any() for p in model.parameters()),
                  "the model's own")
            if step > 1:
                train(model, steps=1)
        results.append(found)
    check(all(torch.allclose(a, b, 1e-3, 1e-4) for a, b in zip(*results)))


def held():
    """What this process has open: threads, and files."""
    return [len(os.listdir(f"/proc/self/{kind}")) for kind in ("task", "fd")]


def dropped():
    """A model that is gone leaves nothing open, in any state: trained or not, within a step,
    recorded, closed, of a group that is gone."""
    def life(kind):
        group = dist.new_group(list(range(dist.get_world_size()))) if kind == "group" else None
        model = gradflow.ddp(build(), rule("topk") if kind == "plan" else None,
                             process_group=group)
        if kind == "recorded":
            record = gradflow.Record(model)
        train(model, steps=0 if kind == "untrained" else 3)
        if kind == "group":
            dist.destroy_process_group(group)
        if kind == "recorded":
            record.report()
        if kind == "step":
            loss(model, 0)
        if kind == "closed":
            model.gradflow.close()

    life("first")
    kinds = ("plain", "untrained", "plan", "recorded", "step", "closed")
    before = None
    for _ in range(3):
        for kind in kinds + (("group",) if torch.__version__ >= "2" else ()):
            life(kind)
        gc.collect()
        dist.barrier()
        left = time.monotonic() + 30
        while any(t.name == "gradflow closes" for t in threading.enumerate()):
            check(time.monotonic() < left, threading.enumerate())
            time.sleep(0.01)
        found = held()
        before = before or found
        while found[0] > before[0] or found[1] > before[1]:  # a thread outlives its object a moment
            check(time.monotonic() < left, before, found)
            time.sleep(0.01)
            found = held()


def compiled():
    """torch.compile around the wrapped model, and within it."""
    if not hasattr(torch, "compile"):
        return
    stock = train(DDP(build()))
    outer = gradflow.ddp(build())
    optimizer = adamw(outer)
    call = torch.compile(outer, backend="eager")
    for step in range(6):
        loss(call, step).backward()
        optimizer.step()
        optimizer.zero_grad()
    inner = train(gradflow.ddp(torch.compile(build(), backend="eager")))
    for model in (outer, inner):
        found = distance(stock, model)
        check(found == 0 or found < 1e-6 and dist.get_world_size() > 2, found)


def several():
    """Two models in one backward, and in turns, as of a GAN."""
    def both(wrap):
        torch.manual_seed(3)
        front, back = nn.Linear(12, 30), nn.Linear(30, 3)
        a, b = wrap(front), wrap(back)
        steps = [momentum(a), momentum(b)]
        for step in range(6):
            generator = torch.Generator().manual_seed(100 * rank() + step)
            x = torch.randn(4, 12, generator=generator)
            b(torch.relu(a(x))).square().mean().backward()
            if step % 2:
                b(torch.relu(a(x).detach())).mean().backward()
            for s in steps:
                s.step()
                s.zero_grad()
        return nn.Sequential(front, back)
    found = distance(both(DDP), both(gradflow.ddp))
    check(found == 0 or found < 1e-6 and dist.get_world_size() > 2, found)


def frozen():
    """Two models that are frozen in turns, from the first step on."""
    def trained(wrap):
        first, second = wrap(build()), wrap(build(2))
        steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
        for step in range(6):
            for model, other, optimizer in ((first, second, steps[0]), (second, first, steps[1])):
                model.requires_grad_(True)
                other.requires_grad_(False)
                optimizer.zero_grad()
                (loss(model, step) + loss(other, step)).backward()
                optimizer.step()
        return first, second

    for wanted, found in zip(trained(DDP), trained(gradflow.ddp)):
        check(distance(wanted, found) == 0, distance(wanted, found))


def meshes():
    """The plan is agreed on in the mesh's group alone."""
    if "device_mesh" not in inspect.signature(DDP).parameters:
        return
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("stages", "data"))
    raises(lambda: gradflow.ddp(build(), device_mesh=mesh), "want one dimension, got 2")
    stage = rank() // 2
    model = gradflow.ddp(build(), rule("topk") if stage else None, device_mesh=mesh["data"])
    train(model)
    check((model.gradflow.plan is not None) == bool(stage), model.gradflow.plan)


def groups():
    """Two process groups of half the ranks, and a model of all ranks."""
    half = dist.get_world_size() // 2
    made = [dist.new_group(range(half)), dist.new_group(range(half, 2 * half))]
    own = made[rank() // half]
    results = []
    for wrap in (DDP, gradflow.ddp):
        model = wrap(build(), process_group=own)
        results.append(train(model))
    check(distance(*results) == 0, distance(*results))
    found = torch.cat([p.detach().reshape(-1) for p in results[1].parameters()])
    others = [torch.empty_like(found) for _ in range(2 * half)]
    dist.all_gather(others, found)
    check(torch.equal(others[0], others[half - 1]) and not torch.equal(others[0], others[half]))
    train(gradflow.ddp(build()))
    model = gradflow.ddp(build(), rule("topk"), process_group=own)
    train(model)
    check(model.gradflow.exchange.sent_bytes > 0)


def unseen_loss(model):
    """The mean of 16 batches of each rank that are not trained on."""
    with torch.no_grad():
        found = [loss(model.module, 10 ** 6 + batch, own).item()
                 for own in range(dist.get_world_size()) for batch in range(16)]
    return sum(found) / len(found)


def plans():
    """Every codec and selection learns at least half of what DistributedDataParallel
    does, sends less, and keeps replicas equal; some of them with stale gradients. The
    rate is low: at 0.1, the loss of DistributedDataParallel itself goes up and down."""
    def learned(model):
        before = unseen_loss(model)
        train(model, lambda m: torch.optim.SGD(m.parameters(), lr=0.03), steps=40)
        return before - unseen_loss(model)

    def learns(name, plan, **more):
        model = gradflow.ddp(build(), plan, **more)
        found = learned(model)
        replicas_are_equal(model)
        check(found > 0.5 * stock, name, plan.get("pipeline"), found, stock)
        share = model.gradflow.exchange.sent_bytes / dense
        check(0 < share < SENT[name], name, share)
        model.gradflow.close()

    ranks, elems = dist.get_world_size(), sum(p.numel() for p in build().parameters())
    dense = 40 * 4 * elems * 2 * (ranks - 1) / ranks
    stock = learned(DDP(build()))
    check(stock > 0.2, stock)
    for name in SENT:
        if name in SELECTIONS:
            learns(name, rule(name), momentum=0.0)
        else:
            learns(name, whole(build(), codec=name))
    for name, codec in (("topk", "f16"), ("gtopk", "q8")):
        learns(name, {**whole(build(), codec=codec), "selection": SELECTIONS[name]})
    for name in (name for name in FACTS if FACTS[name].get("ddp_stale")):
        learns(name, rule(name, 2, 4))
    learns("f16", {**whole(build(), codec="f16"), "pipeline": {"staleness": 2, "warmup_steps": 0}})


class Weight(nn.Module):
    """Its gradient is the weight itself."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 1))

    def forward(self):
        return (self.weight ** 2 / 2).sum()


def stale():
    """The weights at which gradients are taken, w' = w - .1 w of the step before."""
    def weights(steps, staleness, warmup, **how):
        model = gradflow.ddp(Weight(), rule(None, staleness, warmup), **how)
        optimizer, found = torch.optim.SGD(model.parameters(), lr=0.1), []
        for _ in range(steps):
            found.append(round(model.module.weight.item(), 4))
            model().backward()
            optimizer.step()
            optimizer.zero_grad()
        model.gradflow.close()
        return found

    check(weights(4, 1, 0) == [1, .9, .81, .729])
    found = weights(8, 2, 0)
    check(found == [1, 1, .9, .8, .71, .63, .559, .496], found)
    # two synchronous steps, then the pipeline fills again
    found = weights(6, 2, 2)
    check(found == [1, .9, .81, .81, .729, .648], found)
    # the same in epochs of four steps
    check(weights(6, 2, {"epochs": .5}, epoch_steps=4) == found)
    for view in (False, True):  # every step's means, a step later, as buckets change
        stock, model = [wrap(build(), bucket_cap_mb=0.02, gradient_as_bucket_view=view)
                        for wrap in (DDP, lambda m, **how: gradflow.ddp(m, rule(None, 2), **how))]
        former = [torch.zeros_like(p) for p in model.parameters()]
        for step in range(6):
            for m in (stock, model):
                m.zero_grad()
                loss(m, step).backward()
            made = [p.grad.clone() for p in stock.parameters()]
            for got, wanted in zip(model.parameters(), former):
                check((got.grad - wanted).abs().max() < 1e-6, view, step)
            former = made
        model.gradflow.close()
    raises(lambda: gradflow.ddp(build(), rule(None, 3)), "/pipeline/staleness", "1 or 2", "3")
    raises(lambda: gradflow.ddp(build(), rule(None, 2, {"epochs": 2})), "/pipeline/warmup_steps",
           "epochs beside epoch_steps", '{"epochs": 2}')
    raises(lambda: gradflow.ddp(build(), rule(None, 2, {"run_share": .1})), "warmup_steps")
    # a selection's warm-up, too
    csc = rule("csc")
    csc["selection"] = {**csc["selection"], "warmup_steps": {"epochs": 1}}
    gradflow.ddp(build(), csc, momentum=.9, epoch_steps=3).gradflow.close()
    raises(lambda: gradflow.ddp(build(), csc, momentum=.9), "warmup_steps", "want a number of steps")
    topk = rule("topk")
    topk["selection"] = {**topk["selection"], "warmup_densities": [.5]}
    for epoch_steps in 0, 3:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            gradflow.ddp(build(), topk, epoch_steps=epoch_steps).gradflow.close()
        check(any("warmup_densities count epochs" in str(w.message) for w in told) ==
              (not epoch_steps and not rank()), epoch_steps, [str(w.message) for w in told])
    # halves, whose second part would end in the caller's forward pass
    split = whole(build(), (2, 5, 7))
    split["messages"][0]["half"] = "split"
    raises(lambda: gradflow.ddp(build(), split), 'half "all"', "split")


def judged():
    """Rank 0 tells what a plan wants of the optimiser, once."""
    makers = {"momentum": momentum, "adamw": adamw, "grouped": grouped}
    judged = [(name, 1, makers[row["optimizer"]], row.get("text")) for name, facts in FACTS.items()
              for row in facts.get("judged", [])]
    for method, late, make, wanted in judged + [(None, 2, momentum, "SGD 0.2 of a rate that suits dense gradients"),
                                                (None, 2, adamw, None)]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = train(gradflow.ddp(build(), rule(method, late)), make, steps=2)
            model.gradflow.close()
        found = [str(w.message) for w in told if "want of" in str(w.message)]
        check(len(found) == bool(wanted and not rank()) and all(wanted in f for f in found), method, found)


def file():
    """Rank 0 reads the plan's file, and buckets are the plan's where PyTorch can."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        plan = whole(build(), (2, 5, 7))
        if rank() == 0:
            json.dump(plan, f)
            f.flush()
        name = f.name if rank() == 0 else "/nonexistent"
        model = gradflow.ddp(build(), name)
        train(model)
        x = model.gradflow.exchange
        check(x.messages == 3, x.messages)
        check(distance(model, train(DDP(build()))) == 0, "not DDP's result")
        buckets = model.gradflow.buckets
        if "bucket_cap_mb_list" in DDP.__init__.__code__.co_varnames:
            check([len(b.names) for _, b in sorted(buckets.items())] ==
                  [m["last"] + 1 - m["first"] for m in plan["messages"]],
                  [b.names for b in buckets.values()])
            before = x.copied_bytes
            train(model)
            check_copies(model, x.copied_bytes - before, 6)


def resumed():
    """A job that stops after 5 steps and goes on is one that never stopped."""
    plans_of = {"none": None, "q8": whole(build(), codec="q8"),
                **{method: rule(method) for method in SELECTIONS},
                "stale": rule(None, 2), "stale gtopk": rule("gtopk", 2, 2)}
    for kind, plan in plans_of.items():
        arguments = {"bucket_cap_mb": 0.02}
        straight = gradflow.ddp(build(), plan, **arguments)
        train(straight, momentum, steps=5)
        saved = io.BytesIO()
        torch.save((straight.module.state_dict(), straight.gradflow.state_dict()), saved)
        train(straight, momentum, steps=5, first=5)
        saved.seek(0)
        parameters, state = torch.load(saved)
        resumed_model = build(seed=2)
        resumed_model.load_state_dict(parameters)
        model = gradflow.ddp(resumed_model, plan, **arguments)
        model.gradflow.load_state_dict(state)
        check(model.gradflow.exchange.steps == 5, model.gradflow.exchange.steps)
        train(model, momentum, steps=5, first=5)
        check(distance(straight, model) == 0, kind, distance(straight, model))
        if kind in SELECTIONS:
            raises(lambda: model.gradflow.load_state_dict({**state, "ranks": 99}), "ranks", "99")
            raises(lambda: model.gradflow.load_state_dict({**state, "plan": None}), "plan")
            raises(lambda: model.gradflow.load_state_dict({**state, "arrays": {}}), "arrays")
            model.gradflow.exchange.drop()
            held = [a for n, a in model.gradflow.exchange.arrays().items() if "residual" in n]
            check(all(not a.any() for a in held), "drop")
        straight.gradflow.close()
        model.gradflow.close()


def refusals():
    """The line names what is wrong and what to do, on every rank."""
    plan = whole(build())
    other = nn.Sequential(nn.Linear(3, 4))
    raises(lambda: gradflow.ddp(other, plan), "plan of this model", "lacks 0.weight and 1 more",
           "has outer.bias and 6 more")
    plan["tensors"][0]["count_elems"] += 1
    del plan["tensors"][0]["shape"]
    raises(lambda: gradflow.ddp(build(), plan), "outer.bias", "4 elements", "5")
    plan["tensors"][0]["name"] = []
    raises(lambda: gradflow.ddp(build(), plan), "/tensors/0/name: want a string")
    with tempfile.NamedTemporaryFile("w") as deep:
        deep.write("[" * 200_000)
        deep.flush()
        raises(lambda: gradflow.ddp(build(), deep.name), "want JSON")
    raises(lambda: gradflow.ddp(build(), {**whole(build(), ranks=2), "pipeline": []}),
           "/pipeline: want an object, got an array")
    raises(lambda: gradflow.State(DDP(build()), {**whole(build()), "messages": [{}]}), "/messages/0")
    raises(lambda: gradflow.ddp(build(), {**whole(build()), "messages": [{}]}), "/messages/0")
    raises(lambda: gradflow.ddp(build(), {"format": build}), "no JSON")
    raises(lambda: gradflow.ddp(build(), whole(build(), ranks=7)), "ranks", "7")
    raises(lambda: gradflow.ddp(build(), "/nonexistent/plan.json"), "/nonexistent/plan.json")
    raises(lambda: gradflow.ddp(build(), {"format": "gf-plan", "version": 1}), "plan")
    raises(lambda: gradflow.State(build()), "DistributedDataParallel", "Net")
    for wrapped in (DDP(build()), gradflow.ddp(build()), nn.Sequential(DDP(build()))):
        raises(lambda: gradflow.ddp(wrapped), "already", "gradflow.State(model, plan)")
    raises(lambda: gradflow.State(DDP(DDP(build()))), "already", ".module")
    again = DDP(gradflow.ddp(build()))
    raises(lambda: loss(again, 0), "wrapped in DistributedDataParallel again", "prepare")
    model = DDP(build())
    raises(lambda: gradflow.State(model, momentum=0.1 * rank()), "momentum")
    model = gradflow.ddp(build())
    second = DDP(build(2))
    second.register_comm_hook(model.gradflow, gradflow.hook)
    raises(lambda: loss(second, 0).backward(), "State of its own for each model")
    train(model)
    model.gradflow.close()
    raises(lambda: loss(model, 0).backward(), "exchange")
    own = [dist.new_group([r]) for r in range(dist.get_world_size())][rank()]
    model = gradflow.ddp(build(branches=True), process_group=own, bucket_cap_mb=0.0005)
    for step in (0, 0, 0, 1):  # even ranks leave the branch out of the last
        model.zero_grad()
        loss(model, step, step=step).backward()
    if rank() % 2 == 0 and torch.__version__ >= "2":  # 1.13 gives no bucket before
        raises(lambda: loss(model, 0), "side.weight and 1 more", "find_unused_parameters=True")
    model = gradflow.ddp(build(branches=True), process_group=own)  # one bucket
    loss(model, 0, step=1).backward()
    if rank() % 2 == 0:
        raises(lambda: loss(model, 0), "side.weight and 1 more", "find_unused_parameters=True")
    model = gradflow.ddp(build())
    model.module.late = nn.Parameter(torch.ones(3))
    model.module.scale.requires_grad_(False)
    raises(lambda: loss(model, 0), "also trains late", "does not train scale", "wrap it after")
    model = train(gradflow.ddp(build()))
    model.module.scale.requires_grad_(False)  # too late to be looked for at once
    loss(model, 0).backward()
    raises(lambda: loss(model, 0), "does not train scale", "wrap it after")
    model = train(gradflow.ddp(build()))
    model.module.outer = nn.Linear(40, 4)
    raises(lambda: loss(model, 0), "also trains outer.weight and 1 more")
    model = build()
    model.scale.requires_grad_(False)
    model = train(gradflow.ddp(model))
    model.module.scale.requires_grad_(True)
    raises(lambda: loss(model, 0), "also trains scale", "wrap it after")
    if torch.__version__ >= "2.1":
        model = train(gradflow.ddp(build()))
        model.module.load_state_dict({n: t.clone() for n, t in model.module.state_dict().items()}, assign=True)
        raises(lambda: loss(model, 0), "also trains ", "wrap it after")
    late = {**whole(build()), "pipeline": {"staleness": 2, "warmup_steps": 0}}
    raises(lambda: gradflow.ddp(build(), late, find_unused_parameters=True), "/pipeline/staleness", "find_unused_parameters")
    raises(lambda: gradflow.ddp(build()).gradflow.take(late), "/pipeline/staleness", "take turns")
    raises(lambda: gradflow.ddp(build(), late).gradflow.take(None), "/pipeline/staleness", "take turns")
    raises(lambda: gradflow.ddp(build(), transport="nccl" if rank() else None), "transport: want ucx")


def rescaled():
    """What is under way, and what is held back, follows a loss scale that changes."""
    found = []
    for factor in (1, 0.5):
        model = gradflow.ddp(build(), {**whole(build()), "pipeline": {"staleness": 2, "warmup_steps": 0}})
        for step in range(4):
            model.zero_grad()
            (loss(model, 0, step=step) * (factor if step > 1 else 1)).backward()
            if step == 1:
                model.gradflow.rescale(factor)
        found.append([p.grad / factor for p in model.parameters()])
        model.gradflow.close()
    check(all(torch.allclose(a, b, rtol=1e-5, atol=1e-9) for a, b in zip(*found)), found)


class Half:
    """A bucket as bf16_compress_wrapper makes it."""

    def __init__(self, bucket):
        self.bucket = bucket

    def buffer(self):
        return self.bucket.buffer().bfloat16()

    def __getattr__(self, name):
        return getattr(self.bucket, name)


def arguments():
    """A wrong argument is named, and what would be right."""
    from datetime import timedelta
    raises(lambda: gradflow.ddp([build()]), "gradflow.ddp", "torch.nn.Module", "list")
    raises(lambda: gradflow.ddp(build(), tune=1), "tune", "dictionary", "1")
    raises(lambda: gradflow.ddp(build(), mixed_precision=object()), "mixed_precision", "autocast")
    raises(lambda: gradflow.ddp(build(), timeout_s=timedelta(0, 5)), "timeout_s", "timedelta")
    raises(lambda: gradflow.ddp(build(), momentum="0.9"), "momentum", "'0.9' (str)")
    raises(lambda: gradflow.ddp(nn.Linear(2, 2, device="meta")), "weight", "meta", "to_empty")
    raises(lambda: gradflow.ddp(build(), 7), "plan", "a file's name, a text or a dictionary", "int")
    raises(lambda: gradflow.Record(DDP(build())), "gradflow.Record", "gradflow.ddp")
    raises(lambda: gradflow.ddp(build(), epoch_steps=-1), "epoch_steps: want 0 or more, got -1")
    raises(lambda: gradflow.ddp(build(), epoch_steps=1.5), "epoch_steps: want a whole number, got 1.5")
    raises(lambda: gradflow.ddp(build(), tune={"stepz": 3}), "tune: want steps, budget_s", "'stepz'")
    raises(lambda: gradflow.ddp(build(), tune={"steps": 0}), "tune: steps: want 1 or more")
    raises(lambda: gradflow.ddp(build(), tune={"margin": "1"}), "tune: margin: want a number")
    raises(lambda: gradflow.ddp(build(), library="libm.so.6"), "libm.so.6: want the libgradflow")
    parts = build()
    parts.scale._st_info = None  # as tensor parallel under DistributedDataParallel has it
    raises(lambda: gradflow.ddp(parts), "tensor parallel", "gradflow.hsdp")
    narrow = DDP(build())
    narrow.register_comm_hook(gradflow.State(narrow), lambda state, bucket: gradflow.hook(
        state, Half(bucket)))
    raises(lambda: loss(narrow, 0).backward(), "want a gradient of torch.float32", "bf16_compress_wrapper")
    outside = gradflow.ddp(nn.ModuleList([build(), nn.Linear(2, 2)])[0], find_unused_parameters=True)
    check("freeze them" in gradflow_state._remedy(outside))
    raises(lambda: gradflow.Exchange({"a": torch.ones(2)}, ["plan"]), "plan", "dictionary", "list")
    if hasattr(torch._dynamo.config, "optimize_ddp") if torch.__version__ >= "2.4" else False:
        with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
            raises(lambda: gradflow.ddp(build()), "optimize_ddp", "ddp_optimizer")
    exchange = gradflow.Exchange({"a": torch.ones(2)}, rule("topk"))
    raises(lambda: exchange.post(0, torch.ones(3)), "tensor 0 (a)", "2 elements of f32", "3 of f32")
    raises(lambda: exchange.post(0, torch.ones(2).half()), "got 2 of f16")
    raises(lambda: exchange.post(0, torch.ones(2, dtype=torch.int32)), "no known type")
    raises(lambda: exchange.post(0, torch.ones(4)[::2]), "in one piece", "contiguous()")
    exchange.close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plan = rule("csc")
        plan["selection"]["decay"] = "momentum"
        gradflow.ddp(build(), plan).gradflow.close()
    check(rank() or "momentum=" in str(told[0].message), told)
    check(rank() or told[0].filename == __file__, told)  # the job's line


def causes():
    """Each line has the remedy of its cause."""
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x.clone()

        @staticmethod
        def backward(*_):
            raise RuntimeError("of the job's own")

    for how in ({}, {"find_unused_parameters": True}):
        model = gradflow.ddp(build(), bucket_cap_mb=0.0005, **how)
        train(model, steps=3)
        inner = model.module.outer.register_forward_pre_hook(lambda _, x: (Fails.apply(x[0]),))
        raises(lambda: loss(model, 0).backward(), "of the job's own")
        inner.remove()
        raises(lambda: loss(model, 0), "if an exception has ended that backward, wrap the model anew")
    model = gradflow.ddp(build())
    train(model, steps=1)
    model.to(torch.bfloat16)
    raises(lambda: model(torch.ones(8, 3, 8, 8, dtype=torch.bfloat16)),
           "want torch.float32, as when the model was wrapped", "before wrapping it")
    model = gradflow.ddp(build(branches=True), static_graph=True, bucket_cap_mb=0.0005)
    for step in (0, 0, 0):
        loss(model, step, step=step).backward()
    if rank() % 2 == 0:
        try:
            loss(model, 0, step=1).backward()
            loss(model, 0, step=1)
        except RuntimeError as e:  # some versions of PyTorch say it themselves
            check("find_unused_parameters=True in place of" in str(e) or "gradflow" not in str(e), str(e))


def again():
    """A second backward is told of, once; what is as good as one is not."""
    def told(model, *passes):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for backward in passes:
                backward(model)
        return [str(w.message) for w in found if "gradflow" in str(w.message)]

    def twice(model):
        made = loss(model, 0)
        made.backward(retain_graph=True)
        made.backward()

    def summed(model):
        (loss(model, 0) + loss(model, 1)).backward()

    def accumulated(model):
        with model.no_sync():
            loss(model, 0).backward()
            later = loss(model, 1)
        (later + loss(model, 2)).backward()
        loss(model, 3)  # of which nobody wants gradients

    model = gradflow.ddp(build(), bucket_cap_mb=0.02)
    check(not told(model, *[summed, accumulated] * 4))
    for found in (told(model, twice), told(gradflow.ddp(build()), twice)):
        check(len(found) == 1 and "is not exchanged" in found[0] and "no_sync" in found[0], found)


def hooks_on(model):
    return sum(len(getattr(p, kind, None) or {}) for p in model.parameters()
               for kind in ("_post_accumulate_grad_hooks", "_backward_hooks"))


def lets_go():
    """Each entry that registers hooks says what it holds, and lets go of it."""
    for entry in (gradflow.ddp, gradflow.hsdp, gradflow.State, gradflow.Exchange, gradflow.Periodic,
                  gradflow.Record, gradflow.Shards, gradflow.Tuner, gradflow.profile):
        check("hold" in entry.__doc__, entry)
    model = build()

    def life(kind):
        wrapped = gradflow.ddp(model, tune=kind == "tuned" and {"steps": 50})
        record = gradflow.Record(wrapped) if "record" in kind else None
        train(wrapped, steps=2)
        if "close" in kind:
            if record:
                record.close()
                check(not wrapped._forward_hooks)
            wrapped.gradflow.close()
            check(not hooks_on(model), kind, hooks_on(model))
        return [weakref.ref(x) for x in (wrapped, wrapped.gradflow, record or wrapped.gradflow.exchange)]

    for kind in ("plain", "closed", "tuned", "recorded", "record closed"):
        held = life(kind)
        gc.collect()
        check(not any(reference() for reference in held), kind, held)
        check(not hooks_on(model), kind, hooks_on(model))

    def profiled(call):
        own = build()
        call(own)
        check(not hooks_on(own))
        return weakref.ref(own)

    def fails(own):
        def loss_of(wrapped):
            raise OSError(str(loss(wrapped, 0)))
        raises(lambda: gradflow.profile(own, loss_of, "model.json"))

    for call in (lambda own: gradflow.profile(own, lambda m: loss(m, 0), "model.json", steps=1), fails):
        reference = profiled(call)
        gc.collect()
        check(reference() is None)


def alone():
    """A forward of one rank alone, for a picture say, enters nothing that waits for the others:
    after any early step, and while a plan is made."""
    for tune, steps in [(False, n) for n in range(2, 6)] + [({"steps": 2, "network": "none.json"}, 9)]:
        model = gradflow.ddp(build(), tune=tune, bucket_cap_mb=0.02)
        for step in range(steps):
            loss(model, step).backward()
            if rank() == 0 and (tune or step == steps - 1) and step:
                loss(model, step)
            dist.barrier()
        check(not tune or "all stays as it was" in model.gradflow.tuner.report(),
              tune and model.gradflow.tuner.report())
        train(model, steps=2)
        model.gradflow.close()


def left():
    """What an exception leaves behind, as a notebook's last one does, never reaches the next
    model."""
    kept = []

    def failing(call, *kinds):
        try:
            call()
        except kinds as e:
            kept.append(e)
            return
        raise AssertionError("did not fail")

    def breaks(model):
        raise KeyError(str(loss(model, 0)))

    failing(lambda: DDP(build().requires_grad_(False)), RuntimeError)
    failing(lambda: torch.optim.SGD(build().parameters(), lr=-1), ValueError)
    failing(lambda: torch.optim.AdamW(build().parameters(), betas=(2, 2)), ValueError)
    module = build()
    failing(lambda: gradflow.profile(module, breaks, "model.json"), KeyError)
    failing(lambda: gradflow.ddp(module, "/nonexistent"), OSError, RuntimeError)
    model = gradflow.ddp(module, rule("topk"))
    failing(lambda: DDP(model, bucket_cap_mb="none"), TypeError, ValueError, RuntimeError)
    train(model)
    replicas_are_equal(model)
    stock = train(DDP(build()))
    module = build()
    failing(lambda: gradflow.profile(module, breaks, "model.json"), KeyError)
    check(distance(train(gradflow.ddp(module)), stock) < 1e-6)


def checkpointed():
    """torch.distributed.checkpoint keeps what each rank holds back, and a fresh job goes on."""
    try:
        import torch.distributed.checkpoint as dcp
        dcp.load  # pylint: disable=pointless-statement
    except (ImportError, AttributeError):
        return
    # an optimiser of its own in each part: without a state
    part = {"make": lambda model: torch.optim.SGD(model.parameters(), lr=0.02)}
    for number, plan in enumerate((rule("gtopk"), rule("topk", 2), None)):
        forms = {"as it is": lambda m: m.gradflow, "its state": lambda m: m.gradflow.state_dict()}
        straight = train(gradflow.ddp(build(), plan), steps=5, **part)
        for form, of in forms.items():
            dcp.save({"model": straight.module.state_dict(), "gradflow": of(straight)},
                     checkpoint_id=f"checkpoint{number}{form}")
        train(straight, steps=4, first=5, **part)
        for form, of in forms.items():
            model = gradflow.ddp(build(), plan)
            state = {"model": model.module.state_dict(), "gradflow": of(model)}
            dcp.load(state, checkpoint_id=f"checkpoint{number}{form}")
            model.module.load_state_dict(state["model"])
            if form == "its state":
                model.gradflow.load_state_dict(state["gradflow"])
            check(distance(train(model, steps=4, first=5, **part), straight) == 0, form, number)
            raises(lambda: model.gradflow.load_state_dict({f"rank {1 - rank()}": ({},)}),
                   f"want that of rank {rank()}", f"got that of rank {1 - rank()}")
            model.gradflow.close()
        straight.gradflow.close()


def defaults():
    """A job's default type and the group's time-out: shares of ranks are counted in f32."""
    if torch.__version__ >= "2":  # with 1.13's gloo, join() has no bf16
        torch.set_default_dtype(torch.bfloat16)
    try:
        model = gradflow.ddp(nn.Linear(4, 1, bias=False, dtype=torch.float32))
        for p in model.parameters():
            p.data.fill_(1)
        with model.join(divide_by_initial_world_size=False):
            for _ in range(2 if rank() else 1):
                model.zero_grad()
                model(torch.full((1, 4), 1 / 3, dtype=torch.float32)).sum().backward()
                check(torch.equal(model.module.weight.grad, torch.full((1, 4), 1 / 3, dtype=torch.float32)),
                      model.module.weight.grad)
    finally:
        torch.set_default_dtype(torch.float32)
    from datetime import timedelta
    group = dist.new_group(timeout=timedelta(seconds=10))
    dist.barrier()
    model = gradflow.ddp(build(), process_group=group)
    train(model, steps=3)
    if rank() == 0:
        begun = time.monotonic()
        raises(lambda: train(model, steps=1), "gradflow")
        check(time.monotonic() - begun < 120)
    dist.barrier()


def copied():
    """A copy of the model, and one in a file, are DistributedDataParallel's, without the
    hook."""
    model = train(gradflow.ddp(build()))
    saved = io.BytesIO()
    torch.save(model, saved)
    saved.seek(0)
    loaded = torch.load(saved, **{"weights_only": False} if torch.__version__ >= "2" else {})
    other = copy.deepcopy(model)
    check(distance(other, model) == 0 and distance(train(other), train(loaded)) == 0)
    replicas_are_equal(other)
    raises(lambda: other.gradflow.state_dict(), "state_dict", "gradflow.ddp")
    model = gradflow.ddp(build(), tune={"steps": 1000})
    record = gradflow.Record(model)
    torch.save(model, io.BytesIO())
    other = copy.deepcopy(model)
    loss(other, 0).backward()
    check(record.start is None and model.gradflow.tuner.start is None)


if __name__ == "__main__":
    forked.main(globals())
