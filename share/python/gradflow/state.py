# SPDX-License-Identifier: BSD-3-Clause
"""A plan under DistributedDataParallel: its communication hook."""
from __future__ import annotations
import gc
import inspect
import json
import logging
import os
import weakref
from typing import Any

import torch
import torch.distributed as dist
from torch.autograd import Variable
from torch.nn.parallel import DistributedDataParallel

from . import library as c
from .common import (agree, callers, let_go, on_gradient, trained, want_count, want_module, want_number,
                     warn, weakly)
from .exchange import (Exchange, Plan, agreed, check_plan, device_of, job, keep, kept, misfit,
                       runs_between_gpus, wants)
from .measure import Clock
from .plan import (PlanError, bucket_bytes, check_names, in_order, inner, read, selects_all,
                   slower_than_none, staleness, synchronous, want, wants_momentum,
                   warms_up_by_epochs)
from .tune import Tuner
from .way import Bucket, choose

_untraced = getattr(torch, "_disable_dynamo", lambda call: call)  # torch.compile leaves it alone
_log = logging.getLogger("gradflow")
_TAKES_LIST = "bucket_cap_mb_list" in inspect.signature(DistributedDataParallel).parameters


def ddp(model: torch.nn.Module, plan: Plan = None, momentum: float = 0.0, epoch_steps: int = 0,
        timeout_s: float | None = None, library: str | None = None,
        tune: bool | dict[str, Any] = False, transport: str | None = None,
        reproducible: bool = False, **arguments: Any) -> DistributedDataParallel:
    """DistributedDataParallel(model, **arguments) that exchanges gradients by plan;
    its attribute `gradflow` is the State. The first arguments are State's. With tune=True, or a
    dictionary of Tuner's settings, a plan is made in the first steps; `gradflow.tuner` is the
    Tuner. With reproducible=True the plan must be one of gf-plan --reproducible, whose sums have
    the same bits however gradients are cut into messages.

    Where this PyTorch takes sizes of buckets, they are the plan's; without a plan on processors
    there are sixteen, of 1 to 25 MiB; unless arguments has others.

    The model that is returned holds the State, and the State the parameters and the connections.
    All go with it; its gradflow.close() lets go of connections and hooks before.
    """
    want_module("gradflow.ddp", model)
    settings = Tuner.check("gradflow.ddp", tune)
    if arguments.get("mixed_precision"):
        raise TypeError("gradflow.ddp: mixed_precision: want None: with it, PyTorch's model has a "
                        "hook of its own: use autocast, or a plan with codec f16 or bf16")
    _check_bare(model)
    group = _group_of(arguments)
    document, where = _agreed(plan, group, library)
    if reproducible and not (document or {}).get("reproducible"):
        raise PlanError(f"{where}: reproducible: want a plan of gf-plan --reproducible"
                        if document else "gradflow.ddp: reproducible: want a plan, got none")
    if not {"bucket_cap_mb", "bucket_cap_mb_list"} & set(arguments):
        sizes = bucket_bytes(document) if document and _TAKES_LIST else []
        if sizes:
            arguments["bucket_cap_mb_list"] = [size / 2 ** 20 for size in sizes]
        elif not any(p.is_cuda for p in trained(model).values()):
            # on a GPU a bucket costs the host 0.13 ms, which is more than its rest takes
            arguments["bucket_cap_mb"] = _bucket_cap_mb(trained(model).values())
    # when these go is a hint, and PyTorch waits for none of their own all-reduce: with the others
    for hint in ("delay_all_reduce_named_params", "param_to_hook_all_reduce"):
        arguments.pop(hint, None)
    wrapped = DistributedDataParallel(model, **arguments)
    wrapped.gradflow = State(wrapped, document, where=where, momentum=momentum,
                             epoch_steps=epoch_steps, timeout_s=timeout_s, library=library,
                             transport=transport)
    wrapped.register_comm_hook(wrapped.gradflow, hook)
    if tune:
        wrapped.gradflow.tuner = Tuner(wrapped, wrapped.gradflow, **settings)
    return wrapped


def _check_bare(model):
    """A model that is wrapped already would exchange its gradients twice."""
    inner = next((n for n, m in model.named_modules() if isinstance(m, DistributedDataParallel)),
                 None)
    if inner is not None:
        raise TypeError(f"gradflow: {inner or 'the model'} is a DistributedDataParallel model "
                        "already, whose gradients would go twice: give gradflow.ddp the model in "
                        "it (.module), or give the wrapped one a hook: "
                        "model.register_comm_hook(gradflow.State(model, plan), gradflow.hook)")


