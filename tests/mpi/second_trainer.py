#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gf-train against a second trainer, written from the methods' definitions:
second_trainer.py RANKS STEPS CASE... trains one layer on as many samples as
there are ranks, and compares the weights and what every rank keeps back
(residuals, histories) after the last step."""
import itertools
import json
import math
import os
import random
import struct
import subprocess
import sys

INPUTS, CLASSES = 5, 3
ELEMS = CLASSES + INPUTS * CLASSES  # fc.bias, then fc.weight
CLOSE = 3e-5
RATE = 0.5


# --- gf-train ----------------------------------------------------------------

def write(path, document):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f)


def make_data(samples):
    """As many samples as ranks: in every step each rank has one of them."""
    rng = random.Random(100 + samples)
    inputs = [[rng.randint(0, 255) for _ in range(INPUTS)] for _ in range(samples)]
    inputs[0][0] = 255  # the largest byte becomes 1
    labels = [i % CLASSES for i in range(samples)]
    os.makedirs("data", exist_ok=True)
    for part in ("train", "test"):
        for name, sizes, values in (("images-idx3", (samples, INPUTS), sum(inputs, [])),
                                    ("labels-idx1", (samples,), labels)):
            with open(f"data/{part}-{name}-ubyte", "wb") as f:
                f.write(struct.pack(f">BBBB{len(sizes)}I", 0, 0, 8, len(sizes), *sizes))
                f.write(bytes(values))
    write("model.json", {"format": "gf-model", "version": 1, "name": "one-layer",
                         "input": [INPUTS], "classes": CLASSES,
                         "layers": [{"name": "fc", "type": "fc", "outputs": CLASSES}]})
    return [[v / 255 for v in row] for row in inputs], labels


def plan(ranks, cuts, codec="f32", **more):
    tensors = [("fc.bias", CLASSES), ("fc.weight", INPUTS * CLASSES)]
    return {"format": "gf-plan", "version": 1, "ranks": ranks, "lanes": 1,
            "model": {"name": "one-layer", "forward_s": 1e-3, "backward_s": 1e-3},
            "tensors": [{"name": n, "count_elems": c, "dtype": "f32", "ready_s": 1e-3}
                        for n, c in tensors],
            "messages": [{"first": first, "last": last, "mode": "normal", "algorithm": "ring",
                          "codec": codec}
                         for first, last in cuts],
            **more}


def read_set(path):
    with open(path, "rb") as f:
        data = f.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:begin]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            first, last = t["data_offsets"]
            tensors[name] = struct.unpack(f"<{(last - first) // 4}f",
                                          data[begin + first:begin + last])
    return tensors


def gf_train(name, ranks, document, steps, *options):
    """What every rank's checkpoint holds after the last step."""
    write(f"{name}.json", document)
    command = ["timeout", "-k", "5", "200", "mpirun", "--oversubscribe", "--bind-to", "none",
               "-np", str(ranks), "gf-train", "-q", "--plan", f"{name}.json",
               "--model", "model.json", "--data", "data", "--batch", "1", "--epochs", "100",
               "--steps", str(steps), "--schedule", "constant:warmup_epochs=0",
               "--threads", "1", "--device", "ref", "--checkpoint", f"set-{name}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: gf-train ended with {done.returncode}\n{done.stderr}")
    return [read_set(f"set-{name}/step-{steps}/rank-{r}.safetensors") for r in range(ranks)]


def weights_of(tensors):
    return [*tensors["fc.bias"], *tensors["fc.weight"]]


# --- the second trainer ------------------------------------------------------

def gradient(w, sample, label):
    """Of the cross-entropy of a softmax over one layer."""
    rows = [w[CLASSES + c * INPUTS:CLASSES + (c + 1) * INPUTS] for c in range(CLASSES)]
    scores = [w[c] + sum(a * b for a, b in zip(rows[c], sample)) for c in range(CLASSES)]
    powers = [math.exp(s - max(scores)) for s in scores]
    delta = [p / sum(powers) - (c == label) for c, p in enumerate(powers)]
    return delta + [d * v for d in delta for v in sample]


def largest(values, k):
    """The k of largest magnitude, the earlier one of two alike; values is a
    mapping of places."""
    return dict(sorted(values.items(), key=lambda v: (-abs(v[1]), v[0]))[:k])


def added(a, b):
    return {i: a.get(i, 0) + b.get(i, 0) for i in a.keys() | b.keys()}


