# SPDX-License-Identifier: BSD-3-Clause
"""How much longer backward takes while gradflow's messages are in flight."""
import contextlib
import logging
import statistics
import time

import torch
import torch.distributed as dist

from .exchange import Exchange

_LARGEST = 4 << 20  # bytes of a message
_MOST = 16          # messages
_REPEATS = 9
_log = logging.getLogger("gradflow")


def overlap_slowdown(model, loss, parameters, backward_s):
    """overlap_slowdown of gf-profile(5), the same on all ranks: with backward longer by
    `lost` for messages that alone take `busy`, it is 1 / (1 - lost / busy). Where ranks
    and the threads of their exchanges share processors, it is well above 1. On a GPU,
    on one rank, or where no exchange can be opened, it is 1, which means unknown."""
    on_gpu = any(p.is_cuda for p in parameters.values())
    if on_gpu or not dist.is_initialized() or dist.get_world_size() == 1:
        return 1.0
    size = min(sum(p.numel() for p in parameters.values()), _LARGEST // 4)
    try:
        with _messages(size, 1) as traffic:
            one_s = traffic.alone_s()
        # they are in flight before backward begins, and when it ends
        count = min(max(int(2 * backward_s / one_s), 2), _MOST)
        with _messages(size, count) as traffic:
            alone_s = traffic.alone_s() / count
            found = [_once(model, loss, parameters, traffic, alone_s) for _ in range(_REPEATS)]
    except (OSError, RuntimeError) as e:
        _log.warning("profile: what messages cost backward is not known: %s", e)
        return 1.0
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, found)
    return statistics.median(x for own in ranks for x in own)


class _Traffic:
    """Messages of one size in an exchange of their own."""

    def __init__(self, size, count):
        self.memory = [torch.zeros(size) for _ in range(count)]
        self.exchange = Exchange({str(i): t for i, t in enumerate(self.memory)},
                                 messages=[1] * count)
        self.ends = []
        self.exchange.on_done(lambda *_: self.ends.append(time.perf_counter()))

    def post(self):
        dist.barrier()
        self.ends.clear()
        for i, t in enumerate(self.memory):
            self.exchange.post(i, t.data_ptr())
        self.exchange.flush()

    def alone_s(self):
        """Of all of them, on the slowest rank."""
        times = []
        for _ in range(5):
            self.post()
            start = time.perf_counter()
            self.exchange.wait()
            times.append(time.perf_counter() - start)
        ranks = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, statistics.median(times))
        return max(ranks)

    def done(self, moment, start):
        """How many have been exchanged by then, with the part of the one under way."""
        before = start
        for i, end in enumerate(self.ends):
            if end > moment:
                return i + max(moment - before, 0) / (end - before)
            before = end
        return len(self.ends)


@contextlib.contextmanager
def _messages(size, count):
    traffic = _Traffic(size, count)
    try:
        yield traffic
    finally:
        traffic.exchange.close()


def _backward_s(value, parameters):
    start = time.perf_counter()
    value.backward()
    end = time.perf_counter()
    for p in parameters.values():
        p.grad = None
    return start, end


def _once(model, loss, parameters, traffic, alone_s):
    alone = model.no_sync if hasattr(model, "no_sync") else contextlib.nullcontext
    with alone():
        value = loss()
        dist.barrier()
        start, end = _backward_s(value, parameters)
        without_s = end - start
        value = loss()
        posted = time.perf_counter()
        traffic.post()
        traffic.exchange.wait([0])
        start, end = _backward_s(value, parameters)
        traffic.exchange.wait()
    busy_s = alone_s * (traffic.done(end, posted) - traffic.done(start, posted))
    lost = (end - start - without_s) / busy_s if busy_s > 0 else 0
    return 1 / (1 - min(max(lost, 0), 0.99))
