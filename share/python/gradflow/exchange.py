# SPDX-License-Identifier: BSD-3-Clause
"""libgradflow's exchange among the ranks of a torch.distributed process group."""
from __future__ import annotations
import atexit
import ctypes
import errno
import functools
import gc
import json
import os
import sys
import threading
import weakref
from typing import Any, Dict, Union

import torch
import torch.distributed as dist

from . import library as c
from .common import agree, by_rank_0, gathered, timeout_of, want_count, want_number
from .plan import PlanError, read

Plan = Union[str, "os.PathLike[str]", Dict[str, Any], None]  # a file, a text or a dictionary
_open = []  # weak references to the open exchanges, in the order of opening
_UNDER_WAY = 8  # halves, at most: the library waits for those before
_MANY = 8   # open exchanges, from which on models that are gone are looked for


def device_of(named):
    """Where the first of the tensors is; the others are to be there, too."""
    first = next(iter(named.values()), None)
    device = torch.device("cpu") if first is None else first.device
    return device if device.type == "cuda" else torch.device("cpu")


def runs_between_gpus(plan, library=None):
    """Does the library run the plan of that text (None: none) between GPUs? What else is wrong is
    told when an exchange is opened."""
    try:
        return c.load(library).gradflow_exchange_check(plan and plan.encode(), 1) == 0
    except OSError:
        return False


def check_plan(plan, where, library=None):
    """PlanError: the dictionary is no plan, whatever it is for."""
    try:
        lib, text = c.load(library), json.dumps(plan)
    except (TypeError, ValueError) as e:
        raise PlanError(f"{where}: want a plan, got what is no JSON: {e}") from None
    if lib.gradflow_exchange_check(text.encode(), 0) == -errno.EINVAL:
        raise PlanError(lib.gradflow_error().decode(errors="replace").replace("plan_text", where))


def agreed(plan, group, library):
    """The plan as a dictionary, and its name: rank 0's on all ranks, or its failure."""
    def own():
        if plan is None:
            return None, "plan"
        found = read(plan)
        check_plan(*found, library)
        return found
    return by_rank_0(group, own)


def wants(plan, optimizer, library=None):
    """What the plan wants of the optimiser, in words, or "" (gradflow.h). The greatest momentum of
    its groups counts. One that has none, such as AdamW, normalises its steps and bears all."""
    groups = [g for g in optimizer.param_groups if "momentum" in g]
    if not groups:
        return ""
    of = max(groups, key=lambda g: g["momentum"])
    return c.load(library).gradflow_exchange_wants(
        json.dumps(plan).encode(), of["momentum"], bool(of.get("nesterov"))).decode()


