# SPDX-License-Identifier: BSD-3-Clause
"""What a job's steps and messages take under the hook, beside the plan's prediction."""
from __future__ import annotations
import collections
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

from .common import gathered, want_folder, write_trace, write_whole
from .measure import StepMoments


def _crowded(group):
    """A line for report() if the group's ranks on this machine have more threads than processors,
    else None."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        machine = f.read()  # containers and network namespaces share it
    ranks = gathered(group, (machine, torch.get_num_threads(), os.sched_getaffinity(0)))
    here = [r for r in ranks if r[0] == machine]
    threads, processors = sum(r[1] for r in here), len(set().union(*(r[2] for r in here)))
    if threads + len(here) <= processors:
        return None
    return (f"{len(here)} ranks of this machine compute by {threads} threads and exchange by "
            f"{len(here)}, on {processors} processors: the plan's prediction has a processor "
            "for each, so it may be low")


_EVERY, _BLOCK = 10, 1024  # steps, and neighbouring elements of each tensor, that are looked at


def _flat(tensor):
    tensor = tensor.to_dense() if tensor.is_sparse else tensor
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).detach().flatten()


class _Gradients:
    """What each tensor's gradients are like, as gf-train --statistics has it."""

    def __init__(self, parameters, group):
        self.parameters, self.group, self.kept, self.sums = parameters, group, {}, {}

    def take(self, name, step):
        if step % _EVERY == 0:
            flat = _flat(self.parameters[name].grad)
            blocks = flat.numel() // _BLOCK
            first = step // _EVERY % blocks * _BLOCK if blocks else 0
            self.kept[name] = flat[first:first + _BLOCK].float().clone()

    def meet(self, step):
        """The exact means of what was kept; on all ranks, as the step's backward ends."""
        if step % _EVERY:
            return
        own = [self.kept.get(n, _flat(p)[:_BLOCK].float() * 0) for n, p in self.parameters.items()]
        self.kept = {}
        means = torch.cat(own)
        dist.all_reduce(means, group=self.group)
        if not means.isfinite().all():  # of a step that a loss scale skips
            return
        means = (means / dist.get_world_size(self.group)).split([x.numel() for x in own])
        found = [torch.stack([x.square().mean(), x.abs().max() ** 2, (x == 0).float().mean(),
                              mean.square().mean(), mean.abs().max() ** 2])
                 for x, mean in zip(own, means)]
        for name, values in zip(self.parameters, found):
            self.sums[name] = self.sums.get(name, 0) + torch.cat([values, values.new_ones(1)]).double()

    def found(self):
        """By name; on all ranks."""
        ranks, out = dist.get_world_size(self.group), {}
        sums = torch.stack([self.sums[n] for n in self.parameters])
        dist.all_reduce(sums, group=self.group)
        for name, (square, peak, zeros, mean, mean_peak, n) in zip(self.parameters, sums.tolist()):
            common = (ranks * mean / square - 1) / (ranks - 1) if ranks > 1 and square else 0
            out[name] = {"rms": (square / n) ** 0.5, "zeros": zeros / n,
                         "peak": ((peak / square + mean_peak / (mean or 1)) / 2) ** 0.5 if square else 0,
                         "correlation": min(max(common, -1), 1)}
        return out


