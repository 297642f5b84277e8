# SPDX-License-Identifier: BSD-3-Clause
"""Profiles of a PyTorch job: backward by hooks, the network by all-reduces."""
from __future__ import annotations
import contextlib
import functools
import inspect
import json
import os
import socket
import statistics
import subprocess
import time
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from . import commands
from . import library as c
from .common import (ModuleHook, agree, by_rank_0, gathered, let_go, of_rank, on_gradient, rank_in,
                     trained, want_folder, want_module, write_whole)
from .plan import read
from .replicas import has_replicas, sharded, take_replicas

_DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16",
           torch.bfloat16: "bf16"}

class Clock:
    """Moments of a step in seconds. On a device they are taken on its stream, without waiting for
    it."""

    def __init__(self, device):
        self.device = device if device.type == "cuda" else None
        self.settled = None  # an event, and when the host saw it

    def now(self):
        if self.device is None:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def settle(self):
        """Moments so far have come."""
        if self.device is not None:
            torch.cuda.synchronize(self.device)
            event = self.now()
            event.synchronize()
            self.settled = event, time.perf_counter()

    def between(self, a, b):
        return b - a if self.device is None else a.elapsed_time(b) * 1e-3

    whole = between

    def seconds(self, moment):
        """By time.perf_counter; not long before settle()."""
        if self.device is None:
            return moment
        event, seen = self.settled
        return seen - moment.elapsed_time(event) * 1e-3


class StepMoments:
    """Hooks of the model take moments of a step until unhook(); the next step begins by _end(now)."""

    def __init__(self, model, state):
        self.state = state
        self.seen = self.start = self.middle = self.last = None
        self.moments = {}  # of gradients, by name
        self.unhook = let_go(self, [model.register_forward_pre_hook(ModuleHook(self._forward)),
                                    model.register_forward_hook(ModuleHook(self._backward)),
                                    *state.tell(self._gradient)])

    def _forward(self):
        if self.seen == self.state.steps:  # more of the same step
            return
        now = self.state.clock.now()
        if self.moments:
            self.state.clock.settle()
            self._end(now)
        self._begin()

    def _begin(self):
        self.seen, self.moments, self.start = self.state.steps, {}, self.state.clock.now()

    def _backward(self):
        self.middle = self.state.clock.now()

    def _gradient(self, name):
        self.moments[name] = self.last = self.state.clock.now()


class _Forward:
    """What forward tells of parameters: when it first uses each, and what is kept for its backward.
    What a module without parameters keeps counts with those before it."""

    def __init__(self, model, parameters, clock):
        names = {id(p): n for n, p in parameters.items()}
        self.clock, self.hooks = clock, []
        self.restart()
        for module in model.modules():
            own = [names[id(p)] for p in module.parameters(recurse=False) if id(p) in names]
            if own:
                self.hooks.append(module.register_forward_pre_hook(functools.partial(self._enter, own)))

    def restart(self):
        """What follows is another forward."""
        self.needs, self.now = {}, None
        self.kept, self.seen = {}, set()  # bytes by name; storages that are kept

    def _enter(self, own, *_):
        self.now = own[0]
        for n in own:
            self.needs.setdefault(n, self.clock.now())

    def _keep(self, tensor):
        storage = getattr(tensor, "untyped_storage", tensor.storage)()  # before PyTorch 2
        weighs = isinstance(tensor, torch.nn.Parameter) or isinstance(tensor._base, torch.nn.Parameter)
        if self.now and not weighs and storage._cdata not in self.seen:
            self.seen.add(storage._cdata)
            self.kept[self.now] = self.kept.get(self.now, 0) + storage.nbytes()
        return tensor

    def counted(self):
        """A step in which self.kept is filled in."""
        return torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor)


