# SPDX-License-Identifier: BSD-3-Clause
"""The numbers that a section of the report starts from: a paper's own, and predictions.

The predictions are those of gf-plan's policies. gf-figures adds models' gradients and the
algorithms' closed forms.
"""
import functools
import json
import os
import subprocess

SHARE = os.environ.get("GF_SHARE") or os.path.join(os.path.dirname(__file__), "..", "..")


class Refused(Exception):
    """An error with the reason for people, and the exit status."""

    def __init__(self, text, status=2):
        super().__init__(text)
        self.status = status


def document(kind, name):
    """The path of share/KIND/NAME.json, and its contents."""
    path = os.path.join(SHARE, kind, name + ".json")
    try:
        with open(path, encoding="utf-8") as f:
            return path, json.load(f)
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}", 3) from None
    except ValueError as e:
        raise Refused(f"{path}: {e}") from None


class Paper:
    """One file of share/papers (its README.md describes them)."""

    def __init__(self, name):
        self.path, self.text = document("papers", name)
        for t, table in enumerate(self.text["tables"]):
            for r, row in enumerate(table["rows"]):
                wanted, found = len(table["columns"]), len(row["values"])
                if wanted != found:
                    raise Refused(f"{self.path}: /tables/{t}/rows/{r}/values: want {wanted} "
                                  f"values, one per column, got {found}")

    def input(self, name):
        for row in self.text["inputs"]:
            if row["name"] == name:
                return row["value"]
        raise Refused(f'{self.path}: want an input "{name}", found none')

    def value(self, table, row, column):
        for t in self.text["tables"]:
            for r in t["rows"]:
                if (t["name"], r["name"]) == (table, row) and column in t["columns"]:
                    return r["values"][t["columns"].index(column)]
        raise Refused(f'{self.path}: want a value in "{table}", row "{row}", column '
                      f'"{column}", found none')


def run(command, stdin):
    """What a command prints after it has read that text."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True)
    except OSError as e:
        raise Refused(f"{command[0]}: {e.strerror}", 3) from None
    except subprocess.CalledProcessError as e:
        raise Refused(f"{' '.join(command)}: {e.stderr.strip()}", e.returncode) from None
    return done.stdout


@functools.lru_cache(maxsize=None)
def estimated(shares, *given):
    """The model half that gf-profile estimates, as text."""
    return run(["gf-profile", "-q", f"--estimate={shares}", *given], "")


def model(name, how="flops", dtype="f32"):
    """The profile that the passes of share/profiles/NAME stand for.

    how: what a layer's part of backward goes by, as gf-profile --estimate has it.
    """
    path, _ = document("profiles", name)
    made = json.loads(estimated(how, path))["model"]
    for tensor in made["tensors"]:
        tensor["dtype"] = dtype
    return made


def step(m):
    """Seconds that a step of a model computes, and its samples."""
    return m["forward_s"] + m["backward_s"], m["batch_per_rank"] * m.get("accumulate", 1)


def shared(name, forward_s, backward_s):
    """Of share/models/NAME, whole passes of these times over its layers."""
    path, _ = document("models", name)
    return json.loads(estimated("flops", "--model", path, "--passes",
                                f"forward={forward_s!r},backward={backward_s!r}"))["model"]


def tensor_bytes(tensor):
    return tensor["count_elems"] * (2 if tensor["dtype"] == "f16" else 4)


def model_bytes(m):
    return sum(map(tensor_bytes, m["tensors"]))


def network(ranks, startup_s, per_byte_s, contention=None):
    """A network on which an all-reduce takes startup + per_byte * bytes.

    contention: gamma_2 of every size, or {size_bytes: gamma_2}.
    """
    entry = {"algorithm": "ring", "startup_s": startup_s, "per_byte_s": per_byte_s}
    if isinstance(contention, dict):
        entry["contention"] = [{"size_bytes": size, "gamma": [1, gamma]}
                               for size, gamma in contention.items()]
    elif contention:
        entry["contention"] = [1, contention]
    return {"ranks": ranks, "allreduce": [entry]}


def profile_of(m, n):
    return json.dumps({"format": "gf-profile", "version": 1, "producer": "gf-tables",
                       "model": m, "network": n})


def predict(m, n, policy, lanes=1):
    """Seconds per iteration, and the number of messages."""
    profile = profile_of(m, n)
    if policy == "asc-wfbp-printed":
        iteration_s, messages = run(["gf-figures", "printed"], profile).split()
        return float(iteration_s), int(messages)
    plan = json.loads(run(["gf-plan", "-q", "--policy", policy, "--lanes", str(lanes)], profile))
    return plan["predicted"]["iteration_s"], len(plan["messages"])


def simulate(m, n, steps, *options, epoch_steps=None):
    """What gf-sim says of many steps of gf-plan's plan: a row of its columns."""
    plan = run(["gf-plan", "-q", *options], profile_of(m, n))
    keys = f":epoch_steps={epoch_steps}" if epoch_steps else ""
    return json.loads(run(["gf-sim", "-q", "--table=json", "--iterations", f"{steps}{keys}"], plan))


@functools.lru_cache(maxsize=None)
def figures():
    try:
        return subprocess.Popen(["gf-figures"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, bufsize=1)
    except OSError as e:
        raise Refused(f"gf-figures: {e.strerror}", 3) from None


def cost_s(algorithm, levels, nbytes, servers=0, half="all", factors=()):
    """An algorithm's closed form on levels (size, alpha, beta[, gamma]), innermost first."""
    wanted = [algorithm, repr(float(nbytes)), str(servers), half,
              ",".join(map(str, factors)) or "-"]
    wanted += [":".join(map(repr, (*level, 0.0)[:4])) for level in levels]
    asked = figures()
    asked.stdin.write(" ".join(wanted) + "\n")
    answer = asked.stdout.readline()
    if not answer:
        raise Refused("gf-figures: no answer")
    return float(answer)
