# SPDX-License-Identifier: BSD-3-Clause
"""Pipe-SGD (Li, Yu, Li, Avestimehr, Kim, Schwing 2018): Eqs. 2 to 7.

The paper prints no value of any of their terms, so its equations and our simulation are both
evaluated on inputs of our own.
"""
from setup import Paper, cost_s, model_bytes, network, shared, simulate

# AlexNet on four GPUs of 2017 with 10 Gb/s Ethernet, in round numbers.
STEPS = 1000
UPDATE_S = 0.002
FORWARD_S = 0.015
BACKWARD_S = 0.030
COMPUTE_S = UPDATE_S + FORWARD_S + BACKWARD_S
ALPHA_S = 50e-6
REDUCE_S = 1e-10  # per byte
SEGMENTS = 8


class Study:
    def __init__(self):
        p = self.paper = Paper("pipe-sgd")
        self.ranks, self.staleness = p.input("ranks"), p.input("staleness")
        self.beta_s_per_byte = 8 / p.input("link_bits_per_s")
        self.level = self.ranks, ALPHA_S, self.beta_s_per_byte, REDUCE_S
        self.model = {**shared("alexnet-bn", FORWARD_S, BACKWARD_S), "update_s": UPDATE_S}
        self.bytes = model_bytes(self.model)

    def ring_s(self, nbytes):
        return cost_s("ring", [self.level], nbytes)

    def steps(self, comm_s, staleness):
        """gf-sim's row of STEPS steps whose exchange takes comm_s."""
        return simulate(self.model, network(self.ranks, 0, comm_s / self.bytes), STEPS, "--policy",
                        "single", "--staleness", str(staleness), "--codecs", "f32")

    def printed_comm_s(self, segments):
        """The communication terms of Eqs. 5 and 6, without S."""
        p, share = self.ranks, (self.ranks - 1) / self.ranks * self.bytes
        return (2 * (p - 1) * segments * ALPHA_S + 2 * share * self.beta_s_per_byte +
                share * REDUCE_S)


def equations(r, s):
    comm_s, segment_s = s.ring_s(s.bytes), s.ring_s(s.bytes / SEGMENTS)
    step_s, k = max(COMPUTE_S, comm_s), s.staleness
    one, two, four = (s.steps(comm_s, n) for n in (1, k, 4))
    r.table("Pipe-SGD Eqs. 2-7", "equation beside gf-sim, 1000 steps (s)", [
        ("Eq. 2, synchronous", STEPS * (COMPUTE_S + comm_s), one["total_s"], 2),
        ("Eq. 3, K = 2, unlimited resources", STEPS / k * (COMPUTE_S + comm_s),
         STEPS * two["unlimited_s"], 2, "itself"),
        ("Eq. 4, K = 2, limited resources", STEPS * step_s, two["total_s"], 2),
        ("Eq. 4, K = 4, limited resources", STEPS * step_s, four["total_s"], 2),
        ("Eq. 5, one exchange per step", STEPS * max(COMPUTE_S, s.printed_comm_s(1)),
         two["total_s"], 2),
        ("Eq. 6, 8 segments per step", STEPS * max(COMPUTE_S, s.printed_comm_s(SEGMENTS)),
         s.steps(SEGMENTS * segment_s, k)["total_s"], 2),
        ("Eq. 7, scaling efficiency (%)", 100 * COMPUTE_S / step_s,
         100 * STEPS * COMPUTE_S / two["total_s"], 2)])
    r.say(f"Eq. 4 leaves out the filling of the pipeline: exact is (u + c) + (T - 1) max(u + c, "
          f"m) + m, {COMPUTE_S + (STEPS - 1) * step_s + comm_s:.2f} s here. In Eq. 6 the compute "
          f"term is the whole backward; as printed, with the first segment's alone, it would "
          f"promise more than the GPU can do.")


def schemes(r, s):
    """What the schemes cost per step in this setting, codecs by their width."""
    server_s = cost_s("ps", [s.level], s.bytes, servers=1)
    dense_s = s.ring_s(s.bytes)
    saved = s.paper.value("communication, D-Sync against PS-Sync (text)", "uncompressed", "saved")
    rows = [("communication saved, D-Sync over PS-Sync (%)", 100 * saved,
             100 * (1 - dense_s / server_s), 0)]
    for codec, width in (("f32", 1), ("trunc16", 0.5), ("q8", 0.25)):
        step_s = max(COMPUTE_S, s.ring_s(s.bytes * width))
        best = (COMPUTE_S + dense_s) / step_s  # of the last codec, the narrowest
        rows += [(f"Pipe-SGD {codec} over D-Sync", None, best, 2),
                 (f"Pipe-SGD {codec} over PS-Sync", None, (COMPUTE_S + server_s) / step_s, 2)]
    r.table("Pipe-SGD section 4", "four workers: speed-ups, and communication saved", rows)
    d_low, d_high, ps_low, ps_high = (
        s.paper.value("speed-up claims (text)", row, column)
        for row in ("over D-Sync", "over PS-Sync") for column in ("lowest", "highest"))
    r.say(f"Not reproduced: the paper's {d_low:.1f}-{d_high:.1f} x over D-Sync and "
          f"{ps_low:.1f}-{ps_high:.1f} x over PS-Sync need compute, codec and communication times "
          f"that it shows as bars without numbers. Ours (up to {best:.1f} x over D-Sync) are for "
          f"the setting above, codecs free of charge. A server that takes in and gives out "
          f"{s.ranks} models over one link costs {server_s / dense_s:.1f} times a ring's "
          f"traffic; the paper measured twice.")


def write(r):
    s = Study()
    r.section(s.paper)
    r.say(f"Setting of our own: AlexNet ({s.bytes / 1e6:.0f} MB) on {s.ranks} workers, 10 Gb/s, "
          f"alpha {1e6 * ALPHA_S:.0f} us, reduction at {1e-9 / REDUCE_S:.0f} GB/s; update "
          f"{1e3 * UPDATE_S:.0f}, forward {1e3 * FORWARD_S:.0f}, backward {1e3 * BACKWARD_S:.0f} "
          f"ms.")
    equations(r, s)
    schemes(r, s)
