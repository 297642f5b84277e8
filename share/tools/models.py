# SPDX-License-Identifier: BSD-3-Clause
"""models.py DIR: writes the models of the papers, and small ones, as gf-model documents.

Layers carry the names that PyTorch's own versions give them, so that profiles made there fit.
tests/docs/models.sh compares what is shipped in share/models with what this program writes.
"""
import json
import os
import sys

INPUT = "input"


class Net:
    """A model, layer by layer.

    A method that adds a layer takes the name of the layer that it reads, and returns its own.
    """

    def __init__(self, shape, classes):
        self.shape, self.classes = shape, classes
        self.layers = []

    def add(self, kind, sources, name, **keys):
        sources = [sources] if isinstance(sources, str) else sources
        last = self.layers[-1]["name"] if self.layers else INPUT
        layer = {"name": name, "type": kind}
        if sources != [last]:
            layer["from"] = sources
        self.layers.append({**layer, **keys})
        return name

    def conv(self, x, name, filters, kernel, stride=1, pad=None, groups=None, bias=False):
        """Without a bias, as is usual where batch norm follows; pad None: the size is kept."""
        keys = {"filters": filters, **window(kernel, stride, pad)}
        if groups:
            keys["groups"] = groups
        return self.add("conv", x, name, **keys, bias=bias)

    def pool(self, x, name, kernel, stride=1, pad=0, kind="maxpool"):
        return self.add(kind, x, name, **window(kernel, stride, pad))

    def batchnorm(self, x, name, **keys):
        return self.add("batchnorm", x, name, **keys)

    def relu(self, x, name):
        return self.add("relu", x, name)

    def fc(self, x, name, outputs, **keys):
        return self.add("fc", x, name, outputs=outputs, bias=True, **keys)

    def dropout(self, x, name, rate):
        return self.add("dropout", x, name, rate=rate)

    def text(self, name):
        head = {"format": "gf-model", "version": 1, "name": name, "input": self.shape,
                "classes": self.classes}
        lines = [f'  "{key}": {json.dumps(value)},\n' for key, value in head.items()]
        layers = ",\n".join("    " + json.dumps(layer) for layer in self.layers)
        return "{\n" + "".join(lines) + f'  "layers": [\n{layers}\n  ]\n}}\n'