def _is_wrapped(model):
    """By another DistributedDataParallel model, which is calling this one, as accelerate's
    prepare() has it. Others may be left from an attempt that failed."""
    for caller in (frame.f_locals.get("self") for frame in callers()):
        if issubclass(type(caller), DistributedDataParallel) and \
                vars(caller).get("_modules", {}).get("module") is model:
            return True
    return False


def _group_of(arguments):
    """DistributedDataParallel's group, which the ranks agree in before it is made."""
    mesh = arguments.get("device_mesh")
    if mesh is None:
        return arguments.get("process_group")
    if mesh.ndim != 1:
        raise TypeError(f"gradflow.ddp: device_mesh: want one dimension, got {mesh.ndim}: "
                        'take one by its name, as mesh["data"]')
    return mesh.get_group(0)


def hook(state, bucket):  # PyTorch reads annotations, and takes none as text
    """For model.register_comm_hook(gradflow.State(model, plan), gradflow.hook)."""
    return state.exchange_bucket(bucket)


def _agreed(plan, group, library):
    """The plan as a dictionary, and its name; none if it is slower than none."""
    found, where = agreed(plan, group, library)
    found = inner(found)
    slower = slower_than_none(found)
    if not slower:
        return found, where
    if dist.get_rank(group) == 0:
        _log.warning("%s: predicts steps of %.1f ms, and without a plan they took %.1f ms: "
                     "going without", where, slower[0] * 1e3, slower[1] * 1e3)
    return None, "plan"


def _bucket_cap_mb(parameters):
    """What is under way when backward ends is the last bucket, about. A MiB costs the same as a
    part of something larger."""
    size = sum(p.numel() * p.element_size() for p in parameters)
    return min(max(size / 16 / 2 ** 20, 1), 25)


def _some(names):
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _remedy(model):
    """Where a backward has not reached all parameters."""
    if getattr(model, "static_graph", False):
        return ("a static graph reaches the same ones in every step: give the "
                "DistributedDataParallel model find_unused_parameters=True in place of "
                "static_graph=True")
    early = "if an exception has ended that backward, wrap the model anew"
    if model.find_unused_parameters:
        return ("a loss that reaches them and does not depend on them, as one of derivatives alone, "
                "makes none: freeze them (requires_grad_(False)), or add 0 * parameter.sum() to the "
                "loss; " + early)
    return ("give the DistributedDataParallel model find_unused_parameters=True, or use it in the "
            "loss on every rank; " + early)


def _original(name):
    """A parameter's name in the model that torch.compile was given."""
    return name.replace("_orig_mod.", "")


def _in_functional_call():
    """Of torch.func, or of torch.nn.utils.stateless: for one call the model has other parameters
    than its own."""
    return any(frame.f_code.co_name in ("functional_call", "_functional_call") for frame in callers())


def _is_in_backward():
    try:
        Variable._execution_engine.queue_callback(lambda: None)
    except RuntimeError:
        return False
    return True


class _Unhooked:
    """What a copy of the model has in place of the State: PyTorch gives it no hook."""

    def __call__(self, *_):
        pass

    def __getattr__(self, name):
        raise AttributeError(f"gradflow: {name}: a copy of the model has no exchange: give "
                             "gradflow.ddp a copy of model.module")


