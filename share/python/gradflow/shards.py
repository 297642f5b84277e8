# SPDX-License-Identifier: BSD-3-Clause
"""fully_shard, whose parameters and gradients go by gradflow."""
from __future__ import annotations
import contextlib
import time
import weakref
from typing import Any

import torch
import torch.distributed as dist

from . import library as c
from .common import agree, named, trained
from .exchange import Exchange, Plan, agreed
from .measure import Calls, Clock
from .plan import PlanError, between, blocks, check_names, units, want, within
from .replicas import Replicas, groups_of, has_replicas, sharded, take_replicas
from .tune import Tuner


def shard(model: torch.nn.Module, plan: Plan = None, mesh: Any = None,
          timeout_s: float | None = None, library: str | None = None,
          tune: bool | dict[str, Any] | None = None, **how: Any) -> torch.nn.Module:
    """fully_shard of the model, whose all-gathers and reduce-scatters libgradflow does, on
    processors. Returns the model, whose attribute gradflow is the Shards.

        model = gradflow.shard(model, "plan.json")
        optimizer = torch.optim.AdamW(model.parameters())

    plan is one of gf-plan --shard zero3 or zero2, or a rule: a file, a text or a dictionary; rank
    0's counts. fully_shard is called for its units, which stay gathered and are gathered ahead as
    it says; by a rule and without a plan for each block (layers.0). Without a plan the job makes
    one in its first steps (Tuner): fully_shard's own messages stay unless steps have become faster.
    tune has other settings of that; with False, and for replicas without a plan, units go by a ring
    in f32. A model that fully_shard has had already is taken as it is. mesh is fully_shard's, of
    shards or of replicas and shards; between replicas go the rule's selection and codec. how are fully_shard's
    other arguments; reshard_after_forward is for all units, whatever the plan keeps. All ranks of
    the mesh make it together, before the first forward.
    """
    failure = None
    groups = list(sharded(model))
    if tune is None:
        tune = plan is None and (mesh is None or mesh.ndim == 1) and not any(has_replicas(g) for *_, g in groups)
    settings = Tuner.check("gradflow.shard", tune)
    device = mesh.device_type if mesh is not None else "cpu"
    on = {device, *(p.device.type for p in model.parameters())} - {"cpu", "meta"}
    if on:
        failure = ValueError(f"gradflow.shard: want parameters on processors, got {on.pop()}: there "
                             "fully_shard alone goes by NCCL, and gradflow.hsdp between replicas")
    elif groups and (mesh is not None or how):
        failure = ValueError("gradflow.shard: want no mesh and arguments for a model that "
                             "fully_shard has had, got some: give them to fully_shard")
    group = groups[0][2].mesh_info.shard_process_group if groups and not failure else \
        mesh.get_group(mesh.ndim - 1) if mesh is not None and "dp_mesh_dims" not in how else None
    agree(group, failure)
    found, where = agreed(plan, group, library)
    if found is not None and "rule" not in found:
        failure = _misfit(found, where, model, groups)
    agree(group, failure)
    if not groups and not hasattr(model, "set_custom_all_gather"):  # or one without parameters
        _call_fully_shard(model, found, where, mesh, how)
    model.gradflow = Shards(model, found, timeout_s, library, group, not tune)
    if tune:
        model.gradflow.tuner = Tuner(model, model.gradflow, **settings)
    return model


def _misfit(plan, where, model, groups):
    """Why the plan is none of this model's shards; or None."""
    try:
        want(plan.get("shard", {}).get("method") in ("zero2", "zero3"), f"{where}: /shard/method",
             "zero3 or zero2 (gf-plan --shard zero3)", plan.get("shard", {}).get("method"))
        if not groups:
            check_names(plan, where, trained(model))
            units(plan, where)
    except PlanError as e:
        return e
    return None


