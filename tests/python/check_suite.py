#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of DistributedDataParallel, as the installed PyTorch has them, with
gradflow.ddp in its place (torch_suite.py):

    check_suite.py [--plain] [--list] [--limit SECONDS] [PATTERN...]

Each test has new processes, which are forks of this one. --plain runs the same with
DistributedDataParallel: what fails then is not gradflow's. PATTERN, as test_ddp_*, chooses
tests; --list only names them. Exit status: 0; 1 if a test failed or the lists below are
stale; 77 without these tests.
"""
import argparse
import collections
import faulthandler
import fnmatch
import json
import math
import multiprocessing.connection
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import unittest
from typing import Callable, NamedTuple

import torch_suite as shim  # before PyTorch
import torch
import torch.distributed as dist

# Of the PyTorch whose tests these are. An older one has others.
VERSION = (2, 15)

# Names of tests, or patterns of them: the reason, and what the failure says.
# Tests that cannot run so: plain DistributedDataParallel fails as well.
NOT_HERE = {
    "test_DistributedDataParallel_SyncBatchNorm*": (
        "SyncBatchNorm needs a GPU", "SyncBatchNorm layers only work with GPU modules"),
    "test_ddp_inference": (
        "SyncBatchNorm needs a GPU", "SyncBatchNorm layers only work with GPU modules"),
    "test_ddp_uneven_inputs_stop_iteration_sync_bn": (
        "SyncBatchNorm needs a GPU", "SyncBatchNorm layers only work with GPU modules"),
    "test_sync_bn_logged": (
        "SyncBatchNorm needs a GPU", "SyncBatchNorm layers only work with GPU modules"),
    "test_ddp_device": (
        "it asks whether inputs are on a GPU", "None mismatch: None is not"),
    "test_ddp_logging_data_gpu": (
        "it asks for the GPU's number", "String comparison failed: '' !="),
    "test_ddp_logging_data_cpu": (
        "it wants buckets of 25 MiB", "Expected 26214400 but got"),
}

# Tests that gradflow.ddp fails by design.
BY_DESIGN = {
    "test_ddp_control_flow_*_across_ranks": (
        "gradflow refuses first, so DistributedDataParallel logs no error",
        "Expected 'has_error' in ddp_logging_data"),
    "test_ddp_unused_params_rebuild_buckets_exception": (
        "gradflow refuses first, so DistributedDataParallel logs no error",
        "Expected 'has_error' in ddp_logging_data"),
    "test_ddp_multiple_nested_unused_params_err*": (
        "gradflow refuses first, and names one parameter and the number of the others",
        "Did not find index"),
    "test_invalid_static_graph": (
        "gradflow refuses first, in its own words",
        'does not match "gradflow: want a gradient of every parameter'),
    "test_ddp_device_mesh_initialization": (
        "gradflow refuses first, in its own words", "device_mesh: want one dimension, got 2"),
    "test_ddp_static_graph_nested_types": (
        "it wraps a wrapped model, which gradflow refuses",
        "the model is a DistributedDataParallel model already"),
    "test_ddp_native_mixed_precision_*": (
        "with mixed_precision a model has a hook of its own", "mixed_precision: want None"),
    "test_ddp_comm_hook_logging": (
        "it wants a model without a hook first", "None mismatch: hook is not None"),
    "test_ddp_profiling_torch_profiler": (
        "gradflow's messages are no collectives of the process group", "Expected 6 but got 0"),
}


# --- a test ---

class Suite(NamedTuple):
    """Tests, and what stands in for what they test."""
    of: str
    stand_in: str
    load: Callable     # the tests. ImportError: there are none here
    install: Callable  # (plain): from now on
    not_here: dict = {}
    by_design: dict = {}
    limit_s: float = 150  # for a test
    beside: bool = False  # what fails is run plain as well: n/a where that fails too


class Outcome(NamedTuple):
    """Of one rank, or of all: passed, skipped or failed."""
    kind: str
    line: str = ""
    whole: str = ""  # of a failure: at its end, that of the rank that failed first
    when: float = float("inf")
    ours: bool = False  # gradflow had a part in it


def perform(test, rank, folder):
    method = getattr(test.suite, test.name)
    if getattr(method, "__unittest_skip__", False):
        raise unittest.SkipTest(method.__unittest_skip_why__)
    self = test.suite(test.name)
    if test.threads:
        self.setUp()
    else:
        self.rank, self.file_name = rank, os.path.join(folder, "meeting")
    if test.grouped:
        dist.init_process_group("gloo", init_method=f"file://{self.file_name}", rank=rank,
                                world_size=int(self.world_size))
        dist.barrier()
    shim.set_rng_seed()
    with shim.OnProcessors():
        getattr(self, test.name)()


def described(error):
    """Its first line, of a thread's its last, and the place in the tests."""
    lines = str(error).strip().splitlines() or ["no text"]
    places = [f"{os.path.basename(f.filename)}:{f.lineno}"
              for f in traceback.extract_tb(error.__traceback__)
              if f.filename.endswith("_test.py") or "/test_" in f.filename]
    return (f"{type(error).__name__}: {lines[-1 if lines[0].startswith('Thread ') else 0]}" +
            (f" ({places[-1]})" if places else ""))