def _timed_step(clock, loss, parameters, passes, update, apart, seen):
    """One step: (forward, backward, {name: ready}, update, {name: need}) in seconds, ready from the
    last backward's start, need from the start of that forward. What comes before is forward, and
    `apart`."""
    moments = {}
    clock.settle()
    start = clock.now()
    for _ in range(passes - 1):
        with apart():
            loss().backward()
    seen.restart()
    last = clock.now()
    value = loss()
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        raise TypeError("profile: loss: want the loss as a tensor that backward can run from, got " +
                        ("one without a graph" if isinstance(value, torch.Tensor) else
                         type(value).__name__) + ": return it without .item() or .detach()")
    kept = [on_gradient(p, lambda n=n: moments.__setitem__(n, clock.now()))
            for n, p in parameters.items()]
    middle = clock.now()
    try:
        value.backward()
    finally:
        let_go(clock, kept)()
    end = clock.now()
    if update:
        update()
    whole = clock.now()
    clock.settle()
    for p in parameters.values():
        p.grad = None
    return (clock.between(start, middle), clock.between(middle, end),
            {n: clock.between(middle, m) for n, m in moments.items()},
            clock.between(end, whole), {n: clock.between(last, m) for n, m in seen.needs.items()})


def _is_given_model(loss):
    """loss(model), not loss()."""
    first = next(iter(inspect.signature(loss).parameters.values()), None)
    return first is not None and first.default is first.empty


