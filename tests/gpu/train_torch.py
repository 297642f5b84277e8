#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A shipped model's training step in PyTorch: f16 images per second.

usage: train_torch.py MODEL.json BATCH STEPS [eager|compiled...]

The model is built from the same document that gf-train reads; the step is
forward, loss, backward under autocast to f16 with a gradient scaler, and SGD
with momentum, on images that lie on the GPU. Prints "WAY IMAGES/S" per way, the
median of STEPS steps timed by events after warming up. Exits 77 without PyTorch
or a GPU.
"""
import json
import sys

try:
    import torch
    from torch import nn
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU")
    sys.exit(77)

WARM_UP = 10


def layer_of(spec, channels, features):
    """A layer, and the channels and features that come out of it."""
    kind = spec["type"]
    if kind == "conv":
        made = nn.Conv2d(channels, spec["filters"], spec["kernel"],
                         spec.get("stride", 1), spec.get("pad", 0),
                         groups=spec.get("groups", 1),
                         bias=spec.get("bias", True))
        return made, spec["filters"], None
    if kind == "batchnorm":
        return nn.BatchNorm2d(channels), channels, features
    if kind == "relu":
        return nn.ReLU(inplace=False), channels, features
    if kind in ("maxpool", "avgpool"):
        pool = nn.MaxPool2d if kind == "maxpool" else nn.AvgPool2d
        made = pool(spec["kernel"], spec.get("stride", 1), spec.get("pad", 0))
        return made, channels, None
    if kind == "globalpool":
        return nn.AdaptiveAvgPool2d(1), channels, channels
    if kind == "dropout":
        return nn.Dropout(spec["rate"]), channels, features
    if kind == "fc":
        made = nn.LazyLinear(spec["outputs"], bias=spec.get("bias", True))
        return made, spec["outputs"], spec["outputs"]
    sys.exit(f"train_torch.py: no layer of type {kind}")


class Model(nn.Module):
    """Layers in order, each from the one before or from those it names."""

    def __init__(self, document):
        super().__init__()
        self.specs = document["layers"]
        self.layers = nn.ModuleDict()
        channels, features = {}, {}
        before = None
        for spec in self.specs:
            came = spec.get("from", [before])
            c = document["input"][0] if came[0] is None else channels[came[0]]
            f = None if came[0] is None else features[came[0]]
            if spec["type"] != "add":
                made, c, f = layer_of(spec, c, f)
                self.layers[spec["name"].replace(".", "/")] = made
            channels[spec["name"]], features[spec["name"]] = c, f
            before = spec["name"]
        self.keep = {name for spec in self.specs for name in spec.get("from", [])}

    def forward(self, x):
        kept = {}
        for spec in self.specs:
            came = spec.get("from")
            if spec["type"] == "add":
                x = kept[came[0]] + kept[came[1]]
            else:
                if came:
                    x = kept[came[0]]
                if spec["type"] == "fc" and x.dim() > 2:
                    x = torch.flatten(x, 1)
                x = self.layers[spec["name"].replace(".", "/")](x)
            if spec["name"] in self.keep:
                kept[spec["name"]] = x
        return x


def images_per_s(document, batch, steps, compiled):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    model = Model(document).cuda()
    images = torch.randn(batch, *document["input"], device="cuda")
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(document["classes"], (batch,), device="cuda")
    with torch.no_grad():
        model(images)  # the lazy layers learn their sizes
    model = model.to(memory_format=torch.channels_last)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9,
                                weight_decay=1e-4)
    scaler = torch.cuda.amp.GradScaler()
    times_ms = []
    for step in range(WARM_UP + steps):
        before = torch.cuda.Event(enable_timing=True)
        after = torch.cuda.Event(enable_timing=True)
        before.record()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(run(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        after.record()
        after.synchronize()
        if step >= WARM_UP:
            times_ms.append(before.elapsed_time(after))
    times_ms.sort()
    return batch / (times_ms[len(times_ms) // 2] * 1e-3)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        document = json.load(f)
    batch, steps = int(sys.argv[2]), int(sys.argv[3])
    for way in sys.argv[4:] or ["eager", "compiled"]:
        try:
            rate = images_per_s(document, batch, steps, way == "compiled")
        except Exception as problem:  # a compiler that is not there
            if way == "eager":
                raise
            print(f"{way} failed: {str(problem).splitlines()[0]}", flush=True)
            continue
        print(f"{way} {rate:.1f}", flush=True)


main()
