#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Policy ddp of gf-plan against the function that fills buckets in PyTorch:
check_buckets.py COUNT. Draws models in the order of their gradients."""
import json
import random
import subprocess
import sys

import torch
import torch.distributed as dist

MIB = 1 << 20


def profile(sizes):
    tensors = [{"name": f"t{i}", "count_elems": n, "dtype": "f32", "ready_s": i + 1.0} for i, n in enumerate(sizes)]
    return json.dumps({"format": "gf-profile", "version": 1,
                       "model": {"name": "drawn", "forward_s": 1, "backward_s": len(sizes), "tensors": tensors},
                       "network": {"ranks": 4, "allreduce": [
                           {"algorithm": "library", "startup_s": 1e-3, "per_byte_s": 1e-9}]}})


def planned(sizes, *options):
    run = subprocess.run(["gf-plan", "-q", "--policy", "ddp", *options], input=profile(sizes),
                         capture_output=True, text=True, timeout=60, check=True)
    return [list(range(m["first"], m["last"] + 1)) for m in json.loads(run.stdout)["messages"]]


def filled(sizes, limits):
    """As the reducer does once it knows the order of the gradients."""
    tensors = [torch.empty(n) for n in sizes]
    buckets = dist._compute_bucket_assignment_by_size(tensors, limits, [False] * len(sizes), list(range(len(sizes))))
    return [list(b) for b in buckets[0]]


def main():
    for seed in range(int(sys.argv[1])):
        rng = random.Random(seed)
        # a cap is sometimes met to the byte
        sizes = [rng.choice([rng.randint(1, 3000), MIB // 4, rng.randint(1, 4 * MIB)])
                 for _ in range(rng.randint(1, 40))]
        cap = rng.choice([sum(sizes[:3]) * 4, rng.randint(1, 30 * MIB)])
        for options, limits in (((), [MIB, 25 * MIB]), (("--threshold", str(cap)), [cap])):
            got, want = planned(sizes, *options), filled(sizes, limits)
            if got != want:
                sys.exit(f"seed {seed}, limits {limits}: want {want}, got {got}")


if __name__ == "__main__":
    main()
