#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""All that fully_shard and DistributedDataParallel let a job set, by this PyTorch's own lists:
with gradflow each has the effect that it has without, or is refused. check_settable.py RANKS
CASE... (forked.py). A name that is not classified here fails."""
import dataclasses
import functools
import inspect
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
import gradflow  # noqa: E402

gradflow.shard = functools.partial(gradflow.shard, tune=False)  # gradflow moves from the first step on

REFUSED = object()
NEAR = 1e-6


def classified(kind, names, known):
    missing = sorted(set(names) - set(known))
    assert not missing, f"{kind}: not classified in {os.path.basename(__file__)}: {', '.join(missing)}"


def outcome(call):
    """What it returns, or the type of what it raises."""
    try:
        return call()
    except Exception as e:  # pylint: disable=broad-except
        return e


def same(name, stock, own):
    """The same parameters; or both fail in the same way, as where only GPUs have it."""
    if isinstance(stock, Exception) or isinstance(own, Exception):
        assert type(stock) is type(own), (name, stock, own)
        return
    assert (stock - own).abs().max().item() < NEAR, (name, (stock - own).abs().max().item())


def refused(name, call, text):
    found = outcome(call)
    assert isinstance(found, (RuntimeError, TypeError, ValueError)) and text in str(found), (name, found)


# --- fully_shard ---

def mesh():
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))


def batch(step):
    return torch.randn(8, 12, generator=torch.Generator().manual_seed(10 * dist.get_rank() + step))


WHOLE = "gradflow.shard"


def sharded(native, both, change=None, **how):
    """A model of two modules and a root; and what gradflow.hsdp or gradflow.shard made. native:
    by neither of them, or by WHOLE."""
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(1)
    model, replicas = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 16), nn.Linear(16, 4)), None
    how = {k: v(model) if callable(v) and k == "ignored_params" else v for k, v in how.items()}
    for module in (model[0], model[2], model):
        fully_shard(module, mesh=both if native else both["shards"], **how)
    if native == WHOLE:
        replicas = gradflow.shard(model).gradflow
    elif not native:
        replicas = gradflow.hsdp(model, both["replicas"].get_group())
    if change:
        change(model)
    return model, replicas


def trained(native, both, change=None, end=None, **how):
    """Its parameters after three steps."""
    model, replicas = sharded(native, both, change, **how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        model(batch(step)).float().square().mean().backward()
        if end:
            end(model)
        for module in model.modules():
            getattr(module, "reshard", lambda: None)()
        optimizer.step()
        optimizer.zero_grad()
    if replicas:
        replicas.close()
    return torch.cat([getattr(p, "full_tensor", lambda p=p: p)().detach().float().reshape(-1)
                      for p in model.parameters()])


def each(name, *values, **how):
    return lambda model: [getattr(m, name)(*values, **how) for m in model.modules() if hasattr(m, name)]


def root(name, *values):
    return lambda model: getattr(model, name)(*values)


def factor(name):
    """gloo has no PREMUL_SUM."""
    return lambda model: (each("set_force_sum_reduction_for_comms", True)(model), each(name, 3.0)(model))


def put_off(name):
    def change(model):
        getattr(model, name)(False)
        model(batch(7)).square().mean().backward()
        getattr(model, name)(True)
    return change


def reset(model):
    put_off("set_requires_all_reduce")(model)
    model.reset_iter_state()


def collective(setter, kind):
    def change(model):
        from torch.distributed.fsdp._fully_shard import _fsdp_collectives
        each(setter, getattr(_fsdp_collectives, kind)())(model)
    return change


SHARDED = {
    "reshard": root("reshard"), "unshard": root("unshard"), "reset_iter_state": reset,
    "set_is_last_backward": root("set_is_last_backward", True),
    "set_manual_backward_finalization": root("set_manual_backward_finalization", True),
    "finalize_backward": root("set_manual_backward_finalization", True),
    "set_requires_gradient_sync": put_off("set_requires_gradient_sync"),
    "set_requires_all_reduce": put_off("set_requires_all_reduce"),
    "set_reshard_after_forward": each("set_reshard_after_forward", False, recurse=False),
    "set_reshard_after_backward": root("set_reshard_after_backward", False),
    "set_keep_unsharded_storage": each("set_keep_unsharded_storage", True),
    "set_modules_to_forward_prefetch": lambda m: m[0].set_modules_to_forward_prefetch([m[2]]),
    "set_modules_to_backward_prefetch": lambda m: m[2].set_modules_to_backward_prefetch([m[0]]),
    "set_custom_all_gather": collective("set_custom_all_gather", "DefaultAllGather"),
    "set_custom_reduce_scatter": collective("set_custom_reduce_scatter", "DefaultReduceScatter"),
    "set_all_reduce_hook": REFUSED,
    "set_post_optim_event": lambda m: m.set_post_optim_event(torch.Event("cpu")),
    "set_reduce_scatter_divide_factor": factor("set_reduce_scatter_divide_factor"),
    "set_gradient_divide_factor": factor("set_gradient_divide_factor"),
    "set_force_sum_reduction_for_comms": each("set_force_sum_reduction_for_comms", True),
    "set_reduce_scatter_unused_params": root("set_reduce_scatter_unused_params", True),
    "set_reduce_scatter_max_input_buffers": root("set_reduce_scatter_max_input_buffers", 2),
    "set_separate_reduce_scatter_group": root("set_separate_reduce_scatter_group"),
    "set_unshard_in_backward": each("set_unshard_in_backward", True),
    "set_allocate_memory_from_process_group_for_comm":
        each("set_allocate_memory_from_process_group_for_comm", True),
    "set_symm_mem_for_comm": each("set_symm_mem_for_comm"),
}


# PyTorch's own all-gather has these alone.
FOR_OTHERS = ("set_allocate_memory_from_process_group_for_comm", "set_symm_mem_for_comm")


def policy(**how):
    from torch.distributed.fsdp import MixedPrecisionPolicy
    return {"mp_policy": MixedPrecisionPolicy(**how)}


def by_columns():
    from torch.distributed.tensor import Shard
    return {"shard_placement_fn": lambda p: Shard(1) if p.dim() == 2 else None}


def offloaded():
    from torch.distributed.fsdp import CPUOffloadPolicy
    return {"offload_policy": CPUOffloadPolicy(pin_memory=False)}


ARGUMENTS = {
    "module": dict, "mesh": REFUSED, "dp_mesh_dims": REFUSED,
    "reshard_after_forward": lambda: {"reshard_after_forward": False},
    "shard_placement_fn": by_columns, "offload_policy": offloaded,
    "ignored_params": lambda: {"ignored_params": lambda model: {model[3].bias}},
    "mp_policy": lambda: policy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
}
POLICY = {
    "param_dtype": torch.float64, "reduce_dtype": torch.bfloat16, "output_dtype": torch.float64,
    "cast_forward_inputs": False, "param_dtype_override_fn": lambda _: torch.float64,
}


@forked.of_shards()
def wholly_sharded():
    """By gradflow.shard, whose mesh has the replicas."""
    fully_sharded(WHOLE)


@forked.of_shards()
def fully_sharded(own=False):
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
    names = [n for n in vars(FSDPModule) if not n.startswith("_")]
    classified("FSDPModule", names, SHARDED)
    classified("fully_shard", inspect.signature(fully_shard).parameters, ARGUMENTS)
    fields = [f.name for f in dataclasses.fields(MixedPrecisionPolicy)]
    classified("MixedPrecisionPolicy", fields, POLICY)
    both = mesh()
    plain = trained(True, both)
    for name in names:
        if SHARDED[name] is REFUSED:
            model, _ = sharded(own, both)
            refused(name, lambda: model.set_all_reduce_hook(print), "set_all_reduce_hook")
            model = fully_shard(nn.Linear(4, 4), mesh=both["shards"])
            model.set_all_reduce_hook(print)
            refused(name, lambda: gradflow.hsdp(model, both["replicas"].get_group()), "set_all_reduce_hook")
            continue
        end = (lambda m: m.finalize_backward()) if "finaliz" in name else None
        found = [outcome(lambda n=n: trained(n, both, SHARDED[name], end)) for n in (True, own)]
        if own == WHOLE and name in FOR_OTHERS:
            assert "is custom" in str(found[1]), (name, found[1])
            continue
        same(name, *found)
        # a factor that both ignored would be no test of it
        assert "divide_factor" not in name or (found[0] - plain).abs().max() > 100 * NEAR, name
    for name in inspect.signature(fully_shard).parameters:
        if ARGUMENTS[name] is REFUSED and own == WHOLE:
            continue
        if ARGUMENTS[name] is REFUSED:
            refused(name, lambda: gradflow.hsdp(sharded(True, both)[0], both["replicas"].get_group()),
                    "replicas")
        else:
            same(name, *(outcome(lambda n=n: trained(n, both, **ARGUMENTS[name]())) for n in (True, own)))
    for name in fields:
        how = policy(**{name: POLICY[name]})
        same(name, *(outcome(lambda n=n: trained(n, both, **how)) for n in (True, own)))


# --- DistributedDataParallel ---

def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 4))


def replicated(wrap, use=None, model=None, **how):
    """Its parameters and buffers after four steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arguments that PyTorch will not have for long
        model = wrap(model or net(), **how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        (use or (lambda m, x: m(x).square().mean().backward()))(model, batch(step))
        optimizer.step()
        optimizer.zero_grad()
    if wrap is gradflow.ddp:
        model.gradflow.close()
    return torch.cat([t.detach().float().reshape(-1) for t in model.state_dict().values()])


def device_mesh():
    from torch.distributed.device_mesh import init_device_mesh
    return {"device_mesh": init_device_mesh("cpu", (dist.get_world_size(),))}


CONSTRUCTOR = {
    "module": dict, "dim": lambda: {"dim": 1}, "device_ids": lambda: {"device_ids": [0]},
    "output_device": lambda: {"output_device": 0}, "mixed_precision": REFUSED,
    "process_group": lambda: {"process_group": dist.new_group([0, 1])}, "device_mesh": device_mesh,
    "bucket_cap_mb": lambda: {"bucket_cap_mb": 0.001},
    "bucket_cap_mb_list": lambda: {"bucket_cap_mb_list": [0.0005, 0.001, 1]},
    "skip_all_reduce_unused_params": lambda: {"skip_all_reduce_unused_params": True,
                                              "find_unused_parameters": True},
    # these of a model alone would be a test of nothing: see delayed()
    "delay_all_reduce_named_params": REFUSED, "param_to_hook_all_reduce": REFUSED,
    **{name: lambda name=name: {name: True} for name in (
        "find_unused_parameters", "check_reduction", "gradient_as_bucket_view", "static_graph",
        "batched_grad_copy", "lazy_bucket_allocation")},
    **{name: lambda name=name: {name: False} for name in (
        "broadcast_buffers", "forward_sync_buffers", "init_sync")},
}


def accumulated(model, x):
    with model.no_sync():
        model(x + 1).square().mean().backward()
    model(x).square().mean().backward()


def finalized(model, x):
    model.require_manual_backward_finalization = True
    # the last bucket is ready before the gradient of what x was made of
    x.requires_grad_()
    made = model(x * 1)
    late = model.should_finalize_after_backward
    if not late:
        x.register_hook(lambda _: model.finalize_backward())
    made.square().mean().backward()
    if late:
        model.finalize_backward()


def joined(model, x):
    with model.join():
        for part in x.split(4 if dist.get_rank() else 8):
            model(part).square().mean().backward()


def switched(model, x):
    model.train(False)
    model(x)
    model.train()
    model.broadcast_buffers = False
    model(x).square().mean().backward()


# PyTorch calls the others itself.
METHODS = {"no_sync": accumulated, "join": joined, "train": switched, "broadcast_buffers": switched,
           "forward": None, "register_comm_hook": REFUSED,
           **dict.fromkeys(("require_manual_backward_finalization", "should_finalize_after_backward",
                            "finalize_backward"), finalized),
           **dict.fromkeys(("scatter", "to_kwargs", "gather", "join_hook", "join_device",
                            "join_process_group", "will_sync_module_buffers"))}


def delayed():
    """Parameters that are reduced when the hooked one's gradient is there. DistributedDataParallel
    itself does not wait for them over gloo, so this compares with its job without."""
    model = net()
    own = replicated(gradflow.ddp, model=model, param_to_hook_all_reduce=model[0].weight,
                     delay_all_reduce_named_params=[("3.weight", model[3].weight), ("3.bias", model[3].bias)])
    same("delay_all_reduce_named_params", replicated(DDP), own)


def distributed():
    arguments = list(inspect.signature(DDP.__init__).parameters)[1:]
    classified("DistributedDataParallel()", arguments, CONSTRUCTOR)
    methods = [n for n in vars(DDP) if not n.startswith("_")]
    classified("DistributedDataParallel", methods, METHODS)
    for name in arguments:
        if CONSTRUCTOR[name] is not REFUSED:
            same(name, *(outcome(lambda w=w: replicated(w, **CONSTRUCTOR[name]())) for w in (DDP, gradflow.ddp)))
    refused("mixed_precision", lambda: gradflow.ddp(net(), mixed_precision=object()), "autocast")
    if "delay_all_reduce_named_params" in arguments:
        delayed()
    for name in methods:
        if METHODS[name] not in (None, REFUSED):
            same(name, *(outcome(lambda w=w: replicated(w, METHODS[name])) for w in (DDP, gradflow.ddp)))
    refused("register_comm_hook", lambda: gradflow.ddp(net()).register_comm_hook(None, gradflow.hook), "hook")


if __name__ == "__main__":
    forked.main(globals())
