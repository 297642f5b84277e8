#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of fully_shard, of the checkout of PyTorch that $GF_PYTORCH_TESTS names,
with gradflow.shard's all-gathers and reduce-scatters in place of fully_shard's own:

    check_fsdp_suite.py [--plain] [--list] [--limit SECONDS] [PATTERN...]

The options are those of check_suite.py. The checkout should be of the version that is
installed. What fails is run plain as well: where that fails too, the test is not applicable.
Exit status: 0; 1 if a test failed; 77 without these tests.
"""
import glob
import importlib
import os
import sys

import torch_suite as shim  # before PyTorch
import check_suite
import gradflow
import torch
from gradflow.exchange import Exchange
from torch.distributed.tensor.debug import CommDebugMode
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode_stack

FOLDER, PREFIX = "test/distributed/_composable/fsdp", "test_fully_shard_"
# Files whose tests are of compilers, or of what only a GPU does.
LEFT_OUT = ("compile", "copy_engine", "memory", "overlap")
RANKS = 4  # where a test wants as many as there are GPUs
# Calls of an exchange, and the collectives whose place they take.
COLLECTIVES = {"__init__": None, "post": torch.ops.c10d.allreduce_,
               "all_gather": torch.ops.c10d._allgather_base_,
               "reduce_scatter": torch.ops.c10d._reduce_scatter_base_}


def on_processors():
    """Has to come before the tests are imported, which look for GPUs."""
    from torch.testing._internal import common_device_type, common_fsdp, common_utils
    shim.without_gpus()
    common_utils.device_sleep = lambda *_: None  # nothing is enqueued that it could delay
    common_fsdp.DEVICE_COUNT = RANKS
    torch.cpu.device_count = torch.cuda.device_count = lambda: RANKS
    instantiate = common_device_type.instantiate_device_type_tests
    common_device_type.instantiate_device_type_tests = \
        lambda suite, scope, **_: instantiate(suite, scope, only_for="cpu")


def counted(call, collective):
    """The call, which a test that counts collectives sees as the process group's."""
    def count(*args, **kwargs):
        for mode in _get_current_dispatch_mode_stack():
            if collective and isinstance(mode, CommDebugMode):
                mode.comm_counts[collective] += 1
        with _disable_current_modes():
            return call(*args, **kwargs)
    return count


def tests_in(module):
    from torch.testing._internal.common_distributed import MultiThreadedTestCase
    from torch.testing._internal.common_fsdp import FSDPTestMixin
    for suite in vars(module).values():
        if isinstance(suite, type) and suite.__module__ == module.__name__ and \
                issubclass(suite, (FSDPTestMixin, MultiThreadedTestCase)):
            threads = issubclass(suite, MultiThreadedTestCase)
            yield from (shim.Test(name, suite, not threads, threads) for name in sorted(dir(suite))
                        if name.startswith("test") and callable(getattr(suite, name)))


def load():
    """The tests of the checkout. ImportError: there are none."""
    folder = os.path.join(os.environ.get("GF_PYTORCH_TESTS", os.devnull), FOLDER)
    names = [os.path.basename(p)[:-len(".py")] for p in glob.glob(f"{folder}/{PREFIX}*.py")]
    if not names:
        raise ImportError(f"want $GF_PYTORCH_TESTS/{FOLDER}/{PREFIX}*.py, got none")
    on_processors()
    for name, collective in COLLECTIVES.items():
        setattr(Exchange, name, counted(getattr(Exchange, name), collective))
    sys.path.insert(0, folder)
    tests = []
    for name in sorted(names):
        if name.removeprefix(PREFIX) in LEFT_OUT:
            continue
        try:
            tests += tests_in(importlib.import_module(name))
        except (ImportError, AttributeError) as e:
            print(f"no tests of {name}: the installed PyTorch has not got what it needs: {e}")
    return tests


plain_init = []  # PyTorch's own, once it is replaced


def install(plain):
    """In each model when it is complete, just before its first forward; plain: in none."""
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
    plain_init[:] = plain_init or [FSDPState._lazy_init]

    def init(state):
        if state._is_root is None and len(state._modules) == 1:
            model = state._modules[0]
            # As where a job calls it: outside torch.func and modes.
            with torch._C._DisableFuncTorch(), _disable_current_modes():
                gradflow.shard(model)
            shim.counts["made"] += bool(model.gradflow.exchanges)
        plain_init[0](state)

    FSDPState._lazy_init = plain_init[0] if plain else init


if __name__ == "__main__":
    sys.exit(check_suite.main(check_suite.Suite(
        "fully_shard", "gradflow.shard", load, install, limit_s=400, beside=True), __doc__))
