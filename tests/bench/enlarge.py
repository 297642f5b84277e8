#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""enlarge.py [--pairs] FROM TO: larger images out of handwritten digits of 8 x 8.

Every training image of the IDX folder FROM is drawn six times, every test image twice, each
time shifted, turned and scaled at random (seeded), enlarged by bilinear interpolation. Of the
shipped digits the folder TO gets 8,622 training images and 720 test images, which come from
test images alone. They are 28 x 28, as MNIST's. With --pairs each stands left or right of
another one in an image of 32 x 32 with two colours, and TO gets files as CIFAR-100's: the
number that a pair reads as is its class. Takes some 20 seconds."""
import gzip
import math
import os
import random
import struct
import sys

SOURCE, DARKEST, TIMES = 8, 16, {"train": 6, "test": 2}
PADDED = SOURCE + 2  # what lies outside is background


def read(path, header):
    with gzip.open(path) as f:
        return f.read()[header:]


def write(path, shape, data):
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + data)


def drawn(image, rng, height=28, width=28, scales=(.3, .45), shift=3):
    """One image: each of its pixels looks for its place in the source."""
    angle, scale = rng.uniform(-.3, .3), rng.uniform(*scales)  # radians; source pixels of a pixel
    shift_y, shift_x = rng.uniform(-shift, shift), rng.uniform(-shift, shift)
    sin, cos = scale * math.sin(angle), scale * math.cos(angle)
    padded = bytearray(PADDED * PADDED)
    for i in range(SOURCE):
        padded[(i + 1) * PADDED + 1:(i + 1) * PADDED + 1 + SOURCE] = image[i * SOURCE:(i + 1) * SOURCE]
    out = bytearray(height * width)
    middle = (PADDED - 1) / 2
    for at in range(height * width):
        y, x = at // width - (height - 1) / 2 - shift_y, at % width - (width - 1) / 2 - shift_x
        sy, sx = middle + cos * y - sin * x, middle + sin * y + cos * x
        if 0 <= sy < PADDED - 1 and 0 <= sx < PADDED - 1:
            iy, ix = int(sy), int(sx)
            fy, fx, i = sy - iy, sx - ix, iy * PADDED + ix
            top = padded[i] * (1 - fx) + padded[i + 1] * fx
            low = padded[i + PADDED] * (1 - fx) + padded[i + PADDED + 1] * fx
            out[at] = round(top * (1 - fy) + low * fy)
    return bytes(out)


def pair(left, right, rng):
    """Two digits side by side, 32 x 32 in red, green and blue."""
    halves = [drawn(image, rng, 32, 16, (.55, .7), 1.5) for image in (left, right)]
    ink = [h[16 * y:16 * y + 16] for y in range(32) for h in halves]
    paper, pen = ([rng.randrange(*tones) for _ in range(3)] for tones in ((0, 64), (128, 256)))
    return bytes(round(p + (q - p) * min(v, DARKEST) / DARKEST)
                 for p, q in zip(paper, pen) for row in ink for v in row)


def main(pairs, source, target):
    os.makedirs(target, exist_ok=True)
    rng = random.Random(1)
    for part, times in TIMES.items():
        images = read(f"{source}/{part}-images-idx3-ubyte.gz", 16)
        labels = read(f"{source}/{part}-labels-idx1-ubyte.gz", 8)
        n, size = len(labels), SOURCE * SOURCE
        images = [images[i * size:(i + 1) * size] for i in range(n)]
        if pairs:
            with open(f"{target}/{part}.bin", "wb") as f:
                for i in list(range(n)) * times:
                    k = rng.randrange(n)
                    a, b = rng.choice(((i, k), (k, i)))
                    f.write(bytes((0, 10 * labels[a] + labels[b])) + pair(images[a], images[b], rng))
            continue
        data = b"".join(drawn(image, rng) for _ in range(times) for image in images)
        write(f"{target}/{part}-images-idx3-ubyte.gz", (n * times, 28, 28), data)
        write(f"{target}/{part}-labels-idx1-ubyte.gz", (n * times,), labels * times)


if __name__ == "__main__":
    main(sys.argv[1] == "--pairs", *sys.argv[-2:])
