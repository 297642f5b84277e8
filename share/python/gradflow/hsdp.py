# SPDX-License-Identifier: BSD-3-Clause
"""The means over replicas of a model that fully_shard has sharded."""
import json

import torch

from .common import agree
from .exchange import Exchange, job, misfit
from .plan import PlanError, read


def hsdp(model, group, plan=None, timeout_s=1800, library=None):
    """fully_shard's model, whose shards have replicas on the ranks of group, gets the
    means of gradients over them by gradflow. Returns the Replicas.

        mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicas", "shards"))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["shards"])
        fully_shard(model, mesh=mesh["shards"])
        gradflow.hsdp(model, mesh["replicas"].get_group(), plan)

    Each module that fully_shard was called for has an exchange of its own, opened in the
    first backward. plan is a rule of gf-plan, a file or a dictionary, with any codec and
    selection; None: a ring. All ranks make it together, before the first backward.
    """
    return Replicas(model, group, plan, timeout_s, library)


class Replicas:
    """The exchange of one model's shards with their replicas."""

    def __init__(self, model, group, plan, timeout_s, library):
        modules = {n or "model": m for n, m in model.named_modules()
                   if hasattr(m, "set_all_reduce_hook")}
        if not modules:
            raise TypeError("gradflow.hsdp: want a model of fully_shard, got "
                            f"{type(model).__name__}: call fully_shard first")
        self.group, self.plan = group, None
        failure = None
        try:
            self.plan = plan and self._check(*read(plan))
        except (OSError, ValueError) as e:
            failure = e
        agree(group, failure)
        self.modules = set(modules)
        self.settings = {"group": group, "timeout_s": timeout_s, "library": library}
        self.exchanges = {}  # by module
        self.saved = {}      # by module: what an exchange begins with when it is opened
        for name, module in modules.items():
            module.set_all_reduce_hook(lambda shard, name=name: self._mean(name, shard))

    @staticmethod
    def _check(plan, where):
        if "rule" not in plan:
            raise PlanError(f"{where}: want a rule (gf-topo | gf-plan), which fits any shards, "
                            "got a plan of whole gradients")
        return plan

    def _mean(self, name, shard):
        """fully_shard's hook: the shard's gradients become the mean. fully_shard uses them
        as soon as this returns."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            if shard.device.type == "cuda":  # fully_shard's for this hook, in each step
                self.settings["stream"] = torch.cuda.current_stream(shard.device)
            saved = self.saved.pop(name, None)
            exchange = self.exchanges[name] = Exchange(
                {name: shard}, self.plan and json.dumps(self.plan),
                None if self.plan else [1], ways=saved and saved["ways"], **self.settings)
            if saved:
                exchange.load_state_dict(saved, self.group)
        exchange.post(0, shard.data_ptr())
        exchange.wait()

    @property
    def sent_bytes(self):
        return sum(x.sent_bytes for x in self.exchanges.values())

    def state_dict(self):
        """What this rank holds back: each rank keeps its own, between steps."""
        modules = {n: x.state_dict() for n, x in self.exchanges.items()}
        return {**job(self.plan, self.group), "modules": {**self.saved, **modules}}

    def load_state_dict(self, saved):
        """Goes on from there, bit for bit; on all ranks, between steps."""
        failure = misfit(saved, self.plan, self.group)
        unknown = [n for n in saved["modules"] if n not in self.modules] if not failure else []
        if unknown:
            failure = ValueError(f"state: modules: {unknown[0]}: want modules of this model")
        agree(self.group, failure)
        self.close()
        self.exchanges, self.saved = {}, dict(saved["modules"])

    def close(self):
        """Ends the connections, on all ranks of the group; at the end of the process it
        is done for you."""
        for exchange in self.exchanges.values():
            exchange.close()
