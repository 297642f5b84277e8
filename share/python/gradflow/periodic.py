# SPDX-License-Identifier: BSD-3-Clause
"""A plan's period: ranks that exchange their parameters' changes every H steps."""
from __future__ import annotations
import contextlib
import json
import re
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from . import library as c
from .common import agree, gathered, named, of_rank, sparse_of, trained, want_module
from .exchange import Exchange, Plan, agreed, keep, kept
from .plan import PlanError, check_names, has_period, outer, want


def _local(tensor):
    """This rank's part of it, as real numbers, in the same memory. fully_shard may move its shards,
    so this is asked for anew each time."""
    tensor = tensor.detach()
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _ranks(group):
    """Of the job, those that are in the group."""
    world = group is None or group is dist.group.WORLD
    return {r if world else dist.get_global_rank(group, r)
            for r in range(dist.get_world_size(group))}


_STATE = {"steps": int, "fragment": (int, type(None)), "ranks": int, "ways": dict,
          "anchors": dict, "velocities": dict, "means": dict}


def _want_state(saved):
    """ValueError: no state_dict() made it."""
    if not isinstance(saved, dict) or saved.get("version") != 1:
        found = saved.get("version") if isinstance(saved, dict) else type(saved).__name__
        raise ValueError("state: version: want 1, of gradflow.Periodic's state_dict(), got "
                         f"{found!r}")
    for key, kind in _STATE.items():
        if key not in saved or not isinstance(saved[key], kind):
            raise ValueError(f"state: {key}: want that of gradflow.Periodic's state_dict(), got " +
                             (type(saved[key]).__name__ if key in saved else "none"))
    for key, kind in (("ways", str), ("anchors", torch.Tensor), ("velocities", torch.Tensor),
                      ("means", torch.Tensor)):
        if not all(isinstance(v, kind) for v in saved[key].values()):
            raise ValueError(f"state: {key}: want values of type {kind.__name__}, got others")


