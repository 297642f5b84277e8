#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Can the texts of a picture be read? Takes SVG files that gnuplot wrote.

Prints each text that overlaps another one, or a marker, or the edge of a bar, of an area or of a
legend's swatch, and each that leaves the picture: with the widths of every font in
tests/data/fonts. Exits 1 if there are any.
"""
import json
import math
import os
import re
import sys
import xml.etree.ElementTree as ET

FONTS = os.path.join(os.path.dirname(__file__), "../data/fonts/widths.json")
ABOVE, BELOW = 0.73, 0.19  # of an em: capitals above the line, descenders below it
SLACK = 0.4  # pixels of white that a font has around its letters
GRID = "rgb(212,212,212)"


def widths():
    with open(FONTS, encoding="utf-8") as f:
        fonts = json.load(f)
    return {name: {c: int(width) / 1000 for width, letters in font["widths"].items() for c in letters}
            for name, font in fonts.items()}


def times(m, n):
    """The affine maps (a, b, c, d, e, f) of SVG, n first."""
    a, b, c, d, e, f = m
    g, h, i, j, k, l = n
    return (a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j,
            a * k + c * l + e, b * k + d * l + f)


def transform(text):
    m = (1, 0, 0, 1, 0, 0)
    for name, args in re.findall(r"(\w+)\(([^)]*)\)", text or ""):
        v = [float(x) for x in re.split(r"[ ,]+", args.strip())]
        if name == "translate":
            n = (1, 0, 0, 1, v[0], v[1] if len(v) > 1 else 0)
        elif name == "scale":
            n = (v[0], 0, 0, v[-1], 0, 0)
        else:
            c, s = math.cos(math.radians(v[0])), math.sin(math.radians(v[0]))
            n = (c, s, -s, c, 0, 0)
        m = times(m, n)
    return m


def at(m, x, y):
    return m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]


def points(text):
    v = [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]
    return list(zip(v[::2], v[1::2]))


class Picture:
    def __init__(self, path):
        root = ET.parse(path).getroot()
        self.size = float(root.get("width")), float(root.get("height"))
        self.texts, self.filled, self.strokes, self.markers = [], [], [], []
        self.walk(root, (1, 0, 0, 1, 0, 0), {})

    def walk(self, node, m, style):
        tag = node.tag.rpartition("}")[2]
        if tag in ("defs", "title", "desc"):
            return
        m = times(m, transform(node.get("transform")))
        style = {**style, **{k: node.get(k) for k in ("fill", "stroke", "font-size", "text-anchor")
                             if node.get(k)}}
        if tag == "text":
            text = "".join(node.itertext())
            if text.strip():
                self.texts.append((text, float(style["font-size"]),
                                   style.get("text-anchor", "start"), m))
        elif tag == "polygon" and style.get("fill") != "none":
            shape = [at(m, *p) for p in points(node.get("points"))]
            xs, ys = [p[0] for p in shape], [p[1] for p in shape]
            if max(xs) - min(xs) < 0.99 * self.size[0] or max(ys) - min(ys) < 0.99 * self.size[1]:
                self.filled.append(shape)
        elif tag == "path" and style.get("stroke", "none").replace(" ", "") not in (GRID, "none"):
            for part in node.get("d", "").split("M")[1:]:
                self.strokes.append((len(self.filled), [at(m, *p) for p in points(part)]))
        elif tag == "use" and "gpPt" in "".join(node.attrib.values()):
            self.markers.append([at(m, x, y) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        for child in node:
            self.walk(child, m, style)


def box(text, size, anchor, m, font):
    width = size * sum(font.get(c, 0.7) for c in text)
    left = {"start": 0, "middle": -width / 2, "end": -width}[anchor]
    edges = (left + SLACK, left + width - SLACK, -ABOVE * size + SLACK, BELOW * size - SLACK)
    return [at(m, x, y) for x, y in ((edges[0], edges[2]), (edges[1], edges[2]),
                                     (edges[1], edges[3]), (edges[0], edges[3]))]


def span(shape, axis):
    v = [p[0] * axis[0] + p[1] * axis[1] for p in shape]
    return min(v), max(v)


def normals(shape):
    for (x, y), (u, v) in zip(shape, shape[1:] + shape[:1]):
        if (x, y) != (u, v):
            yield v - y, x - u


def apart(a, b):
    """Of convex shapes: is there a line between them?"""
    for axis in [*normals(a), *normals(b)]:
        (low, high), (from_, to) = span(a, axis), span(b, axis)
        if high <= from_ or to <= low:
            return True
    return False


def inside(point, shape):
    x, y = point
    odd = False
    for (a, b), (c, d) in zip(shape, shape[1:] + shape[:1]):
        if (b > y) != (d > y) and x < a + (y - b) / (d - b) * (c - a):
            odd = not odd
    return odd


def crossed(text, line):
    """Does a polyline pass through the text's box?"""
    left, right = span(text, (1, 0))
    top, bottom = span(text, (0, 1))
    return any(not apart(text, [p, q]) for p, q in zip(line, line[1:])
               if p != q and max(p[0], q[0]) > left and min(p[0], q[0]) < right
               and max(p[1], q[1]) > top and min(p[1], q[1]) < bottom)


def faults(picture, font):
    boxes = [(t[0], box(*t, font)) for t in picture.texts]
    width, height = picture.size
    for i, (text, here) in enumerate(boxes):
        if any(not (0 <= x <= width and 0 <= y <= height) for x, y in here):
            yield f'"{text}" leaves the picture'
        for other, there in boxes[:i]:
            if not apart(here, there):
                yield f'"{text}" is on "{other}"'
        if any(not apart(here, marker) for marker in picture.markers):
            yield f'"{text}" is on a marker'
        # an area that a text is in hides what is drawn before it
        over = max((i for i, shape in enumerate(picture.filled)
                    if all(inside(p, shape) for p in here)), default=-1)
        if any(first > over and crossed(here, line) for first, line in picture.strokes):
            yield f'"{text}" is on a line'
        if any(crossed(here, shape + shape[:1]) for shape in picture.filled[over + 1:]):
            yield f'"{text}" is on the edge of an area'


def main():
    bad = False
    for path in sys.argv[1:]:
        picture = Picture(path)
        if not picture.texts:
            print(f"{path}: no text")
            bad = True
        for name, font in widths().items():
            for fault in faults(picture, font):
                print(f"{path}: {name}: {fault}")
                bad = True
    sys.exit(bad)


if __name__ == "__main__":
    main()