class State:
    """Of the hook, for one DistributedDataParallel model:

        model.register_comm_hook(gradflow.State(model, plan), gradflow.hook)

    plan is a file, which rank 0 reads, or a dictionary; None: each bucket is a message over a ring.
    momentum is the optimiser's, for selections that have momentum; 0: it has none, as AdamW.
    epoch_steps is for those whose density changes in the first epochs.
    timeout_s is how long ranks may wait for one that is late; a rank that ends is noticed at once.
    transport is for parameters on GPUs: nccl, which takes one rank per
    GPU and plans that are dense or have csc, topk or gtopk, or ucx, by the host; None:
    nccl if it can be.

    The model holds it, and it holds the parameters and the connections, but not the model. It goes
    with the model, and its hooks on the parameters with it, or by close().

    All ranks of the model's process group make it together. Where gradients lie in a bucket in the
    plan's order, they are not copied. PyTorch arranges buckets anew after the first step; the
    exchange follows before the third or fourth.
    """

    def __init__(self, model: DistributedDataParallel, plan: Plan = None, momentum: float = 0.0,
                 epoch_steps: int = 0, timeout_s: float | None = None, library: str | None = None,
                 where: str = "plan", transport: str | None = None):
        if not isinstance(model, DistributedDataParallel):
            raise TypeError("gradflow.State: want a model of DistributedDataParallel, got "
                            f"{type(model).__name__}")
        if getattr(model, "_use_python_reducer", False):
            raise RuntimeError("gradflow: torch._dynamo.config.optimize_ddp = \"python_reducer\": "
                               "want another mode, such as \"ddp_optimizer\", before the model is "
                               "wrapped: this one gives the hook no buckets")
        want_number("gradflow: momentum", momentum)
        want_number("gradflow: timeout_s", 0 if timeout_s is None else timeout_s)
        want_count("gradflow: epoch_steps", epoch_steps)
        _check_bare(model.module)
        if any(hasattr(p, "_st_info") for p in model.module.parameters()):
            raise TypeError("gradflow: want a model whose forward uses the parameters that it was "
                            "wrapped with, got one of tensor parallel (_pre_dp_module_transform), "
                            "which makes others: use fully_shard and gradflow.hsdp beside "
                            "tensor parallel")
        self.group = model.process_group
        self.model = weakref.ref(model)
        if isinstance(plan, (str, os.PathLike)):
            plan, where = _agreed(plan, self.group, library)
        elif plan is not None:
            check_plan(*read(plan), library)
        self.ignored = {_original(n) for n in model.parameters_to_ignore}
        self.parameters = {_original(n): p for n, p in trained(model.module).items()
                           if _original(n) not in self.ignored}
        self.names = {id(p): n for n, p in self.parameters.items()}
        self.types = {n: p.dtype for n, p in self.parameters.items()}
        self.places = [(held, n, x, getattr(x, "requires_grad", None) is False) for m in model.module.modules()
                       for held in (m._parameters, m._modules) for n, x in held.items() if x is not None]
        plan = inner(plan)
        self.plan, self.where = plan, where
        if wants_momentum(plan) and not momentum and dist.get_rank(self.group) == 0:
            warn(f"gradflow: {where}: /selection/decay is the optimiser's momentum, and "
                 "momentum is 0: what is not sent waits undiminished: give momentum= of "
                 "the optimiser, or plan with a decay of its own")
        if warms_up_by_epochs(plan) and not epoch_steps and dist.get_rank(self.group) == 0:
            warn(f"gradflow: {where}: /selection/warmup_densities count epochs, and "
                 "epoch_steps is 0: the warm-up is left out: give epoch_steps=, or plan "
                 "with --selection warmup_densities=none")
        device = device_of(self.parameters)
        self.settings = {"group": self.group, "momentum": momentum, "library": library,
                         "epoch_steps": epoch_steps, "timeout_s": timeout_s}
        failure = None
        try:
            if plan is not None:
                check_names(plan, where, self.parameters)
            late = staleness(plan, where, epoch_steps)
            want(late[0] == 1 or not model.find_unused_parameters, f"{where}: /pipeline/staleness",
                 "1 with find_unused_parameters: a mean that comes late would be lost where its parameter is "
                 "unused then", late[0])
        except PlanError as e:
            failure = e
        agree(self.group, failure)
        wide = any(c.dtype(p) == torch.float64 for p in self.parameters.values())
        try:
            self.way = choose(device, self.group, transport, lambda: not wide and runs_between_gpus(
                plan and json.dumps(plan), library), *late)
        except ValueError as e:
            failure = e
        agree(self.group, failure)
        self.settings["stream"] = self.way.stream
        # backward makes the last layer's gradients first
        self.exchange = None
        self._open(list(reversed(self.parameters)))
        self.buckets = {}
        self.first = True
        self.skips = getattr(model, "skip_all_reduce_unused_params", False)
        self.present = None   # an exchange that counts the ranks that train, within join()
        self.scale = 1.0      # of this step's gradients
        self.begun = False    # a bucket of this step has come
        self.tuner = None     # of gradflow.ddp(..., tune=True)
        self.gradients = None  # of gradflow.Record(..., statistics=True)
        self.told_sparse = self.told_others = False
        self.alone = False    # nothing has wrapped the model again: looked for once
        self.moved = True     # buckets have changed in this step
        self.settled = False  # the exchange is as they are
        self.pending = []     # (future, bucket, buffer): of this step
        self.clock = Clock(device)
        self.finished = None  # when its means had come, by the clock
        self.due = False      # the latest forward is of a step that exchanges
        self.done = True      # means have come since then
        self.reached = set()  # parameters that backward has reached since then
        self.watched = {n: on_gradient(p, weakly(self._reach, n))
                        for n, p in self.parameters.items()}
        self.unwatch = let_go(self, self.watched)
        model.register_forward_pre_hook(self)

    def __reduce__(self):
        return _Unhooked, ()

    def _open(self, order, messages=None, ways=None):
        """An exchange for tensors in that order takes the place of the one before."""
        plan = self.plan and json.dumps(in_order(synchronous(self.plan), order))
        before = self.exchange
        if before:
            self.way.settle(before)
        named = {n: self.parameters[n] for n in order} or {"nothing dense": c.one_number()}
        try:
            self.exchange = Exchange(named, plan, messages, ways=ways, **self.settings)
        except RuntimeError as e:
            if not plan:
                raise
            # the name that the caller knows
            raise PlanError(str(e).replace("plan_text", self.where)) from None
        if before:
            self.exchange.restored(before.steps)
            before.close()
        self.order, self.messages = order, messages
        self.numbers = {n: i for i, n in enumerate(order)}

    @_untraced
    def __call__(self, model, _):
        """Before forward: the step before has ended, and the model is still the one that was
        wrapped."""
        if not torch.is_grad_enabled():
            return
        if not self.alone and _is_wrapped(model):
            raise RuntimeError(
                "gradflow: the model has been wrapped in DistributedDataParallel again, as "
                "accelerate's prepare() does, and its gradients would go twice: prepare the bare "
                "model, then give the prepared one a hook: "
                "model.register_comm_hook(gradflow.State(model, plan), gradflow.hook)")
        if self.plan and not self.alone and dist.get_rank(self.group) == 0:
            self._judge_optimizers()
        self.alone = True
        begun = bool(self.pending) or self.due and not self.done and bool(self.reached)
        if begun or not self.settled or self._has_others():
            self._check_model(model, begun)
        if begun:
            left = ([n for n in self.watched if n not in self.reached] or
                    [n for n, p in self.parameters.items() if p.grad is None])
            raise RuntimeError(
                "gradflow: want a gradient of every parameter in each backward, got none of " +
                _some(left or ["a parameter"]) + ": " + _remedy(model))
        self.due, self.done = model.require_backward_grad_sync, False
        self.reached.clear()

    def _judge_optimizers(self):
        """A warning of what is too much for gradients that come late or in part."""
        for o in gc.get_objects():
            # one whose __init__ has failed has none
            if issubclass(type(o), torch.optim.Optimizer) and any(
                    id(p) in self.names for g in vars(o).get("param_groups", ()) for p in g["params"]):
                wanted = wants(self.plan, o, self.settings["library"])
                if wanted:
                    warn(f"gradflow: {self.where}: want of {type(o).__name__} {wanted}")

    def _has_others(self):
        """Have parameters been replaced, or frozen ones been let loose, since the model was wrapped?"""
        return any(held.get(n) is not x or frozen and x.requires_grad for held, n, x, frozen in self.places)

    def _check_model(self, model, begun):
        """Parameters may be frozen for a while, as GANs do, in passes that reach none."""
        for n, p in self.parameters.items():
            if p.dtype != self.types[n]:
                raise RuntimeError(f"gradflow: {n}: want {self.types[n]}, as when the model was "
                                   f"wrapped, got {p.dtype}: convert a model before wrapping it")
        found = {_original(n): p for n, p in trained(model.module).items()}
        every = {_original(n) for n, _ in model.module.named_parameters()}
        added = [n for n in found if n not in self.ignored and
                 self.parameters.get(n) is not found[n]]
        gone = [n for n in self.parameters if n not in found]
        if added and not begun and _in_functional_call():
            self._tell_others(added)
            return
        if added or gone and (begun or not every.issuperset(gone)):
            raise RuntimeError(
                "gradflow: the model has changed since it was wrapped, it " +
                " and ".join(f"{verb} {_some(names)}" for verb, names in
                             (("also trains", added), ("does not train", gone)) if names) +
                ": wrap it after all parameters have been made and frozen")

    def _tell_others(self, names):
        if not self.told_others:
            warn(f"gradflow: functional_call has given the model another {_some(names)}, "
                 "whose gradients are not exchanged")
        self.told_others = True

    def _reach(self, name):
        """Backward has made that gradient."""
        self.reached.add(name)
        if self.due and self.done:
            self.due = False  # says it once
            warn(f"gradflow: a second backward since forward: {name} gets a gradient that is not "
                 "exchanged: add the losses up for one backward, or run the earlier ones in "
                 "no_sync()")

    # --- a step ---

    def exchange_bucket(self, bucket):
        """What hook does: a future of the bucket with the means."""
        starts, self.begun = not self.begun, True
        if starts:
            self.scale = self._scale_of_join()
        future = self._take(bucket)
        # a backward that skips buckets may have no last one
        skips = self.skips and _is_in_backward() and not self._begins_static()
        if starts if skips else bucket.is_last():
            self._finish_later()
        return future

    def _take(self, bucket):
        buffer, ids = bucket.buffer(), tuple(map(id, bucket.parameters()))
        if buffer.layout is not torch.strided:
            return self._take_sparse(buffer)
        if self.scale != 1:
            buffer.mul_(self.scale)
        known = self.buckets.get(bucket.index())
        if known is None or known.ids != ids or known.dtype != buffer.dtype:
            known = self._learn(bucket, ids)
        future = self.way.take(self.exchange, known, buffer)
        self.pending.append((future, known, buffer))
        return future

    def _take_sparse(self, buffer):
        """As DistributedDataParallel does without a hook."""
        if not self.told_sparse and dist.get_rank(self.group) == 0:
            _log.info("sparse gradients go by the process group, not by the plan")
        self.told_sparse = True
        buffer.mul_(self.scale / dist.get_world_size(self.group))
        work = dist.all_reduce(buffer, group=self.group, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    def _scale_of_join(self):
        """Within join(divide_by_initial_world_size=False) means are over the ranks that still
        train, which an exchange of one number counts."""
        if not self._is_joining() or self.model()._divide_by_initial_world_size:
            return 1.0
        if self.present is None:
            settings = {k: self.settings[k] for k in ("group", "library", "timeout_s")}
            self.present = Exchange({"present": c.one_number()}, messages=[1], **settings)
        share = c.one_number(_is_in_backward())
        self.present.post(0, share)
        self.present.wait()
        return 1 / share.item()

    def _finish_later(self):
        """At backward's end, which other models or inputs may yet put off: DDP's own callback is
        the next. A static graph's first callback is DDP's, though, and with
        require_manual_backward_finalization a hook of the job's may be."""
        manual = getattr(self.model(), "require_manual_backward_finalization", False)
        if (self.first or manual) and not self.skips or self._begins_static() or \
                not _is_in_backward():  # as in DDP's join()
            self.first = False
            self._finish()
        else:
            Variable._execution_engine.queue_callback(self._finish)

    def _begins_static(self):
        """Is this a static graph's first backward, of which no bucket is skipped?"""
        return self.first and getattr(self.model(), "static_graph", False)

    def _learn(self, bucket, ids):
        buffer = bucket.buffer()
        parameters = [p for p in bucket.parameters() if p.numel()]
        names = [self.names.get(id(p)) for p in parameters]
        if None in names:
            raise RuntimeError("gradflow: a bucket has a parameter that the State does not know: "
                               "want a State of its own for each model, made after all of its "
                               "parameters")
        for n in names:
            if buffer.dtype not in (self.parameters[n].dtype, c.dtype(self.parameters[n])):
                raise RuntimeError(f"gradflow: {n}: want a gradient of {self.parameters[n].dtype}, "
                                   f"as when the State was made, got {buffer.dtype}, as from a "
                                   "wrapper around the hook, such as bf16_compress_wrapper: plan "
                                   "with a codec in its place (gf-plan --codecs bf16)")
        offsets = [g.data_ptr() - buffer.data_ptr() for g in bucket.gradients() if g.numel()]
        # a bucket of complex gradients is one of pairs, of which gradients() counts half
        wide = 2 if parameters and parameters[0].is_complex() and not buffer.is_complex() else 1
        places = zip(names, [wide * o for o in offsets], [wide * p.numel() for p in parameters])
        known = Bucket(bucket.index(), ids, buffer, sorted(places, key=lambda place: place[1]))
        known.number(self.numbers)
        self.buckets[bucket.index()] = known
        self.moved = True
        return known

    def _finish(self):
        pending, self.pending, self.begun = self.pending, [], False
        self.way.finish(self.exchange, pending)
        self.finished, self.done = self.clock.now(), True
        self._follow([bucket.index for _, bucket, _ in pending])
        if self.gradients and not self._is_joining():
            self.gradients.meet(self.steps - 1)
        if self.tuner and not self._is_joining():
            self.tuner.advance()

    def _follow(self, indices):
        """Messages are laid out as the step's buckets are, once these stay as they are. The end of
        backward is where all ranks are: a forward may be one rank's alone."""
        if self.moved:
            self.moved, self.settled = False, False
            self.buckets = {i: self.buckets[i] for i in indices}
            return
        if self.settled or self._is_joining():
            return
        self.settled = True
        for n in list(self.watched)[1:-1]:  # the ends tell that backward has begun
            self.watched.pop(n).remove()
        if self.plan and not selects_all(self.plan):
            return
        buckets = [self.buckets[i] for i in indices]
        order = [n for b in buckets for n in b.names]
        messages = None if self.plan else [len(b.names) for b in buckets if b.names]
        if (order, messages) != (self.order, self.messages) and len(order) == len(self.order):
            self._open(order, messages)
            for b in self.buckets.values():
                b.number(self.numbers)

    def _is_joining(self):
        """In join() a rank that has ended calls the hook outside backward, at another point among
        the group's collectives than ranks that train: none may be opened there."""
        return getattr(getattr(self.model(), "_join_config", None), "enable", False)

    def rest(self):
        """Gradients that come now are not this model's: its parameters are used beside it."""
        self.due = False

    # --- for the Tuner ---

    options = ()  # of gf-plan, for plans of this kind

    @property
    def steps(self):
        return self.way.steps

    @property
    def device(self):
        """Where messages go from GPU to GPU; else None."""
        return self.way.device if self.way.stream else None

    def tell(self, call):
        """Have call(name) run when a gradient has been made. Returns hooks."""
        return [on_gradient(p, weakly(call, n)) for n, p in self.parameters.items()]

    def former(self):
        """What take() goes back by."""
        return self.plan, self.where, self.messages

    def take(self, plan: dict[str, Any] | None, where: str = "plan",
             messages: list[int] | None = None) -> None:
        """Goes on by another plan that holds nothing back, on all ranks, between steps.
        If it cannot be executed, all stays as it was."""
        before = self.plan, self.where
        try:
            for found, of in ((plan, where), before):
                late = staleness(found, of)[0]
                want(late == 1, f"{of}: /pipeline/staleness", "1 of plans that take turns", late)
            check_names(plan or {}, where, self.parameters)
            self.plan, self.where = plan, where
            self._open(self.order, messages)
        except (PlanError, RuntimeError):
            self.plan, self.where = before
            raise

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """What this rank holds back, means that a stale plan has not handed out yet, and how
        messages are laid out: each rank keeps its own, between steps."""
        means = self.way.state(self.exchange)
        return keep({**job(self.plan, self.group), "order": list(self.order),
                     "messages": self.messages, "in_flight": means, **self.exchange.state_dict()},
                    "version", "ranks", "steps")

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Goes on from there, bit for bit; on all ranks, between steps."""
        saved, failure = kept(saved)
        plan = saved.get("plan") if self.tuner and not failure else self.plan
        failure = failure or misfit(saved, plan, self.group)
        if not failure and sorted(saved["order"]) != sorted(self.parameters):
            failure = ValueError("state: order: want the parameters of this model")
        agree(self.group, failure)
        if self.tuner:  # which has decided before
            self.tuner.end()
        self.plan = plan
        self._open(saved["order"], saved["messages"], saved["ways"])
        self.exchange.load_state_dict(saved, self.group)
        self.way.restore(saved.get("in_flight", {}), saved["steps"])
        self.buckets, self.moved = {}, True

    def rescale(self, factor: float) -> None:
        """A loss scale has changed by that factor: so does what this rank holds back, and what is under
        way. Between steps."""
        self.way.settle(self.exchange)
        self.way.rescale(factor)
        self.exchange.rescale(factor)

    def close(self) -> None:
        """Ends the connections, on all ranks, and hooks on the parameters; at the end of the
        process it is done for you."""
        self.unwatch()
        self.exchange.close()
        if self.present is not None:
            self.present.close()
