#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Traces of PyTorch's profiler, as small as the importer can read them: kineto.py KIND > FILE
makes one by this PyTorch, kineto.py TRACE [STEP...] > FILE cuts one (.json or .json.gz) to the
events that the importer looks at, of these ProfilerSteps. The cut gives the same figures.
Those in tests/data/import:
kineto-cpu.json        kineto.py cpu, by PyTorch 2.15
kineto-unmarked.json   kineto.py unmarked: without shapes and without profiler.step()
kineto-ddp.json        torchrun --nproc-per-node 2 kineto.py ddp: bf16, two micro-batches, gloo
kineto-gloo-0.json     torchrun --nproc-per-node 2 kineto.py gloo, which writes a file for each rank:
                       an all-reduce for each gradient after backward, in the order of parameters
kineto-mi250.json      kineto.py TRACE, tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz
                       of facebookresearch/HolisticTraceAnalysis
kineto-mi300-ddp.json  kineto.py TRACE 16, tests/traces/mi300/resnet_act_checkpoint.json.gz of
                       AMD-AGI/TraceLens: ResNet-18 in bf16, whose host runs 15 ms ahead
late.tar               torchrun --nproc-per-node N kineto.py late MESSAGES RANK..., by PyTorch 2.15:
                       in folders N-MESSAGES-RANK..., packed by gzip -9n; steps of DDP over gloo, of
                       3 and 24 ms, and 60 ms more on the ranks that are late"""
import gzip
import json
import os
import sys
import tempfile
import time

KEPT = ("Input Dims", "Input type", "correlation", "Sequence number", "Collective name", "dtype",
        "In msg nelems", "Group size", "Process Group Ranks")
NODE = "autograd::engine::evaluate_function: "
GRADIENT = "torch::autograd::AccumulateGrad"
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def cut(trace, steps):
    """Its events as JSON, one a line. Between two nodes of backward the first operator is
    kept, and what the host launches first and last."""
    spans = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in (
        "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", *DEVICE)]
    spans.sort(key=lambda e: (float(e["ts"]), -float(e["dur"])))
    if steps:
        marks = [e for e in spans if e["cat"] == "user_annotation" and
                 e["name"] in [f"ProfilerStep#{s}" for s in steps]]
        begin = min(float(e["ts"]) for e in marks)
        end = max(float(e["ts"]) + float(e["dur"]) for e in marks)
        spans = [e for e in spans if e["cat"] in DEVICE or begin <= float(e["ts"]) < end]
    work = {}
    for e in spans:
        if e["cat"] in DEVICE:
            work.setdefault(e["args"]["correlation"], []).append(e)
    kept, launches, covered, forward = [], [], 0, False
    for e in spans:
        name, args = e["name"], e.get("args", {})
        if e["cat"] in ("cuda_runtime", "cuda_driver"):
            if args.get("correlation") in work:
                launches.append(e)
        elif name.startswith((NODE, "ProfilerStep", "Optimizer.step")) and e["cat"] not in DEVICE:
            kept += [*bare(launches, work), e]
            launches, forward = [], False
            covered = max(covered, float(e["ts"]) + float(e["dur"]) * name.startswith(NODE))
        elif name.startswith((GRADIENT, "c10d::", "gloo:", "nccl:")) and e["cat"] not in DEVICE:
            kept.append(e)
        elif "Sequence number" in args and float(e["ts"]) >= covered and not forward:
            kept.append(e)
            forward = True
    kept += bare(launches, work)
    out = {k: v for k, v in trace.items() if k in ("schemaVersion", "record_shapes", "with_stack",
                                                "distributedInfo")}
    lines = []
    for e in sorted(kept, key=lambda e: float(e["ts"])):
        args = {k: v for k, v in e.get("args", {}).items() if k in KEPT and (
            not k.startswith("Input") or e["name"].startswith((GRADIENT, "gloo:")))}
        lines.append(json.dumps({**{k: e[k] for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur")},
                                 "name": e["name"][:80 if e["cat"] not in DEVICE else 30], "args": args}, separators=(",", ":")))
    return json.dumps(out)[:-1] + ', "traceEvents": [\n' + ",\n".join(lines) + "\n]}\n"


def bare(launches, work):
    """The first and the last of them, with what they launched; communication besides."""
    seldom = launches[:1] + launches[1:][-1:]
    for e in launches[1:-1]:
        if any("nccl" in w["name"] for w in work[e["args"]["correlation"]]):
            seldom.append(e)
    return [e for launch in seldom for e in (launch, *work[launch["args"]["correlation"]])]


def timed(torch, layers, late):
    """A model whose passes take 3 and 24 ms, and 60 ms more in forward on a rank that is late; and
    its input."""
    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(_, x, weight, seconds):
            time.sleep(seconds)
            return x * weight

        @staticmethod
        def backward(_, gradient):
            time.sleep(0.024 / layers)
            return gradient, gradient, None

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.ones(64) for _ in range(layers))

        def forward(self, x):
            for i, weight in enumerate(self.weights):
                x = Layer.apply(x, weight, 0 if i else 0.063 if late else 0.003)
            return x

    return Model(), torch.ones(64)


def made(kind, options):
    """The trace of a small job."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    x = torch.ones(16, 4)
    if kind in ("ddp", "gloo", "late"):
        dist.init_process_group("gloo")
    if kind == "late":
        model, x = timed(torch, int(options[0]), str(dist.get_rank()) in options[1:])
        model = DistributedDataParallel(model, bucket_cap_mb=1e-5)
    if kind == "ddp":
        model, x = model.bfloat16(), x.bfloat16()
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = None if kind == "unmarked" else torch.profiler.schedule(wait=1, warmup=1, active=3)

    def step():
        optimizer.zero_grad()
        if kind == "ddp":
            with model.no_sync():
                model(x).sum().backward()
        model(x).sum().backward()
        if kind == "gloo":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        optimizer.step()

    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule,
                                record_shapes=kind != "unmarked") as profiler:
        for _ in range(5 if schedule else 3):
            step()
            if schedule:
                profiler.step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            trace = json.load(f)
    if kind in ("ddp", "gloo", "late"):
        dist.barrier()
        rank = dist.get_rank()
        dist.destroy_process_group()
        if kind != "ddp":
            sys.stdout = open(f"kineto-{'-'.join([kind, *options, str(rank)])}.json", "w", encoding="utf-8")
        elif rank:
            sys.exit()
    return trace


def main():
    kind, *steps = sys.argv[1:]
    if not kind.endswith((".json", ".gz")):
        trace, steps = made(kind, steps), []
    else:
        with (gzip.open if kind.endswith(".gz") else open)(kind, "rt", encoding="utf-8") as f:
            trace = json.load(f, strict=False)
    sys.stdout.write(cut(trace, steps))


if __name__ == "__main__":
    main()
