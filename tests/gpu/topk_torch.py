#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch.topk of magnitudes, as bench_kernels runs its own: the median of 20.

usage: topk_torch.py [ELEMENTS]    exits 77 without PyTorch or a GPU
"""
import sys

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(77)

count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
k = max(1, int(0.001 * count))
values = torch.randn(count, device="cuda")
times_ms = []
for turn in range(23):
    before = torch.cuda.Event(enable_timing=True)
    after = torch.cuda.Event(enable_timing=True)
    before.record()
    torch.topk(values.abs(), k)
    after.record()
    after.synchronize()
    if turn >= 3:
        times_ms.append(before.elapsed_time(after))
times_ms.sort()
print(f"torch.topk of {count}, k {k}: {times_ms[10]:.3f} ms "
      f"(PyTorch {torch.__version__})")
