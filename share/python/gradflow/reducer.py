# SPDX-License-Identifier: BSD-3-Clause
"""Executes a plan: which message may be sent, and when."""
import atexit
import queue
import threading

import torch
import torch.distributed as dist

from .common import Accumulating, on_gradient, trained
from .plan import Plan, PlanError, want
from .trace import Trace


class _Step:
    """How far one step's gradients have come."""

    def __init__(self, messages, pool):
        self.pool = pool
        self.missing = [len(m.names) for m in messages]
        self.given = set()                  # names of what is not missing
        self.sent = [None] * len(messages)  # (work, what is on the wire)
        self.landed = [False] * len(messages)
        self.begun = [None] * len(messages)  # a trace's
        self.launched = 0                   # messages, in the plan's order
        self.ended = False                  # backward has


def _lane(flights, landed):
    """One lane's thread. It notices that a message has arrived, so that the next
    one may leave while backward computes."""
    while True:
        work, step, i = flights.get()
        failure = None
        try:
            work.wait()
        except RuntimeError as e:
            failure = e
        del work
        landed(step, i, failure)
        del step


class Reducer(Accumulating):
    """Executes plan, a document or a file's name, for the gradients of model.

    Gradients live in one pool in the plan's order. A message is a piece of the
    pool, so nothing is gathered before a message leaves. Rank 0's parameters and buffers are
    given to all ranks. With trace=True (tensors on CPUs) the moments of every
    step are kept for report() and write_trace().
    """

    def __init__(self, model, plan, trace=False):
        self.ranks = dist.get_world_size()
        self.parameters = trained(model)
        self.plan = Plan(plan, self.parameters, self.ranks)
        self.messages = self.plan.messages
        kinds = {(p.dtype, p.device) for p in self.parameters.values()}
        want(len(kinds) == 1, "model", "parameters of one type on one device",
             ", ".join(sorted(f"{t} on {d}" for t, d in kinds)) or "none")
        self.dtype, self.device = kinds.pop()
        self.on_host = self.device.type == "cpu"
        want(self.on_host or not trace, "trace", "tensors on CPUs", self.device)
        self._agree()
        self._try_wires()
        # A device's work is queued, and one queue works in turns: a group is a
        # lane on a device. On a host lanes are counted.
        self.groups = [dist.new_group() for _ in range(1 if self.on_host else self.plan.lanes)]
        self.moved = threading.Condition()
        self.flights = queue.SimpleQueue()
        for _ in range(self.plan.lanes if self.on_host else 0):
            threading.Thread(target=_lane, args=(self.flights, self._landed),
                             daemon=True).start()
        self.flying = 0
        self.failure = None   # of a launch, perhaps on another thread
        self.steps = 0
        self.launching = []   # steps with messages that have not left
        self.running = []     # steps whose gradients nobody has taken
        self._lay_out()
        self._begin()
        self.trace = Trace(model, self.messages) if trace else None
        self.hooks = [on_gradient(p, lambda n=n: self._ready(n))
                      for n, p in self.parameters.items()]
        atexit.register(self.drain)  # also of a reducer that nobody has any more
        with torch.no_grad():
            for tensor in model.state_dict().values():
                if isinstance(tensor, torch.Tensor):
                    dist.broadcast(tensor, 0)

    def _agree(self):
        """All ranks must cut the same gradients into the same messages."""
        sizes = [p.numel() for p in self.parameters.values()]
        ranks = [None] * self.ranks
        dist.all_gather_object(ranks, (self.plan.terms(), sizes, str(self.dtype)))
        for r, other in enumerate(ranks):
            want(other == ranks[0], "plan", "the same messages on all ranks",
                 f"others on rank {r} than on rank 0")

    def _try_wires(self):
        """Not every backend adds every type."""
        for wire in {m.wire for m in self.messages if m.wire is not None}:
            try:
                dist.all_reduce(torch.zeros(1, dtype=wire, device=self.device))
            except RuntimeError as e:
                raise PlanError(f"plan: want a codec that {dist.get_backend()} can add, "
                                f"got {wire}: {e}") from None

    def _lay_out(self):
        self.place, self.pieces, at = {}, [], 0
        for i, m in enumerate(self.messages):
            first = at
            for n in m.names:
                self.place[n] = (i, at)
                at += self.parameters[n].numel()
            self.pieces.append(slice(first, at))
        self.pools = [torch.zeros(at, dtype=self.dtype, device=self.device)
                      for _ in range(self.plan.staleness)]

    def _view(self, step, name):
        p, (_, at) = self.parameters[name], self.place[name]
        return step.pool[at:at + p.numel()].view(p.shape)

    def _begin(self):
        self.current = _Step(self.messages, self.pools[self.steps % len(self.pools)])
        self.launching.append(self.current)

    # --- while backward runs ---

    def _ready(self, name):
        """Backward has added to name's gradient."""
        step, p = self.current, self.parameters[name]
        if name in step.given:  # and perhaps under way
            raise PlanError(f"{name}: want one backward for each finish(), or the "
                            "earlier ones within no_sync()")
        view = self._view(step, name)
        if p.grad.data_ptr() != view.data_ptr():
            view.copy_(p.grad)
            p.grad = view
        if not self.syncing:
            return
        if self.trace:
            self.trace.ready(name)
        i = self.place[name][0]
        with self.moved:
            step.given.add(name)
            step.missing[i] -= 1
        self._advance()

    def _advance(self):
        """Launch what may go, in the plan's order and step after step. Called by
        backward's thread, by finish(), and when a message has arrived."""
        with self.moved:
            while self.launching and self.failure is None and self._may_go():
                try:
                    self._launch(self.launching[0])
                except Exception as e:
                    self.failure = e
            self.moved.notify_all()

    def _may_go(self):
        if self.on_host and self.flying >= self.plan.lanes:
            return False
        step = self.launching[0]
        i = step.launched
        return step.ended or not (self.messages[i].late or step.missing[i] > 0)

    def _launch(self, step):
        i = step.launched
        step.launched += 1
        if step.launched == len(self.messages):
            self.launching.pop(0)
        self.flying += 1
        piece = step.pool[self.pieces[i]]
        piece.div_(self.ranks)  # before the sum, which f16 might not hold
        wire = piece if self.messages[i].wire is None else piece.to(self.messages[i].wire)
        if self.trace:
            step.begun[i] = self.trace.start()
        work = dist.all_reduce(wire, group=self.groups[i % len(self.groups)], async_op=True)
        step.sent[i] = (work, wire)
        if self.on_host:
            self.flights.put((work, step, i))

    def _landed(self, step, i, failure):
        if self.trace:
            self.trace.end(i, step.begun[i])
        with self.moved:
            step.landed[i] = True
            self.failure = self.failure or failure
            self.flying -= 1
            self._advance()

    # --- after backward ---

    def finish(self):
        """Wait for the gradients that this step applies. Each .grad is then the
        mean over all ranks, or None if a pipeline has nothing to apply yet
        (optimisers pass such parameters over)."""
        step = self.current
        if self.trace:
            self.trace.backward_end()
        for name, p in self.parameters.items():
            view = self._view(step, name)
            if p.grad is None or p.grad.data_ptr() != view.data_ptr():
                view.zero_()  # no gradient in this step
        with self.moved:
            step.ended = True
        self._advance()
        self.running.append(step)
        lag = 0 if self.steps < self.plan.warmup else self.plan.staleness - 1
        due = self.running.pop(0) if len(self.running) > lag else None
        if due is not None:
            self._wait(due)
        for name, p in self.parameters.items():
            p.grad = None if due is None else self._view(due, name)
        if self.trace:
            self.trace.finished()
        self.steps += 1
        self._begin()

    def step(self, optimizer):
        """finish(), the optimiser's step, and gradients ready for the next."""
        self.finish()
        optimizer.step()
        optimizer.zero_grad()
        if self.trace:
            self.trace.updated()

    def _wait(self, step):
        for i, m in enumerate(self.messages):
            with self.moved:
                self.moved.wait_for(lambda i=i: self.failure or (
                    step.landed[i] if self.on_host else step.sent[i]))
                if self.failure:
                    raise self.failure
            work, wire = step.sent[i]
            step.sent[i] = None
            if not self.on_host:
                work.wait()  # the stream does
            if m.wire is not None:
                step.pool[self.pieces[i]].copy_(wire)

    def drain(self, seconds=10):
        """Wait until no launched message is under way, or until the time is up: an
        interpreter must not end with a thread inside the backend."""
        with self.moved:
            self.moved.wait_for(lambda: not self.on_host or self.flying == 0, seconds)

    # --- what was measured ---

    def report(self):
        """Predicted beside measured, this rank's medians, as text."""
        return self.trace.report(self.messages)

    def write_trace(self, path):
        """All ranks' steps as a Chrome trace, for Perfetto and for gf-plan
        --refine; rank 0 writes. Every rank must call."""
        self.trace.write(path)
