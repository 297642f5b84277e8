#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.ddp on GPUs: check_gpu.py BACKEND RANKS CASE... Cases run in turns in RANKS
processes that meet over gloo or nccl; with fewer GPUs than ranks these share them. What
a case compares with is DistributedDataParallel, or the hook on CPUs. One that fails
ends in an exception. GF_DEVICE=cpu runs the same on CPUs. Exit status 77: no GPU."""
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

if "GF_SOURCE" in os.environ:
    sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import gradflow  # noqa: E402

KIND = os.environ.get("GF_DEVICE", "cuda")
CPU = torch.device("cpu")


def device():
    return torch.device(KIND, rank() % torch.cuda.device_count()) if KIND == "cuda" else CPU


def rank():
    return dist.get_rank()


def say(text):
    if rank() == 0:
        print("   ", text, flush=True)


def check(holds, *found):
    if not holds:
        raise AssertionError(found)


class Given(nn.Module):
    """Parameters whose gradients are given, to the same bits on every device. In the bad
    step rank 0 has one that is infinite."""

    def __init__(self, kinds=(torch.float32,), bad=None):
        super().__init__()
        self.bad = bad
        for i, shape in enumerate(((300, 200), (50,), (4000,), (128, 3, 3, 3), (1,)) * 2):
            kind = kinds[i % len(kinds)]
            self.register_parameter(f"p{i}", nn.Parameter(torch.zeros(shape, dtype=kind)))

    def forward(self, step):
        generator = torch.Generator().manual_seed(1000 * rank() + step)
        total = 0
        for p in self.parameters():
            factor = torch.randn(p.shape, generator=generator).to(p.dtype).to(p.device)
            if step == self.bad and rank() == 0:
                factor.view(-1)[0] = float("inf")
            total = total + (p.float() * factor.float()).sum()
        return total


def given(place, plan=None, kinds=(torch.float32,), steps=6, wrap=gradflow.ddp, bad=None,
          **arguments):
    """The gradients that each step gives back, on the host, and the model."""
    model = Given(kinds, bad).to(place)
    model = wrap(model, **({"plan": plan} if wrap is gradflow.ddp else {}), bucket_cap_mb=0.1,
                 **arguments)
    found = []
    for step in range(steps):
        model.zero_grad()
        model(step).backward()
        found.append([p.grad.cpu().clone() for p in model.parameters()])
    if wrap is gradflow.ddp:
        model.gradflow.close()
    return found, model


def distance(a, b):
    """Of the steps' gradients, relative to the largest of a step; 0: the same bits."""
    worst = 0
    for one, two in zip(a, b):
        size = max(x.float().abs().max() for x in one)
        worst = max([worst] + [((x.float() - y.float()).abs().max() / size).item()
                               for x, y in zip(one, two)])
    return worst


FACTS = {path.stem: json.loads(path.read_text(encoding="utf-8"))
         for path in sorted(pathlib.Path(__file__).parent.glob("../entries/selection/*.json"))}
SELECTIONS = {name: {"method": name, **facts["gpu"]} for name, facts in FACTS.items() if "gpu" in facts}


def rule(selection=None, staleness=1, warmup=0):
    plan = {"format": "gf-plan", "version": 1, "system": "auto", "policy": "threshold",
            "rule": {"threshold_bytes": 100000, "lanes": 1,
                     "algorithms": [{"min_bytes": 0, "algorithm": "ring"}]},
            "pipeline": {"staleness": staleness, "warmup_steps": warmup}}
    if selection:
        plan["selection"] = SELECTIONS[selection]
    return plan


def whole(codec, algorithm="ring", ends=(3, 4, 8, 10)):
    """A plan for Given that cuts and joins buckets."""
    named = list(reversed(list(Given().named_parameters())))
    tensors = [{"name": n, "count_elems": p.numel(), "dtype": "f32", "ready_s": 0.0,
                "shape": list(p.shape), "type": "merged"} for n, p in named]
    for end in ends:
        tensors[end - 1]["type"] = "normal"
    times = dict.fromkeys(("forward_s", "backward_s", "update_s"), 0.0)
    return {"format": "gf-plan", "version": 1, "system": "auto", "policy": "single",
            "ranks": dist.get_world_size(), "lanes": 1, "model": {"name": "net", **times},
            "tensors": tensors,
            "messages": [{"first": first, "last": end - 1, "algorithm": algorithm,
                          "codec": codec, "mode": "normal"}
                         for first, end in zip((0, *ends), ends)]}


# --- cases ---

def dense():
    """The means of DistributedDataParallel over the same backend."""
    for kinds in ((torch.float32,), (torch.float16,), (torch.bfloat16,),
                  (torch.float32, torch.bfloat16)):
        wanted, _ = given(device(), wrap=DDP, kinds=kinds)
        for view in (False, True):
            found, model = given(device(), kinds=kinds, gradient_as_bucket_view=view)
            off = distance(wanted, found)
            say(f"{kinds[0]} view {view}: off by {off:.2g}, {type(model.gradflow.way).__name__}")
            check(off <= (0 if dist.get_world_size() == 1 or kinds[0] == torch.float32 else 1e-2),
                  kinds, view, off)


