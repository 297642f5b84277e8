# SPDX-License-Identifier: BSD-3-Clause
"""What a job's steps and messages take under the hook, beside the plan's prediction."""
import statistics
import sys
import time

import torch.distributed as dist

from .common import on_gradient, write_trace


class Record:
    """Of a model of gradflow.ddp, on CPUs, from its next step on:

        record = gradflow.Record(model)     # lines=True: a line per step, on rank 0
        ...
        print(record.report())              # this rank's medians beside the prediction
        record.write("trace.json")          # all ranks' steps, for Perfetto

    Times count from the start of a step's forward. A message is ready when its last
    gradient is, and ends when its last mean has come. All ranks make it together,
    between steps. It costs a call of Python per gradient and per mean.
    """

    def __init__(self, model, lines=False):
        self.state, self.lines = model.gradflow, lines
        self.exchange = None
        self.events = []
        self.seen = self.start = self.middle = None
        self.ready, self.done = {}, {}
        dist.barrier(self.state.group)
        self.origin = time.perf_counter()
        self._attach()
        self.hooks = [model.register_forward_pre_hook(lambda *_: self._forward()),
                      model.register_forward_hook(lambda *_: self._backward())]
        self.hooks += [on_gradient(p, lambda n=n: self._gradient(n))
                       for n, p in self.state.parameters.items()]

    def _attach(self):
        """To the exchange, which may have taken the place of another."""
        if self.exchange is self.state.exchange:
            return
        self.exchange = self.state.exchange
        self.exchange.on_done(self._mean)
        self.message = {n: self.exchange.message(i) for n, i in self.state.numbers.items()}
        self.name = {i: n for n, i in self.state.numbers.items()}
        self.steps = []  # (whole, forward, backward, wait) in seconds
        self.spans = {}  # of a message: [(ready, end)]

    def close(self):
        """Nothing is recorded any more; between steps."""
        self.exchange.on_done(None)
        for h in self.hooks:
            (h[1] if isinstance(h, tuple) else h).remove()

    # --- moments of a step ---

    def _forward(self):
        if self.seen == self.state.exchange.steps:  # more of the same step
            return
        if self.done and self.ready:
            self._end(time.perf_counter())
        self._attach()
        self.seen = self.state.exchange.steps
        self.ready, self.done = {}, {}
        self.start = time.perf_counter()

    def _backward(self):
        self.middle = time.perf_counter()

    def _gradient(self, name):
        self.ready[name] = time.perf_counter()

    def _mean(self, tensor, status):
        if status == 0:
            self.done[self.name[tensor]] = time.perf_counter()

    def _end(self, now):
        last, finished = max(self.ready.values()), self.state.finished_s
        marks = [self.start, self.middle, last, finished, now]
        for name, a, b in zip(("forward", "backward", "wait", "update"), marks, marks[1:]):
            self._slice(0, name, name, a, b)
        ends = {}
        for n, end in self.done.items():
            if n in self.ready:
                ready, so_far = ends.get(self.message[n], (0, 0))
                ends[self.message[n]] = max(ready, self.ready[n]), max(so_far, end)
        for i, (ready, end) in ends.items():
            self._slice(1 + i, "message", f"message {i}", ready, end, message=i)
            self.spans.setdefault(i, []).append((ready - self.start, end - self.start))
        self.steps.append((now - self.start, self.middle - self.start, last - self.middle,
                           finished - last))
        if self.lines and dist.get_rank(self.state.group) == 0:
            print(f"gradflow: step {self.seen}: " + self._times(self.steps[-1]), file=sys.stderr)

    @staticmethod
    def _times(step):
        return (f"{step[0] * 1e3:.1f} ms: forward {step[1] * 1e3:.1f}, backward {step[2] * 1e3:.1f}, "
                f"wait {step[3] * 1e3:.1f}, update {(step[0] - sum(step[1:])) * 1e3:.1f}")

    def _slice(self, tid, category, name, start, end, **args):
        self.events.append({"ph": "X", "tid": tid, "cat": category, "name": name,
                            "ts": (start - self.origin) * 1e6, "dur": (end - start) * 1e6,
                            **({"args": args} if args else {})})

    # --- what was found ---

    def report(self):
        """Predicted beside measured, since the last change of messages."""
        predicted = (self.state.plan or {}).get("predicted", {})
        messages = predicted.get("messages", [])
        lines = ["message  times         ready ms     end ms"]
        for i in sorted(self.spans):
            if len(messages) == len(self.spans):
                lines.append(f"{i:7}  predicted  {messages[i]['ready_s'] * 1e3:11.3f} "
                             f"{messages[i]['end_s'] * 1e3:10.3f}")
            ready, end = (statistics.median(column) for column in zip(*self.spans[i]))
            lines.append(f"{i:7}  measured   {ready * 1e3:11.3f} {end * 1e3:10.3f}")
        if self.steps:
            medians = [statistics.median(column) for column in zip(*self.steps)]
            step = f"step measured {self._times(medians)} (medians of {len(self.steps)})"
            if "iteration_s" in predicted:
                step += (f"; predicted {predicted['iteration_s'] * 1e3:.1f} ms, measured/predicted "
                         f"{medians[0] / predicted['iteration_s']:.3f}")
            lines.append(step)
        return "\n".join(lines) + "\n"

    def write(self, path):
        """All ranks' steps as a Chrome trace; rank 0 of the group writes."""
        write_trace(path, self.events, self.state.group)
