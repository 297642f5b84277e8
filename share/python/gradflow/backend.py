# SPDX-License-Identifier: BSD-3-Clause
"""A process group whose large all-reduces are gradflow's, and all else gloo's:

    import gradflow
    torch.distributed.init_process_group("gradflow")

An all-reduce of f32, f16 or bf16 on the CPU (SUM, AVG), of 4096 elements or more, has an
exchange for its size, which is opened when the size comes for the second time: the
buckets of DistributedDataParallel come in every step. GRADFLOW_RULE names a rule of
gf-plan, which rank 0 reads; without it messages go over a ring.
"""
import json
import os
import queue
import threading

import torch
import torch.distributed as dist

from . import library as c
from .common import agree
from .exchange import Exchange
from .plan import read, want_dense_rule

NAME = "gradflow"
_FEWEST = 4096  # elements; for fewer, gloo takes as long
_MOST = 64      # exchanges of a group; each keeps connections and memory as large as its size
_RECENT = 1000  # sizes that came once


class Work(getattr(dist, "Work", object)):
    """An all-reduce that is under way."""

    def __init__(self, future):
        super().__init__()
        self.future = future

    def wait(self, timeout=None):  # the exchange has the group's timeout
        self.future.wait()
        return True

    def is_completed(self):
        return self.future.done()

    def get_future(self):
        return self.future


class Group(dist.ProcessGroup):
    """What the base class passes on to a backend goes to gloo."""

    def __init__(self, store, rank, ranks, timeout):
        super().__init__(rank, ranks)
        self.gloo = dist.ProcessGroupGloo(store, rank, ranks, timeout)
        kind = dist.ProcessGroup.BackendType.GLOO
        self._register_backend(torch.device("cpu"), kind, self.gloo)
        self._set_default_backend(kind)
        self.timeout_s = timeout.total_seconds()
        self.exchanges, self.recent, self.rule = {}, set(), None
        self.work = queue.SimpleQueue()  # (exchange, tensor, factor, future), in order
        self.thread = None

    def getBackendName(self):
        return NAME

    def allreduce(self, tensors, opts):
        """One after the other, in the order of the calls, on a thread."""
        factor = {dist.ReduceOp.SUM: self.size(), dist.ReduceOp.AVG: 1}.get(opts.reduceOp.op)
        exchange = factor and self.size() > 1 and len(tensors) == 1 and self._find(tensors[0])
        if not exchange:
            return self.gloo.allreduce(tensors, opts)
        future = torch.futures.Future()
        self.work.put((exchange, tensors[0].detach(), factor, future))
        return Work(future)

    def _find(self, tensor):
        """The exchange for it, or None. All ranks find the same, since they make the same
        calls in the same order."""
        if (tensor.device.type != "cpu" or tensor.dtype not in c.DTYPES or
                tensor.numel() < _FEWEST or not tensor.is_contiguous()):
            return None
        key = tensor.numel(), tensor.dtype
        if key in self.exchanges:
            return self.exchanges[key]
        if key not in self.recent or len(self.exchanges) == _MOST:
            if len(self.recent) == _RECENT:
                self.recent.clear()
            self.recent.add(key)
            return None
        if not self.exchanges:
            self._start()
        exchange = self.exchanges[key] = Exchange(
            {"all-reduce": tensor}, self.rule, None if self.rule else [1], group=self,
            timeout_s=self.timeout_s)
        return exchange

    def _start(self):
        """Before the first exchange."""
        path, failure, found = os.environ.get("GRADFLOW_RULE"), None, [None]
        if path and self.rank() == 0:
            try:
                found = [json.dumps(want_dense_rule(*read(path)))]
            except (OSError, ValueError) as e:
                failure = e
        agree(self, failure)
        dist.broadcast_object_list(found, dist.get_global_rank(self, 0), group=self)
        self.rule = found[0]
        self.thread = threading.Thread(target=_serve, args=(self.work,), daemon=True)
        self.thread.start()

    def shutdown(self):
        """By destroy_process_group, on all ranks."""
        if self.thread:
            self.work.put(None)
            self.thread.join()
        for exchange in self.exchanges.values():
            exchange.close()
        self.exchanges.clear()
        self.gloo.shutdown()


def _serve(work):
    for exchange, tensor, factor, future in iter(work.get, None):
        try:
            exchange.post(0, tensor.data_ptr())
            exchange.wait()
            if factor != 1:
                tensor.mul_(factor)
            future.set_result([tensor])
        except RuntimeError as e:
            future.set_exception(e)


def register():
    """The name, if this PyTorch takes process groups of this kind: 1.13 does not."""
    if hasattr(dist.ProcessGroup, "_set_default_backend") and dist.is_gloo_available():
        dist.Backend.register_backend(NAME, Group, devices=["cpu"])