def came_of(test, rank, folder):
    try:
        perform(test, rank, folder)
    except unittest.SkipTest as e:
        return Outcome("skipped", str(e))
    except BaseException as e:
        if isinstance(e, SystemExit) and e.code in shim.skips():
            return Outcome("skipped", shim.skips()[e.code])
        return Outcome("failed", described(e), traceback.format_exc(), time.monotonic())
    made, gave_way = shim.counts["made"], shim.counts["gave way"]
    return Outcome("passed", f"({gave_way} of {made} models have hooks of the test)" if gave_way
                   else "", ours=made > gave_way)


def work(test, rank, folder, limit_s):
    """A process: leaves in folder what it writes and what came of the test."""
    os.chdir(folder)
    with open(f"log.{rank}", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    faulthandler.dump_traceback_later(limit_s)
    signal.alarm(math.ceil(limit_s) + 5)  # nobody may be there to end it
    torch.set_num_threads(1)
    outcome = came_of(test, rank, folder)
    with open(f"outcome.{rank}.part", "w") as f:
        json.dump(outcome, f)
    os.rename(f"outcome.{rank}.part", f"outcome.{rank}")
    if outcome.kind == "passed" and dist.is_initialized():
        dist.barrier()  # others may still need this rank
    os._exit(0)


def outcome_of(rank, folder):
    try:
        with open(os.path.join(folder, f"outcome.{rank}")) as f:
            return Outcome(*json.load(f))
    except FileNotFoundError:
        return None


def watch(processes, folder, limit_s):
    """Ends ranks that run too long, and soon those that wait for one that failed. Returns why,
    by rank."""
    end, failed = time.monotonic() + limit_s + 1, False
    while any(p.is_alive() for p in processes) and time.monotonic() < end:
        multiprocessing.connection.wait([p.sentinel for p in processes if p.is_alive()], .2)
        gone = [outcome_of(r, folder) for r, p in enumerate(processes) if not p.is_alive()]
        if not failed and any(o is None or o.kind == "failed" for o in gone):
            failed, end = True, min(end, time.monotonic() + 5)
    late = [r for r, p in enumerate(processes) if p.is_alive()]
    for p in processes:
        p.kill()
        p.join()
    return {r: "ended after another rank had failed" if failed else f"no end within {limit_s:g} s"
            for r in late}


def end_of(rank, process, folder, late):
    """The rank's outcome. Without an end there is none."""
    outcome = None if rank in late else outcome_of(rank, folder)
    if outcome:
        return outcome
    with open(os.path.join(folder, f"log.{rank}")) as f:
        wrote = f.read()
    if rank in late:
        return Outcome("failed", late[rank], wrote)
    return Outcome("failed", f"it ended with status {process.exitcode}", wrote, when=0)


def attempt(test, limit_s):
    """What came of it on all ranks; of failures, the first."""
    ranks = range(1 if test.threads else int(test.suite(test.name).world_size))
    with tempfile.TemporaryDirectory() as folder:
        for needed in ("barrier", "test_dir", "init_dir"):
            os.mkdir(os.path.join(folder, needed))
        os.environ["TEMP_DIR"] = folder
        processes = [multiprocessing.get_context("fork").Process(
            target=work, args=(test, r, folder, limit_s)) for r in ranks]
        for p in processes:
            p.start()
        late = watch(processes, folder, limit_s)
        outcomes = [end_of(r, p, folder, late) for r, p in enumerate(processes)]
    failures = [o._replace(line=f"rank {r}: {o.line}") for r, o in enumerate(outcomes)
                if o.kind == "failed"]
    if not failures and len({o.kind for o in outcomes}) > 1:
        return Outcome("failed", "some ranks skip it, and some do not")
    if not failures:
        return max(outcomes, key=lambda o: o.ours)
    failures.sort(key=lambda o: o.when)
    return failures[0]._replace(whole="\n".join(o.whole for o in reversed(failures)))


# --- the report ---

def listed(name, lists):
    return next((found for patterns in lists for pattern, found in patterns.items()
                 if fnmatch.fnmatchcase(name, pattern)), None)


def judge(test, outcome, lists, plain):
    """The outcome as the lists have it; and what is stale about them."""
    reason, text = listed(test.name, lists) or (None, None)
    if reason and outcome.kind == "failed" and text in outcome.line + outcome.whole:
        return outcome._replace(kind="n/a", line=reason), None
    if reason and outcome.kind == "failed":
        return outcome._replace(line=f"{outcome.line}; listed with: {text}"), None
    if reason and outcome.kind == "passed":
        return outcome, f"{test.name} passes, and is listed: {reason}"
    if outcome.kind == "passed" and not outcome.ours and not plain:
        return outcome._replace(kind="n/a", line="no model in it goes by gradflow"), None
    return outcome, None


def came_beside(suite, test, outcome, limit_s):
    """The outcome of a test that failed, when it has run without gradflow as well."""
    suite.install(plain=True)
    plain = attempt(test, limit_s)
    suite.install(plain=False)
    if plain.kind == "passed":
        return outcome
    line = re.sub(r"^rank \d+: | \(\S+:\d+\)$", "", plain.line)
    return Outcome("n/a", f"{suite.of} alone fails: {line}")


def options_of(description, limit_s):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--limit", type=float, default=limit_s, help="seconds for a test")
    parser.add_argument("patterns", nargs="*")
    return parser.parse_args()


def main(suite, description):
    options = options_of(description, suite.limit_s)
    if shim.version() < VERSION:
        print(f"skipped: want the tests of PyTorch {'.'.join(map(str, VERSION))} or newer, got "
              f"{torch.__version__}")
        return 77
    try:
        every = suite.load()
    except ImportError as e:
        print(f"skipped: this PyTorch cannot run its own tests: {e}")
        return 77
    tests = [t for t in every if not options.patterns or
             any(fnmatch.fnmatchcase(t.name, p) for p in options.patterns)]
    if options.list:
        print("\n".join(f"{t.suite.__name__}.{t.name}" for t in tests))
        return 0
    suite.install(plain=options.plain)
    lists = [suite.not_here] if options.plain else [suite.not_here, suite.by_design]
    counts = dict.fromkeys(("passed", "skipped", "n/a", "failed"), 0)
    failed, stale, reasons = [], [], collections.Counter()
    for test in tests:
        began = time.monotonic()
        outcome, old = judge(test, attempt(test, options.limit), lists, options.plain)
        if outcome.kind == "failed" and suite.beside and not options.plain:
            outcome = came_beside(suite, test, outcome, options.limit)
        counts[outcome.kind] += 1
        stale += [old] if old else []
        if outcome.kind == "failed":
            failed.append(f"{test.name}: {outcome.line}")
            print("\n".join(outcome.whole.strip().splitlines()[-40:]))
        elif outcome.kind != "passed":
            reasons[outcome.kind, outcome.line] += 1
        print(f"{time.monotonic() - began:5.1f} s  {outcome.kind:7} {test.name} {outcome.line}",
              flush=True)
    stale += [f"{pattern}: no test has this name" for patterns in (suite.not_here, suite.by_design)
              for pattern in patterns if not fnmatch.filter([t.name for t in every], pattern)]
    print(f"PyTorch {torch.__version__}, {'plain' if options.plain else suite.stand_in}: "
          f"{len(tests)} tests ran: {counts['passed']} passed, {counts['skipped']} skipped by "
          f"PyTorch, {counts['n/a']} not applicable, {counts['failed']} failed")
    for (kind, line), number in sorted(reasons.items()):
        print(f"{number:3} {kind:7} {line}")
    for line in failed:
        print(f"FAIL  {line}")
    for line in stale:
        print(f"stale {line}")
    return 1 if failed or stale else 0


if __name__ == "__main__":
    sys.exit(main(Suite("DistributedDataParallel", "gradflow.ddp", shim.load, shim.install,
                        NOT_HERE, BY_DESIGN), __doc__))
