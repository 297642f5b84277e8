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


def main(functions):
    """By the arguments of the command line. The processes are forks of this one, which
    has loaded PyTorch, and need not load it again."""
    ranks, cases = int(sys.argv[1]), [functions[name] for name in sys.argv[2:]]
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (ranks, folder, cases), nprocs=ranks, start_method="fork")
