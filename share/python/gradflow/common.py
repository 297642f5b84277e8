# SPDX-License-Identifier: BSD-3-Clause
"""Code that measuring and executing share."""
import contextlib
import json
import numbers
import os
import sys
import tempfile
import warnings
import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def want_number(name, value, kind=numbers.Real):
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name}: want a {'' if kind is numbers.Real else 'whole '}number, got {value!r} "
                        f"({type(value).__name__})")


def want_count(name, value, least=0):
    want_number(name, value, numbers.Integral)
    if value < least:
        raise ValueError(f"{name}: want {least} or more, got {value}")


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


def timeout_of(group):
    """For how many seconds that process group waits for a rank that is late."""
    group = group or dist.group.WORLD
    for kind in ("cpu", "cuda"):
        with contextlib.suppress(AttributeError, RuntimeError):
            backend = getattr(group, "_get_backend", lambda _: group)(torch.device(kind))
            return backend.options._timeout.total_seconds()
    return 1800  # PyTorch's over gloo


def warn(text):
    """A warning at the job's line: the nearest that is neither here nor in PyTorch."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("gradflow", "torch"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def callers():
    """Frames: that of the asking function's caller, its caller's, and so on."""
    frame = sys._getframe(2)
    while frame:
        yield frame
        frame = frame.f_back


def let_go(owner, hooks):
    """Removes these hooks, in a list or a dictionary, when owner is gone, or when what this returns
    is called."""
    def remove():
        for hook in hooks.values() if isinstance(hooks, dict) else hooks:
            hook.remove()
    end = weakref.finalize(owner, remove)
    end.atexit = False
    return end


class ModuleHook:
    """A module's hook that calls. That of a copy of the module does nothing."""

    def __init__(self, call=None):
        self.call = call

    def __call__(self, *_):
        if self.call:
            self.call()

    def __reduce__(self):
        return ModuleHook, ()


@contextlib.contextmanager
def folder_of_rank_0(group):
    """The path of a temporary folder that rank 0 of the group has for a while; "" elsewhere."""
    folder, failure = None, None
    if rank_in(group) == 0:
        try:
            folder = tempfile.TemporaryDirectory()
        except OSError as e:
            failure = e
    agree(group, failure)
    try:
        yield folder.name if folder else ""
    finally:
        if folder:
            with contextlib.suppress(OSError):
                folder.cleanup()


def weakly(method, *arguments):
    """A call of the method that does not keep its object. A parameter keeps its hooks where no
    collector of garbage sees it."""
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
    ranks = gathered(group, events)
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
    DistributedDataParallel sends it: hooks of the node that adds to parameter.grad would run after
    DistributedDataParallel's own. Before PyTorch 2.1 the gradient has not been added to
    parameter.grad yet. Returns a handle, whose remove() ends this."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(lambda _: call())
    return parameter.register_hook(lambda _: call())


def named(model):
    """Parameters by the names that the model's author gave: without what DistributedDataParallel
    and torch.compile put before them."""
    model = model.module if isinstance(model, DistributedDataParallel) else model
    return {n.replace("_orig_mod.", ""): p for n, p in model.named_parameters()}


def trained(model):
    """Those that get gradients. Those of 0 elements have no gradient to exchange, and sparse ones
    go by the process group."""
    sparse = {id(p) for p in sparse_of(model)}
    return {n: p for n, p in named(model).items()
            if p.requires_grad and p.numel() and id(p) not in sparse}


def sparse_of(model):
    """Parameters whose gradients DistributedDataParallel expects to be sparse."""
    return [m.weight for m in model.modules()
            if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and m.sparse]


def gathered(group, x):
    """All ranks' x, in the order of the group's ranks."""
    found = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, x, group=group)
    return found


def of_rank(group, x, rank=0):
    """That rank's x; rank is the group's."""
    found = [x]
    dist.broadcast_object_list(found, rank if group is None else dist.get_global_rank(group, rank),
                               group=group)
    return found[0]


def by_rank_0(group, call, failures=(OSError, ValueError)):
    """What call() returns on rank 0 of the group, on all its ranks; or one of these failures."""
    found = failure = None
    if dist.get_rank(group) == 0:
        try:
            found = call()
        except failures as e:
            failure = e
    agree(group, failure)
    return of_rank(group, found)


def agree(group, failure):
    """Raises what failed on this rank, or else on another, on all ranks of the group; failure may
    be None. Without a group, only this rank's counts."""
    if not dist.is_initialized():
        if failure:
            raise failure
        return
    found = gathered(group, str(failure) if failure else None)
    if failure:
        raise failure
    for rank, text in enumerate(found):
        if text is not None:
            raise RuntimeError(f"rank {rank}: {text}")