def window(kernel, stride, pad):
    """Of a side, or of (height, width): 1 x 7, 3 x 1, ..."""
    if isinstance(kernel, tuple):
        return {"kernel": list(kernel), "stride": stride, "pad": [side // 2 for side in kernel]}
    return {"kernel": kernel, "stride": stride, "pad": kernel // 2 if pad is None else pad}


# AlexNet (Krizhevsky 2012, two groups), batch norm after convolutions

def alexnet(n):
    def block(x, index, *conv, **keys):
        x = n.conv(x, f"conv{index}", *conv, **keys, bias=True)
        x = n.batchnorm(x, f"bn{index}")
        return n.relu(x, f"relu{index}")

    x = block(INPUT, 1, 96, 11, 4, 0)
    x = n.pool(x, "pool1", 3, 2)
    x = block(x, 2, 256, 5, groups=2)
    x = n.pool(x, "pool2", 3, 2)
    x = block(x, 3, 384, 3)
    x = block(x, 4, 384, 3, groups=2)
    x = block(x, 5, 256, 3, groups=2)
    x = n.pool(x, "pool5", 3, 2)
    for i in (6, 7):
        x = n.fc(x, f"fc{i}", 4096)
        x = n.relu(x, f"relu{i}")
        x = n.dropout(x, f"drop{i}", 0.5)
    n.fc(x, "fc8", 1000)


# VGG-16 (Simonyan, Zisserman 2015), configuration D

def vgg16_features(n, norm):
    x, index = INPUT, 0
    for filters, convs in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convs):
            x = n.conv(x, f"features.{index}", filters, 3, bias=True)
            if norm:
                index += 1
                x = n.batchnorm(x, f"features.{index}")
            x = n.relu(x, f"features.{index + 1}")
            index += 2
        x = n.pool(x, f"features.{index}", 2, 2)
        index += 1
    return x


def vgg16(n):
    x = vgg16_features(n, False)
    for i in (0, 3):
        x = n.fc(x, f"classifier.{i}", 4096)
        x = n.relu(x, f"classifier.{i + 1}")
        x = n.dropout(x, f"classifier.{i + 2}", 0.5)
    n.fc(x, "classifier.6", 1000)


# VGG-16 as CIFAR-10 has it: the same convolutions, each with batch norm, and one fc layer (14.7 M
# parameters, as in gTop-k's Table V)

def vgg16_cifar10(n):
    n.fc(vgg16_features(n, True), "classifier", 10)


# Of Pipe-SGD (Li et al. 2018): MNIST-MLP with two hidden layers of 500; CIFAR100-CNN with three
# convolutions and two fc layers; its convex variant, of which only the last layer is trained

def mnist_mlp(n):
    x = INPUT
    for i in (1, 2):
        x = n.fc(x, f"fc{i}", 500)
        x = n.relu(x, f"relu{i}")
    n.fc(x, "fc3", 10)


def cifar100_cnn(n):
    x = INPUT
    for i, filters in enumerate((32, 32, 64), 1):
        x = n.conv(x, f"conv{i}", filters, 5, bias=True)
        x = n.relu(x, f"relu{i}")
        x = n.pool(x, f"pool{i}", 3, 2, 1)
    x = n.fc(x, "fc1", 256)
    x = n.relu(x, "relu4")
    n.fc(x, "fc2", 100)


def cifar100_convex(n):
    cifar100_cnn(n)
    for layer in n.layers[:-1]:
        if layer["type"] in ("conv", "fc"):
            layer["frozen"] = True


# ResNet (He et al. 2016)

def resnet_block(n, x, block, width, stride, project, bottleneck):
    """1x1, 3x3, 1x1 (bottleneck) or two 3x3, beside a shortcut."""
    steps = ([(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)] if bottleneck
             else [(width, 3, stride), (width, 3, 1)])
    y = shortcut = x
    for i, (filters, kernel, step) in enumerate(steps, 1):
        y = n.conv(y, f"{block}.conv{i}", filters, kernel, step)
        y = n.batchnorm(y, f"{block}.bn{i}")
        if i < len(steps):
            y = n.relu(y, f"{block}.relu{i}")
    if project:
        shortcut = n.conv(x, f"{block}.downsample.0", steps[-1][0], 1, stride)
        shortcut = n.batchnorm(shortcut, f"{block}.downsample.1")
    x = n.add("add", [y, shortcut], f"{block}.add")
    return n.relu(x, f"{block}.relu")


def resnet_stages(n, x, blocks, width, bottleneck):
    for stage, count in enumerate(blocks):
        for k in range(count):
            first = k == 0
            x = resnet_block(n, x, f"layer{stage + 1}.{k}", width << stage,
                             2 if first and stage else 1, first and (stage or bottleneck),
                             bottleneck)
    return n.add("globalpool", x, "avgpool")


def resnet(blocks, bottleneck):
    def build(n):
        x = n.conv(INPUT, "conv1", 64, 7, 2)
        x = n.batchnorm(x, "bn1")
        x = n.relu(x, "relu")
        x = n.pool(x, "maxpool", 3, 2, 1)
        n.fc(resnet_stages(n, x, blocks, 64, bottleneck), "fc", 1000)
    return build


def resnet20(n):
    """For CIFAR; projections where the shape changes (option B)."""
    x = n.conv(INPUT, "conv1", 16, 3)
    x = n.batchnorm(x, "bn1")
    x = n.relu(x, "relu")
    n.fc(resnet_stages(n, x, (3, 3, 3), 16, False), "fc", 10)


# DenseNet-201 (Huang et al. 2017), growth 32

def densenet201(n):
    def norm_relu(x, norm, relu):
        return n.relu(n.batchnorm(x, norm), relu)

    x = n.conv(INPUT, "features.conv0", 64, 7, 2)
    x = norm_relu(x, "features.norm0", "features.relu0")
    x = n.pool(x, "features.pool0", 3, 2, 1)
    channels = 64
    for b, count in enumerate((6, 12, 48, 32), 1):
        for k in range(1, count + 1):
            at = f"features.denseblock{b}.denselayer{k}"
            y = n.conv(norm_relu(x, f"{at}.norm1", f"{at}.relu1"), f"{at}.conv1", 128, 1)
            y = n.conv(norm_relu(y, f"{at}.norm2", f"{at}.relu2"), f"{at}.conv2", 32, 3)
            x = n.add("concat", [x, y], f"{at}.concat")
        channels = (channels + 32 * count) // 2
        if b < 4:
            at = f"features.transition{b}"
            x = n.conv(norm_relu(x, f"{at}.norm", f"{at}.relu"), f"{at}.conv", channels, 1)
            x = n.pool(x, f"{at}.pool", 2, 2, kind="avgpool")
    x = norm_relu(x, "features.norm5", "features.relu5")
    x = n.add("globalpool", x, "features.pool5")
    n.fc(x, "classifier", 1000)


# Inception-v4 (Szegedy et al. 2017): blocks of branches. A branch is a list of convolutions
# (filters, kernel, stride, pad), after POOL or not; HALVE pools alone; a FORK ends in a 1 x 3 and a
# 3 x 1 convolution side by side.

POOL, HALVE, FORK = "pool", "halve", "fork"

STEM = (
    [[HALVE], [(96, 3, 2, 0)]],
    [[(64, 1), (96, 3, 1, 0)], [(64, 1), (64, (1, 7)), (64, (7, 1)), (96, 3, 1, 0)]],
    [[(192, 3, 2, 0)], [HALVE]],
)
BLOCKS = (
    (4, [[(96, 1)], [(64, 1), (96, 3)], [(64, 1), (96, 3), (96, 3)], [POOL, (96, 1)]]),
    (1, [[(384, 3, 2, 0)], [(192, 1), (224, 3), (256, 3, 2, 0)], [HALVE]]),
    (7, [[(384, 1)], [(192, 1), (224, (1, 7)), (256, (7, 1))],
         [(192, 1), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))],
         [POOL, (128, 1)]]),
    (1, [[(192, 1), (192, 3, 2, 0)],
         [(256, 1), (256, (1, 7)), (320, (7, 1)), (320, 3, 2, 0)], [HALVE]]),
    (3, [[(256, 1)], [(384, 1), FORK], [(384, 1), (448, (3, 1)), (512, (1, 3)), FORK],
         [POOL, (256, 1)]]),
)


