# SPDX-License-Identifier: BSD-3-Clause
"""A plan that a running job measures, makes, tries, and keeps if it is faster."""
from __future__ import annotations
import inspect
import json
import logging
import os
import statistics

import torch.distributed as dist

from . import commands
from .common import by_rank_0, folder_of_rank_0, want_count, want_number
from .measure import StepMoments, document, exchange_costs, slowest
from .measure import network as all_reduce_costs
from .plan import holds_nothing_back

_SETTLE = 5  # steps after which buckets and exchange stay as they are
_log = logging.getLogger("gradflow")


class Tuner(StepMoments):
    """What gradflow.ddp(..., tune=True) does, and gradflow.shard without a plan. Some steps are
    measured, each parameter's gradient in them; gf-profile measures the network for budget_s, in which training rests (between GPUs, the
    process group's all-reduces are measured instead); gf-plan, on rank 0, makes a plan, which all
    ranks take up between two steps. It stays if steps have become faster, by the share `margin`;
    else, or if any of this fails, the job goes on as before.

    network is a gf-profile of it, which rank 0 reads instead of measuring. options are those of
    gf-plan, ["--codecs", "f16"] for instance; a plan that holds gradients back is refused, since
    one cannot go back from it. All ranks begin equally many steps: not for join(). report() is what
    has been found, as text.

    It holds hooks of the model, which hold it, until it has decided, or the model is gone.
    """

    def __init__(self, model, state, steps: int = 20, budget_s: float = 20, margin: float = 0.01,
                 options=(), network: str | None = None):
        super().__init__(model, state)
        self.group = state.group
        self.steps, self.budget_s, self.margin = steps, budget_s, margin
        self.options, self.network = [*state.options, *options], network
        self.lines, self.made = [], None
        self.course = self._course()
        next(self.course)

    @staticmethod
    def check(call, tune):
        """The settings, none for True. An error of that call's names what is wrong in them."""
        if not isinstance(tune, (bool, dict)):
            raise TypeError(f"{call}: tune: want True, False or a dictionary of Tuner's settings, "
                            f"got {tune!r}")
        settings = tune if isinstance(tune, dict) else {}
        known = list(inspect.signature(Tuner).parameters)[2:]
        for key in settings:
            if key not in known:
                raise TypeError(f"{call}: tune: want {', '.join(known)}, got {key!r}")
        want_count(f"{call}: tune: steps", settings.get("steps", 1), 1)
        for key in ("budget_s", "margin"):
            want_number(f"{call}: tune: {key}", settings.get(key, 0))
        return settings

    def report(self) -> str:
        return "\n".join(self.lines) + "\n"

    # --- what happens when ---

    def _end(self, now):
        clock = self.state.clock
        self.made = (clock.whole(self.start, now), clock.between(self.start, self.middle),
                     clock.between(self.middle, self.last), clock.between(self.state.finished, now),
                     {n: clock.between(self.middle, t) for n, t in self.moments.items()})

    def advance(self):
        """At the end of a backward, where all ranks are."""
        step, self.made = self.made, None
        try:
            if step:
                self.course.send(step)
        except StopIteration:
            self.unhook()

    def end(self):
        """Measures and tries nothing more."""
        self.course.close()
        self.unhook()

    def _course(self):
        """Takes a step each time, between that and the next one."""
        for _ in range(_SETTLE):
            yield
        before = yield from self._measured()
        former = self.state.former()
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
        forward, backward, update = (statistics.median(s[i] for s in steps) for i in (1, 2, 3))
        ready = {n: statistics.median(s[4][n] for s in steps if n in s[4])
                 for n in self.state.parameters if any(n in s[4] for s in steps)}
        forward, backward, update, ready = slowest((forward, backward, update, ready), self.group)
        with folder_of_rank_0(self.group) as folder:
            costs = self.network or os.path.join(folder, "network.json")
            if not self.network:
                self._measure_network(folder, costs)
            plan = by_rank_0(self.group, lambda: self._plan(folder, costs, document(
                self.state.parameters, forward, backward, ready, update)))
        self.state.take(plan, "the plan of tune")
        return plan["predicted"]["iteration_s"]

    def _measure_network(self, folder, path):
        """By the messages of the job's way; rank 0 writes a gf-profile (network half)."""
        if self.state.device is None:
            exchange_costs(path, self.budget_s, group=self.group, halves=bool(self.state.options))
            return
        table = os.path.join(folder, "network.txt")
        all_reduce_costs(table, device=self.state.device, group=self.group)
        by_rank_0(self.group, lambda: commands.run(["gf-profile", "--import", table, "-o", path]))

    def _plan(self, folder, network_file, model):
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(model, f)
        plan = json.loads(commands.run(["gf-plan", *self.options, path, network_file]))
        if not holds_nothing_back(plan):
            raise ValueError("want a plan of all gradients, got options of gf-plan for a "
                             "selection that holds some back, or for stale ones")
        return plan
