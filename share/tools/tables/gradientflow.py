# SPDX-License-Identifier: BSD-3-Clause
"""GradientFlow (Sun, Feng, Han, Yan, Wen 2019): Tables 1 to 4."""
import math

from setup import (Paper, cost_s, model, model_bytes, network, predict, simulate, step,
                   tensor_bytes)

NETS = {"AlexNet": ("alexnet-bn", "Table 1"), "ResNet-50": ("resnet50", "Table 2")}
PLACES = {"Cluster-P": "pascal", "Cluster-V": "volta"}

# The paper's columns: policy, gradients on the wire, the name in the picture.
COLUMNS = {
    "MPI": ("sequential", "f32", "MPI"),
    "NCCL": ("sequential", "f32", "NCCL"),
    "NCCL+MP": ("sequential", "f16", "NCCL f16"),
    "NCCL+MP+Overlap": ("wfbp", "f16", "+ overlap"),
    "NCCL+MP+LA+Overlap": ("threshold", "f16", "+ lazy (LA)"),
    "NCCL+MP+LA+CSC+Overlap": ("threshold", "f16", "+ sparse (CSC)"),
}
LAZY, SPARSE = list(COLUMNS)[4:]


class Study:
    """Fits per cluster, and the predictions that follow: images per second."""

    def __init__(self):
        p = self.paper = Paper("gradientflow")
        self.ranks = {"Cluster-P": p.input("cluster_p_ranks"),
                      "Cluster-V": p.input("cluster_v_ranks")}
        self.keep = p.input("csc_keep_example")
        self.chunk_elems = p.input("chunk_elems")
        self.fitted = {place: self.fit(place) for place in PLACES}
        self.ours, self.no_overlap = {}, {}
        for place in PLACES:
            for net in NETS:
                for column in COLUMNS:
                    self.ours[net, place, column] = self.predict(net, place, column)
                m = self.alone(net, place, LAZY)
                iteration_s = predict(m, network(self.ranks[place], *self.fitted[place]),
                                      "single")[0]
                self.no_overlap[net, place] = self.rate(net, place, LAZY, iteration_s)

    def alone(self, net, place, column):
        """One GPU by itself, in the precision of the column.

        The columns from Overlap on of ResNet-50 on Cluster-P were run with batch 128.
        """
        at = list(COLUMNS).index(column)
        larger = (net, place) == ("ResNet-50", "Cluster-P") and at >= 3
        name = f"gradientflow-{net.lower().replace('-', '')}-{PLACES[place]}"
        return model(name + ("-mixed" if at >= 2 else "") + ("-128" if larger else ""),
                     dtype=COLUMNS[column][1])

    def rate(self, net, place, column, iteration_s):
        return step(self.alone(net, place, column))[1] * self.ranks[place] / iteration_s

    def theirs(self, net, place, column):
        return self.paper.value(NETS[net][1], place, column)

    def fit(self, place):
        """Startup and per-byte cost: two equations for two unknowns.

        AlexNet's NCCL and NCCL+MP columns send one message per tensor after backward, L a + b
        bytes, once with f32 and once with f16.
        """
        comm_s = []
        for column in ("NCCL", "NCCL+MP"):
            compute_s, batch = step(self.alone("AlexNet", place, column))
            # The columns give images per second of all GPUs: back to one iteration.
            comm_s.append(batch * self.ranks[place] / self.theirs("AlexNet", place, column)
                          - compute_s)
        m = self.alone("AlexNet", place, "NCCL")
        half = model_bytes(m) / 2
        per_byte_s = (comm_s[0] - comm_s[1]) / half
        return (comm_s[1] - per_byte_s * half) / len(m["tensors"]), per_byte_s

    def butterfly_s(self, place, m):
        """The butterfly over the link that the fitted ring cost implies.

        A ring has 2 (P-1) rounds and moves 2 (P-1)/P of the bytes.
        """
        startup_s, per_byte_s = self.fitted[place]
        p = self.ranks[place]
        level = p, startup_s / (2 * (p - 1)), per_byte_s * p / (2 * (p - 1))
        return sum(cost_s("butterfly", [level], tensor_bytes(t)) for t in m["tensors"])

    def predict(self, net, place, column):
        """Images per second.

        Kept chunks lie spread over the gradients: every byte of the model costs `keep` of its
        transfer. The norms go once per iteration, after the rest.
        """
        startup_s, per_byte_s = self.fitted[place]
        share = self.keep if column == SPARSE else 1
        m = self.alone(net, place, column)
        if column == "MPI":
            iteration_s = m["forward_s"] + m["backward_s"] + self.butterfly_s(place, m)
        else:
            iteration_s = predict(m, network(self.ranks[place], startup_s, per_byte_s * share),
                                  COLUMNS[column][0])[0]
        if column == SPARSE:
            norms = math.ceil(model_bytes(m) / 2 / self.chunk_elems)
            iteration_s += startup_s + per_byte_s * 4 * norms
        return self.rate(net, place, column, iteration_s)