def inception_v4(n):
    def basic(x, prefix, conv):
        x = n.conv(x, f"{prefix}.conv", *conv)
        x = n.batchnorm(x, f"{prefix}.bn", epsilon=0.001)
        return n.relu(x, f"{prefix}.relu")

    def branch(x, prefix, steps):
        """The layers in which it ends."""
        index = 0
        for step in steps:
            if step == FORK:
                return [basic(x, prefix + side, (256, kernel))
                        for side, kernel in (("a", (1, 3)), ("b", (3, 1)))]
            if step == HALVE:
                x = n.pool(x, f"{prefix}.pool", 3, 2)
            elif step == POOL:
                x = n.pool(x, f"{prefix}.pool", 3, 1, 1, "avgpool")
            else:
                x = basic(x, f"{prefix}.{index}", step)
                index += 1
        return [x]

    x = INPUT
    x, = branch(x, "features", [(32, 3, 2, 0), (32, 3, 1, 0), (64, 3)])
    blocks = [*STEM, *(block for count, block in BLOCKS for _ in range(count))]
    for index, block in enumerate(blocks, 3):
        at = f"features.{index}"
        ends = [end for b, steps in enumerate(block)
                for end in branch(x, f"{at}.branch{b}", steps)]
        x = n.add("concat", ends, f"{at}.concat")
    x = n.add("globalpool", x, "avg_pool")
    n.fc(x, "last_linear", 1000)


# BERT-Base (Devlin et al. 2019) with its pre-training heads

