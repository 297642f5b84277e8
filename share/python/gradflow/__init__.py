# SPDX-License-Identifier: BSD-3-Clause
"""Plans of gf-plan in a PyTorch job.

When the job's ranks are up and the model is built, before the first step:

    import gradflow

    gradflow.exchange_costs("network.json")
    gradflow.profile(model, loss, "model.json", name="mine", batch=32, network="network.json")

and with the plan of `gf-plan model.json network.json > plan.json`:

    model = gradflow.ddp(model, "plan.json")

This is DistributedDataParallel with a communication hook: libgradflow exchanges the gradients as
the plan says, and all else in the job stays as it is. gradflow.shard does so for fully_shard,
gradflow.hsdp between replicas of its shards alone, and gradflow.Periodic exchanges between sites every H steps.
`python -m gradflow` says what is installed.
"""
import importlib
import typing

__version__ = "0.4.0"
_PLACES = {"Exchange": "exchange", "Periodic": "periodic", "PlanError": "plan", "Record": "record",
           "Replicas": "replicas", "Shards": "shards", "State": "state", "Tuner": "tune",
           "ddp": "state", "exchange_costs": "measure", "hook": "state", "hsdp": "replicas",
           "memory": "measure", "network": "measure", "profile": "measure", "shard": "shards"}
__all__ = ["__version__", *_PLACES]

if typing.TYPE_CHECKING:
    from .exchange import Exchange as Exchange
    from .measure import exchange_costs as exchange_costs, memory as memory
    from .measure import network as network, profile as profile
    from .periodic import Periodic as Periodic
    from .plan import PlanError as PlanError
    from .record import Record as Record
    from .replicas import Replicas as Replicas, hsdp as hsdp
    from .shards import Shards as Shards, shard as shard
    from .state import State as State, ddp as ddp, hook as hook
    from .tune import Tuner as Tuner


def __getattr__(name: str) -> typing.Any:
    """PyTorch is imported with the first of these: the commands of a wheel need none."""
    if name not in _PLACES:
        raise AttributeError(f"module 'gradflow' has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
    return globals()[name]
