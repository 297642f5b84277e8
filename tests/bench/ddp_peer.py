#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs inside DistributedDataParallel for tests/bench/pytorch.sh; RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT as torchrun sets them.

  ddp_peer.py JOB profile FOLDER         FOLDER/model.json, and shards.json of fully_shard's
  ddp_peer.py JOB race FOLDER STEPS      one turn of each contestant: rank 0 prints
                                         "CONTESTANT<tab>ms of a step", the median, of
                                         the rank that takes longest
  ddp_peer.py JOB losses FOLDER STEPS    each contestant's losses: "CONTESTANT<tab>every
                                         tenth of the way"

JOB is conv or transformer, trained by AdamW. Contestants are DistributedDataParallel's
and fully_shard's own ways, and gradflow.ddp without a plan and with each FOLDER/*.plan;
gradflow.shard with those of shards.
"""
import contextlib
import copy
import functools
import glob
import json
import os
import shutil
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share",
                                "python"))
import gradflow  # noqa: E402
from gradflow.measure import exchanging_nothing  # noqa: E402

ALSO = [o.split() for o in os.environ["GF_ALSO"].split(";")]  # options of plans
WARMUP = 10  # buckets are arranged anew, PowerSGD begins, the exchange follows, memory is had


class Transformer(nn.Module):
    def __init__(self, width, words=2000, layers=5):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.Sequential(*[nn.TransformerEncoderLayer(
            width, 4, 4 * width, 0.0, batch_first=True) for _ in range(layers)])
        self.out = nn.Linear(width, words)

    def forward(self, x):
        return self.out(self.layers(self.words(x))).flatten(0, 1)


def conv(width=2048):
    """21 MB of gradients; pictures whose class is their brightest quarter."""
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(2048, width), nn.ReLU(), nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 4))

    def batch(generator):
        y = torch.randint(4, (8,), generator=generator)
        x = torch.randn(8, 3, 32, 32, generator=generator)
        for i, k in enumerate(y.tolist()):
            x[i, :, 16 * (k // 2):16 * (k // 2) + 16, 16 * (k % 2):16 * (k % 2) + 16] += 0.1
        return x, y

    return net, batch


def transformer(width=256):
    """20 MB of gradients; each word is to be repeated, shifted by one in the list."""
    def batch(generator):
        x = torch.randint(2000, (2, 32), generator=generator)
        return x, ((x + 1) % 2000).flatten()

    return Transformer(width), batch


def alone(net):
    """Exchanges nothing."""
    return net


def fully_sharded(net, **policy):
    """As its users do: each block, and the rest."""
    for layer in getattr(net, "layers", []):
        fully_shard(layer, **policy)
    return fully_shard(net, **policy)


def unsent(net):
    """fully_shard does all that it does, but no message is sent."""
    model = fully_sharded(net)
    model.unsent = contextlib.ExitStack()
    model.unsent.enter_context(exchanging_nothing(model))
    return model


def by_plan(net, plan):
    with open(plan, encoding="utf-8") as f:
        shards = "shard" in json.load(f)
    return (gradflow.shard if shards else gradflow.ddp)(net, plan)


def contestants(folder):
    """{name: how a model is wrapped}"""
    def stock(hook=None, state=None, **arguments):
        def wrap(net):
            model = DistributedDataParallel(net, **arguments)
            if hook:
                model.register_comm_hook(state() if state else None, hook)
            return model
        return wrap

    def power(rank):  # one bucket: gloo mixes up the collectives of several
        return stock(powerSGD_hook.powerSGD_hook, lambda: powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=rank, start_powerSGD_iter=2), bucket_cap_mb=100)

    out = {"DDP": stock(), "DDP, 4 MiB": stock(bucket_cap_mb=4),
           "DDP, 100 MiB": stock(bucket_cap_mb=100),
           "fp16 hook": stock(default_hooks.fp16_compress_hook),
           "PowerSGD hook 1": power(1), "PowerSGD hook 4": power(4), "gradflow": gradflow.ddp,
           "compute alone": alone, "fully_shard": fully_sharded,
           "fully_shard unsent": unsent,
           "fully_shard, bf16": functools.partial(fully_sharded, mp_policy=MixedPrecisionPolicy(
               param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16))}
    for path in sorted(glob.glob(os.path.join(folder, "*.plan"))):
        name = "gradflow " + os.path.basename(path)[:-5]
        out[name] = functools.partial(by_plan, plan=path)
    chosen = os.environ.get("GF_CONTESTANTS")  # a part of the names, with commas between
    return {n: w for n, w in out.items() if not chosen or n in chosen.split(",")}


class Job:
    """One contestant's model, optimiser and data. All begin alike."""

    def __init__(self, net, batch, wrap):
        self.model, self.batch = wrap(copy.deepcopy(net)), batch
        self.optimizer = torch.optim.AdamW(self.model.parameters(),
                                           lr=float(os.environ.get("GF_RATE", 1e-3)))
        self.generator = torch.Generator().manual_seed(1 + dist.get_rank())

    def loss(self):
        x, y = self.batch(self.generator)
        return nn.functional.cross_entropy(self.model(x), y)

    def step(self):
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def close(self):
        if hasattr(self.model, "gradflow"):
            self.model.gradflow.close()


def profile(net, batch, folder):
    job = Job(net, batch, alone)

    def loss(model):
        x, y = batch(job.generator)
        return nn.functional.cross_entropy(model(x), y)

    gradflow.profile(job.model, loss, os.path.join(folder, "model.json"), name=sys.argv[1],
                     batch=8, update=job.optimizer.step,
                     network=os.path.join(folder, "network.json"), also=ALSO)
    job = Job(net, batch, fully_sharded)
    shards = os.path.join(folder, "network.shards")
    if dist.get_rank() == 0:
        shutil.copy(os.path.join(folder, "network.alone"), shards)
    gradflow.profile(job.model, loss, os.path.join(folder, "shards.json"), name=sys.argv[1],
                     batch=8, update=job.optimizer.step, network=shards,
                     also=[["--codecs", codec] for codec in ("bf16", "q8")])


def race(net, batch, folder, steps):
    for name, wrap in contestants(folder).items():
        job, times = Job(net, batch, wrap), []
        for _ in range(WARMUP):
            job.step()
        dist.barrier()
        for _ in range(steps):
            if wrap is alone:
                dist.barrier()
            start = time.perf_counter()
            job.step()
            times.append(time.perf_counter() - start)
        took = torch.tensor(times)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        if dist.get_rank() == 0:
            print(f"{name}\t{took.median() * 1e3:.2f}", flush=True)
        job.close()


def losses(net, batch, folder, steps):
    for name, wrap in contestants(folder).items():
        job = Job(net, batch, wrap)
        run = torch.tensor([job.step() for _ in range(steps)])
        dist.all_reduce(run)
        job.close()
        if dist.get_rank() == 0:
            parts = (run / dist.get_world_size()).chunk(10)
            print(name, " ".join(f"{p.mean():.4f}" for p in parts), sep="\t", flush=True)


def main():
    job, what, folder = sys.argv[1:4]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    make = {"conv": conv, "transformer": transformer}[job]
    net, batch = make(*map(int, os.environ.get("GF_WIDTH", "").split()))
    {"profile": profile, "race": race, "losses": losses}[what](
        net, batch, folder, *map(int, sys.argv[4:]))
    dist.barrier()
    dist.destroy_process_group()


main()
