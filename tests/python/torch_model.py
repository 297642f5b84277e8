# SPDX-License-Identifier: BSD-3-Clause
"""A gf-model document as a module of PyTorch, with the names of PyTorch's users."""
import collections
import re

import torch
from torch import nn
from torch.nn import functional as F


def attention(queries, keys, values, is_causal):
    """F.scaled_dot_product_attention, which PyTorch has from 2.0 on."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return scores.softmax(-1) @ values


class Model(nn.Module):
    """Its parameters stand under the layers' names: `transformer.h.0.ln_1.weight`. LSTMs with the
    names rnn.0, rnn.1, ... are one nn.LSTM of several layers, as PyTorch's users write it."""

    def __init__(self, document):
        super().__init__()
        self.steps = []
        self.readers = readers_of(document["layers"])
        shapes = {"input": tuple(document["input"])}
        stacks = stacks_of(document["layers"])
        before = "input"
        for layer in document["layers"]:
            inputs = layer.get("from", [before])
            before = layer["name"]
            if before in stacks:
                run, shape = self.stacked(stacks[before], layer, shapes[inputs[0]])
            else:
                make = getattr(self, "make_" + layer["type"])
                run, shape = make(layer, *(shapes[i] for i in inputs))
            shapes[before] = shape
            self.steps.append((before, inputs, run))

    def forward(self, x):
        values = {"input": x}
        for name, inputs, run in self.steps:
            values[name] = run(*(values[i] for i in inputs))
        return values[self.steps[-1][0]]

    def put(self, name, module, frozen=False):
        """Makes the modules on the way to it."""
        *path, last = name.split(".")
        at = self
        for part in path:
            if part not in dict(at.named_children()):
                at.add_module(part, nn.Module())
            at = getattr(at, part)
        at.add_module(last, module)
        module.requires_grad_(not frozen)
        return module

    # Each takes the shapes of the layer's inputs, and gives what runs it and its output's shape.

    def make_conv(self, layer, shape):
        module = self.put(layer["name"], nn.Conv2d(
            shape[0], layer["filters"], layer["kernel"], layer.get("stride", 1),
            layer.get("pad", 0), groups=layer.get("groups", 1), bias=layer.get("bias", True)),
            layer.get("frozen", False))
        return module, (layer["filters"], *window(layer, shape))

    def make_maxpool(self, layer, shape):
        stride = layer.get("stride", layer["kernel"])
        pool = F.max_pool2d if layer["type"] == "maxpool" else F.avg_pool2d
        return (lambda x: pool(x, layer["kernel"], stride, layer.get("pad", 0)),
                (shape[0], *window({**layer, "stride": stride}, shape)))

    make_avgpool = make_maxpool

    @staticmethod
    def make_globalpool(_, shape):
        return lambda x: x.mean((2, 3)), shape[:1]

    def make_batchnorm(self, layer, shape):
        kind = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
        return self.put(layer["name"], kind(shape[0], layer.get("epsilon", 1e-5),
                                            layer.get("momentum", 0.1))), shape

    def make_layernorm(self, layer, shape):
        return self.put(layer["name"],
                        nn.LayerNorm(shape[-1], layer.get("epsilon", 1e-5))), shape

    def make_fc(self, layer, shape):
        sequence = len(shape) == 2
        inputs = shape[-1] if sequence else torch.Size(shape).numel()
        module = self.put(layer["name"], nn.Linear(inputs, layer["outputs"],
                                                   layer.get("bias", True)),
                          layer.get("frozen", False))
        if sequence:
            return module, (shape[0], layer["outputs"])
        return lambda x: module(x.flatten(1)), (layer["outputs"],)

    def make_embedding(self, layer, shape):
        table = self.put(layer["name"], nn.Embedding(layer["entries"], layer["outputs"]),
                         layer.get("frozen", False))
        out = (shape[0], layer["outputs"])
        if layer.get("positional"):
            rows = torch.arange(shape[0]) // layer.get("stretch", 1)
            return lambda x: table.weight[rows].expand(x.shape[0], -1, -1), out
        return table, out

    @staticmethod
    def make_attention(layer, *shapes):
        features = shapes[0][1] // (3 if len(shapes) == 1 else 1)

        def run(*inputs):
            parts = inputs[0].chunk(3, 2) if len(inputs) == 1 else inputs
            heads = [x.unflatten(2, (layer["heads"], -1)).transpose(1, 2) for x in parts]
            product = getattr(F, "scaled_dot_product_attention", attention)
            y = product(*heads, is_causal=layer.get("causal", False))
            return y.transpose(1, 2).flatten(2)
        return run, (shapes[0][0], features)

    def make_lstm(self, layer, shape):
        module = self.put(layer["name"], nn.LSTM(shape[1], layer["outputs"], batch_first=True))
        return lambda x: module(x)[0], (shape[0], layer["outputs"])

    def stacked(self, stack, layer, shape):
        """All of it runs in the place of its last layer; the others hand on what they get."""
        name = stack[0]["name"].rpartition(".")[0]
        if layer is stack[0]:
            rates = [between["rate"] for between in stack if between["type"] == "dropout"]
            layers = [one for one in stack if one["type"] == "lstm"]
            self.put(name, nn.LSTM(shape[1], layer["outputs"], len(layers), batch_first=True,
                                   dropout=rates[0] if rates else 0))
        if layer is not stack[-1]:
            return lambda x: x, shape
        module = self.get_submodule(name)
        return lambda x: module(x)[0], (shape[0], layer["outputs"])

    @staticmethod
    def make_dropout(layer, shape):
        module = nn.Dropout(layer.get("rate", 0.5))
        return module, shape

    @staticmethod
    def make_select(layer, shape):
        return lambda x: x[:, layer["position"]], shape[1:]

    @staticmethod
    def make_add(_, shape, __):
        return torch.add, shape

    @staticmethod
    def make_concat(_, *shapes):
        return (lambda *x: torch.cat(x, 1),
                (sum(shape[0] for shape in shapes), *shapes[0][1:]))

    def make_relu(self, layer, shape):
        """In place, as the usual models have it, where nothing else reads its input."""
        source = layer["from"][0] if "from" in layer else self.steps[-1][0] if self.steps else None
        alone = self.readers[source] == 1
        return lambda x: F.relu(x, inplace=alone), shape

    @staticmethod
    def make_gelu(_, shape):
        return F.gelu, shape

    @staticmethod
    def make_tanh(_, shape):
        return torch.tanh, shape


