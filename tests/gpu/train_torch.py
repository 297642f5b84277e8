#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A shipped model's training step in PyTorch: f16 samples per second.

usage: train_torch.py MODEL.json BATCH STEPS [eager|compiled...]

The model is built from the same document that gf-train reads; the step is
forward, loss, backward under autocast to f16 with a gradient scaler, and SGD
with momentum (of a model with attention AdamW, as in gf-train), on samples that
lie on the GPU. Prints "WAY SAMPLES/S" per way, the median of STEPS steps timed
by events after warming up. Each position of a text counts, as in gf-train's log.
Exits 77 without PyTorch or a GPU.
"""
import json
import sys

from torch_gpu import torch
from torch import nn

WARM_UP = 10


class Positions(nn.Module):
    """An embedding of positions: the sample says only how many there are."""

    def __init__(self, entries, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(entries, width))

    def forward(self, x):
        return self.weight[:x.shape[1]].expand(x.shape[0], -1, -1)


class Attention(nn.Module):
    """Of one input {T, 3F}: queries, keys and values side by side."""

    def __init__(self, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, steps, width = x.shape
        parts = x.view(batch, steps, 3, self.heads, width // 3 // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v,
                                                       is_causal=self.causal)
        return y.transpose(1, 2).reshape(batch, steps, width // 3)


class Lstm(nn.LSTM):
    """The outputs alone."""

    def forward(self, x):
        return super().forward(x)[0]


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
    if kind == "embedding":
        table = Positions if spec.get("positional") else nn.Embedding
        return table(spec["entries"], spec["outputs"]), channels, spec["outputs"]
    if kind == "layernorm":
        made = nn.LayerNorm(features, spec.get("epsilon", 1e-5))
        return made, channels, features
    if kind == "attention":
        made = Attention(spec["heads"], spec.get("causal", False))
        return made, channels, features // 3
    if kind == "gelu":
        return nn.GELU(), channels, features
    if kind == "lstm":
        made = Lstm(features, spec["outputs"], batch_first=True)
        return made, channels, spec["outputs"]
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
            first = came[0] in (None, "input")
            c = document["input"][0] if first else channels[came[0]]
            f = None if first else features[came[0]]
            if spec["type"] != "add":
                made, c, f = layer_of(spec, c, f)
                self.layers[spec["name"].replace(".", "/")] = made
            channels[spec["name"]], features[spec["name"]] = c, f
            before = spec["name"]
        self.keep = {name for spec in self.specs for name in spec.get("from", [])}
        self.images = len(document["input"]) == 3

    def forward(self, x):
        kept = {"input": x}
        for spec in self.specs:
            came = spec.get("from")
            if spec["type"] == "add":
                x = kept[came[0]] + kept[came[1]]
            else:
                if came:
                    x = kept[came[0]]
                if spec["type"] == "fc" and self.images and x.dim() > 2:
                    x = torch.flatten(x, 1)
                x = self.layers[spec["name"].replace(".", "/")](x)
            if spec["name"] in self.keep:
                kept[spec["name"]] = x
        return x


def batch_of(document, batch):
    """Samples and labels: images of a class, or words and the next ones."""
    classes = document["classes"]
    if len(document["input"]) == 3:
        images = torch.randn(batch, *document["input"], device="cuda")
        return (images.to(memory_format=torch.channels_last),
                torch.randint(classes, (batch,), device="cuda"))
    shape = (batch, *document["input"])
    return (torch.randint(classes, shape, device="cuda"),
            torch.randint(classes, shape, device="cuda"))


def samples_per_s(document, batch, steps, compiled):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    model = Model(document).cuda()
    samples, labels = batch_of(document, batch)
    with torch.no_grad():
        model(samples)  # the lazy layers learn their sizes
    if model.images:
        model = model.to(memory_format=torch.channels_last)
    run = torch.compile(model) if compiled else model
    if any(spec["type"] == "attention" for spec in document["layers"]):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    else:
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
            logits = run(samples)
            loss = nn.functional.cross_entropy(logits.flatten(0, -2),
                                               labels.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        after.record()
        after.synchronize()
        if step >= WARM_UP:
            times_ms.append(before.elapsed_time(after))
    times_ms.sort()
    return labels.numel() / (times_ms[len(times_ms) // 2] * 1e-3)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        document = json.load(f)
    batch, steps = int(sys.argv[2]), int(sys.argv[3])
    for way in sys.argv[4:] or ["eager", "compiled"]:
        try:
            rate = samples_per_s(document, batch, steps, way == "compiled")
        except Exception as problem:  # a compiler that is not there
            if way == "eager":
                raise
            print(f"{way} failed: {str(problem).splitlines()[0]}", flush=True)
            continue
        print(f"{way} {rate:.1f}", flush=True)


main()
