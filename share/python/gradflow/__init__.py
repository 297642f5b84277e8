# SPDX-License-Identifier: BSD-3-Clause
"""Plans of gf-plan in a PyTorch job, over torch.distributed (gloo, NCCL, MPI).

When the job's ranks are up and the model is built, before the first step:

    import gradflow

    gradflow.profile(model, loss, "model.json", name="mine", batch=32)
    gradflow.exchange_costs("network.json")

and with the plan of `gf-plan model.json network.json > plan.json`, on CPUs:

    model = gradflow.ddp(model, "plan.json")

This is DistributedDataParallel with a communication hook: libgradflow exchanges the
gradients as the plan says, and all else in the job stays as it is. What it does not do
yet (GPUs, stale gradients, traces), a Reducer does over the backend's own all-reduce:

    reducer = gradflow.Reducer(model, "plan.json")
    for ...:
        loss().backward()     # messages leave while backward still runs
        reducer.finish()      # .grad is now the mean over all ranks
        optimizer.step()
        optimizer.zero_grad()

A Reducer takes the place of DistributedDataParallel. It follows the plan in all
that torch.distributed can do: which tensors share a message, their order, the
gradients that each message waits for, how many messages are under way at once,
f32, f16 or bf16 on the wire, and gradients that are K - 1 steps old (Pipe-SGD).
The all-reduce algorithm is the backend's own. Plans that need another executor
(csc, topk, gtopk, split messages, parameter servers, trunc16, q8, fp8, fp4) are
refused.

gradflow's own runtime executes all of those but servers, on CPUs and over MPI:

    runtime = gradflow.Runtime(model, "plan.json", momentum=0.9)
    for ...:
        loss().backward()
        runtime.step(rate)
"""
from .ddp import State, ddp, hook
from .exchange import Exchange
from .hsdp import Replicas, hsdp
from .measure import exchange_costs, network, profile
from .plan import PlanError
from .record import Record
from .reducer import Reducer
from .runtime import Runtime

__all__ = ["Exchange", "PlanError", "Record", "Reducer", "Replicas", "Runtime", "State", "ddp",
           "exchange_costs", "hook", "hsdp", "network", "profile"]
