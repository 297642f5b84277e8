# SPDX-License-Identifier: BSD-3-Clause
"""Tests of PyTorch jobs: TEST.py RANKS CASE... runs cases, functions of the test, in turns
in RANKS processes that meet over gloo. One that fails ends in an exception."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, ranks, folder, cases):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank,
                            world_size=ranks)
    os.chdir(folder)
    for case in cases:
        case()
        dist.barrier()
    dist.destroy_process_group()


def raises(call, *texts):
    try:
        call()
    except (AttributeError, OSError, RuntimeError, ValueError, TypeError) as e:
        assert all(text in str(e) for text in texts), (texts, str(e))
    else:
        raise AssertionError(f"not refused: {texts}")


def shards_lack(attributes):
    """What this PyTorch lacks of a fully_shard on processors, and of these attributes of its modules;
    "" if nothing. PyTorch 2.6 has one for GPUs alone; 1.13 does not import it on Python 3.11."""
    try:
        from torch.distributed.fsdp import FSDPModule
    except (ImportError, ValueError):
        return "no fully_shard in this PyTorch"
    lacking = [a for a in ("set_all_reduce_hook", *attributes) if not hasattr(FSDPModule, a)]
    return f"no {lacking[0]} in this PyTorch" if lacking else ""


def of_shards(*attributes):
    """A case that needs fully_shard, with these attributes of its modules."""
    def mark(case):
        case.attributes = attributes
        return case
    return mark


def main(functions, attributes=None):
    """By the arguments of the command line. The processes are forks of this one, which
    has loaded PyTorch, and need not load it again. attributes: as of_shards, for all cases."""
    ranks, cases = int(sys.argv[1]), [functions[name] for name in sys.argv[2:]]
    for wanted in [attributes, *(getattr(case, "attributes", None) for case in cases)]:
        if wanted is not None and (lacking := shards_lack(wanted)):
            sys.exit(f"skipped: {lacking}")
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (ranks, folder, cases), nprocs=ranks, start_method="fork")
