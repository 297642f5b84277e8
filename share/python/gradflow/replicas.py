# SPDX-License-Identifier: BSD-3-Clause
"""The means over replicas of a model that fully_shard has sharded."""
from __future__ import annotations
import dataclasses
import json
from typing import Any

import torch
import torch.distributed as dist

from .common import agree, callers
from .exchange import Exchange, Plan, check_plan, job, keep, kept, misfit
from .plan import PlanError, read


def hsdp(model: torch.nn.Module, group: dist.ProcessGroup, plan: Plan = None,
         timeout_s: float | None = None, library: str | None = None) -> Replicas:
    """fully_shard's model, whose shards have replicas on the ranks of group, gets the means of
    gradients over them by gradflow. Returns the Replicas.

        mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicas", "shards"))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["shards"])
        fully_shard(model, mesh=mesh["shards"])
        gradflow.hsdp(model, mesh["replicas"].get_group(), plan)

    The mesh is the shards' alone: with a mesh of replicas and shards, fully_shard reduces between
    replicas itself. Each module that fully_shard was called for has an exchange of its own, opened
    in the first backward. plan is a rule of gf-plan, a file or a dictionary, with any codec, and
    any selection that needs no shapes; None: a ring. All ranks make it together, before the first
    backward.

    What the model's set_gradient_divide_factor and its like say holds for the mean, too. The
    model's modules hold the Replicas by their all-reduce hooks, and it holds connections and
    gradients that were put off. All go with the model; close() lets go of connections before.
    """
    return Replicas(model, group, plan, timeout_s, library)


def _misshared(model, group):
    """Why the ranks of the group are no replicas of the model's shards; or None. A rank of the
    group may have nothing but this rank in common with a parameter's mesh."""
    own = dist.get_rank()
    others = set(dist.get_process_group_ranks(group or dist.group.WORLD)) - {own}
    for name, parameter in model.named_parameters():
        mesh = getattr(parameter, "device_mesh", None)
        shared = sorted(others & set(mesh.mesh.flatten().tolist())) if mesh is not None else []
        if shared:
            return ValueError(
                f"gradflow.hsdp: {name}: want a group of its replicas, got one with rank "
                f"{shared[0]}, which fully_shard exchanges it with: call "
                'fully_shard(..., mesh=mesh["shards"]) with the shards\' part of the mesh, and '
                'gradflow.hsdp with mesh["replicas"].get_group()')
    return None


def groups_of(module):
    """Where fully_shard keeps what was set for the module: no public call tells."""
    state = getattr(module, "_get_fsdp_state", lambda: None)()
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    return [g for g in groups if g is not None]


def sharded(model):
    """(name, module, group) of what fully_shard moves together, in the order of modules."""
    seen = set()
    for name, module in model.named_modules():
        found = [g for g in groups_of(module) if id(g) not in seen]
        seen.update(id(g) for g in found)
        yield from ((name, module, g) for g in found)


def has_replicas(group):
    return hasattr(group.mesh_info, "replicate_process_group")


def take_replicas(groups):
    """The replicas of this rank's shards as a group, whose means fully_shard leaves to its hook from
    now on; None: there are none."""
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo
    found = None
    for g in groups:
        both = g.mesh_info
        if not has_replicas(g):
            continue
        found = both.replicate_process_group
        g.mesh_info = FSDPMeshInfo(**{f.name: getattr(both, f.name) for f in dataclasses.fields(both)
                                      if f.init and f.name != "replicate_mesh_dim"})
        if g.post_forward_mesh_info == both:
            g.post_forward_mesh_info = g.mesh_info
    return found


def _reduces(module):
    """Not where set_requires_all_reduce(False) has put it off, as in accumulation."""
    return all(getattr(g, "all_reduce_grads", True) for g in groups_of(module))


def _divides(module):
    """By a factor of the job's own, which is that of the sum over all ranks."""
    return any(getattr(g, "gradient_divide_factor", None) is not None for g in groups_of(module))


def _refuse(*_, **__):
    raise RuntimeError("gradflow.hsdp: set_all_reduce_hook: want the hook of gradflow.hsdp alone, "
                       "which exchanges the gradients, got another")


def _parameters():
    """Whose gradients the shard of the hook's call is made of: fully_shard leaves out those that
    have none. PyTorch tells no hook, but its caller knows; None: this PyTorch's does not."""
    frame = next((f for f in callers() if f.f_code.co_name == "foreach_reduce"), None)
    found = frame.f_locals.get("fsdp_params") if frame else None
    return found and [getattr(p, "_param_fqn", None) or str(i) for i, p in enumerate(found)]