def throughput(r, s, net):
    rows = []
    for place in PLACES:
        for column in COLUMNS:
            row = (f"{place}, {column}", s.theirs(net, place, column) / 1e3,
                   s.ours[net, place, column] / 1e3, 1)
            fitted = net == "AlexNet" and column in ("NCCL", "NCCL+MP")
            rows.append((*row, "fitted") if fitted else row)
        rows.append((f"{place}, NCCL+MP+LA (text)",
                     s.paper.value("lazy all-reduce without overlap (text)", place, net) / 1e3,
                     s.no_overlap[net, place] / 1e3, 1))
    table = NETS[net][1]
    r.table(f"GradientFlow {table}", f"{net}, thousand images per second", rows)
    heading = [f"{place} ({whose})" for place in PLACES for whose in ("paper", "predicted")]
    bars = [[name, *(n for place in PLACES
                     for n in (s.theirs(net, place, column), s.ours[net, place, column]))]
            for column, (_, _, name) in COLUMNS.items()]
    r.picture(f"gradientflow-{table.lower().replace(' ', '-')}", "bars", ["step", *heading], bars,
              title=f"{net}: GradientFlow's {table} beside the predictions",
              subtitle="Cluster-P: 128 GPUs, Cluster-V: 512 GPUs, 56 Gb/s InfiniBand; "
                       "all-reduce cost fitted on two AlexNet columns",
              ylabel="images per second", ylog=10, pairs=1)


def why(r, s):
    p, v = s.fitted["Cluster-P"], s.fitted["Cluster-V"]
    gains = [100 * (s.theirs("AlexNet", place, "NCCL+MP+Overlap") /
                    s.theirs("AlexNet", place, "NCCL+MP") - 1) for place in PLACES]
    r.say(f"Fitted per cluster on AlexNet's NCCL and NCCL+MP columns (two equations, two "
          f"unknowns), everything else follows: Cluster-P a = {1e3 * p[0]:.3f} ms and b = "
          f"{p[1]:.2e} s/B, Cluster-V a = {1e3 * v[0]:.2f} ms and b = {v[1]:.2e} s/B. Half of "
          f"the last digit that the paper prints of its rates and speed-ups moves the first a by "
          f"up to 0.015 ms and b by up to 0.02e-10: 1.065 ms and 4.60e-10 are as good a reading.")
    r.say(f"Overlap: the model lets a message pass beside the backward pass for nothing. The "
          f"paper measured that overlap gains {gains[0]:.0f} and {gains[1]:.0f} % for AlexNet: "
          f"NCCL's kernels take their share of the GPU and of PCIe, which it gives no number "
          f"for.")
    r.say("MPI: the paper gives no cost of Open MPI's all-reduce. The row puts the butterfly on "
          "the link that NCCL's fit implies; copies through host memory and eight ranks that "
          "share one adapter come on top, so it is too fast.")
    r.say(f"CSC: {100 * s.keep:.0f} % of the chunks (the paper's example; its tables do not "
          f"say), kept bytes spread evenly, the norms of all chunks in one more all-reduce at "
          f"the end. ResNet-50 on Cluster-P runs batch 64 up to NCCL+MP and 128 from Overlap on: "
          f"the row mixes both.")