def bert_base(n):
    width = 768

    def layernorm(x, name):
        return n.add("layernorm", x, name, epsilon=1e-12)

    def output(x, residual, prefix):
        x = n.fc(x, f"{prefix}.output.dense", width)
        x = n.dropout(x, f"{prefix}.output.dropout", 0.1)
        x = n.add("add", [x, residual], f"{prefix}.output.add")
        return layernorm(x, f"{prefix}.output.LayerNorm")

    def layer(x, prefix):
        at = f"{prefix}.attention"
        parts = [n.fc(x, f"{at}.self.{part}", width) for part in ("query", "key", "value")]
        x = output(n.add("attention", parts, f"{at}.self", heads=12), x, at)
        y = n.fc(x, f"{prefix}.intermediate.dense", 4 * width)
        y = n.add("gelu", y, f"{prefix}.intermediate.gelu")
        return output(y, x, prefix)

    words, places, kinds = (
        n.add("embedding", INPUT, f"bert.embeddings.{name}_embeddings", entries=entries,
              outputs=width, **keys)
        for name, entries, keys in (("word", 30522, {}), ("position", 512, {"positional": True}),
                                    ("token_type", 2,
                                     {"positional": True, "stretch": n.shape[0] // 2})))
    x = n.add("add", [words, places], "bert.embeddings.add1")
    x = n.add("add", [x, kinds], "bert.embeddings.add2")
    x = layernorm(x, "bert.embeddings.LayerNorm")
    x = n.dropout(x, "bert.embeddings.dropout", 0.1)
    for i in range(12):
        x = layer(x, f"bert.encoder.layer.{i}")
    # The masked words come last: their scores are the model's output. The pair of sentences is
    # scored from position 0.
    y = n.add("select", x, "bert.pooler.first", position=0)
    y = n.fc(y, "bert.pooler.dense", width)
    y = n.add("tanh", y, "bert.pooler.tanh")
    n.fc(y, "cls.seq_relationship", 2)
    x = n.fc(x, "cls.predictions.transform.dense", width)
    x = n.add("gelu", x, "cls.predictions.transform.gelu")
    x = layernorm(x, "cls.predictions.transform.LayerNorm")
    n.fc(x, "cls.predictions.decoder", 30522, tied="bert.embeddings.word_embeddings")


# GPT-2 small (Radford et al. 2019), names as in Hugging Face's; a small one for the shipped text,
# character by character, without dropout and with weights of its own in its last layer

def gpt(entries, width, blocks, heads, rate):
    def build(n):
        def dropout(x, name):
            return n.dropout(x, name, rate) if rate else x

        def output(x, residual, prefix):
            x = n.fc(x, f"{prefix}.c_proj", width)
            x = dropout(x, f"{prefix}.dropout")
            return n.add("add", [x, residual], f"{prefix}.add")

        words = n.add("embedding", INPUT, "transformer.wte", entries=entries, outputs=width)
        places = n.add("embedding", INPUT, "transformer.wpe", entries=n.shape[0], outputs=width,
                       positional=True)
        x = n.add("add", [words, places], "transformer.add")
        x = dropout(x, "transformer.drop")
        for i in range(blocks):
            at = f"transformer.h.{i}"
            y = n.add("layernorm", x, f"{at}.ln_1")
            y = n.fc(y, f"{at}.attn.c_attn", 3 * width)
            y = n.add("attention", y, f"{at}.attn", heads=heads, causal=True)
            x = output(y, x, f"{at}.attn")
            y = n.add("layernorm", x, f"{at}.ln_2")
            y = n.fc(y, f"{at}.mlp.c_fc", 4 * width)
            y = n.add("gelu", y, f"{at}.mlp.gelu")
            x = output(y, x, f"{at}.mlp")
        x = n.add("layernorm", x, "transformer.ln_f")
        tied = {"tied": "transformer.wte"} if rate else {}
        n.add("fc", x, "lm_head", outputs=entries, bias=False, **tied)
    return build


# Llama 3.1 and 3.2 (Grattafiori et al. 2024), by the config.json of meta-llama/Llama-3.2-1B and
# -3.1-8B: 32 heads, of which 8 of keys and values; texts of 8192 as in pre-training. The small one
# shares its table of words with its last layer.

def llama(width, inner, blocks, tied):
    def build(n):
        def fc(x, name, outputs, **keys):
            return n.add("fc", x, name, outputs=outputs, bias=False, **keys)

        def norm(x, name):
            return n.add("rmsnorm", x, name)

        x = words = n.add("embedding", INPUT, "model.embed_tokens", entries=n.classes, outputs=width)
        for i in range(blocks):
            at = f"model.layers.{i}"
            y = norm(x, f"{at}.input_layernorm")
            parts = [fc(y, f"{at}.self_attn.{part}_proj", outputs)
                     for part, outputs in (("q", width), ("k", width // 4), ("v", width // 4))]
            y = n.add("attention", parts, f"{at}.self_attn", heads=32, kv_heads=8, causal=True,
                      rotary=True)
            x = n.add("add", [fc(y, f"{at}.self_attn.o_proj", width), x], f"{at}.add1")
            y = norm(x, f"{at}.post_attention_layernorm")
            gate = n.add("silu", fc(y, f"{at}.mlp.gate_proj", inner), f"{at}.mlp.act_fn")
            y = n.add("mul", [gate, fc(y, f"{at}.mlp.up_proj", inner)], f"{at}.mlp.mul")
            x = n.add("add", [fc(y, f"{at}.mlp.down_proj", width), x], f"{at}.add2")
        fc(norm(x, "model.norm"), "lm_head", n.classes, **({"tied": words} if tied else {}))
    return build


# ViT-B/16 (Dosovitskiy et al. 2021), names as in Hugging Face's google/vit-base-patch16-224

def vit(width, blocks, heads):
    def build(n):
        def layernorm(x, name):
            return n.add("layernorm", x, name, epsilon=1e-12)

        x = n.conv(INPUT, "vit.embeddings.patch_embeddings.projection", width, 16, 16, 0, bias=True)
        x = n.add("patches", x, "vit.embeddings")
        for i in range(blocks):
            at = f"vit.encoder.layer.{i}"
            y = layernorm(x, f"{at}.layernorm_before")
            parts = [n.fc(y, f"{at}.attention.attention.{part}", width)
                     for part in ("query", "key", "value")]
            y = n.add("attention", parts, f"{at}.attention", heads=heads)
            y = n.fc(y, f"{at}.attention.output.dense", width)
            x = n.add("add", [y, x], f"{at}.add1")
            y = layernorm(x, f"{at}.layernorm_after")
            y = n.fc(y, f"{at}.intermediate.dense", 4 * width)
            y = n.add("gelu", y, f"{at}.intermediate.gelu")
            y = n.fc(y, f"{at}.output.dense", width)
            x = n.add("add", [y, x], f"{at}.add2")
        x = layernorm(x, "vit.layernorm")
        n.fc(n.add("select", x, "vit.first", position=0), "classifier", n.classes)
    return build


# LSTM on PTB (Zaremba et al. 2014), "large"; a small one for the shipped text, character by
# character

def lstm(entries, embedded, outputs, rate):
    def build(n):
        x = n.add("embedding", INPUT, "encoder", entries=entries, outputs=embedded)
        for i in range(2):
            if rate:
                x = n.dropout(x, f"drop{i}", rate)
            x = n.add("lstm", x, f"rnn.{i}", outputs=outputs)
        if rate:
            x = n.dropout(x, "drop2", rate)
        n.fc(x, "decoder", entries)
    return build


MODELS = {
    "alexnet-bn": ([3, 227, 227], 1000, alexnet),
    "bert-base": ([64], 30522, bert_base),
    "cifar100-cnn": ([3, 32, 32], 100, cifar100_cnn),
    "cifar100-convex": ([3, 32, 32], 100, cifar100_convex),
    "densenet201": ([3, 224, 224], 1000, densenet201),
    "gpt-text": ([64], 128, gpt(128, 128, 4, 4, 0)),
    "gpt2-small": ([1024], 50257, gpt(50257, 768, 12, 12, 0.1)),
    "inception-v4": ([3, 224, 224], 1000, inception_v4),
    "llama-3.1-8b": ([8192], 128256, llama(4096, 14336, 32, False)),
    "llama-3.2-1b": ([8192], 128256, llama(2048, 8192, 16, True)),
    "lstm-ptb": ([35], 10000, lstm(10000, 1500, 1500, 0.65)),
    "lstm-text": ([64], 128, lstm(128, 32, 128, 0)),
    "mnist-mlp": ([1, 28, 28], 10, mnist_mlp),
    "resnet152": ([3, 224, 224], 1000, resnet((3, 8, 36, 3), True)),
    "resnet18": ([3, 224, 224], 1000, resnet((2, 2, 2, 2), False)),
    "resnet20": ([3, 32, 32], 10, resnet20),
    "resnet50": ([3, 224, 224], 1000, resnet((3, 4, 6, 3), True)),
    "vgg16": ([3, 224, 224], 1000, vgg16),
    "vgg16-cifar10": ([3, 32, 32], 10, vgg16_cifar10),
    "vit-b-16": ([3, 224, 224], 1000, vit(768, 12, 12)),
}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: models.py DIR")
    for name, (shape, classes, build) in MODELS.items():
        net = Net(shape, classes)
        build(net)
        with open(os.path.join(sys.argv[1], name + ".json"), "w", encoding="utf-8") as f:
            f.write(net.text(name))


main()
