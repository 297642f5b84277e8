# SPDX-License-Identifier: BSD-3-Clause
"""A plan that a running job measures, makes, tries, and keeps if it is faster."""
import json
import logging
import os
import statistics
import subprocess
import tempfile
import time

import torch.distributed as dist

from . import commands
from .common import agree, on_gradient
from .measure import document, exchange_costs, slowest
from .plan import holds_nothing_back

_SETTLE = 5  # steps after which buckets and exchange stay as they are
_log = logging.getLogger("gradflow")


class Tuner:
    """What gradflow.ddp(..., tune=True) does, on CPUs. Some steps are measured, each
    parameter's gradient in them; gf-profile measures the network for budget_s, in
    which training rests; gf-plan, on rank 0, makes a plan, which all ranks take up
    between two steps. It stays if steps have become faster, by the share `margin`;
    else, or if any of this fails, the job goes on as before.

    network is a gf-profile of it, which rank 0 reads instead of measuring. options are
    those of gf-plan, ["--codecs", "f16"] for instance; a plan that holds
    gradients back is refused, since one cannot go back from it. All ranks begin equally
    many steps: not for join(). report() is what has been found, as text.
    """

    def __init__(self, model, state, steps=20, budget_s=20, margin=0.01, options=(),
                 network=None):
        self.state, self.group = state, state.group
        self.steps, self.budget_s, self.margin = steps, budget_s, margin
        self.options, self.network = list(options), network
        self.lines, self.seen = [], None
        self.start = self.middle = self.last = None
        self.moments = {}
        self.hooks = [model.register_forward_pre_hook(lambda *_: self._forward()),
                      model.register_forward_hook(lambda *_: self._backward())]
        self.hooks += [on_gradient(p, lambda n=n: self._gradient(n))
                       for n, p in state.parameters.items()]
        self.course = self._course()
        next(self.course)

    def report(self):
        return "\n".join(self.lines) + "\n"

    # --- moments of a step ---

    def _forward(self):
        if self.seen == self.state.exchange.steps:  # more of the same step
            return
        now = time.perf_counter()
        step, self.seen = None, self.state.exchange.steps
        if self.moments:
            step = (now - self.start, self.middle - self.start, self.last - self.middle,
                    now - self.state.finished_s,
                    {n: t - self.middle for n, t in self.moments.items()})
        self.moments = {}
        try:
            if step:
                self.course.send(step)
        except StopIteration:
            for h in self.hooks:
                (h[1] if isinstance(h, tuple) else h).remove()
        self.start = time.perf_counter()

    def _backward(self):
        self.middle = time.perf_counter()

    def _gradient(self, name):
        self.moments[name] = self.last = time.perf_counter()

    # --- what happens when ---

    def _course(self):
        """Takes a step each time, between that and the next one."""
        for _ in range(_SETTLE):
            yield
        before = yield from self._measured()
        former = self.state.plan, self.state.where, self.state.messages
        try:
            predicted = self._take_up(before)
        except (OSError, RuntimeError, ValueError) as e:  # on all ranks
            self._say(logging.WARNING, f"tune: all stays as it was: {e}")
            return
        for _ in range(_SETTLE):
            yield
        after = yield from self._measured()
        old, new = slowest([statistics.median(s[0] for s in run) for run in (before, after)],
                           self.group)
        kept = new < old * (1 - self.margin)
        if not kept:
            self.state.take(*former)
        self._say(logging.INFO, f"tune: steps of {old * 1e3:.1f} ms; by the plan {new * 1e3:.1f} ms, "
                  f"predicted {predicted * 1e3:.1f} ms: {'kept' if kept else 'dropped'}")

    def _measured(self):
        steps = []
        while len(steps) < self.steps:
            steps.append((yield))
        return steps

    def _say(self, level, text):
        self.lines.append(text)
        if dist.get_rank(self.group) == 0:
            _log.log(level, text)

    # --- the plan ---

    def _take_up(self, steps):
        """All ranks go on by a plan of these steps. Returns what it predicts of one."""
        found, failure = [None], None
        forward, backward, update = (statistics.median(s[i] for s in steps) for i in (1, 2, 3))
        ready = {n: statistics.median(s[4][n] for s in steps if n in s[4])
                 for n in self.state.parameters if any(n in s[4] for s in steps)}
        forward, backward, update, ready = slowest((forward, backward, update, ready), self.group)
        with tempfile.TemporaryDirectory() as folder:
            network = self.network or os.path.join(folder, "network.json")
            if not self.network:
                exchange_costs(network, self.budget_s, group=self.group)
            if dist.get_rank(self.group) == 0:
                try:
                    found[0] = self._plan(folder, network, document(
                        self.state.parameters, forward, backward, ready, update))
                except (OSError, ValueError) as e:
                    failure = e
        agree(self.group, failure)
        dist.broadcast_object_list(found, 0 if self.group is None else
                                   dist.get_global_rank(self.group, 0), group=self.group)
        self.state.take(found[0], "the plan of tune")
        return found[0]["predicted"]["iteration_s"]

    def _plan(self, folder, network, model):
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(model, f)
        done = subprocess.run([commands.find("gf-plan"), "-q", *self.options, path, network],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.strip() or f"gf-plan: status {done.returncode}")
        plan = json.loads(done.stdout)
        if not holds_nothing_back(plan):
            raise ValueError("want a plan of all gradients, got options of gf-plan for a "
                             "selection that holds some back")
        return plan