def sparse_run_s(s, images, epochs):
    """Seconds of AlexNet's training with its ramp, which gf-sim counts step by step."""
    m = model("gradientflow-alexnet-volta-mixed", dtype="f32")
    epoch_steps = images / (s.ranks["Cluster-V"] * step(m)[1])
    return simulate(m, network(s.ranks["Cluster-V"], *s.fitted["Cluster-V"]),
                    round(epochs * epoch_steps), "--system", "gradientflow",
                    "--selection", f"keep={s.paper.input('csc_keep_training')},"
                    f"warmup_steps={100 * s.paper.input('csc_ramp_share'):g}%",
                    epoch_steps=round(epoch_steps))["total_s"]


def minutes(r, s):
    images = s.paper.input("imagenet_images")
    rows = []
    for row, net, column, epochs in (
            ("AlexNet dense", "AlexNet", LAZY, "alexnet_epochs"),
            ("AlexNet sparse", "AlexNet", SPARSE, "alexnet_epochs"),
            ("ResNet-50 dense", "ResNet-50", LAZY, "resnet50_epochs")):
        total = images * s.paper.input(epochs) / 60
        printed = s.paper.value("Tables 3 and 4", row, "time")
        ours = total / s.ours[net, "Cluster-V", column]
        if column == SPARSE:
            ours = sparse_run_s(s, images, s.paper.input(epochs)) / 60
        rows += [(row, printed, ours, 1),
                 (f"{row}, from the paper's images/s", printed,
                  total / s.theirs(net, "Cluster-V", column), 1, "itself")]
    r.table("GradientFlow Tables 3 and 4", "minutes to train on 512 GPUs", rows)
    r.say("Epochs times ImageNet's images over the throughput: evaluation and start-up are not in "
          "it, so both lines run short. The sparse run keeps 15 %, as the paper's training does, "
          "and its ramp, 5 % of the steps, is counted step by step.")


def backward_order(tensors):
    """Pairs of a tensor and the time of its layer's backward, shortcuts last in their block.

    Both ways through a block may come first. The paper counts the shortcut's gradients after the
    others.
    """
    at = [0] + [t["ready_s"] for t in tensors]
    steps = [(t, at[i + 1] - at[i]) for i, t in enumerate(tensors)]
    blocks = {}
    for t, seconds in steps:
        block = ".".join(t["name"].split(".")[:2]) if "layer" in t["name"] else t["name"]
        blocks.setdefault(block, []).append((t, seconds))
    return [one for block in blocks.values()
            for one in sorted(block, key=lambda pair: ".downsample." in pair[0]["name"])]


def ready_share(profile, how, share):
    """How much of backward has passed when that share of the gradients is ready."""
    m = model(profile, how)
    # Half a per mille: the shares are printed with one digit.
    left = (share - 0.0005) * sum(map(tensor_bytes, m["tensors"]))
    passed_s = 0
    for t, seconds in backward_order(m["tensors"]):
        if left <= 0:
            break
        left -= tensor_bytes(t)
        passed_s += seconds
    return passed_s / m["backward_s"]


def shares(r, s):
    """How well FLOPs and rooflines stand in for the layer times of Figure 13."""
    table = "gradients against backward time (text)"
    r.table("GradientFlow section 2.6", "% of backward when that share of the gradients is ready",
            [(f"{row}, {how}", 100 * s.paper.value(table, row, "share_of_backward"),
              100 * ready_share(profile, how, s.paper.value(table, row, "share_of_gradients")), 1)
             for row, profile in (
                 ("AlexNet, top 8 of 27 layers", "gradientflow-alexnet-volta-mixed"),
                 ("ResNet-50, top 20 of 188 layers", "gradientflow-resnet50-volta-mixed"))
             for how in ("flops", "roofline")])
    r.say("The predictions take layer times in proportion to FLOPs; this is the one place where "
          "the paper lets that be checked. FLOPs overrate the last, wide layers against the "
          "first ones, which wait for memory: gradients come earlier than predicted. Rooflines, "
          "the default of gf-profile --estimate, are nearer.")


def write(r):
    s = Study()
    r.section(s.paper)
    for net in NETS:
        throughput(r, s, net)
    why(r, s)
    minutes(r, s)
    shares(r, s)
