#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""init_process_group("gradflow"): check_backend.py RANKS CASE... Cases run in turns in
RANKS processes. One that fails ends in an exception."""
import datetime
import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from check_ddp import adamw, build, check, distance, loss, momentum, raises, rank, rule, train


def beside():
    """The same ranks over gloo alone."""
    return dist.new_group(backend="gloo")


def used(group=None):
    """(exchanges, their steps)"""
    steps = [x.steps for x in (group or dist.group.WORLD).exchanges.values()]
    return len(steps), sum(steps)


def same():
    """Unchanged DistributedDataParallel: gloo's bits between two ranks."""
    gloo = beside()
    check(dist.get_backend() == "gradflow", dist.get_backend())
    before = used()[1]
    for make, arguments, how in (
            (adamw, {}, {}), (momentum, {"bucket_cap_mb": 0.02}, {"clip": 0.5}),
            (adamw, {"gradient_as_bucket_view": True}, {"parts": 3}),
            (adamw, {"static_graph": True}, {}),
            (momentum, {"find_unused_parameters": True}, {"parts": 2})):
        branches = "find_unused_parameters" in arguments
        stock = train(DDP(build(branches=branches), process_group=gloo, **arguments), make, **how)
        model = train(DDP(build(branches=branches), **arguments), make, **how)
        off = distance(stock, model)
        check(off == 0 or off < 1e-5 and dist.get_world_size() > 2, arguments, off)
        count, steps = used()
        check(count and steps >= before + 4, arguments, count, steps)
        before = steps
    dist.destroy_process_group(gloo)


ROUNDED = {torch.float32: 2e-5, torch.float16: 0.25, torch.bfloat16: 1.0}


def filled(count, kind, own_rank, turn):
    generator = torch.Generator().manual_seed(100 * own_rank + turn)
    return torch.randint(-50, 50, (count,), generator=generator).to(kind)


def sums():
    """Every size, type and operation, several under way, and what only gloo does."""
    ranks = dist.get_world_size()
    for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32):
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX):
            for turn in range(3):  # sizes more than once, also beside each other
                sizes = (1, 5000, 70001, 5000)
                given = [filled(n, kind, rank(), turn) for n in sizes]
                works = [dist.all_reduce(x, op, async_op=True) for x in given]
                for n, x, work in zip(sizes, given, works):
                    work.wait()
                    every = torch.stack([filled(n, kind, r, turn).double() for r in range(ranks)])
                    wanted = every.sum(0) if op == dist.ReduceOp.SUM else every.max(0)[0]
                    # the mean of three small integers is rounded
                    most = ROUNDED.get(kind, 0) if ranks > 2 and op == dist.ReduceOp.SUM else 0
                    check((x.double() - wanted).abs().max() <= most, kind, op, n)
    x = torch.full((6000,), rank() + 1.0)
    for _ in range(3):
        y = x.clone()
        dist.all_reduce(y, dist.ReduceOp.AVG)
        check((y - (ranks + 1) / 2).abs().max() < 1e-6, y[0])
    for _ in range(3):
        y = torch.full((100, 200), 1.0).t()
        dist.all_reduce(y)
        check(torch.equal(y, torch.full((200, 100), float(ranks))), "not contiguous")
    check(used()[0] == 7, used())


def others():
    """Collectives that gloo does below."""
    ranks = dist.get_world_size()
    x = torch.full((5000,), float(rank()))
    dist.broadcast(x, 1)
    check(torch.equal(x, torch.ones(5000)))
    every = [torch.empty(3) for _ in range(ranks)]
    dist.all_gather(every, torch.full((3,), float(rank())))
    check([e[0].item() for e in every] == list(range(ranks)), every)
    out = torch.empty(2)
    dist.reduce_scatter(out, [torch.full((2,), float(r)) for r in range(ranks)])
    check(out[0].item() == ranks * rank(), out)
    dist.barrier()
    if rank() == 0:
        dist.send(torch.ones(4), 1)
    elif rank() == 1:
        dist.recv(x[:4], 0)
    found = [None] * ranks
    dist.all_gather_object(found, rank())
    check(found == list(range(ranks)), found)


def groups():
    """Groups of half the ranks, and one of all, in one process."""
    half = dist.get_world_size() // 2
    made = [dist.new_group(range(half)), dist.new_group(range(half, 2 * half))]
    part = made[rank() // half]
    stock = [dist.new_group(range(half), backend="gloo"),
             dist.new_group(range(half, 2 * half), backend="gloo")][rank() // half]
    for group in (stock, part):
        model = train(DDP(build(), process_group=group))
        last = model if group is stock else (last, model)
    check(distance(*last) == 0, distance(*last))
    check(used(part)[0] > 0, used(part))
    dist.destroy_process_group(part)
    check(not part.exchanges, "still open")


def ruled():
    """A rule's algorithm, through the environment; what is no rule is refused."""
    def reduced(group):
        for _ in range(3):
            x = torch.full((9000,), rank() + 1.0)
            dist.all_reduce(x, group=group)
        return x

    stages = [{"factor": 2, "algorithm": "ring"}, {"factor": 2, "algorithm": "ring"}]
    documents = {"rule": rule(), "topk": rule("topk"), "tensors": {"tensors": []}}
    documents["rule"]["rule"]["algorithms"] = [
        {"min_bytes": 0, "algorithm": "blueconnect", "stages": stages}]
    with tempfile.TemporaryDirectory() as folder:
        def group_by(name):
            path = os.path.join(folder, name)
            if rank() == 0:
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(documents[name], f)
            os.environ["GRADFLOW_RULE"] = path
            return dist.new_group()

        group = group_by("rule")
        ranks = dist.get_world_size()
        check(torch.equal(reduced(group), torch.full((9000,), ranks * (ranks + 1) / 2)))
        ways = [x.ways for x in group.exchanges.values()]
        check(ways == ["blueconnect 2:ring 2:ring"], ways)
        raises(lambda: reduced(group_by("topk")), "topk", "want a dense rule")
        raises(lambda: reduced(group_by("tensors")), "tensors", "want a rule")
    del os.environ["GRADFLOW_RULE"]


def lost():
    """A rank that ends is the others' failure, within the group's timeout."""
    for _ in range(2):
        dist.all_reduce(torch.ones(5000))
    if rank() == 1:
        os._exit(0)
    work = dist.all_reduce(torch.ones(5000), async_op=True)
    raises(work.wait, "rank 1")
    raises(lambda: dist.all_reduce(torch.ones(5000)), "gradflow")
    os._exit(0)


def work(own_rank, ranks, meeting, cases):
    torch.set_num_threads(1)
    dist._DEFAULT_FIRST_BUCKET_BYTES = 20000  # so that small models have several
    dist.init_process_group("gradflow", init_method=f"file://{meeting}", rank=own_rank,
                            world_size=ranks, timeout=datetime.timedelta(seconds=60))
    for case in cases:
        globals()[case]()
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if not hasattr(dist.Backend, "GRADFLOW"):
        sys.exit("skipped: this PyTorch takes no process groups of Python's")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (int(sys.argv[1]), os.path.join(folder, "meeting"), sys.argv[2:]),
                 nprocs=int(sys.argv[1]))