class Exchange:
    """Means of tensors over the ranks of a process group, by a plan.

    named is {name: tensor} in the order in which they become ready; their shapes and types count:
    f32, f16, bf16, and on the host f64; complex ones are pairs of these. plan is a gf-plan(5)
    document: its text, or a dictionary.
    messages says instead how many of them travel together, over a ring. With neither, those that
    are ready one after the other are joined (threshold fusion).
    stream is for gradients in a GPU's memory: what is enqueued on it by then counts for a post, and
    it is what wait() lets wait. Without it they are in the host's, wherever the tensors of named
    are.

    flat: the tensors are flat pieces of others, which selections that work on shapes cannot take.
    halves: it has no steps, but reduce_scatter() and all_gather() of the tensors, on the host.

    Every rank of the group opens, ends steps and closes in the same order. The group is used to
    open; the rest goes over connections of the exchange's own.
    timeout_s is how long a rank may be late; None: as long as the group lets it.
    It holds connections and a thread, and posted tensors until wait(). One that is dropped closes
    itself: see close().
    """

    def __init__(self, named: dict[str, torch.Tensor], plan: str | dict[str, Any] | None = None,
                 messages: list[int] | None = None, group: dist.ProcessGroup | None = None,
                 ways: str | None = None, momentum: float = 0.0, epoch_steps: int = 0,
                 timeout_s: float | None = None, library: str | None = None,
                 stream: torch.cuda.Stream | None = None, flat: bool = False,
                 halves: bool = False):
        self.handle = failure = None
        device = device_of(named)
        try:
            self.lib = c.load(library)
            want_number("momentum", momentum)
            timeout_s = timeout_of(group) if timeout_s is None else timeout_s
            want_number("timeout_s", timeout_s)
            want_count("epoch_steps", epoch_steps)
            plan = json.dumps(plan) if isinstance(plan, dict) else plan
            if not isinstance(plan, (str, type(None))):
                raise TypeError("plan: want the text of a plan or a dictionary, got "
                                f"{type(plan).__name__}")
            for n, t in named.items():
                if c.dtype(t) not in c.DTYPES or t.device != device:
                    raise TypeError(f"{n}: want f32, f16, bf16 or f64, or a complex type of "
                                    f"these, on {device}, got {t.dtype} on {t.device}")
        except (OSError, TypeError, ValueError) as e:
            failure = e
        agree(group, failure)
        _drop_unused()
        gathers = _Gathers(group)
        n = len(named)
        # what the structs point to must live until the call returns
        dtypes = (ctypes.c_int * n)(*[c.DTYPES[c.dtype(t)] for t in named.values()])
        sizes = (ctypes.c_size_t * len(messages or []))(*(messages or []))
        options = c.options(
            self.lib, dtypes=dtypes, plan_text=None if plan is None else plan.encode(),
            messages=sizes if messages else None, nmessages=len(sizes),
            ways=ways and ways.encode(), epoch_steps=epoch_steps, timeout_s=timeout_s,
            momentum=momentum, meet=c.MEET_ALLGATHER, allgather=gathers.call,
            rank=dist.get_rank(group), ranks=dist.get_world_size(group),
            on_device=stream is not None, device=device.index or 0,
            stream=stream and stream.cuda_stream, flat=flat, halves=halves)
        handle = ctypes.c_void_p()
        status = self.lib.gradflow_exchange_open(c.tensors(named), n, ctypes.byref(options),
                                                 ctypes.byref(handle))
        if gathers.failure:
            raise gathers.failure
        c.check(self.lib, status)
        self.handle = handle
        self.lent = []  # memory that was posted in this step
        self.called = []
        self.closing = weakref.finalize(self, _close_dropped, self.lib, handle, self.lent,
                                        self.called, os.getpid())
        self.closing.atexit = False  # _close_all comes then
        _open.append(weakref.ref(self, _open.remove))

    def _open_handle(self):
        if not self.handle:
            raise RuntimeError("gradflow: the exchange is closed")

    def _ask(self, name, *arguments):
        self._open_handle()
        return getattr(self.lib, "gradflow_exchange_" + name)(self.handle, *arguments)

    def _do(self, name, *arguments):
        c.check(self.lib, self._ask(name, *arguments))

    def post(self, index: int, gradient: torch.Tensor) -> None:
        """The gradient of the index-th tensor, of its length and type and in one piece.
        It is not to be touched until wait() returns."""
        if not gradient.is_contiguous():
            raise ValueError(f"gradflow: tensor {index}: want a gradient in one piece, got "
                             f"strides {gradient.stride()}: call contiguous()")
        made = c.Gradient(index, gradient.data_ptr(), c.count(gradient),
                          c.DTYPES.get(c.dtype(gradient), -1))
        self.post_many((c.Gradient * 1)(made), gradient)

    def post_many(self, gradients, memory):
        """Several in one call: an array of library.Gradient, and the tensor in whose memory they
        lie."""
        self.lent.append(memory)
        if self.lib.gradflow_exchange_post(self.handle, gradients, len(gradients)):
            self._open_handle()
            c.check(self.lib, 1)

    def flush(self) -> None:
        """No more will come in this step."""
        self._do("flush")

    def wait(self, indices: list[int] | None = None) -> None:
        """All means of the step have come, or, in the host's memory, those of these tensors.
        Tensors that were not posted counted as zeros."""
        self._do("flush")
        for index in (c.ALL,) if indices is None else indices:
            self._do("wait", index)
        if indices is None:
            self.lent.clear()

    def _half(self, name, index, tensor, divisor=0.0):
        number = ctypes.c_uint64()
        self._open_handle()
        c.check(self.lib, getattr(self.lib, "gradflow_" + name)(self.handle, c.Half(
            index, tensor.data_ptr(), tensor.numel(), c.DTYPES.get(tensor.dtype, -1), None, 0,
            divisor), number))
        self.lent.append((number.value, tensor))
        del self.lent[:-_UNDER_WAY]
        return number.value

    def reduce_scatter(self, index: int, tensor: torch.Tensor, divisor: float = 0.0) -> int:
        """Begins to move the index-th tensor, which is flat: of its equal parts, one for each rank,
        this rank's becomes the sum over the ranks, divided (0: by their number); the others are
        lost. f32, f16 or bf16. All ranks call in one order. Returns what wait_half() takes."""
        return self._half("reduce_scatter", index, tensor, divisor)

    def all_gather(self, index: int, tensor: torch.Tensor) -> int:
        """As reduce_scatter(): every part becomes that of its rank."""
        return self._half("all_gather", index, tensor)

    def wait_half(self, number: int) -> None:
        """It and all before it have ended; their tensors may be touched again."""
        self._do("wait_half", number)
        self.lent[:] = [lent for lent in self.lent if lent[0] > number]

    def on_done(self, call):
        """call(index, status) for each mean that comes, on the library's thread; None:
        no more. Between steps."""
        self.told = call and functools.partial(call)
        told = call and weakref.ref(self.told)

        def tell(_, index, status):
            call = told()
            if call:
                call(index, status)
        called = c.ON_DONE(call and tell or 0)
        self.called.append(called)  # which the library may call until it is closed
        self._do("on_done", called, None)

    def message(self, index: int) -> int:
        """The number of the message in which the index-th tensor travels."""
        return self._ask("message", index)

    def drop(self) -> None:
        """What the plan's selection holds back on this rank is forgotten."""
        self._do("drop")

    def rescale(self, factor: float) -> None:
        """What it holds back is multiplied, as when a loss scale has changed."""
        self._do("rescale", factor)

    @property
    def steps(self) -> int:
        return self._ask("steps")

    @property
    def sent_bytes(self) -> int:
        return self._ask("sent_bytes")

    @property
    def copied_bytes(self) -> int:
        """Bytes that were packed and unpacked, since they did not lie in one piece."""
        return self._ask("copied_bytes")

    @property
    def messages(self) -> int:
        return self._ask("messages")

    @property
    def ways(self) -> str:
        """How each message goes, as "ring;blueconnect 2:shm 4:ring"."""
        return self._ask("ways").decode()

    def arrays(self):
        """What this rank's selection holds back, by name: memory of the exchange, as bytes, current
        until the next step."""
        found, array = {}, c.Array()
        while True:
            status = self._ask("state", len(found), ctypes.byref(array))
            if status == -errno.ENOENT:  # there are no more
                return found
            c.check(self.lib, status)
            memory = (ctypes.c_uint8 * array.size_bytes).from_address(array.data)
            found[array.name.decode()] = torch.frombuffer(memory, dtype=torch.uint8)

    def restored(self, steps):
        """The arrays have been filled in: this is the state after so many steps."""
        self._do("restored", steps)

    def state_dict(self) -> dict[str, Any]:
        """What this rank holds back, between steps."""
        return {"steps": self.steps, "ways": self.ways,
                "arrays": {n: a.clone() for n, a in self.arrays().items()}}

    def load_state_dict(self, saved: dict[str, Any], group: dist.ProcessGroup | None = None) -> None:
        """Goes on from there, on all ranks of the group, if it was opened with these ways."""
        arrays, failure = self.arrays(), None
        if {n: a.numel() for n, a in arrays.items()} != \
                {n: a.numel() for n, a in saved["arrays"].items()}:
            failure = ValueError("state: want arrays of " + (", ".join(arrays) or "nothing") +
                                 ", got " + (", ".join(saved["arrays"]) or "nothing"))
        agree(group, failure)
        for n, a in arrays.items():
            a.copy_(saved["arrays"][n])
        self.restored(saved["steps"])

    def close(self) -> None:
        """On all ranks. A step that is under way is abandoned. An exchange that is dropped is
        closed in the background, which waits 5 s at most for ranks that keep it."""
        if self.handle:
            self.closing.detach()
            self.lib.gradflow_exchange_close(self.handle)
            self.handle = None


