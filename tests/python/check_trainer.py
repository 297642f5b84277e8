#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""libgradflow's trainer (include/gradflow.h) beside an optimiser of PyTorch, on one rank:
check_trainer.py CASE. GRADFLOW_LIBRARY names the library."""
import ctypes
import json
import os
import sys

import torch

COUNT, STEPS, RATE = 1000, 50, 1e-3


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dimensions", ctypes.c_size_t),
                ("shape", ctypes.c_size_t * 8)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("plan", ctypes.c_char_p),
                ("training", ctypes.c_char_p), ("epoch_steps", ctypes.c_size_t),
                ("timeout_s", ctypes.c_double)]


class Trainer:
    """Of one tensor."""

    def __init__(self, **optimizer):
        self.lib = ctypes.CDLL(os.environ["GRADFLOW_LIBRARY"])
        self.lib.gradflow_error.restype = ctypes.c_char_p
        for name in ("gradflow_parameters", "gradflow_begin"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        training = json.dumps({"format": "gf-training", "version": 1, "optimizer": optimizer})
        options = Options(ctypes.sizeof(Options), None, training.encode(), 0, 60)
        tensor, self.handle = Tensor(b"weight", 1, (COUNT,)), ctypes.c_void_p()
        self.check(self.lib.gradflow_open(ctypes.byref(tensor), ctypes.c_size_t(1),
                                          ctypes.byref(options), ctypes.byref(self.handle)))
        self.parameters = self.floats(self.lib.gradflow_parameters(self.handle))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.gradflow_error().decode())

    @staticmethod
    def floats(address):
        return torch.frombuffer((ctypes.c_float * COUNT).from_address(address),
                                dtype=torch.float32)

    def start(self, parameters):
        self.parameters.copy_(parameters)
        self.check(self.lib.gradflow_start(self.handle))

    def step(self, gradients):
        self.floats(self.lib.gradflow_begin(self.handle)).copy_(gradients)
        self.check(self.lib.gradflow_ready(self.handle, ctypes.c_size_t(0)))
        self.check(self.lib.gradflow_step(self.handle, ctypes.c_double(RATE)))

    def close(self):
        self.lib.gradflow_close(self.handle)


def same(make, most, **optimizer):
    """Steps from the same parameters by the same gradients differ by so much at most."""
    torch.manual_seed(1)
    own = Trainer(**optimizer)
    weight = torch.nn.Parameter(torch.randn(COUNT))
    other = make([weight])
    own.start(weight.detach())
    for step in range(STEPS):
        weight.data.copy_(own.parameters)
        weight.grad = torch.randn(COUNT) * 10.0 ** (step % 3 - 1)
        own.step(weight.grad)
        other.step()
        found = (own.parameters - weight.detach()).abs().max().item()
        assert found < most, f"step {step + 1}: parameters differ by {found}"
    own.close()


CASES = {
    "sgd": lambda: same(lambda p: torch.optim.SGD(p, lr=RATE, momentum=0.9, weight_decay=0.01),
                        1e-6, name="sgd", momentum=0.9, weight_decay=0.01),
    "adamw": lambda: same(lambda p: torch.optim.AdamW(p, lr=RATE), 5e-7, name="adamw"),
    "adamw_otherwise": lambda: same(
        lambda p: torch.optim.AdamW(p, lr=RATE, betas=(0.8, 0.95), weight_decay=0.1, eps=1e-6),
        5e-7, name="adamw", beta1=0.8, beta2=0.95, weight_decay=0.1, epsilon=1e-6),
}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
