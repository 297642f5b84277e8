# SPDX-License-Identifier: BSD-3-Clause
"""How buckets of DistributedDataParallel reach the exchange, and means the buckets."""
import collections
import contextlib
import socket
import time

import torch

from . import library as c
from .common import gathered


class Bucket:
    """Where the parameters of a bucket lie in its buffer."""

    def __init__(self, index, ids, buffer, places):
        self.index, self.ids = index, ids
        self.dtype = buffer.dtype
        self.code = c.DTYPES[c.dtype(buffer)]
        self.places = places  # (name, offset in bytes, elements), in the order of offsets
        self.names = [name for name, _, _ in places]
        self.tensors = self.gradients = self.base = None

    def number(self, numbers):
        """The names' numbers in the exchange, for post_many."""
        self.tensors, self.base = [numbers[n] for n in self.names], None
        self.gradients = (c.Gradient * len(self.places))(
            *[c.Gradient(numbers[n], None, elems, self.code)
              for n, _, elems in self.places])

    def post(self, exchange, memory):
        """Its gradients lie in that tensor as they do in the buffer."""
        base = memory.data_ptr()
        if base != self.base:
            self.base = base
            for gradient, (_, offset, _) in zip(self.gradients, self.places):
                gradient.data = base + offset
        exchange.post_many(self.gradients, memory)

    def pieces(self, memory):
        """{name: its elements in that tensor}."""
        width = memory.element_size()
        return {n: memory[offset // width:offset // width + count]
                for n, offset, count in self.places}


class Side:
    """A stream beside backward's, on a GPU. Futures do not know of it: a future of a GPU would
    record an event and look for tensors in its value by pickling it, for every bucket. Instead
    backward's stream waits for this one before they are set."""

    def __init__(self, device):
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.event = torch.cuda.Event()

    def follow(self):
        """What backward has enqueued comes first."""
        self.event.record(torch.cuda.current_stream(self.device))
        self.stream.wait_event(self.event)

    def lead(self):
        """What is enqueued here comes first."""
        self.event.record(self.stream)
        torch.cuda.current_stream(self.device).wait_event(self.event)


class InPlace:
    """Gradients go from where they lie. On a GPU, by NCCL, the exchange has a stream of its own,
    which waits for what backward has enqueued, and the optimiser's stream waits for that one: the
    host waits for nothing."""

    def __init__(self, device):
        self.device = device if device.type == "cuda" else None
        self.side = Side(device) if self.device else None
        self.stream = self.side and self.side.stream  # the exchange's
        self.steps = 0

    def take(self, exchange, bucket, buffer):
        """The bucket is complete. Returns the future of its means."""
        if self.side:
            self.side.follow()
        bucket.post(exchange, buffer)
        return torch.futures.Future()

    def finish(self, exchange, pending):
        """Backward has ended: sets the futures of (future, bucket, buffer)."""
        exchange.wait()
        self._set(pending)
        self.steps += 1

    def _set(self, pending):
        if self.side:
            self.side.lead()
        for future, _, buffer in pending:
            future.set_result(buffer)

    def is_late(self, step):  # pylint: disable=unused-argument
        return False

    def settle(self, exchange):
        """Between steps nothing is under way."""

    def rescale(self, factor):
        """So is what is handed out later."""

    def state(self, exchange):
        return {}

    def restore(self, means, steps):
        self.steps = steps


class Copied(InPlace):
    """Gradients go from copies: from a GPU by pinned memory of the host (by_host), or since means
    are handed out a step later (late).

    On a GPU a stream of its own copies each bucket once backward has made it. A copy on the host is
    posted when it is there: the host looks at every bucket, and waits for the last ones when
    backward has ended.

    Late, the end of backward waits for the means of the step before, hands these out, and posts the
    copies of this step: an exchange has one step under way. The first
    `synchronous` steps are not late, and the one after these gets zeros.
    """

    def __init__(self, device, by_host, late=False, synchronous=0):
        super().__init__(device)
        self.pinned = bool(self.device) and by_host
        self.stream = None if by_host else self.stream
        self.late, self.synchronous = late, synchronous
        self.memory = [{}, {}]  # of even and of odd steps: {index of a bucket: tensor}
        self.flying = collections.deque()  # (event, bucket, copy) of this step, in order
        self.posted_s = 0.0     # late: when the step's copies were posted
        self.under_way = False  # late: a step that has not been waited for
        self.means = {}  # late: what is handed out next, {name: elements}
        self.whole = {}  # late: the same of the buckets as they were, {Bucket: tensor}

    def _queue(self):
        return torch.cuda.stream(self.side.stream) if self.side else contextlib.nullcontext()

    def _memory(self, bucket, buffer):
        kept = self.memory[self.steps % 2 if self.late else 0]
        copy = kept.get(bucket.index)
        if copy is None or copy.dtype != buffer.dtype or copy.numel() != buffer.numel():
            copy = kept[bucket.index] = (_pinned if self.pinned else torch.empty_like)(buffer)
        return copy

    def take(self, exchange, bucket, buffer):
        copy, event = self._memory(bucket, buffer), None
        if self.side:
            self.side.follow()
        with self._queue():
            copy.copy_(buffer, non_blocking=True)
            if self.pinned:
                event = torch.cuda.Event()
                event.record()
        self.flying.append((event, bucket, copy))
        if not self.is_late(self.steps):
            self._post(exchange, wait=False)
        return torch.futures.Future()

    def is_late(self, step):
        """Does that step hand out the means of the one before?"""
        return self.late and step >= self.synchronous

    def _post(self, exchange, wait):
        """The copies that are there; or all."""
        while self.flying:
            event, bucket, copy = self.flying[0]
            if event and not (wait or event.query()):
                return
            if event:
                event.synchronize()
            self.flying.popleft()
            bucket.post(exchange, copy)

    def finish(self, exchange, pending):
        if self.is_late(self.steps):
            self._finish_late(exchange, pending)
        else:
            self._post(exchange, wait=True)
            exchange.flush()
            if not self.pinned:
                exchange.wait()
            kept = self.memory[self.steps % 2 if self.late else 0]
            for _, bucket, buffer in pending:
                if self.pinned:
                    exchange.wait(bucket.tensors)
                with self._queue():
                    buffer.copy_(kept[bucket.index], non_blocking=True)
            self._set(pending)
            if self.pinned:
                exchange.wait()
        self.steps += 1

    def _finish_late(self, exchange, pending):
        self.settle(exchange)
        with self._queue():
            for _, bucket, buffer in pending:
                self._hand_out(bucket, buffer)
        self._set(pending)
        made = [(bucket, copy) for _, bucket, copy in self.flying]
        self.posted_s = time.perf_counter()
        self._post(exchange, wait=True)
        exchange.flush()
        self.under_way = True
        self.whole = dict(made)
        self.means = {n: piece for bucket, copy in made
                      for n, piece in bucket.pieces(copy).items()}

    def _hand_out(self, bucket, buffer):
        if bucket in self.whole:
            buffer.copy_(self.whole[bucket], non_blocking=True)
        elif not self.means:
            buffer.zero_()
        else:  # buckets have changed
            buffer.zero_()
            for n, piece in bucket.pieces(buffer).items():
                piece.copy_(self.means[n], non_blocking=True)

    def settle(self, exchange):
        """What is under way arrives, and is handed out at the end of the next backward."""
        if self.under_way:
            self.under_way = False
            exchange.wait()

    def rescale(self, factor):
        with self._queue():
            for piece in self.whole.values() or self.means.values():  # of these the others are views
                piece.mul_(factor)

    def state(self, exchange):
        """{name: means} that the next step hands out, of all parameters or of none."""
        self.settle(exchange)
        with self._queue():
            return {n: piece.to("cpu", copy=True) for n, piece in self.means.items()}

    def restore(self, means, steps):
        """Goes on after so many steps; the exchange is a new one."""
        self.under_way, self.whole, self.means, self.steps = False, {}, means, steps


def _pinned(buffer):
    return torch.empty(buffer.numel(), dtype=buffer.dtype, device="cpu", pin_memory=True)


def choose(device, group, transport, runs, staleness=1, synchronous=0):
    """The way for gradients there. transport: nccl, from GPU to GPU; ucx, by the host; or
    None: nccl if every rank has a GPU of its own, and if runs() says that the library takes the
    plan and the types there. On all ranks."""
    on_gpu = device.type == "cuda"
    wanted = (None, "ucx", "nccl") if on_gpu else (None, "ucx")
    if transport not in wanted:
        raise ValueError("gradflow: transport: want " + " or ".join(filter(None, wanted)) +
                         f" for parameters on {device}, got {transport}")
    if transport is None and on_gpu:
        transport = "nccl" if _own_gpus(device, group, runs) else "ucx"
    by_host = transport != "nccl"
    if staleness > 1 or on_gpu and by_host:
        return Copied(device, by_host, staleness > 1, synchronous)
    return InPlace(device)


def _own_gpus(device, group, runs):
    """Does every rank of the group say so, and have a GPU of its own?"""
    own = (socket.gethostname(), str(getattr(torch.cuda.get_device_properties(device), "uuid",
                                             device)))
    found = gathered(group, (own, runs()))
    return len({gpu for gpu, _ in found}) == len(found) and all(well for _, well in found)
