#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""enlarge.py FROM TO: handwritten digits of 28 x 28, as MNIST's, out of those of 8 x 8.

Every training image of the IDX folder FROM is drawn six times, every test image twice, each
time shifted, turned and scaled at random (seeded), enlarged by bilinear interpolation. Of the
shipped digits the folder TO gets 8,622 training images and 720 test images, which come from
test images alone. Takes some 20 seconds."""
import gzip
import math
import os
import random
import struct
import sys

SIDE, SOURCE, TIMES = 28, 8, {"train": 6, "test": 2}
PADDED = SOURCE + 2  # what lies outside is background


def read(path, header):
    with gzip.open(path) as f:
        return f.read()[header:]


def write(path, shape, data):
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + data)


def drawn(image, rng):
    """One image of SIDE x SIDE: each of its pixels looks for its place in the source."""
    angle, scale = rng.uniform(-.3, .3), rng.uniform(.3, .45)  # radians; source pixels of a pixel
    shift_y, shift_x = rng.uniform(-3, 3), rng.uniform(-3, 3)
    sin, cos = scale * math.sin(angle), scale * math.cos(angle)
    padded = bytearray(PADDED * PADDED)
    for i in range(SOURCE):
        padded[(i + 1) * PADDED + 1:(i + 1) * PADDED + 1 + SOURCE] = image[i * SOURCE:(i + 1) * SOURCE]
    out = bytearray(SIDE * SIDE)
    middle = (PADDED - 1) / 2
    for at in range(SIDE * SIDE):
        y, x = at // SIDE - (SIDE - 1) / 2 - shift_y, at % SIDE - (SIDE - 1) / 2 - shift_x
        sy, sx = middle + cos * y - sin * x, middle + sin * y + cos * x
        if 0 <= sy < PADDED - 1 and 0 <= sx < PADDED - 1:
            iy, ix = int(sy), int(sx)
            fy, fx, i = sy - iy, sx - ix, iy * PADDED + ix
            top = padded[i] * (1 - fx) + padded[i + 1] * fx
            low = padded[i + PADDED] * (1 - fx) + padded[i + PADDED + 1] * fx
            out[at] = round(top * (1 - fy) + low * fy)
    return bytes(out)


def main(source, target):
    os.makedirs(target, exist_ok=True)
    rng = random.Random(1)
    for part, times in TIMES.items():
        images = read(f"{source}/{part}-images-idx3-ubyte.gz", 16)
        labels = read(f"{source}/{part}-labels-idx1-ubyte.gz", 8)
        n, size = len(labels), SOURCE * SOURCE
        data = b"".join(drawn(images[i * size:(i + 1) * size], rng)
                        for _ in range(times) for i in range(n))
        write(f"{target}/{part}-images-idx3-ubyte.gz", (n * times, SIDE, SIDE), data)
        write(f"{target}/{part}-labels-idx1-ubyte.gz", (n * times,), labels * times)


if __name__ == "__main__":
    main(*sys.argv[1:])