def _call_fully_shard(model, plan, where, mesh, how):
    """Inner modules first, the root last."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = mesh or init_device_mesh("cpu", (dist.get_world_size(),))
    modules = {n.replace("_orig_mod.", ""): m for n, m in model.named_modules()}
    lists = torch.nn.ModuleList, torch.nn.ModuleDict  # without a forward
    made = [([n], False) for n in blocks(named(model), lambda n: not isinstance(modules[n], lists))]
    if plan is not None and "rule" not in plan:
        whole = made
        made = [unit for unit in units(plan, where) if unit[0]]
        left = [unit for unit in whole if _is_left(model, unit[0][0], made)]
        if left:
            made = sorted(made + left, key=lambda unit: list(modules).index(unit[0][0]))
    rest = list(made)
    while rest:
        names, keep = unit = next(u for u in rest if not any(
            n.startswith(m + ".") for m in u[0] for v in rest if v is not u for n in v[0]))
        rest.remove(unit)
        fully_shard([modules[n] for n in names], mesh=mesh,
                    **{"reshard_after_forward": not keep, **how})
    fully_shard(model, mesh=mesh, **{"reshard_after_forward": False, **how})
    order, ahead = [modules[u[0][0]] for u in made], (plan or {}).get("shard", {}).get("ahead", 1)
    for i, module in enumerate(order):
        module.set_modules_to_forward_prefetch(order[i + 1:i + 1 + ahead])
        if ahead > 1:  # one is PyTorch's own, in the order in which modules ran
            module.set_modules_to_backward_prefetch(order[max(i - ahead, 0):i][::-1])


def _is_left(model, name, made):
    """Has the module parameters outside these units which are all frozen, so that no plan knows them?"""
    rest = [p for n, p in named(model).items() if n.startswith(name + ".") and
            not any(n.startswith(m + ".") for unit in made for m in unit[0])]
    return bool(rest) and not any(p.requires_grad for p in rest)


class _Compute(Clock):
    """Moments of a step, and how long fully_shard had waited for messages by then."""

    def __init__(self):
        super().__init__(torch.device("cpu"))
        self.waited_s = 0.0

    def now(self):
        return time.perf_counter(), self.waited_s

    def between(self, a, b):
        return self.whole(a, b) - (b[1] - a[1])

    def whole(self, a, b):
        return b[0] - a[0]

    @contextlib.contextmanager
    def waiting(self):
        start = time.perf_counter()
        try:
            yield
        finally:
            self.waited_s += time.perf_counter() - start


class _Gathering(dist.Work):
    """An all-gather that is under way. fully_shard waits where it copies out."""

    def __init__(self, exchange, number, clock):
        super().__init__()
        self.exchange, self.number, self.clock = exchange, number, clock

    def wait(self, timeout=None):  # pylint: disable=unused-argument  # the exchange has its own
        with self.clock.waiting():
            self.exchange.wait_half(self.number)
        return True


class Shards:
    """The exchanges of one model's units, which hold connections. A reduce-scatter is waited for in
    its place, unless nothing reads its gradients before backward has ended: then it goes on beside
    backward. The model's modules hold the Shards, and it holds the model."""

    options = ["--shard", "zero3:units=block,ahead=1,keep=no"]  # of gf-plan, for the Tuner
    device = None

    def __init__(self, model, plan, timeout_s, library, group, moves=True):
        self.model, self.settings = model, {"timeout_s": timeout_s, "library": library}
        self.group, self.parameters, self.clock = group, trained(model), _Compute()
        self.tuner, self.told = None, None
        self.steps, self.ending, self.finished = 0, -1, self.clock.now()
        self.units = list(sharded(model))
        self.exchanges = {}  # by the ranks of their groups; where fully_shard goes on as it is, none
        self.reducing = []   # (exchange, number, own part, where it goes, that one's version)
        self.hooked = -1, False  # backward's number, and whether modules have hooks of it
        self.reduced = [0, 0]    # how many reduce-scatters, and how many beside backward
        self.replicas = None
        agree(group, self._unfit())
        names = {id(p): n for n, p in named(model).items()}
        # the job may put other parameters in the place of these
        self.names = [[names.get(id(p.sharded_param)) for p in g.fsdp_params] for _, _, g in self.units]
        self.first = [next((n for n in unit if n in self.parameters), None) for unit in self.names]
        self.sizes = {n or "the root": sum(p.padded_sharded_param_size.numel() for p in g.fsdp_params) *
                      g.mesh_info.shard_mesh_size for n, _, g in self.units}
        replicas = take_replicas([g for _, _, g in self.units])
        if replicas is not None:
            self.replicas = Replicas(model, replicas, plan and between(plan), timeout_s, library, False)
        for index, (_, module, g) in enumerate(self.units):
            self._install(index, module, g)
        self._use(plan, moves)

    def _use(self, plan, moves):
        for exchange in self.exchanges.values():
            exchange.close()
        self.exchanges, self.plan, self.moves = {}, plan, moves
        self.by_unit = plan and self._within(plan)
        for _, _, g in self.units if moves else ():
            if g.mesh_info.shard_mesh_size > 1:
                self._exchange(g, g.mesh_info.shard_process_group)

    def _within(self, plan):
        messages = {t["name"]: i for i, m in enumerate(plan.get("messages", []))
                    for t in plan["tensors"][m["first"]:m["last"] + 1]}
        return within(plan, self.sizes, [messages.get(n, 0) for n in self.first])

    # --- for the Tuner: see State ---

    def tell(self, call):
        self.told = weakref.WeakMethod(call)
        return []

    def former(self):
        return (None,)

    def rest(self):
        """A step that exchanges nothing is none of this."""

    def take(self, plan, where="plan"):  # pylint: disable=unused-argument
        """Goes on by that plan, or as fully_shard does, between two steps."""
        self.finish()
        try:
            self._use(plan, plan is not None)
        except (OSError, RuntimeError, ValueError):
            self._use(None, False)
            raise

    def _made(self, index):
        """A unit's gradients are there."""
        tell = self.told and self.told()
        for name in self.names[index] if tell else ():
            tell(name)
        if self.tuner and self.ending != _backward():
            self.ending = _backward()
            torch.autograd.Variable._execution_engine.queue_callback(self._end)

    def _end(self):
        """Of a backward, where all ranks are."""
        self.finish()
        self.steps, self.finished = self.steps + 1, self.clock.now()
        self.tuner.advance()

    def _unfit(self):
        """Why the model is none whose units gradflow moves; or None."""
        for name, module, g in self.units:
            of = f"gradflow.shard: {name or 'the root module'}"
            if len(groups_of(module)) > 1:
                return ValueError(f"{of}: want one mesh for a module's parameters, got several: call "
                                  "fully_shard for the modules that have another one")
            if not hasattr(module, "set_custom_reduce_scatter") or \
                    not hasattr(g.mesh_info, "shard_process_group"):
                return TypeError(f"{of}: want shards of fully_shard, of a PyTorch that has "
                                 "set_custom_reduce_scatter")
            if g.device.type != "cpu":
                return ValueError(f"{of}: want shards on processors, got {g.device}: leave them to "
                                  "fully_shard, and call gradflow.hsdp for replicas")
            if not all(type(comm).__name__.startswith("Default")
                       for comm in (g._all_gather_comm, g._reduce_scatter_comm)):
                return ValueError(f"{of}: want fully_shard's own all-gather and reduce-scatter, got "
                                  "custom ones: shard a model once, and set none")
        return None

    def _install(self, index, module, g):
        own = g._all_gather_comm, g._reduce_scatter_comm

        def gather(output_tensor, input_tensor, group, async_op=False):
            with self.clock.waiting():
                if not self.moves or not _moves(output_tensor):  # of unlike types, as bytes; or f64
                    return own[0](output_tensor, input_tensor, group, async_op)
                exchange = self._exchange(g, group)
                return _Gathering(exchange, exchange.all_gather(index, output_tensor), self.clock)

        def scatter(output_tensor, input_tensor, group, op, async_op=False):
            kinds = {dist.ReduceOp.SUM: 1.0, dist.ReduceOp.AVG: 0.0,
                     dist.ReduceOp.PREMUL_SUM: g.gradient_divide_factor}
            divisor = next((d for kind, d in kinds.items() if op == kind), None)
            self._made(index)
            if not self.moves or divisor is None or not _moves(input_tensor):
                self.finish()
                with self.clock.waiting():
                    return own[1](output_tensor, input_tensor, group, op, async_op)
            exchange = self._exchange(g, group)
            part = input_tensor.chunk(group.size())[group.rank()]
            number = exchange.reduce_scatter(index, input_tensor, divisor)
            beside = op != dist.ReduceOp.SUM and self._unread(g, output_tensor.dtype)
            self.reducing.append((exchange, number, part, output_tensor, output_tensor._version))
            self.reduced = [self.reduced[0] + 1, self.reduced[1] + beside]
            if beside:
                torch.autograd.Variable._execution_engine.queue_callback(self.finish)
            else:
                self.finish()
            return None

        module.set_custom_all_gather(Calls(gather))
        module.set_custom_reduce_scatter(Calls(scatter, lambda: self.finish(max(
            1, getattr(g.comm_ctx, "reduce_scatter_max_input_buffers", 1)))))

    def _exchange(self, g, group):
        """That of the group's ranks. Parameters that were given back to fewer ranks after forward
        are gathered from these as they were in forward, to the bit."""
        ranks = tuple(dist.get_process_group_ranks(group))
        if ranks not in self.exchanges:
            plan = self.by_unit if group.size() == g.mesh_info.shard_mesh_size else None
            self.exchanges[ranks] = Exchange(
                {n: torch.empty(1).expand(max(s, 1)) for n, s in self.sizes.items()}, plan,
                None if plan else [1] * len(self.sizes), group, halves=True, **self.settings)
        return self.exchanges[ranks]

    def _unread(self, g, dtype):
        """Does nothing read gradients of that type, which become the group's, before the end of
        this backward? PyTorch's foreach_reduce does, in some cases, and so do hooks of the job."""
        now = _backward()
        if now != self.hooked[0]:
            self.hooked = now, any(m._backward_hooks or m._backward_pre_hooks
                                   for m in self.model.modules())
        return now != -1 and not self.hooked[1] and g._all_reduce_hook is None and \
            not g._is_hsdp and all(
                getattr(p, "sharded_grad_dtype", p.orig_dtype) in (None, dtype) and
                p.sharded_param.grad is None and not p.offload_to_cpu and
                not getattr(p.sharded_param, "_post_accumulate_grad_hooks", None)
                for p in g.fsdp_params)

    def finish(self, rest: int = 0) -> None:
        """Gradients that are under way have come, but for the last ones. After a backward that an
        exception has ended, the job may have zeroed some in the meantime."""
        while len(self.reducing) > rest:
            exchange, number, part, output, version = self.reducing.pop(0)
            with self.clock.waiting():
                exchange.wait_half(number)
            if output._version == version:
                output.copy_(part)

    @property
    def sent_bytes(self) -> int:
        return sum(x.sent_bytes for x in [*self.exchanges.values(), *[self.replicas] * bool(self.replicas)])

    def report(self) -> str:
        """What goes how, as text."""
        lines = [f"{n}: {s} elements" for n, s in self.sizes.items()]
        lines += [f"ranks {', '.join(map(str, ranks))}: {x.ways}; {x.sent_bytes} bytes sent"
                  for ranks, x in self.exchanges.items()]
        lines.append("%d reduce-scatters, %d of them beside backward" % tuple(self.reduced))
        return "\n".join(lines) + "\n"

    def state_dict(self) -> dict[str, Any]:
        """What this rank holds back between replicas; nothing without them."""
        return self.replicas.state_dict() if self.replicas else {}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        if self.replicas:
            self.replicas.load_state_dict(saved)

    def close(self) -> None:
        """Ends the connections, on all ranks; at the end of the process it is done for you."""
        for exchange in [*self.exchanges.values(), *[self.replicas] * bool(self.replicas)]:
            exchange.close()


def _moves(tensor):
    """Not a subclass of an extension's, which has no memory of its own."""
    return type(tensor) is torch.Tensor and tensor.numel() > 0 and \
        tensor.dtype in c.DTYPES and tensor.dtype != torch.float64


def _backward():
    """The number of the backward that runs here; -1: none."""
    return torch._C._current_graph_task_id()
