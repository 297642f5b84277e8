# SPDX-License-Identifier: BSD-3-Clause
"""gradflow's own runtime in a PyTorch job: libgradflow over MPI, on CPUs."""
import atexit
import ctypes
import json
import os
import sys

import torch

from . import library as c
from .common import Accumulating, on_gradient, trained

def _floats(address, count):
    return torch.frombuffer((ctypes.c_float * count).from_address(address), dtype=torch.float32)


def _close_at_exit(runtime):
    """All ranks must finalise MPI together. A rank that ends with an exception
    does not: its status ends the job."""
    if not hasattr(sys, "last_type"):
        runtime.close()


class Runtime(Accumulating):
    """Trains model by a plan as gf-train does: every selection, codec, algorithm
    and staleness, over MPI. Under mpirun, one process a rank:

        runtime = gradflow.Runtime(model, "plan.json", optimizer="sgd", momentum=0.9)
        for ...:
            loss().backward()
            runtime.step(rate)

    The model's parameters move into the runtime's memory, which also updates
    them; all ranks start with those of rank 0. plan may be None (threshold
    fusion over a ring). The optimiser's settings are those of gf-training(5):
    optimizer (sgd, nesterov, lars, lars-paper, adamw), momentum, weight_decay,
    beta1, beta2, eta, epsilon, clip_norm, exclude. Buffers, such as batch norm's statistics, are left alone.

    The runtime begins MPI, once in a process. If mpi4py was imported before, the
    runtime uses its MPI. A state_dict() that was made before close() must be copied
    if it is used afterwards.
    """

    def __init__(self, model, plan=None, epoch_steps=0, timeout_s=60, library=None, **optimizer):
        self.handle = None
        # backward makes the last layer's gradients first
        self.parameters = list(reversed(list(trained(model).items())))
        for name, p in self.parameters:
            if p.dtype != torch.float32 or p.device.type != "cpu":
                raise ValueError(f"{name}: want f32 on the CPU, got {p.dtype} on {p.device}")
        self.lib = c.load(library)
        self.handle = self._open(plan, epoch_steps, timeout_s, optimizer)
        self.rank = self.lib.gradflow_rank(self.handle)
        self.ranks = self.lib.gradflow_ranks(self.handle)
        self.local_rank = self.lib.gradflow_local_rank(self.handle)
        self.count = self.lib.gradflow_count(self.handle)
        self.places = [self.lib.gradflow_place(self.handle, i)
                       for i in range(len(self.parameters))]
        atexit.register(_close_at_exit, self)
        self.grads = None
        self.given = None
        self._move()
        self.hooks = [on_gradient(p, lambda i=i: self._ready(i))
                      for i, (_, p) in enumerate(self.parameters)]

    def _open(self, plan, epoch_steps, timeout_s, optimizer):
        tensors = c.tensors(dict(self.parameters))
        settings = {("name" if k == "optimizer" else k): v for k, v in optimizer.items()}
        training = json.dumps({"format": "gf-training", "version": 1, "optimizer": settings})
        options = c.Options(ctypes.sizeof(c.Options),
                            None if plan is None else os.fspath(plan).encode(),
                            training.encode() if settings else None, epoch_steps, timeout_s)
        handle = ctypes.c_void_p()
        self._check(self.lib.gradflow_open(tensors, len(tensors), ctypes.byref(options),
                                           ctypes.byref(handle)))
        return handle

    def _check(self, status):
        c.check(self.lib, status)

    def _move(self):
        """Parameters become pieces of the runtime's memory."""
        self.base = self.lib.gradflow_parameters(self.handle)
        flat = _floats(self.base, self.count)
        with torch.no_grad():
            for (_, p), at in zip(self.parameters, self.places):
                piece = flat[at:at + p.numel()].view(p.shape)
                piece.copy_(p)
                p.data = piece
        self._check(self.lib.gradflow_start(self.handle))

    def _ready(self, i):
        name, p = self.parameters[i]
        if not self.syncing:
            return
        if self.grads is None:
            self._begin()
        if self.given[i]:  # which may be under way
            raise RuntimeError(f"gradflow: {name}: want one backward for each step(), or the "
                               "earlier ones within no_sync()")
        self._give(i)
        self._check(self.lib.gradflow_ready(self.handle, i))

    def _give(self, i):
        _, p = self.parameters[i]
        self.grads[self.places[i]:self.places[i] + p.numel()].copy_(p.grad.reshape(-1))
        p.grad = None
        self.given[i] = True

    def _begin(self):
        self._open_still()
        address = self.lib.gradflow_begin(self.handle)
        self._check(address is None)
        self.grads = _floats(address, self.count)
        self.given = [False] * len(self.parameters)

    def _open_still(self):
        if not self.handle:
            raise RuntimeError("gradflow: the runtime is closed")

    def step(self, rate):
        """Exchanges the gradients of backward, and updates the parameters by the
        mean over all ranks. A failure here is one of all ranks: end the process with
        a status other than 0."""
        if self.grads is None:
            self._begin()
        for i, ((name, p), at) in enumerate(zip(self.parameters, self.places)):
            if p.data_ptr() != self.base + 4 * at:
                raise RuntimeError(f"gradflow: {name}: want its data left where the runtime "
                                   "has it, found it moved")
            if self.given[i]:
                continue
            if p.grad is not None:  # all of it from within no_sync()
                self._give(i)
            else:
                self.grads[at:at + p.numel()].zero_()
        self.grads = None
        self._check(self.lib.gradflow_step(self.handle, rate))

    @property
    def steps(self):
        self._open_still()
        return self.lib.gradflow_steps(self.handle)

    @property
    def sent_bytes(self):
        self._open_still()
        return self.lib.gradflow_sent_bytes(self.handle)

    def save(self, folder):
        """Parameters, optimiser and selection, as a set that all ranks write."""
        self._open_still()
        self._check(self.lib.gradflow_save(self.handle, os.fspath(folder).encode()))

    def load(self, folder):
        """The newest whole set, before the first step."""
        self._open_still()
        self._check(self.lib.gradflow_load(self.handle, os.fspath(folder).encode()))

    def close(self):
        """Moves the parameters back into PyTorch's memory, and finalises MPI."""
        if not self.handle:
            return
        for _, p in self.parameters:
            p.data = p.data.clone()
        for hook in self.hooks:
            (hook[1] if isinstance(hook, tuple) else hook).remove()
        self.lib.gradflow_close(self.handle)
        self.handle = None
