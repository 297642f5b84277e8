# SPDX-License-Identifier: BSD-3-Clause
"""Code that measuring and executing share."""
import json
import numbers
import os
import tempfile
import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def want_number(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: want a number, got {value!r} ({type(value).__name__})")


def want_module(call, model):
    """TypeError: it is no model, or its parameters are nowhere yet."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{call}: want a torch.nn.Module, got {type(model).__name__}")
    empty = next((n for n, p in model.named_parameters() if p.is_meta), None)
    if empty is not None:
        raise TypeError(f"{call}: {empty}: want parameters that have memory, got one on meta: "
                        'call model.to_empty(device="cpu") and load or initialise it first')


def want_folder(call, path, group=None):
    """Before any work is done, on all ranks of the group: its rank 0 can write there."""
    folder, failure = os.path.dirname(os.path.abspath(path)), None
    if rank_in(group) == 0 and not os.access(folder, os.W_OK | os.X_OK):
        failure = OSError(f"{call}: {path}: want a folder that can be written to, got {folder}" +
                          ("" if os.path.isdir(folder) else ", which is not there"))
    agree(group, failure)


def rank_in(group):
    return dist.get_rank(group) if dist.is_initialized() else 0


def weakly(method, *arguments):
    """A call of the method that does not keep its object. A parameter keeps its hooks where
    no collector of garbage sees it."""
    method = weakref.WeakMethod(method)

    def call(*_):
        own = method()
        if own:
            own(*arguments)
    return call


def write_whole(path, text):
    """Writes all of the text or nothing: a reader never finds half a file."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".gradflow-")
    try:
        with os.fdopen(handle, "w") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_trace(path, events, group=None):
    """All ranks' events as a Chrome trace, a process each; rank 0 of the group writes."""
    ranks = [None] * dist.get_world_size(group)
    dist.all_gather_object(ranks, events, group=group)
    if dist.get_rank(group) != 0:
        return
    whole = []
    for r, own in enumerate(ranks):
        whole.append({"ph": "M", "pid": r, "tid": 0, "name": "process_name",
                      "args": {"name": f"rank {r}"}})
        whole += [{**e, "pid": r} for e in sorted(own, key=lambda e: e["ts"])]
    write_whole(path, json.dumps({"displayTimeUnit": "ms", "traceEvents": whole}) + "\n")


def on_gradient(parameter, call):
    """Have call() run when backward has made the parameter's gradient, and before
    DistributedDataParallel sends it: hooks of the node that adds to parameter.grad would
    run after DistributedDataParallel's own. Before PyTorch 2.1 the gradient has not been
    added to parameter.grad yet. Returns a handle, whose remove() ends this."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(lambda _: call())
    return parameter.register_hook(lambda _: call())


def trained(model):
    """Parameters that get gradients, by the names that the model's author gave:
    without what DistributedDataParallel and torch.compile put before them. Those of 0
    elements have no gradient to exchange, and sparse ones go by the process group."""
    if isinstance(model, DistributedDataParallel):
        model = model.module
    sparse = {id(p) for p in sparse_of(model)}
    return {n.replace("_orig_mod.", ""): p for n, p in model.named_parameters()
            if p.requires_grad and p.numel() and id(p) not in sparse}


def sparse_of(model):
    """Parameters whose gradients DistributedDataParallel expects to be sparse."""
    return [m.weight for m in model.modules()
            if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and m.sparse]


def agree(group, failure):
    """Raises what failed on this rank, or else on another, on all ranks of the
    group; failure may be None. Without a group, only this rank's counts."""
    if not dist.is_initialized():
        if failure:
            raise failure
        return
    found = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, str(failure) if failure else None, group=group)
    if failure:
        raise failure
    for rank, text in enumerate(found):
        if text is not None:
            raise RuntimeError(f"rank {rank}: {text}")
