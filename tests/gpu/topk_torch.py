#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch.topk of magnitudes, as bench_kernels runs its own: the median of 20.

usage: topk_torch.py [ELEMENTS]    exits 77 without PyTorch or a GPU
"""
import sys

from torch_gpu import median_ms, torch

count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
k = max(1, int(0.001 * count))
values = torch.randn(count, device="cuda")
time_ms = median_ms(lambda: torch.topk(values.abs(), k))
print(f"torch.topk of {count}, k {k}: {time_ms:.3f} ms "
      f"(PyTorch {torch.__version__})")