def readers_of(layers):
    """How many layers read each value."""
    readers, before = collections.Counter(), "input"
    for layer in layers:
        readers.update(layer.get("from", [before]))
        before = layer["name"]
    return readers


def pair(side):
    return tuple(side) if isinstance(side, list) else (side, side)


def window(layer, shape):
    return tuple((size + 2 * pad - kernel) // layer.get("stride", 1) + 1
                 for size, kernel, pad in zip(shape[1:], pair(layer["kernel"]),
                                              pair(layer.get("pad", 0))))


def stacks_of(layers):
    """For each layer of a stack of LSTMs, dropout between them included: the whole stack."""
    stacks, stack = {}, []
    for layer in [*layers, None]:
        name = layer["name"] if layer else ""
        lstms = [one for one in stack if one["type"] == "lstm"]
        prefix = stack[0]["name"].rpartition(".")[0] if stack else ""
        if layer and layer["type"] == "lstm" and not stack and re.fullmatch(r".*\.0", name):
            stack = [layer]
        elif stack and layer and name == f"{prefix}.{len(lstms)}" and layer["type"] == "lstm":
            stack.append(layer)
        elif stack and layer and layer["type"] == "dropout":
            stack.append(layer)
        elif stack:
            while stack[-1]["type"] == "dropout":
                stack.pop()
            stacks.update({one["name"]: stack for one in stack})
            stack = []
    return stacks