def _exchange_nothing(_, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def profile(model: torch.nn.Module, loss: Callable[..., torch.Tensor], path: str,
            name: str = "model", batch: int = 1, steps: int = 20, warmup: int = 3,
            update_s: float = 0.0, passes: int = 1, update: Callable[[], Any] | None = None,
            network: str | None = None, also: Sequence[Sequence[str]] = (),
            **arguments: Any) -> None:
    """Measure forward and backward; rank 0 writes a gf-profile (model half).

    loss(model) runs the model forward on a batch, under autocast if the job does, and returns the
    loss, scaled if the job does. The model that it is given is DistributedDataParallel(model,
    **arguments), as the job's will be, but exchanges nothing.
    Or loss() runs the model itself, which may be compiled, or be wrapped by
    DistributedDataParallel, which then exchanges nothing; what its buckets cost is then not
    measured. network is the file that exchange_costs wrote: its costs are then adapted to what
    messages cost within the job's steps (turns.py), and so are the costs of the selections and
    codecs in `also`, a list of options of gf-plan, such as
    [["--selection", "gtopk"], ["--codecs", "f16"]]. Of a job that accumulates gradients, passes
    says over how many backward passes; batch is that of them all.
    update, the optimiser's step (optimizer.step), is measured along, since it takes caches from
    forward and backward; it trains the model. update_s is its time, if the caller knows that
    instead. Gradients are dropped. Every rank must call. Ranks begin each step together, and the
    one that is the last to end it counts, as a message waits for all ranks; then medians over
    steps, each parameter's over those in which it got a gradient. Hooks and wrappers are gone when
    it returns or fails: nothing holds the model.
    """
    want_module("profile", model)
    if not trained(model):
        raise TypeError("profile: want a model that trains parameters, got none")
    if not callable(loss):
        raise TypeError("profile: loss: want a function that returns the loss, got "
                        f"{type(loss).__name__}")
    want_folder("profile", path)
    ignored = getattr(model, "_ddp_params_and_buffers_to_ignore", getattr(model, "parameters_to_ignore", ()))
    parameters = {n: p for n, p in trained(model).items() if n not in ignored}
    alone, given = contextlib.nullcontext, loss
    clock = Clock(next(iter(parameters.values())).device)
    apart = getattr(model, "no_sync", contextlib.nullcontext)
    with contextlib.ExitStack() as ends:
        names = {id(p): n for n, p in parameters.items()}
        units = [[names[id(p.sharded_param)] for p in g.fsdp_params if id(p.sharded_param) in names]
                 for _, _, g in sharded(model)]
        units = [unit for unit in units if unit]  # or all of it is frozen
        if units and not hasattr(next(sharded(model))[1], "set_custom_all_gather"):
            raise TypeError("profile: want fully_shard of a PyTorch that has set_custom_all_gather, got "
                            f"{torch.__version__}: profile the model before fully_shard")
        if network and any(has_replicas(g) for *_, g in sharded(model)):
            raise TypeError("profile: network: want shards without replicas, whose steps tell nothing of both "
                            "exchanges apart, got a mesh of both: leave network out")
        if units:
            alone, apart = functools.partial(exchanging_nothing, model), functools.partial(_unsynced, model)
            given = loss = functools.partial(loss, model) if _is_given_model(loss) else loss
        elif not _is_given_model(loss):
            alone = apart
        elif isinstance(model, DistributedDataParallel) or not dist.is_initialized():
            alone, loss = apart, functools.partial(loss, model)
        else:  # DistributedDataParallel copies gradients to its buckets and back
            wrapped = DistributedDataParallel(model, **arguments)
            ends.enter_context(_while_wrapped(wrapped))
            wrapped.register_comm_hook(None, _exchange_nothing)
            apart, loss = wrapped.no_sync, functools.partial(loss, wrapped)
        if network and apart is alone and not units:
            raise TypeError("profile: network: want the loss as a function of the model, loss(model), "
                            "and a model without DistributedDataParallel")
        seen = _Forward(model, parameters, clock)
        ends.callback(let_go(clock, seen.hooks))
        step = functools.partial(_timed_step, clock, loss, parameters, passes, update, apart, seen)
        with alone():
            with seen.counted():
                step()
            kept = seen.kept
            for _ in range(warmup - 1):
                step()
            runs = []
            for _ in range(steps):
                if dist.is_initialized():
                    dist.barrier()
                runs.append(step())
        missing = [n for n in parameters if not any(n in r[2] for r in runs)]
        agree(None, missing and ValueError(
            f"profile: {missing[0]} got no gradient in {steps} steps ({len(missing)} of "
            f"{len(parameters)} parameters): want it frozen (requires_grad_(False)), or a loss "
            "that uses it"))
        forward, backward, ready, measured_s, needs = medians(runs)
        update_s = measured_s if update else update_s
        if units:
            ready = _spread(ready, parameters, units)
        if rank_in(None) == 0:
            write_whole(path, json.dumps(document(parameters, forward, backward, ready, update_s, name,
                                                  batch, needs, kept), indent=1) + "\n")
        if network and units:
            _adapt_shards(model, given, path, network, steps, passes, update, also)
        elif network:
            _adapt(model, loss, given, path, network, steps, passes, update, arguments, also)


@contextlib.contextmanager
def _unsynced(model):
    """Gradients of a fully_shard's model are kept whole, for a later backward."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


class Calls:
    """What fully_shard calls: an AllGather or a ReduceScatter."""

    def __init__(self, call, before=None):
        self.call, self.before = call, before

    def allocate(self, size, *, dtype, device):
        if self.before:
            self.before()
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, *args, **how):
        return self.call(*args, **how)


def _copy_own(output_tensor, input_tensor, group, *_, **__):
    """Moves nothing: each part of what is gathered is this rank's."""
    own = input_tensor
    if own.numel() > output_tensor.numel():
        own = own.chunk(group.size())[group.rank()]
    for part in output_tensor.split(own.numel()):
        if part.data_ptr() != own.data_ptr():  # a part of the whole itself
            part.copy_(own)


@contextlib.contextmanager
def _as_they_are(model):
    """What moves the units of a model of fully_shard is as before in the end."""
    with contextlib.ExitStack() as ends:
        for _, module, g in sharded(model):
            places = [*((g, name) for name in (
                          "_all_gather_comm", "_reduce_scatter_comm", "_all_reduce_hook", "_reset_iter_state",
                          "mesh_info", "post_forward_mesh_info")),
                      (module, "set_all_reduce_hook"),
                      (module._get_fsdp_state(), "_states_to_forward_prefetch")]
            for place, name in places:
                if name in vars(place):
                    ends.callback(setattr, place, name, vars(place)[name])
                else:
                    ends.callback(vars(place).pop, name, None)
        yield


@contextlib.contextmanager
def exchanging_nothing(model):
    """Meanwhile the model of fully_shard exchanges nothing."""
    with _as_they_are(model):
        take_replicas([g for _, _, g in sharded(model)])
        for _, _, g in sharded(model):
            g._all_gather_comm = g._reduce_scatter_comm = Calls(_copy_own)
            g._all_reduce_hook = None
        yield


def _whole_step(model, passes, update, loss, apart, around=contextlib.nullcontext()):
    """A step of the job, whose passes but the last run in apart(), and all of them in around."""
    with around:
        for _ in range(passes - 1):
            with apart():
                loss().backward()
        loss().backward()
    if update:
        update()
    for p in model.parameters():
        p.grad = None


def _adapt_shards(model, loss, path, network, steps, passes, update, also):
    """Units are gathered one ahead meanwhile, as gradflow.shard has it without a plan."""
    from .shards import Shards  # pylint: disable=import-outside-toplevel  # a cycle
    from .turns import adapt  # pylint: disable=import-outside-toplevel
    modules = [module for name, module, _ in sharded(model) if name]
    step = functools.partial(_whole_step, model, passes, update, loss, functools.partial(_unsynced, model))

    with _as_they_are(model):
        group = next(sharded(model))[2].mesh_info.shard_process_group
        with contextlib.closing(Shards(model, None, None, None, group, False)) as shards:
            for module, after in zip(modules, modules[1:]):
                module.set_modules_to_forward_prefetch([after])
            adapt(lambda: step(exchanging_nothing(model)), step, shards, path, network, max(steps // 4, 3), also)


def _spread(ready, parameters, units):
    """fully_shard tells of a unit's gradients at once: as they were made one after the other since
    those of the unit before. units: lists of names."""
    out, before = {}, 0.0
    for unit in sorted(units, key=lambda unit: min(ready[n] for n in unit)):
        moment = min(ready[n] for n in unit)
        whole, made = sum(c.count(parameters[n]) for n in unit), 0
        for n in reversed(unit):
            made += c.count(parameters[n])
            out[n] = before + (moment - before) * made / whole
        before = moment
    return out


@contextlib.contextmanager
def _while_wrapped(wrapped):
    """An exception would keep the DistributedDataParallel model, whose reducer would take part in
    the job's steps from then on."""
    try:
        yield
    finally:
        wrapped.reducer = wrapped.logger = None


def _adapt(model, alone, loss, path, network, steps, passes, update, arguments, also):
    """alone() runs forward in the model that exchanges nothing."""
    from .state import ddp  # pylint: disable=import-outside-toplevel  # a cycle
    from .turns import adapt  # pylint: disable=import-outside-toplevel
    wrapped = ddp(model, **arguments)
    step = functools.partial(_whole_step, model, passes, update)

    with _while_wrapped(wrapped), contextlib.closing(wrapped.gradflow):
        adapt(lambda: step(alone, alone.args[0].no_sync),
              lambda: step(lambda: loss(wrapped), wrapped.no_sync), wrapped.gradflow, path, network,
              max(steps // 4, 3), also)


def document(parameters, forward, backward, ready, update_s, name="model", batch=1, needs=(), kept=()):
    """A gf-profile (model half) of times in seconds; ready is {name: time}, and so is needs; kept is
    {name: bytes of activations}."""
    tensors = []
    for n in sorted(ready, key=ready.get):
        p = parameters[n]
        if c.dtype(p) not in _DTYPES:
            raise ValueError(f"profile: {n}: want floating point, got {p.dtype}")
        shape = {"shape": list(p.shape)} if 1 <= p.dim() <= 8 and not p.is_complex() else {}
        tensors.append({"name": n, "count_elems": c.count(p), "dtype": _DTYPES[c.dtype(p)],
                        "ready_s": min(ready[n], backward), **shape,
                        **({"need_s": min(needs[n], forward)} if n in needs else {}),
                        **({"activation_bytes": kept[n]} if n in kept else {})})
    device = next(iter(parameters.values())).device.type
    return {"format": "gf-profile", "version": 1, "producer": f"PyTorch {torch.__version__}",
            "model": {"name": name, "device": device, "batch_per_rank": batch,
                      "forward_s": forward, "backward_s": backward, "update_s": update_s,
                      "tensors": tensors}}


def medians(runs, group=None):
    """(forward, backward, {name: ready}, update, {name: need}) of the job, from such runs of this
    rank, as many on each: of each step those of the rank that took longest."""
    own, (ready,) = runs, slowest([_middle(runs)], group)
    if dist.is_initialized():
        took = gathered(group, [r[0] + r[1] + r[3] for r in runs])
        last = [max(range(len(took)), key=lambda rank, i=i: took[rank][i]) for i in range(len(runs))]
        own = {i: runs[i] for i, rank in enumerate(last) if rank == dist.get_rank(group)}
        own = [r for part in gathered(group, own) for r in part.values()]
    forward, backward, update = (statistics.median(r[i] for r in own) for i in (0, 1, 3))
    return forward, backward, {**ready, **_middle(own)}, update, _middle(own, 4)


def _middle(runs, of=2):
    """Medians of parameters that got a gradient in some of the runs, or have another such time."""
    names = {n for r in runs for n in r[of]}
    return {n: statistics.median(r[of][n] for r in runs if n in r[of]) for n in names}


def slowest(times, group=None):
    """The largest of all ranks, of numbers and dictionaries of them."""
    if not dist.is_initialized() or dist.get_world_size(group) == 1:
        return times
    return tuple({k: max(t[k] for t in each if k in t) for k in dict.fromkeys(k for t in each for k in t)}
                 if isinstance(each[0], dict) else max(each) for each in zip(*gathered(group, times)))


def network(path: str, sizes: Sequence[int] | None = None, device: str = "cpu", rounds: int = 7,
            group: dist.ProcessGroup | None = None) -> None:
    """Measure the backend's all-reduce of f32; rank 0 of the group writes a table like nccl-tests',
    which `gf-profile --import` turns into a profile's network half.
    sizes are in bytes, 4 KiB to 16 MiB by default."""
    want_folder("network", path, group)
    ranks = dist.get_world_size(group)
    rows = []
    for size in sizes or [4096 * 4 ** i for i in range(7)]:
        x = torch.zeros(max(size // 4, 1), dtype=torch.float32, device=device)
        times = []
        for i in range(rounds + 2):
            dist.barrier(group)
            start = time.perf_counter()
            dist.all_reduce(x, group=group)
            if x.is_cuda:
                torch.cuda.synchronize(x.device)
            if i >= 2:
                times.append(time.perf_counter() - start)
        last = torch.tensor([statistics.median(times)], dtype=torch.float64, device=device)
        dist.all_reduce(last, op=dist.ReduceOp.MAX, group=group)
        us = last.item() * 1e6
        rate = x.numel() * 4 / us / 1e3
        cell = f"{us:.3f} {rate:.4f} {rate * 2 * (ranks - 1) / ranks:.4f} 0"
        rows.append(f"{x.numel() * 4} {x.numel()} float sum -1 {cell} {cell}")
    if dist.get_rank(group) == 0:
        heading = [f"# Rank {r} {dist.get_backend(group)}" for r in range(ranks)]
        heading.append("# size count type redop root time algbw busbw #wrong"
                       " time algbw busbw #wrong")
        write_whole(path, "\n".join(heading + rows) + "\n")


def exchange_costs(path: str, budget_s: float = 20, max_bytes: int = 16 << 20,
                   group: dist.ProcessGroup | None = None, halves: bool = False) -> None:
    """Measure gradflow's own all-reduces between the ranks, of gradients that lie in
    PyTorch's memory; rank 0 writes a gf-profile (network half) for gf-plan. halves: and its
    reduce-scatters and all-gathers, for shards. Every rank runs gf-profile for about budget_s."""
    if dist.get_world_size(group) == 1:
        raise ValueError("exchange_costs: want two ranks or more, one has nothing to exchange")
    want_folder("exchange_costs", path, group)
    failure = command = done = None
    try:  # before the others wait for this rank
        command = commands.find("gf-profile")
    except OSError as e:
        failure = e
    agree(group, failure)
    place = of_rank(group, f"{_address(group)}:{_free_port()}")
    try:  # a launcher's variables are of this job, not of the one that measures
        done = subprocess.run(
            [command, "-q", "--join", place, "--rank", str(dist.get_rank(group)),
             "--ranks", str(dist.get_world_size(group)), "--budget", f"{budget_s}s", "--max-bytes",
             str(max_bytes), "--points", "callers_memory=on",
             *["--collectives", "all_reduce,reduce_scatter,all_gather"] * halves],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env={k: v for k, v in commands.environment().items() if not k.startswith(("OMPI_", "PMIX_"))})
        if done.returncode:
            failure = RuntimeError(done.stderr.strip() or f"gf-profile: status {done.returncode}")
    except OSError as e:
        failure = e
    agree(group, failure)
    by_rank_0(group, lambda: write_whole(path, done.stdout), OSError)


def _address(group):
    """One of this host's, by which the other ranks reach it."""
    hosts = gathered(group, socket.gethostname())
    if len(set(hosts)) == 1:
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:  # sends nothing
            s.connect((os.environ.get("MASTER_ADDR", hosts[-1]), 9))
            return s.getsockname()[0]
        except OSError:
            return hosts[dist.get_rank(group)]


def _free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


# Kinds of memory: by their names in plans, those of PyTorch.
_KINDS = {"parameters": ("Sharded Param", "Parameter"), "gradients": ("Sharded Grad", "Unsharded Grad", "Gradient"),
          "state": ("OptState", "Optstate"), "gathered": ("Unsharded Param",), "activations": ("Activation",),
          "buffers": ("Buffer",), "messages": ("All Gather", "Reduce Scatter"), "others": ("Temp", "Inputs", "Other")}


def memory(model: torch.nn.Module, step: Callable[[], Any], optimizer: torch.optim.Optimizer,
           plan: Any = None) -> str:
    """A step of the job under PyTorch's own counter of memory, beside what the plan predicts: bytes
    of this rank at the moment of its peak, by kinds, as text, which rank 0 prints. plan is one of
    gf-plan --shard; None: that of gradflow.shard."""
    if next(sharded(model), None):
        from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
        tracker = FSDPMemTracker(model, optimizer)
    else:
        from torch.distributed._tools.mem_tracker import MemTracker
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
    with tracker:
        step()
    device = next(model.parameters()).device
    seen = {getattr(kind, "value", kind): count
            for kind, count in tracker.get_tracker_snapshot("peak")[device].items()}
    plan = read(plan)[0] if plan is not None else getattr(getattr(model, "gradflow", None), "plan", None)
    predicted = ((plan or {}).get("predicted") or {}).get("memory") or {}
    lines = [f"{'bytes at the peak':18} {'predicted':>14} {'counted':>14}"]
    for kind, names in _KINDS.items():
        lines.append((kind, predicted.get(kind + "_bytes"), sum(seen.get(n, 0) for n in names)))
    lines.append(("all", predicted.get("peak_bytes"), seen["Total"]))
    text = "\n".join(line if isinstance(line, str) else
                     f"{line[0]:18} {'-' if line[1] is None else f'{line[1]:.0f}':>14} {line[2]:14d}"
                     for line in lines) + "\n"
    if rank_in(None) == 0:
        print(text, end="")
    return text
