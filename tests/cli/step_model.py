#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gf-plan against a second model of an iteration and of the policies, written
from their definitions alone: step_model.py SEED COUNT. Draws small problems;
every prediction is simulated again, every cut made again, and the optimum found
by trying all plans."""
import itertools
import json
import math
import random
import subprocess
import sys

CLOSE = 1e-9  # relative: the same figure
LANES = 1e-3  # relative: the optimum on more than one lane
STALE = 1e-3  # relative: paces of steps that never repeat, by lines through so many of them
TINY = 1e-12


def gamma(contention, n, size):
    def at(table):
        return table[n - 1] if n <= len(table) else n * table[-1] / len(table)
    if not isinstance(contention[0], dict):
        return at(contention)
    below = [c for c in contention if c["size_bytes"] <= size]
    above = [c for c in contention if c["size_bytes"] >= size]
    if not below or not above:
        return at((above or below[-1:])[0]["gamma"])
    low, high = below[-1], above[0]
    if low is high:
        return at(low["gamma"])
    low_log, high_log = math.log2(low["size_bytes"]), math.log2(high["size_bytes"])
    share = (math.log2(size) - low_log) / (high_log - low_log)
    return at(low["gamma"]) * (1 - share) + at(high["gamma"]) * share


def slope(values):
    """Of the least squares' line through values at 0, 1, 2, ..."""
    middle = (len(values) - 1) / 2
    return sum((i - middle) * v for i, v in enumerate(values)) / sum((i - middle) ** 2 for i in range(len(values)))