class Periodic:
    """What a plan with a period says (gf-methods(7)), beside any optimiser:

        periodic = gradflow.Periodic(model, optimizer, "plan.json")
        ...
        optimizer.step()
        periodic.step()

    The model's parameters are x; w are those of the last outer exchange, the same on all ranks.
    Every H steps d is the mean over the group of w - x, v = m v + d, and w = w - r (d + m v);
    `delay` steps later x = a x + (1 - a) w. A rank keeps w, v if m > 0, and memory for d on the
    host: f32, or f64 for f64. The optimiser's state stays with its rank.

    plan is a file, which the group's first rank reads, its text or a dictionary. group is that of
    the plan's ranks; None: all. model is in DistributedDataParallel, gradflow.ddp or nothing, and
    whole on each rank of the group; or of fully_shard, and the group's ranks have the same shard.
    timeout_s is how long ranks may wait for one that is late.

    All ranks of the group make it together, before the first step. saved is what state_dict() was,
    or None where there is none: see join(). Load the model before.

    It holds the model, w, v and connections, and has no hooks: nothing but the job holds it.
    close() lets go of the connections.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, plan: Plan,
                 group: dist.ProcessGroup | None = None, saved: dict[str, Any] | None = None,
                 timeout_s: float | None = None, library: str | None = None):
        want_module("gradflow.Periodic", model)
        if dist.get_rank(group) < 0:
            raise ValueError("gradflow.Periodic: want a group of this rank, got one without it")
        self.model, self.group, self.parameters = model, group, trained(model)
        plan, where = agreed(plan, group, library)
        failure = None
        try:
            self._check(plan, where, optimizer)
            if saved is not None:
                saved, _ = kept(saved, any_rank=True)
                _want_state(saved)
        except (TypeError, ValueError) as e:
            failure = e
        agree(group, failure)
        p = plan["period"]
        self.every, self.delay = p["steps"] // p.get("fragments", 1), p.get("delay", 0)
        self.begin_steps, self.mix = p.get("begin_steps", 0), p.get("mix", 0)
        self.rate, self.momentum = p.get("outer_rate", 1), p.get("outer_momentum", 0)
        self.anchors = {n: _local(t).to(torch.float64 if c.dtype(t) == torch.float64 else
                                        torch.float32, copy=True)
                        for n, t in self.parameters.items()}
        self.velocities = {n: torch.zeros_like(w) for n, w in self.anchors.items()
                           if self.momentum}
        self.steps = 0
        self.flight = None       # the fragment whose d was taken, and has not come to w
        self.under_way = False   # its mean has not been waited for
        self.exchanges = []      # of each fragment; None: this rank has nothing of it
        self.changes = []        # {name: d} of each fragment, all in the same memory
        self._open(plan, where, saved, {"group": group, "timeout_s": timeout_s,
                                        "library": library})
        self.load_state_dict(saved)

    def _check(self, plan, where, optimizer):
        want(has_period(plan), f"{where}: /period",
             "local-sgd, diloco or another of gf-plan --period",
             "none: gradflow.ddp executes plans whose ranks exchange in every step")
        check_names(plan, where, self.parameters)
        ranks = dist.get_world_size(self.group)
        want(plan["ranks"] == ranks, f"{where}: /ranks",
             f"{ranks}, as the group has (plan for them, or give the group of the plan's ranks)",
             plan["ranks"])
        if isinstance(self.model, DistributedDataParallel):
            together = len(_ranks(self.model.process_group) & _ranks(self.group))
            want(plan["period"]["group_ranks"] == together, f"{where}: /period/group_ranks",
                 f"{together}, which the DistributedDataParallel model averages in every step "
                 "(make it with process_group= of a plan's group)", plan["period"]["group_ranks"])
        sparse = {id(p) for p in sparse_of(self.model)}
        for n, p in self.model.named_parameters():
            if id(p) in sparse and p.requires_grad:
                raise TypeError(f"gradflow.Periodic: {n}: want dense gradients, got sparse ones: "
                                "make the embedding with sparse=False")
        known = {id(p) for p in self.parameters.values()}
        if not any(id(p) in known for g in optimizer.param_groups for p in g["params"]):
            raise ValueError("gradflow.Periodic: optimizer: want one of the model's parameters, "
                             "got one of others: make it after the model is wrapped")

    def _open(self, plan, where, saved, settings):
        """Algorithms that the plan leaves open are those of the newest state of so many ranks."""
        fits = saved and saved["ranks"] == dist.get_world_size(self.group)
        known = gathered(self.group, (saved["steps"], saved["ways"]) if fits else None)
        ways = max(filter(None, known), key=lambda of: of[0], default=(0, {}))[1]
        parts = outer(plan, {n: w.numel() for n, w in self.anchors.items()})
        sizes = [sum(8 + w.element_size() * w.numel() for w in
                     (self.anchors[t["name"]] for t in p["tensors"])) for p in parts]
        memory = torch.empty(max(sizes), dtype=torch.uint8, device="cpu", pin_memory=any(
            w.is_cuda for w in self.anchors.values()))
        for f, part in enumerate(parts):
            places, at = {}, 0
            for name in (t["name"] for t in part["tensors"]):
                w = self.anchors[name]
                width = w.element_size()
                at += -at % width
                places[name] = memory[at:at + width * w.numel()].view(w.dtype).view(w.shape)
                at += width * w.numel()
            self.changes.append(places)
            try:
                self.exchanges.append(Exchange(places, json.dumps(part), ways=ways.get(f),
                                               flat=True, **settings) if places else None)
            except RuntimeError as e:
                raise PlanError(str(e).replace("plan_text", where)) from None

    # --- a step ---

    def _begins(self, step):
        """The fragment whose exchange begins after that step; or None."""
        if 0 < step <= self.begin_steps:
            return 0
        if step <= 0 or step % self.every:
            return None
        return (step // self.every - 1) % len(self.exchanges)

    @torch.no_grad()
    def step(self) -> None:
        """After each optimizer.step(), on all ranks, also where a GradScaler has left that out:
        a hook of the optimiser's step would then be left out on one rank alone."""
        self.steps += 1
        if self.flight is not None and self._begins(self.steps - self.delay) is not None:
            self._end()
        fragment = self._begins(self.steps)
        if fragment is not None:
            self._begin(fragment)
            if not self.delay:
                self._end()

    def _begin(self, fragment):
        if self.flight is not None:  # of a plan with another period
            self._end()
        added = [n for n in trained(self.model) if n not in self.parameters]
        if added:
            raise RuntimeError(f"gradflow.Periodic: the model also trains {added[0]}: make it "
                               "after all parameters have been made and frozen")
        self._follow()
        exchange = self.exchanges[fragment]
        for n, d in self.changes[fragment].items():
            d.copy_(self.anchors[n] - _local(self.parameters[n]))
        self.flight, self.under_way = fragment, exchange is not None
        if exchange:
            with self._named():
                for i, d in enumerate(self.changes[fragment].values()):
                    exchange.post(i, d)
                exchange.flush()

    def _follow(self):
        """Parameters that have taken the place of others, as by load_state_dict(assign=True). What
        fully_shard has gathered are not these."""
        found = named(self.model)
        for n, old in self.parameters.items():
            new = found.get(n)
            if new is None or hasattr(new, "to_local") >= hasattr(old, "to_local"):
                wanted, got = [p is not None and f"{list(_local(p).shape)} on {p.device}" for p in (old, new)]
                if wanted != got:
                    raise RuntimeError(f"gradflow.Periodic: {n}: want a parameter of {wanted}, as when "
                                       f"it was made, got {got or 'none'}: make Periodic anew after "
                                       "the model has changed")
                self.parameters[n] = new

    @contextlib.contextmanager
    def _named(self):
        """What an exchange calls its step is no step of the job's."""
        try:
            yield
        except RuntimeError as e:
            text = re.sub(r"\bstep (?=\d)", "exchange ", str(e).replace("gradflow: ", "", 1))
            raise RuntimeError(f"gradflow: Periodic's step {self.steps}: {text}") from None

    def _settle(self):
        """The mean that is under way has come. If it does not, there is none."""
        if self.under_way:
            self.under_way = False
            try:
                with self._named():
                    self.exchanges[self.flight].wait()
            except RuntimeError:
                self.flight = None
                raise

    def _end(self):
        self._settle()
        self._follow()
        changes, self.flight = self.changes[self.flight], None
        for n, d in changes.items():
            if not d.isfinite().all():
                raise RuntimeError(f"gradflow.Periodic: step {self.steps}: {n}: want finite "
                                   "parameters on all ranks, got others: go back to a checkpoint, "
                                   "and lower the rate")
        for n, d in changes.items():
            w, x = self.anchors[n], _local(self.parameters[n])
            d = d.to(w.device)
            if self.momentum:
                v = self.velocities[n].mul_(self.momentum).add_(d)
                d = d.add(v, alpha=self.momentum)
            w.sub_(d, alpha=self.rate)
            x.copy_(self.mix * x.to(w.dtype) + (1 - self.mix) * w if self.mix else w)

    # --- ranks that come and go ---

    @torch.no_grad()
    def join(self) -> None:
        """On all ranks: w, v, the count of steps and what is in flight become those of the rank
        with the most steps, the first of these. Parameters whose w was another become w; then
        frozen parameters and buffers become that rank's, too."""
        self._settle()
        self._follow()
        steps = gathered(self.group, self.steps)
        first = max(range(len(steps)), key=lambda r: steps[r])
        self.steps, came = max(steps), self.steps < max(steps)
        self.flight = of_rank(self.group, self.flight, first)
        first = first if self.group is None else dist.get_global_rank(self.group, first)
        for n, w in self.anchors.items():
            if self._take(w, first):
                _local(self.parameters[n]).copy_(w)
                came = True
        for v in self.velocities.values() if self.steps else ():
            self._take(v, first)
        for d in self.changes[self.flight].values() if self.flight is not None else ():
            self._take(d.to(self._device()), first, d)
        known = {id(p) for p in self.parameters.values()}
        for t in (*self.model.parameters(), *self.model.buffers()):
            if id(t) not in known:
                self._take(_local(t).clone(), first, _local(t) if came else None)

    def _device(self):
        return next((w.device for w in self.anchors.values()), torch.device("cpu"))

    def _take(self, tensor, first, place=None):
        """What that rank has goes to place, else to the tensor. Was it another? As bytes, since
        backends do not have all types."""
        sent = tensor.contiguous().clone().reshape(-1)
        if not sent.numel():
            return False
        dist.broadcast(sent.view(torch.uint8), first, group=self.group)
        sent = sent.view(tensor.shape)
        differs = not torch.equal(sent, tensor)
        (tensor if place is None else place).copy_(sent)
        return differs

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """Between steps, on each rank: its own is as good as another's of the same shard. What is
        in flight arrives first, and still comes to the parameters when it is due."""
        self._settle()
        return keep({"version": 1, "steps": self.steps, "fragment": self.flight,
                     "ranks": dist.get_world_size(self.group),
                     "ways": {f: x.ways for f, x in enumerate(self.exchanges) if x},
                     **{key: {n: t.clone() for n, t in of.items()} for key, of in self._held(self.flight).items()}},
                    "version", "steps", "fragment", "ranks")

    def _held(self, fragment):
        return {"anchors": self.anchors, "velocities": self.velocities,
                "means": {} if fragment is None else self.changes[fragment]}

    def _want_fit(self, saved):
        """ValueError: it is of another model or plan."""
        _want_state(saved)
        fragment = saved["fragment"]
        if fragment is not None and not 0 <= fragment < len(self.changes):
            raise ValueError(f"state: fragment: want less than the plan's {len(self.changes)}, "
                             f"got {fragment}")
        for key, of in self._held(fragment).items():
            if {n: t.shape for n, t in saved[key].items()} != {n: t.shape for n, t in of.items()}:
                raise ValueError(f"state: {key}: want those of this model and plan, got others")

    @torch.no_grad()
    def load_state_dict(self, saved: dict[str, Any] | None) -> None:
        """Goes on from there, bit for bit, with the parameters that the model has; on all ranks,
        None on one that has no state. Then they join()."""
        failure = None
        try:
            if saved is not None:
                saved, _ = kept(saved, any_rank=True)
                self._want_fit(saved)
        except ValueError as e:
            failure = e
        agree(self.group, failure)
        self._settle()
        if saved is not None:
            self.steps, self.flight = saved["steps"], saved["fragment"]
            for key, of in self._held(self.flight).items():
                for n, t in of.items():
                    t.copy_(saved[key][n])
        self.join()

    @property
    def sent_bytes(self) -> int:
        return sum(x.sent_bytes for x in self.exchanges if x)

    def close(self) -> None:
        """Ends the connections, on all ranks; at the end of the process it is done for you."""
        for x in self.exchanges:
            if x:
                x.close()
