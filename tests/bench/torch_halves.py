#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-scatters and all-gathers of PyTorch over gloo, as a job of mpirun in a lab.

usage: gf-lab run NAME PYTHON tests/bench/torch_halves.py [REPEATS]

Prints the collective, the bytes of all parts, and the median time in us, of the slowest rank.
"""
import os
import statistics
import sys
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")

import torch  # noqa: E402
from torch import distributed  # noqa: E402

repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 20
rank, ranks = (int(os.environ["OMPI_COMM_WORLD_" + name]) for name in ("RANK", "SIZE"))
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method="tcp://h0:29511", rank=rank, world_size=ranks)
for name in "reduce_scatter", "all_gather":
    for size in (4 << 10 << 2 * i for i in range(6)):
        whole, part, times = torch.ones(size // 4), torch.ones(size // 4 // ranks), []
        for _ in range(3 + repeats):
            distributed.barrier()
            begin = time.perf_counter()
            if name == "reduce_scatter":
                distributed.reduce_scatter_tensor(part, whole)
            else:
                distributed.all_gather_into_tensor(whole, part)
            took = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
            distributed.all_reduce(took, op=distributed.ReduceOp.MAX)
            times.append(took.item())
        if rank == 0:
            print(name, size, round(statistics.median(times[3:]) * 1e6), flush=True)
distributed.destroy_process_group()