class Problem:
    def __init__(self, rng):
        whole = rng.random() < 0.3  # integers: ties

        def draw(low, high):
            return float(rng.randint(low, high)) if whole else rng.uniform(low, high)
        steps = [draw(0, 5) if rng.random() < 0.85 else 0.0 for _ in range(rng.randint(1, 5))]
        self.ready = list(itertools.accumulate(steps))
        self.forward, self.update = draw(0, 4), draw(0, 2)
        self.backward = self.ready[-1] + rng.choice([0, draw(0, 4)])
        self.elems = [rng.randint(1, 12) for _ in steps]
        self.a, self.b = draw(0, 5), draw(1, 3) / 4
        self.slowdown = rng.choice([1.0, 1.0, 1.5])
        # what backward does to messages: to all they take, and to the startup besides
        self.drag = rng.choice([1.0, 1.0, 1.6])
        self.extra = rng.choice([0.0, 0.0, draw(0, 2)]) if self.a > 0 else 0.0
        self.contention = rng.choice([
            [1.0], [1.0, rng.uniform(1, 2)], [1.0, 1.3, 2.2],
            [{"size_bytes": 8, "gamma": [1, 1.1]}, {"size_bytes": 40, "gamma": [1, 1.9, 2.5]}]])

    def document(self):
        tensors = [{"name": f"t{i}", "count_elems": n, "dtype": "f32", "ready_s": r}
                   for i, (n, r) in enumerate(zip(self.elems, self.ready))]
        return json.dumps({
            "format": "gf-profile", "version": 1,
            "model": {"name": "drawn", "forward_s": self.forward, "backward_s": self.backward,
                      "update_s": self.update, "overlap_slowdown": self.slowdown, "tensors": tensors},
            "network": {"ranks": 4, "allreduce": [{
                "algorithm": "ring", "startup_s": self.a, "per_byte_s": self.b,
                "contention": self.contention,
                "beside_backward": {"message_slowdown": self.drag, "startup_extra_s": self.extra}}]}})

    def size(self, first, last):
        return 4 * sum(self.elems[first:last + 1])

    def own(self, first, last):
        return self.a + self.b * self.size(first, last)

    def rates(self, beside, starting, moving, count):
        """Of startups and of transfers, beside backward or not; messages are numbered modulo count."""
        drag = self.drag if beside else 1.0
        startup = self.a / (self.a * self.drag + self.extra) if beside and self.a > 0 else 1 / drag
        rates = {i: startup for i in starting}
        for i in moving:
            rates[i] = 1 / gamma(self.contention, len(moving), self.size(*count[i % len(count)][:2])) / drag
        return rates

    def at(self, i):
        return self.forward + self.ready[i]

    def simulate(self, messages, lanes):
        """messages: (first, last, simultaneous, after backward)."""
        t, done, begun, ended = self.forward, 0.0, 0, None
        starting, moving, times = {}, {}, [[None] * 3 for _ in messages]
        needs = [self.backward if m[3] else self.ready[m[1]] for m in messages]
        while True:
            near = TINY * max(1, t)
            if ended is None and done >= self.backward - TINY * max(1, self.backward):
                ended, done = t, self.backward
            for i, need in enumerate(needs):
                if times[i][0] is None and done >= need - TINY * max(1, self.backward):
                    times[i][0] = t
            changed = True
            while changed:
                changed = False
                for i in [i for i in starting if starting[i] <= near]:
                    del starting[i]
                    moving[i] = self.b * self.size(*messages[i][:2])
                    changed = True
                for i in [i for i in moving if moving[i] <= near]:
                    del moving[i]
                    times[i][2] = t
                    changed = True
                active = len(starting) + len(moving)
                if begun < len(messages) and times[begun][0] is not None and \
                        active < (lanes if messages[begun][2] else 1):
                    times[begun][1] = t
                    starting[begun] = self.a
                    begun += 1
                    changed = True
            if begun == len(messages) and not starting and not moving and ended is not None:
                return max([t for _, _, t in times] + [ended]) + self.update, times
            rates = self.rates(ended is None, starting, moving, messages)
            pace = 1 / self.slowdown if starting or moving else 1.0
            waits = [left / rates[i] for i, left in itertools.chain(starting.items(), moving.items())]
            if ended is None:
                waits += [(n - done) / pace for i, n in enumerate(needs) if times[i][0] is None]
                waits.append((self.backward - done) / pace)
            wait = max(0, min(waits))
            t += wait
            for flights in (starting, moving):
                for i in flights:
                    flights[i] -= wait * rates[i]
            if ended is None:
                done = min(self.backward, done + wait * pace)

    def pipelined(self, messages, lanes, staleness, steps):
        """The time of a step of many, each with the gradients of `staleness` steps ago."""
        n = len(messages)
        before = self.update + self.forward
        compute = before + self.backward
        needs = [compute if m[3] else before + self.ready[m[1]] for m in messages]
        t, step, done, starts = 0.0, -1, compute, []
        begun, ended, starting, moving = 0, [0] * steps, {}, {}
        while True:
            near = 1e-12 * max(1, t)
            changed = True
            while changed:
                changed = False
                for i in [i for i in starting if starting[i] <= near]:
                    del starting[i]
                    moving[i] = self.b * self.size(*messages[i % n][:2])
                    changed = True
                for i in [i for i in moving if moving[i] <= near]:
                    del moving[i]
                    ended[i // n] += 1
                    changed = True
                if done >= compute - near and (step < staleness - 1 or ended[step + 1 - staleness] == n):
                    step, done = step + 1, 0.0
                    starts.append(t)
                    changed = True
                    if step == steps:
                        return slope(starts[steps // 2:])
                made = begun // n < step or (begun // n == step and done >= needs[begun % n] - near)
                if made and len(starting) + len(moving) < (lanes if messages[begun % n][2] else 1):
                    starting[begun] = self.a
                    begun += 1
                    changed = True
            rates = self.rates(step >= 0 and done < compute - near, starting, moving, messages)
            pace = 1 / self.slowdown if starting or moving else 1.0
            waits = [left / rates[i] for i, left in itertools.chain(starting.items(), moving.items())]
            if done < compute - near:
                waits += [(w - done) / pace for w in needs + [compute] if w > done + near]
            wait = max(0, min(waits))
            t += wait
            for flights in (starting, moving):
                for i in flights:
                    flights[i] -= wait * rates[i]
            if step >= 0:
                done = min(compute, done + wait * pace)

    def lazy(self, theta):
        first = 0
        for i in range(len(self.elems)):
            if self.size(first, i) > theta or i + 1 == len(self.elems):
                yield first, i, False, False
                first = i + 1

    def ddp(self, cap):
        """A bucket is full once it holds its cap."""
        first = 0
        for i in range(len(self.elems)):
            if self.size(first, i) >= cap or i + 1 == len(self.elems):
                yield first, i, False, False
                first = i + 1

    def horovod(self, most):
        """Each millisecond: what has become ready since, in messages of at most so many bytes."""
        first = 0
        for i in range(len(self.elems)):
            if i + 1 == len(self.elems) or self.size(first, i + 1) > most or \
                    math.ceil(1000 * self.ready[i + 1]) != math.ceil(1000 * self.ready[first]):
                yield first, i, False, False
                first = i + 1

    def mg_wfbp(self):
        first, end, start = 0, 0, None
        for i in range(len(self.elems)):
            start = max(self.at(i), end if start is None else start)
            if i + 1 < len(self.elems) and self.at(i + 1) < start + self.a:
                continue
            yield first, i, False, False
            end, first, start = start + self.own(first, i), i + 1, None

    def asc_wfbp(self):
        first, before, end = 0, None, 0
        for i in range(len(self.elems)):
            own, ready = self.own(first, i), self.at(i)
            size, start, together = self.size(first, i), max(self.at(i), end), True
            penalty = 0
            if before:
                share = 1 - (ready - before[0]) / (before[1] - before[0])
                penalty = (gamma(self.contention, 2, size) - 1) * self.b * \
                    min(before[2] * min(1, max(0, share)), size)
            if i + 1 < len(self.elems):
                following = self.at(i + 1)
                if start + own <= following:
                    together = False
                elif following < start + self.a and not ready + own + penalty < following:
                    continue
            yield first, i, together, False
            before = (ready, ready + own + penalty, size) if together else (start, start + own, size)
            end, first = max(end, before[1]), i + 1

    def best(self, most_lanes):
        n, found = len(self.elems), math.inf
        for cuts in itertools.product([False, True], repeat=n - 1):
            lasts = [i for i, cut in enumerate(cuts) if cut] + [n - 1]
            ranges = list(zip([0] + [i + 1 for i in lasts], lasts))
            for lanes in range(1, most_lanes + 1):
                for modes in itertools.product([False, True][:lanes], repeat=len(ranges)):
                    plan = [(*r, m, False) for r, m in zip(ranges, modes)]
                    found = min(found, self.simulate(plan, lanes)[0])
        return found


def planned(document, *options):
    run = subprocess.run(["gf-plan", "-q", *options], input=document, capture_output=True, text=True, timeout=60)
    if run.returncode:
        raise AssertionError(f"gf-plan {options}: {run.stderr}")
    plan = json.loads(run.stdout)
    return plan, [(m["first"], m["last"], m["mode"] == "simultaneous", m["release"] == "backward_end")
                  for m in plan["messages"]]


def same(what, got, want, tolerance=CLOSE):
    if abs(got - want) > tolerance * max(1, abs(want)):
        raise AssertionError(f"{what}: want {want}, got {got}")


def check(p, theta):
    document, n = p.document(), len(p.elems)
    each = [(i, i, False, False) for i in range(n)]
    for options, want in (
            (("sequential",), [(i, i, False, True) for i in range(n)]),
            (("single",), [(0, n - 1, False, False)]),
            (("wfbp",), each),
            (("threshold", "--threshold", str(theta)), list(p.lazy(theta))),
            (("threshold", "--threshold", "0"), each),
            (("ddp", "--threshold", str(theta)), list(p.ddp(theta))),
            (("ddp",), [(0, n - 1, False, False)]),
            (("horovod", "--threshold", str(theta)), list(p.horovod(theta))),
            (("horovod",), list(p.horovod(math.inf))),
            (("mg-wfbp",), list(p.mg_wfbp())),
            (("asc-wfbp",), list(p.asc_wfbp())),
            (("optimal", "--lanes", "1"), None), (("optimal", "--lanes", "2"), None)):
        plan, messages = planned(document, "--policy", *options)
        # with backward slowed, when tensors are ready depends on the plan
        if want and p.slowdown == p.drag == 1 and p.extra == 0 and messages != want:
            raise AssertionError(f"{options}: want {want}, got {messages}")
        predicted = plan["predicted"]
        iteration, times = p.simulate(messages, plan["lanes"])
        same(f"{options}: iteration", predicted["iteration_s"], iteration)
        for i, (message, wanted) in enumerate(zip(predicted["messages"], times)):
            for key, value in zip(("ready_s", "start_s", "end_s"), wanted):
                same(f"{options}: message {i}, {key}", message[key], value)
        if options[0] == "optimal":
            lanes = int(options[2])
            best = p.best(lanes)
            same(f"{options}: the optimum", min(predicted["iteration_s"], best), best)
            same(f"{options}: the optimum", predicted["iteration_s"], best, CLOSE if lanes == 1 else LANES)
            if predicted["lower_bound_s"] > best * (1 + CLOSE):
                raise AssertionError(f"{options}: bound {predicted['lower_bound_s']} above {best}")


def check_stale(p, rng):
    staleness = rng.randint(2, 3)
    for policy, lanes in (("wfbp", 1), ("sequential", 1), ("asc-wfbp", 2), ("optimal", 2), ("optimal", 3)):
        plan, messages = planned(p.document(), "--policy", policy, "--lanes", str(lanes),
                                 "--staleness", str(staleness))
        steps = 480
        want = p.pipelined(messages, plan["lanes"], staleness, steps)
        same(f"{policy} on {lanes} lanes, {staleness} stale: iteration", plan["predicted"]["iteration_s"], want, STALE)
        if plan["predicted"]["lower_bound_s"] > want * (1 + STALE):
            raise AssertionError(f"{policy}: bound {plan['predicted']['lower_bound_s']} above {want}")


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for i in range(count):
        rng = random.Random(seed * 1000 + i)
        p = Problem(rng)
        try:
            check(p, rng.randint(1, 60))
            check_stale(p, rng)
        except AssertionError as e:
            sys.exit(f"problem {seed * 1000 + i}: {e}\n{p.document()}")


if __name__ == "__main__":
    main()