class Record(StepMoments):
    """Of a model of gradflow.ddp, from its next step on:

        record = gradflow.Record(model)     # lines=True: a line per step, on rank 0
        ...
        print(record.report())              # this rank's medians beside the prediction
        record.write("trace.json")          # all ranks' steps, for Perfetto and gf-plan
                                            # --refine
        record.write_statistics("model.json")   # the plan's model with what gradients are like,
                                            # for gf-plan; made with statistics=True

    Times count from the start of a step's forward. A message is ready when its last gradient is,
    and ends when its last mean has come. It is taken to start when it is ready and a lane is free.
    All ranks make it together, between steps. It costs a call of Python per gradient and per mean,
    and on a GPU a wait for it in each step. Messages that go from GPU to GPU are not recorded: the
    host does not know when they end.

    It holds hooks of the model, which hold it: all go with the model, or the hooks by close().
    """

    def __init__(self, model: torch.nn.Module, lines: bool = False, statistics: bool = False):
        if not hasattr(getattr(model, "gradflow", None), "exchange"):
            raise TypeError("gradflow.Record: want a model of gradflow.ddp, got "
                            f"{type(model).__name__}")
        if statistics and not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            raise TypeError("gradflow.Record: statistics: want PyTorch 2.1 or newer, got " + torch.__version__)
        super().__init__(model, model.gradflow)
        self.lines = lines
        self.gradients = _Gradients(self.state.parameters, self.state.group) if statistics else None
        self.state.gradients = self.gradients
        self.exchange = None
        self.events = []
        on_gpu = self.state.clock.device is not None
        self.crowded = None if on_gpu else _crowded(self.state.group)
        dist.barrier(self.state.group)
        self.origin = time.perf_counter()
        self._attach()

    def _attach(self):
        """To the exchange, which may have taken the place of another."""
        if self.exchange is self.state.exchange:
            return
        self.exchange = self.state.exchange
        if self.state.way.stream is None:
            self.exchange.on_done(self._mean)
        self.message = {n: self.exchange.message(i) for n, i in self.state.numbers.items()}
        plan = self.state.plan or {}
        self.lanes = plan.get("rule", plan).get("lanes", 1)
        self.name = {i: n for n, i in self.state.numbers.items()}
        self.bytes = collections.Counter()
        for n, p in self.state.parameters.items():
            self.bytes[self.message[n]] += p.numel() * p.element_size()
        self.state.way.settle(self.exchange)
        self.done = {n: collections.deque() for n in self.state.numbers}  # in step after step
        self.posted = None  # what is handed out a step later: (start, {message: ready})
        self.steps = []  # (whole, forward, backward, wait) in seconds
        self.spans = {}  # of a message: [(ready, end)]

    def close(self) -> None:
        """Nothing is recorded any more; between steps."""
        self.state.way.settle(self.exchange)
        if self.state.way.stream is None:
            self.exchange.on_done(None)
        self.state.gradients = None
        self.unhook()

    # --- moments of a step ---

    def _begin(self):
        self._attach()
        super()._begin()

    def _gradient(self, name):
        super()._gradient(name)
        if self.gradients:
            self.gradients.take(name, self.seen)

    def _mean(self, tensor, status):
        if status == 0:
            self.done[self.name[tensor]].append(time.perf_counter())

    def _end(self, now):
        clock = self.state.clock
        ready = {n: clock.seconds(t) for n, t in self.moments.items()}
        marks = [clock.seconds(t) for t in (self.start, self.middle)]
        marks += [max(ready.values()), clock.seconds(self.state.finished), clock.seconds(now)]
        for name, a, b in zip(("forward", "backward", "wait", "update"), marks, marks[1:]):
            self._slice(0, name, name, a, b)
        for n, t in ready.items():
            self.events.append({"ph": "i", "tid": 0, "cat": "ready", "name": n, "s": "t",
                                "ts": (t - self.origin) * 1e6})
        self._messages(marks, ready)
        self.steps.append((marks[-1] - marks[0], *(b - a for a, b in zip(marks, marks[1:-1]))))
        if self.lines and dist.get_rank(self.state.group) == 0:
            print(f"gradflow: step {self.seen}: " + self._times(self.steps[-1]), file=sys.stderr)

    def _messages(self, marks, ready):
        """Those whose means this step has got."""
        way, posted = self.state.way, {}
        late = way.is_late(self.seen)
        for n, t in ready.items():
            i = self.message[n]
            posted[i] = max(posted.get(i, 0), way.posted_s if late else t)
        start, begun = (self.posted if late else None) or (marks[0], {} if late else posted)
        self.posted = (marks[0], posted) if late else None
        ends = {}
        for n, times in self.done.items():
            if times and self.message[n] in begun:
                i = self.message[n]
                ends[i] = max(ends.get(i, 0), times.popleft())
        free = [0] * self.lanes
        for i, end in sorted(ends.items()):
            lane = free.index(min(free))
            self._slice(1 + lane, "message", f"message {i}", max(begun[i], free[lane]), end,
                        message=i, bytes=self.bytes[i])
            free[lane] = end
            self.spans.setdefault(i, []).append((begun[i] - start, end - start))

    @staticmethod
    def _times(step):
        return (f"{step[0] * 1e3:.1f} ms: forward {step[1] * 1e3:.1f}, backward {step[2] * 1e3:.1f}, "
                f"wait {step[3] * 1e3:.1f}, update {(step[0] - sum(step[1:])) * 1e3:.1f}")

    def _slice(self, tid, category, name, start, end, **args):
        self.events.append({"ph": "X", "tid": tid, "cat": category, "name": name,
                            "ts": (start - self.origin) * 1e6, "dur": (end - start) * 1e6,
                            **({"args": args} if args else {})})

    # --- what was found ---

    def report(self) -> str:
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
        if self.crowded and "iteration_s" in predicted:
            lines.append(self.crowded)
        return "\n".join(lines) + "\n"

    def write(self, path: str) -> None:
        """All ranks' steps as a Chrome trace; rank 0 of the group writes."""
        want_folder("gradflow.Record", path, self.state.group)
        write_trace(path, self.events, self.state.group)

    def write_statistics(self, path: str) -> None:
        """The model of the plan with what gradients have been like until the last step, for
        gf-plan; rank 0 of the group writes."""
        want_folder("gradflow.Record", path, self.state.group)
        plan = self.state.plan or {}
        if not self.gradients or not self.gradients.sums or "tensors" not in plan:
            raise ValueError("gradflow.Record: want statistics=True, a plan for the model, and more than "
                             f"{_EVERY} steps")
        found = self.gradients.found()
        if dist.get_rank(self.state.group) == 0:
            model = {**plan["model"], "tensors": [{**t, "gradient": found[t["name"]]} for t in plan["tensors"]]}
            write_whole(path, json.dumps({"format": "gf-profile", "version": 1, "model": model}, indent=1) + "\n")
