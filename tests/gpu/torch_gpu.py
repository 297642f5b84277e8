# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch on a GPU, for the comparisons here: a program that imports this ends
with 77 without either."""
import sys

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(77)


def median_ms(run):
    """Of 20 runs by events, after 3 that do not count."""
    times = []
    for i in range(-3, 20):
        before = torch.cuda.Event(enable_timing=True)
        after = torch.cuda.Event(enable_timing=True)
        before.record()
        run()
        after.record()
        after.synchronize()
        if i >= 0:
            times.append(before.elapsed_time(after))
    return sorted(times)[len(times) // 2]