def codecs():
    """Messages of a plan that cut and join buckets, in each codec."""
    wanted, _ = given(device(), wrap=DDP)
    for codec, most in (("f32", 1e-6), ("f16", 1e-3), ("bf16", 1e-2), ("trunc16", 2e-2),
                        ("q8", 2e-2), ("fp8", 2e-1)):
        for algorithm in ("ring", "library")[:1 + (codec == "f32" and dist.get_backend() == "nccl")]:
            found, model = given(device(), whole(codec, algorithm))
            off = distance(wanted, found)
            say(f"{codec} {algorithm}: off by {off:.2g}, {type(model.gradflow.way).__name__}")
            check(off < most, codec, off)


def selections():
    """The bits of the same hook on CPUs, also of stale gradients."""
    plans = [rule(s) for s in SELECTIONS] + [whole("q8"), whole("f16"), rule()]
    plans += [rule("gtopk", 2, 2), rule(None, 2)]
    for plan in plans:
        wanted, _ = given(CPU, plan)
        found, model = given(device(), plan, **({"transport": "ucx"} if KIND == "cuda" else {}))
        off = distance(wanted, found)
        say(f"{plan.get('selection', {}).get('method', 'dense')}, K = "
            f"{plan.get('pipeline', {}).get('staleness', 1)}: off by {off:.2g}, "
            f"{type(model.gradflow.way).__name__}")
        check(off == 0, plan, off)


def between():
    """Selections from GPU to GPU: the bits of the way by the host, and NaN in all of a step
    that is not finite."""
    from gradflow.exchange import runs_between_gpus
    plans = {s: rule(s) for s in SELECTIONS}
    plans = {s: p for s, p in plans.items() if runs_between_gpus(json.dumps(p))}
    check(set(plans) == {name for name in FACTS if FACTS[name].get("gpu_half")}, *plans)
    plans["gtopk, K = 2"] = rule("gtopk", 2, 2)
    for name, plan in plans.items():
        for kinds in ((torch.float32,), (torch.float16,), (torch.float32, torch.bfloat16)):
            wanted, _ = given(device(), plan, kinds, bad=3, transport="ucx")
            found, model = given(device(), plan, kinds, bad=3)
            check(KIND == "cpu" or model.gradflow.way.stream, name)
            late = "K" in name
            check(all(g.isnan().all() for g in found[3 + late]), name, kinds)
            off = distance(*([[g.nan_to_num(nan=1.0) for g in step] for step in steps]
                             for steps in (wanted, found)))
            say(f"{name} {kinds[0]}: off by {off:.2g}, {type(model.gradflow.way).__name__}")
            check(off == 0, name, kinds, off)


def stale():
    """K = 2 on the device is K = 1 a step later."""
    wanted, _ = given(device(), rule())
    found, model = given(device(), rule(None, 2, 2))
    zeros = [torch.zeros_like(g) for g in wanted[0]]
    wanted = wanted[:2] + [zeros] + wanted[2:-1]
    off = distance(wanted, found)
    say(f"K = 2: off by {off:.2g}, {type(model.gradflow.way).__name__}")
    check(off < 1e-6, off)


def job():
    """no_sync, autocast with a loss scale, clipping, fused AdamW, buckets as views."""
    def net():
        torch.manual_seed(1)
        return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                             nn.MaxPool2d(4), nn.Flatten(), nn.Linear(32 * 64, 500), nn.ReLU(),
                             nn.Linear(500, 10))

    def train(wrap, view, kind):
        model = wrap(net().to(device()).to(memory_format=torch.channels_last), bucket_cap_mb=1,
                     gradient_as_bucket_view=view)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        scaler = torch.amp.GradScaler(KIND, init_scale=2.0 ** 22, enabled=kind == torch.float16)
        generator = torch.Generator().manual_seed(rank())
        for _ in range(8):
            for part in range(2):
                x = torch.randn(16, 3, 32, 32, generator=generator).to(device())
                labels = torch.randint(10, (16,), generator=generator).to(device())
                with model.no_sync() if part == 0 else contextlib.nullcontext():
                    with torch.autocast(KIND, kind):
                        value = nn.functional.cross_entropy(model(x), labels)
                    scaler.scale(value).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        if wrap is gradflow.ddp:
            model.gradflow.close()
        return [[p.detach().cpu() for p in model.parameters()]], scaler.get_scale()

    for kind in (torch.bfloat16,) + (torch.float16,) * (KIND == "cuda"):
        wanted, scale = train(DDP, False, kind)
        for view in (False, True):
            found, other = train(gradflow.ddp, view, kind)
            off = distance(wanted, found)
            say(f"{kind} view {view}: off by {off:.2g}, loss scale {scale:g} and {other:g}")
            # with views the norms of clipping are added up in another order
            check(off == 0 or view and off < 1e-6, off)
            check(scale == other, scale, other)