class _Gathers:
    """The process group's allgather as a function of C."""

    def __init__(self, group):
        self.group, self.failure = group, None
        self.call = c.ALLGATHER(self._gather)

    def _gather(self, _, send, size, receive):
        try:
            blobs = gathered(self.group, ctypes.string_at(send, size))
            ctypes.memmove(receive, b"".join(blobs), size * len(blobs))
            return 0
        except Exception as e:  # pylint: disable=broad-except  # C has none
            self.failure = e
            return -1


def job(plan, group):
    """What a state_dict must have in common with the job that loads it."""
    return {"version": 1, "plan": plan, "rank": dist.get_rank(group),
            "ranks": dist.get_world_size(group)}


def keep(state, *common):
    """A state_dict of this rank's state. torch.distributed.checkpoint keeps one value of a key for
    all ranks, so only what is common has a key of its own. It loads tuples as they were saved,
    whatever this job has by then."""
    return {**{key: state[key] for key in common}, f"rank {dist.get_rank()}": (state,)}


def kept(saved, any_rank=False):
    """(the state that was kept, None), or (saved, why it is none of this rank's)."""
    ranks = [key for key in saved if str(key).startswith("rank ")] if isinstance(saved, dict) else []
    own = f"rank {dist.get_rank()}"
    if ranks and own not in ranks and not any_rank:
        return saved, ValueError(f"state: want that of {own}, got that of {', '.join(ranks)}: each "
                                 "rank saves and loads its own")
    for key in [own] * (own in ranks) or ranks[:1]:
        saved = {**saved[key][0], **{k: v for k, v in saved.items() if k not in ranks}}
    return saved, None


def misfit(saved, plan, group):
    """A ValueError if it has not, else None."""
    for key, wanted in job(plan, group).items():
        if saved.get(key) != wanted:
            return ValueError(f"state: {key}: want that of this job" +
                              ("" if key == "plan" else f", {wanted}, got {saved.get(key)}"))
    return None


def _close_dropped(lib, handle, lent, called, process):
    """Of an exchange that nothing refers to any more. Other ranks drop it at another time, and what
    was posted last stays until it has gone."""
    def close():
        lib.gradflow_exchange_close(handle)
        lent.clear()
        called.clear()

    # a forked child has no exchange; and at its end the interpreter waits for no new thread
    if process == os.getpid() and threading.main_thread().is_alive() and not sys.is_finalizing():
        threading.Thread(target=close, name="gradflow closes").start()


def _drop_unused():
    """Models refer to themselves in circles, so that they may stay until these are looked for, and
    their exchanges with them."""
    if len(_open) > _MANY:
        gc.collect()


@atexit.register
def _close_all():
    """Ranks part together, but for one that ends with an exception."""
    if not hasattr(sys, "last_type"):
        for reference in reversed(_open):
            exchange = reference()
            if exchange:
                exchange.close()