def nearest(v, fraction, least, most):
    """v with so many bits of fraction, of two alike the even one; below 2^least all
    numbers have one distance."""
    step = 2.0 ** (max(math.frexp(v)[1] - 1, least) - fraction)
    return math.copysign(min(round(abs(v) / step) * step, most), v)


def minifloats(values, block, exponent, tops, *kind):
    """Blocks with a power of two as their scale: that of the largest value, less
    exponent, or twice that if the largest would be above tops."""
    out = []
    for low in range(0, len(values), block):
        part = values[low:low + block]
        scale = 2.0 ** (math.frexp(max(map(abs, part)))[1] - 1 - exponent)
        scale *= 1 if max(map(abs, part)) <= tops * scale else 2
        out += [nearest(v / scale, *kind) * scale for v in part]
    return out


def encode(codec, values):
    if codec == "fp8":
        return minifloats(values, 128, 8, 464, 3, -6, 448)
    if codec == "fp4":
        return minifloats(values, 32, 2, 8, 1, 0, 6)
    if codec == "trunc16":
        return [struct.unpack("<f", b"\0\0" + struct.pack("<f", v)[2:])[0] for v in values]
    if codec == "q8":
        scale = max(map(abs, values)) / 127
        return [math.copysign(math.floor(abs(v) / scale + .5), v) * scale if scale else v
                for v in values]
    return values


def ring(grads, codec):
    """Part i is added up by ranks i + 1, i + 2, ... and sent on encoded."""
    ranks, count = len(grads), len(grads[0])
    total, low = [], 0
    for i in range(ranks):
        high = low + count // ranks + (i < count % ranks)
        part = grads[(i + 1) % ranks][low:high]
        for hop in range(2, ranks + 1):
            mine = grads[(i + hop) % ranks][low:high]
            part = [a + b for a, b in zip(encode(codec, part), mine)] if part else part
        total += encode(codec, part) if part and ranks > 1 else part
        low = high
    return total


class Dense:
    def __init__(self, ranks, spans, codec="f32"):
        self.ranks, self.spans, self.codec = ranks, spans, codec
        self.kept_back = {}

    def reduce(self, _step, grads):
        total = []
        for low, high in self.spans:
            total += ring([g[low:high] for g in grads], self.codec)
        return [v / self.ranks for v in total], None


class Sparse:
    """Top-k, and gTop-k with its three ways to put back."""

    def __init__(self, ranks, spans, method, density, putback="paper"):
        self.ranks, self.spans, self.method = ranks, spans, method
        self.density, self.putback = density, putback
        self.residual = [[0.0] * ELEMS for _ in range(ranks)]
        self.kept_back = {"sparse.residual": self.residual}

    def sum_of(self, chosen, k):
        if self.method == "topk" or self.putback == "naive":
            total = {}
            for c in chosen:
                total = added(total, c)
            return total if self.method == "topk" else largest(total, k)
        chosen, distance = list(chosen), 1
        while distance < self.ranks:
            for r in range(0, self.ranks - distance, 2 * distance):
                merged = added(chosen[r], chosen[r + distance])
                chosen[r] = largest(merged, k)
                for i in merged.keys() - chosen[r].keys():
                    if self.putback == "conserve":
                        self.residual[r][i] += merged[i]
            distance *= 2
        return chosen[0]

    def reduce(self, _step, grads):
        mean = [0.0] * ELEMS
        for low, high in self.spans:
            k = max(1, math.floor(self.density * (high - low) + 1e-12))
            chosen = []
            for r, grad in enumerate(grads):
                values = {i: grad[i] + self.residual[r][i] for i in range(low, high)}
                chosen.append(largest(values, k))
                for i, v in values.items():
                    self.residual[r][i] = 0.0 if i in chosen[r] else v
            total = self.sum_of(chosen, k)
            for i, v in total.items():
                mean[i] = v / self.ranks
            if self.method == "gtopk" and self.putback != "conserve":
                for r, c in enumerate(chosen):
                    for i in c.keys() - total.keys():
                        self.residual[r][i] += c[i]
        return mean, None


