# SPDX-License-Identifier: BSD-3-Clause
"""When things happened in each step, as the model of gf(7) counts: from the
start of forward."""
import statistics
import time

import torch.distributed as dist

from .common import write_trace


class Trace:
    def __init__(self, model, messages):
        self.messages = messages
        self.events = []
        self.spans = [[] for _ in messages]  # (start, end) after forward's start
        self.iterations = []
        self.forward = self.backward = self.waited = None
        dist.barrier()
        self.origin = time.perf_counter()
        model.register_forward_pre_hook(lambda *_: self._forward())
        model.register_forward_hook(lambda *_: self._forward_end())

    def _now(self):
        return time.perf_counter() - self.origin

    def _slice(self, tid, category, name, start, end, **args):
        event = {"ph": "X", "tid": tid, "cat": category, "name": name, "ts": start * 1e6,
                 "dur": (end - start) * 1e6}
        if args:
            event["args"] = args
        self.events.append(event)

    def _forward(self):
        if self.forward is None:  # of several under no_sync, the first
            self.forward = self._now()

    def _forward_end(self):
        if self.forward is not None and self.backward is None:
            self.backward = self._now()
            self._slice(0, "forward", "forward", self.forward, self.backward)

    def ready(self, name):
        self.events.append({"ph": "i", "tid": 0, "cat": "ready", "name": name,
                            "ts": self._now() * 1e6, "s": "t"})

    def start(self):
        """Returns what end() needs of a message that leaves: the message of the
        step before may still be under way."""
        return self._now(), self.forward

    def end(self, i, begun):
        start, forward = begun
        now = self._now()
        self._slice(1, "message", f"message {i}", start, now, message=i)
        if forward is not None:
            self.spans[i].append((start - forward, now - forward))

    def backward_end(self):
        self.waited = self._now()
        if self.backward is not None:
            self._slice(0, "backward", "backward", self.backward, self.waited)

    def finished(self):
        now = self._now()
        self._slice(0, "wait", "wait", self.waited, now)
        if self.forward is not None:
            self.iterations.append(now - self.forward)
        self.waited = now
        self.forward = self.backward = None

    def updated(self):
        now = self._now()
        self._slice(0, "update", "update", self.waited, now)
        if self.iterations:
            self.iterations[-1] += now - self.waited

    def report(self, messages):
        lines = ["message  times          start ms     end ms"]
        for i, m in enumerate(messages):
            if m.predicted:
                lines.append(f"{i:7}  predicted  {m.predicted['start_s'] * 1e3:12.3f}"
                             f" {m.predicted['end_s'] * 1e3:10.3f}")
            if self.spans[i]:
                start = statistics.median(s[0] for s in self.spans[i])
                end = statistics.median(s[1] for s in self.spans[i])
                lines.append(f"{i:7}  measured   {start * 1e3:12.3f} {end * 1e3:10.3f}")
        if self.iterations:
            lines.append(f"iteration measured {statistics.median(self.iterations) * 1e3:.3f} ms "
                         f"(median of {len(self.iterations)})")
        return "\n".join(lines) + "\n"

    def write(self, path):
        write_trace(path, self.events)
