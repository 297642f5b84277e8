# SPDX-License-Identifier: BSD-3-Clause
"""Plans of gf-plan in a PyTorch job.

When the job's ranks are up and the model is built, before the first step:

    import gradflow

    gradflow.exchange_costs("network.json")
    gradflow.profile(model, loss, "model.json", name="mine", batch=32, network="network.json")

and with the plan of `gf-plan model.json network.json > plan.json`:

    model = gradflow.ddp(model, "plan.json")

This is DistributedDataParallel with a communication hook: libgradflow exchanges the
gradients as the plan says, and all else in the job stays as it is. gradflow.hsdp does
the same between the replicas of fully_shard's shards, and gradflow.Periodic exchanges
between sites every H steps.
"""
from .ddp import State, ddp, hook
from .exchange import Exchange
from .hsdp import Replicas, hsdp
from .measure import exchange_costs, network, profile
from .periodic import Periodic
from .plan import PlanError
from .record import Record

__all__ = ["Exchange", "Periodic", "PlanError", "Record", "Replicas", "State", "ddp",
           "exchange_costs", "hook", "hsdp", "network", "profile"]