class Chunks:
    """GradientFlow's coarse-grained sparse communication."""

    def __init__(self, ranks, elems, keep, decay, warmup=0):
        self.ranks, self.elems, self.keep = ranks, elems, keep
        self.decay, self.warmup = decay, warmup
        self.count = -(-ELEMS // elems)
        self.important = set(range(self.count))
        self.history = [[0.0] * ELEMS for _ in range(ranks)]
        self.kept_back = {"csc.history": self.history}

    def reduce(self, step, grads):
        values = [[a + b for a, b in zip(g, h)] for g, h in zip(grads, self.history)]
        total = [sum(v) for v in zip(*values)]
        sent = [i // self.elems in self.important for i in range(ELEMS)]
        norms = [0.0] * self.count
        for i in range(ELEMS):
            norms[i // self.elems] += (abs(total[i]) if sent[i]
                                       else sum(abs(v[i]) for v in values))
        for history, v in zip(self.history, values):
            history[:] = [0.0 if s else self.decay * x for s, x in zip(sent, v)]
        share = min(1, (step + 1) / self.warmup) if self.warmup else 1
        kept = max(1, math.ceil((1 - (1 - self.keep) * share) * self.count - 1e-9))
        self.important = set(largest(dict(enumerate(norms)), kept))
        return [t / self.ranks for t in total], sent


def rates(w, grad, optimizer, decay):
    """Per weight: LARS's rate of its tensor (biases have none), weight decay."""
    if optimizer != "lars":
        return [1.0] * ELEMS, [decay] * ELEMS
    norm = math.hypot(*w[CLASSES:])
    trust = 0.02 * norm / (math.hypot(*grad[CLASSES:]) + decay * norm)
    count = ELEMS - CLASSES
    return [1.0] * CLASSES + [trust] * count, [0.0] * CLASSES + [decay] * count


def train(w, samples, labels, orders, method, momentum=0.0, decay=0.0, optimizer="sgd",
          staleness=1, warmup=0, clip=0.0):
    w, velocity, means = list(w), [0.0] * ELEMS, []
    for step, order in enumerate(orders):
        grads = [gradient(w, samples[i], labels[i]) for i in order]
        means.append(method.reduce(step, grads))
        of = step if step < warmup else step + 1 - staleness
        if of < 0 or step >= warmup > of:
            continue
        grad, sent = means[of]
        sent = sent or [True] * ELEMS
        norm = math.hypot(*(g for g, s in zip(grad, sent) if s))
        if clip and norm > clip:
            grad = [g * clip / norm for g in grad]
        rate, decays = rates(w, grad, optimizer, decay)
        for i in range(ELEMS):
            if not sent[i]:
                continue
            g = (grad[i] + decays[i] * w[i]) * rate[i]
            if isinstance(method, Chunks):  # its Algorithm 1: the rate inside
                velocity[i] = momentum * velocity[i] + RATE * g
                w[i] -= velocity[i]
                continue
            velocity[i] = momentum * velocity[i] + g
            w[i] -= RATE * (g + momentum * velocity[i] if optimizer == "nesterov"
                            else velocity[i])
    return w


# --- cases -------------------------------------------------------------------

ONE, TWO = [(0, 1)], [(0, 0), (1, 1)]  # cuts


def sparse(density, method="gtopk", **more):
    return {"selection": {"method": method, "density": density, **more}}


def chunks(elems, keep, decay, warmup=0):
    return {"selection": {"method": "csc", "chunk_elems": elems, "keep": keep,
                          "decay": decay, "warmup_steps": warmup}}


def stale(staleness, warmup):
    return {"pipeline": {"staleness": staleness, "warmup_steps": warmup}}


# name: the messages' cuts, what else is in the plan, what the optimiser is told
CASES = {
    "momentum": (ONE, {}, {"momentum": 0.9, "decay": 0.01}),
    "nesterov": (ONE, {}, {"momentum": 0.9, "decay": 0.01, "optimizer": "nesterov"}),
    "lars": (ONE, {}, {"momentum": 0.9, "decay": 0.01, "optimizer": "lars"}),
    "clip": (TWO, {}, {"momentum": 0.5, "clip": 0.05}),
    "trunc16": (ONE, {"codec": "trunc16"}, {"momentum": 0.9}),
    "q8": (ONE, {"codec": "q8"}, {"momentum": 0.9}),
    "fp8": (ONE, {"codec": "fp8"}, {"momentum": 0.9}),
    "fp4": (ONE, {"codec": "fp4"}, {"momentum": 0.9}),
    "topk": (TWO, sparse(0.3, "topk"), {"momentum": 0.9}),
    "gtopk": (ONE, sparse(0.2), {"momentum": 0.9, "decay": 0.01}),
    "gtopk-conserve": (ONE, sparse(0.2, putback="conserve"), {"momentum": 0.9}),
    "gtopk-naive": (ONE, sparse(0.2, putback="naive"), {"momentum": 0.9}),
    "gtopk-all": (ONE, sparse(1), {"momentum": 0.9}),
    "gtopk-one": (TWO, sparse(1e-9), {"momentum": 0.9}),
    "csc": (ONE, chunks(4, 0.4, "momentum"), {"momentum": 0.9, "decay": 0.01}),
    "csc-warmup": (ONE, chunks(2, 0.2, 1, 3), {"momentum": 0.5}),
    "csc-decay": (TWO, chunks(5, 0.25, 0.3), {"momentum": 0.9}),
    "csc-clip": (ONE, chunks(4, 0.4, 0.5), {"momentum": 0.9, "clip": 0.05}),
    "stale-2": (ONE, stale(2, 0), {"momentum": 0.9, "decay": 0.01}),
    "stale-3": (TWO, stale(3, 1), {"momentum": 0.5}),
    "stale-warmup": (ONE, stale(2, 2), {}),
}


def method_of(ranks, cuts, more, momentum):
    spans = [(0, ELEMS)] if cuts == ONE else [(0, CLASSES), (CLASSES, ELEMS)]
    s = more.get("selection")
    if not s:
        return Dense(ranks, spans, more.get("codec", "f32"))
    if s["method"] == "csc":
        decay = momentum if s["decay"] == "momentum" else s["decay"]
        return Chunks(ranks, s["chunk_elems"], s["keep"], decay, s["warmup_steps"])
    return Sparse(ranks, spans, **s)


def close(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) <= CLOSE


def differences(found, w, method):
    wrong = [] if close(w, weights_of(found[0])) else ["weights"]
    for name, kept_back in method.kept_back.items():
        wrong += [f"{name} of rank {r}" for r, v in enumerate(kept_back)
                  if not close(v, found[r][name])]
    return wrong


def find_orders(ranks, steps, samples, labels, start):
    """Which sample a rank has in which step is gf-train's affair: the only
    orders that explain a run that keeps residuals."""
    more = sparse(0.12, "topk")
    found = gf_train("orders", ranks, plan(ranks, ONE, **more), steps, "--lr", str(RATE),
                     "--optimizer", "momentum=0,weight_decay=0")
    fit = []
    for orders in itertools.product(itertools.permutations(range(ranks)), repeat=steps):
        method = method_of(ranks, ONE, more, 0)
        w = train(start, samples, labels, orders, method)
        if not differences(found, w, method):
            fit.append(orders)
    if len(fit) != 1:
        sys.exit(f"want one order of the samples that explains a run, got {len(fit)}")
    return fit[0]


def check(name, ranks, samples, labels, orders, start):
    cuts, more, told = CASES[name]
    momentum = told.get("momentum", 0.0)
    keys = f"momentum={momentum},weight_decay={told.get('decay', 0.0)}"
    if "clip" in told:
        keys += f",clip_norm={told['clip']}"
    options = ["--lr", str(RATE), "--optimizer", ":".join([*[told[k] for k in told if k == "optimizer"], keys])]
    found = gf_train(name, ranks, plan(ranks, cuts, **more), len(orders), *options)
    method = method_of(ranks, cuts, more, momentum)
    pipeline = more.get("pipeline", {"staleness": 1, "warmup_steps": 0})
    w = train(start, samples, labels, orders, method, **told,
              staleness=pipeline["staleness"], warmup=pipeline["warmup_steps"])
    wrong = differences(found, w, method)
    print(f"{name}: {', '.join(wrong) + ' differ' if wrong else 'ok'}")
    return not wrong


def main():
    ranks, steps, names = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    samples, labels = make_data(ranks)
    still = gf_train("start", ranks, plan(ranks, ONE), 1, "--lr", "0",
                     "--optimizer", "momentum=0,weight_decay=0")
    start = weights_of(still[0])
    orders = find_orders(ranks, steps, samples, labels, start)
    # all of them, also after one that differs
    alike = [check(n, ranks, samples, labels, orders, start) for n in names or CASES]
    sys.exit(0 if all(alike) else 1)


if __name__ == "__main__":
    main()