class Replicas:
    """The exchange of one model's shards with their replicas."""

    def __init__(self, model, group, plan, timeout_s, library, by_job=True):
        modules = {n: m for n, m in model.named_modules() if hasattr(m, "set_all_reduce_hook")}
        if not modules:
            raise TypeError("gradflow.hsdp: want a model of fully_shard, got "
                            f"{type(model).__name__}: call fully_shard first")
        self.group, self.plan = group, None
        failure = _misshared(model, group) if by_job else None
        try:
            self.plan = plan and self._check(*read(plan), library)
        except (OSError, ValueError) as e:
            failure = failure or e
        agree(group, failure)
        self.modules = set(modules)
        self.settings = {"group": group, "timeout_s": timeout_s, "library": library,
                         "flat": True}
        self.exchanges = {}  # by module; the root's name is empty
        self.opened = {}     # by module: elements, type and parameters of its gradients
        self.saved = {}      # by module: what an exchange begins with when it is opened
        self.held = {}       # by module: gradients of backward passes that exchange none, and
                             # what they are of
        for name, module in modules.items():
            if any(getattr(g, "_all_reduce_hook", None) and "set_all_reduce_hook" not in vars(module)
                   for g in groups_of(module)):
                _refuse()
        for name, module in modules.items():
            type(module).set_all_reduce_hook(
                module, lambda shard, name=name, module=module: self._mean(name, module, shard))
            module.set_all_reduce_hook = _refuse  # that of gradflow.hsdp alone
            for g in groups_of(module):
                if hasattr(g, "_reset_iter_state"):  # by model.reset_iter_state()
                    g._reset_iter_state = lambda name=name, g=g: self._reset(name, g)

    def _reset(self, name, of):
        """Gradients that were put off are lost, as fully_shard's own are."""
        self.held.pop(name, None)
        type(of)._reset_iter_state(of)

    @staticmethod
    def _check(plan, where, library):
        check_plan(plan, where, library)
        if "rule" not in plan:
            raise PlanError(f"{where}: want a rule (gf-topo | gf-plan), which fits any shards, "
                            "got a plan of whole gradients")
        return plan

    def _mean(self, name, module, shard):
        """fully_shard's hook: the shard's gradients become the mean. fully_shard uses them as soon
        as this returns."""
        what = (shard.numel(), shard.dtype, _parameters())
        before, held_of = self.held.pop(name, (None, what))
        self._check_shard(name, module, what, held_of)
        if before is not None:
            shard.add_(before)
        if not _reduces(module):
            self.held[name] = shard.clone(), what
            shard.zero_()
            return
        self._check_shard(name, module, what, self.opened.setdefault(name, what))
        exchange = self.exchanges.get(name)
        if exchange is None:
            if shard.device.type == "cuda":  # fully_shard's for this hook, in each step
                self.settings["stream"] = torch.cuda.current_stream(shard.device)
            saved = self.saved.pop(name, None)
            exchange = self.exchanges[name] = Exchange(
                {name or "root": shard}, self.plan and json.dumps(self.plan),
                None if self.plan else [1], ways=saved and saved["ways"], **self.settings)
            if saved:
                exchange.load_state_dict(saved, self.group)
        exchange.post(0, shard)
        exchange.wait()
        if _divides(module):
            shard.mul_(dist.get_world_size(self.group))

    @staticmethod
    def _check_shard(name, module, what, opened):
        """fully_shard leaves out parameters that have no gradient in a step."""
        if what == opened:
            return
        wanted, found = [f"{elems} elements of {dtype}" + (f" ({', '.join(names)})" if names else "")
                         for elems, dtype, names in (opened, what)]
        keep = getattr(module, "set_reduce_scatter_unused_params", None)
        raise RuntimeError(
            f"gradflow.hsdp: {name or 'the root module'}: want gradients of {wanted}, as in its "
            f"first step, got {found}: " +
            ("call model.set_reduce_scatter_unused_params(True) before the first backward" if keep
             else "let every step use the same parameters"))

    @property
    def sent_bytes(self) -> int:
        return sum(x.sent_bytes for x in self.exchanges.values())

    def state_dict(self) -> dict[str, Any]:
        """What this rank holds back: each rank keeps its own, between steps."""
        modules = {n: x.state_dict() for n, x in self.exchanges.items()}
        return keep({**job(self.plan, self.group), "modules": {**self.saved, **modules}},
                    "version", "ranks")

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Goes on from there, bit for bit; on all ranks, between steps."""
        saved, failure = kept(saved)
        failure = failure or misfit(saved, self.plan, self.group)
        unknown = [n for n in saved["modules"] if n not in self.modules] if not failure else []
        if unknown:
            failure = ValueError(f"state: modules: {unknown[0]}: want modules of this model")
        agree(self.group, failure)
        self.close()
        self.exchanges, self.saved = {}, dict(saved["modules"])

    def close(self) -> None:
        """Ends the connections, on all ranks of the group; at the end of the process it is done for
        you."""
        for exchange in self.exchanges.values():
            exchange.close()