def resnet():
    try:
        from torchvision.models import resnet50
        return resnet50()
    except ImportError:
        return nn.Sequential(*[nn.Conv2d(3 if i == 0 else 64, 64, 3, stride=2) for i in range(5)],
                             nn.Flatten(), nn.LazyLinear(1000))


def batch():
    generator = torch.Generator().manual_seed(rank())
    size = (64, 3, 224, 224) if KIND == "cuda" else (2, 3, 64, 64)
    x = torch.randn(size, generator=generator).to(device(), memory_format=torch.channels_last)
    return x, torch.randint(1000, (size[0],), generator=generator).to(device())


def made():
    model = resnet().to(device())
    model(batch()[0][:2])
    return model.to(memory_format=torch.channels_last)


def steps(model, count):
    """Their median time in seconds."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x, labels = batch()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        with torch.autocast(KIND, torch.bfloat16):
            value = nn.functional.cross_entropy(model(x).float(), labels)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        if KIND == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[count // 4:])


def speed():
    """Beside DistributedDataParallel, in turns."""
    arguments = {"gradient_as_bucket_view": True}
    contestants = {"DDP": DDP(made(), **arguments), "gradflow": gradflow.ddp(made(), **arguments)}
    contestants["25 MiB"] = gradflow.ddp(made(), bucket_cap_mb=25, **arguments)
    if KIND == "cuda":
        contestants["by host"] = gradflow.ddp(made(), transport="ucx", **arguments)
        contestants["late"] = gradflow.ddp(made(), rule(None, 2), **arguments)
    times = {n: [] for n in contestants}
    for _ in range(4):
        for n, model in contestants.items():
            times[n].append(steps(model, 12))
    base = times["DDP"][1:]
    for n in contestants:
        own = times[n][1:]
        ratio = statistics.median(a / b for a, b in zip(own, base))
        say(f"{n} {statistics.median(own) * 1e3:.2f} ms a step, {ratio:.3f} of DDP's")


def host():
    """What the hook takes of the host's time."""
    class Timed:
        def __init__(self, called, total):
            self.called, self.total = called, total

        def __call__(self, *arguments):
            start = time.perf_counter()
            try:
                return self.called(*arguments)
            finally:
                self.total[0] += time.perf_counter() - start

    for cap in (None, 25):
        model = gradflow.ddp(made(), gradient_as_bucket_view=True,
                             **({"bucket_cap_mb": cap} if cap else {}))
        steps(model, 6)
        state, spent = model.gradflow, {}
        for owner, name in ((state, "exchange_bucket"), (state.exchange, "post_many"),
                            (state, "_finish"), (state.exchange, "wait")):
            spent[name] = [0.0]
            setattr(owner, name, Timed(getattr(owner, name), spent[name]))
        median = steps(model, 20)
        say(f"{len(state.buckets)} buckets, {median * 1e3:.2f} ms a step, of it " + ", ".join(
            f"{name} {total[0] / 20 * 1e6:.0f} us" for name, total in spent.items()))
        state.close()


def tuned():
    """A profile, a plan made by the running job, and its record."""
    model = made()
    x, labels = batch()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        gradflow.profile(model, lambda: nn.functional.cross_entropy(model(x), labels), path,
                         steps=5, batch=len(x))
        if rank() == 0:
            with open(path, encoding="utf-8") as f:
                found = json.load(f)["model"]
            say(f"profile: forward {found['forward_s'] * 1e3:.2f}, backward "
                f"{found['backward_s'] * 1e3:.2f} ms, {len(found['tensors'])} tensors, first at "
                f"{found['tensors'][0]['ready_s'] * 1e3:.2f}, last at "
                f"{found['tensors'][-1]['ready_s'] * 1e3:.2f} ms, device {found['device']}")
            check(found["device"] == KIND, found["device"])
    wrapped = gradflow.ddp(model, tune={"steps": 8, "budget_s": 4, "margin": -10.0})
    steps(wrapped, 2 * (5 + 8) + 2)
    for line in wrapped.gradflow.tuner.report().splitlines():
        say(line)
    check("kept" in wrapped.gradflow.tuner.report(), "no plan")
    record = gradflow.Record(wrapped)
    steps(wrapped, 8)
    for line in record.report().splitlines()[-3:]:
        say(line)
    record.close()
    wrapped.gradflow.close()


def work(own, backend, ranks, meeting, cases):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if KIND == "cuda":
        torch.cuda.set_device(own % torch.cuda.device_count())
        torch.backends.cudnn.deterministic = "speed" not in cases
    if "speed" not in cases:
        dist._DEFAULT_FIRST_BUCKET_BYTES = 20000  # so that small models have several
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=own, world_size=ranks)
    for case in cases:
        start = time.perf_counter()
        globals()[case]()
        dist.barrier()
        say(f"{case}: right, {time.perf_counter() - start:.1f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    if KIND == "cuda" and not torch.cuda.is_available():
        print("skipped: no GPU that PyTorch can use")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (sys.argv[1], int(sys.argv[2]), os.path.join(folder, "meeting"),
                        sys.argv[3:]), nprocs=int(sys.argv[2]))
