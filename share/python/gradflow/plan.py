# SPDX-License-Identifier: BSD-3-Clause
"""A gf-plan(5) document, bound to a model's parameters."""
import json
import os

import torch

_WIRE = {"f32": None, "f16": torch.float16, "bf16": torch.bfloat16}


class PlanError(ValueError):
    """A plan that cannot be executed here, with the place in it."""


class Message:
    """Parameters that travel together, in the plan's order."""

    def __init__(self, names, late=False, wire=None, predicted=None):
        self.names = names
        self.late = late            # only once backward has ended
        self.wire = wire            # torch type, or None: the gradients' own
        self.predicted = predicted  # {"ready_s", "start_s", "end_s"} or None


class Plan:
    """The part of a document that a Reducer needs. PlanError: the document asks for more."""

    def __init__(self, source, parameters, ranks):
        document, where = read(source)
        try:
            _check(document, where, ranks)
            rule = document.get("rule")
            pipeline = document.get("pipeline", {})
            self.messages = (_by_rule(rule, parameters) if rule
                             else _bind(document, where, parameters))
            self.lanes = int((rule or document).get("lanes", 1))
            self.staleness = int(pipeline.get("staleness", 1))
            self.warmup = int(pipeline.get("warmup_steps", 0))
        except (KeyError, TypeError, AttributeError, IndexError) as e:
            raise PlanError(f"{where}: want a plan as gf-plan writes it, "
                            f"got {type(e).__name__}: {e}") from None
        want(self.lanes >= 1, f"{where}: /lanes", "1 or more", self.lanes)
        want(self.staleness >= 1, f"{where}: /pipeline/staleness", "1 or more", self.staleness)

    def terms(self):
        """The terms that ranks must have in common, as text."""
        return json.dumps([[(m.names, m.late, str(m.wire)) for m in self.messages],
                           self.lanes, self.staleness, self.warmup])


def want(holds, where, wanted, found):
    if not holds:
        raise PlanError(f"{where}: want {wanted}, got {found}")


def read(source):
    """The plan as a dictionary, and its name. `plan` is a dictionary or a file."""
    if isinstance(source, dict):
        return source, "plan"
    want(isinstance(source, (str, os.PathLike)), "plan", "a file's name or a dictionary",
         type(source).__name__)
    where = os.fspath(source)
    with open(where, encoding="utf-8") as f:
        try:
            return json.load(f), where
        except ValueError as e:
            raise PlanError(f"{where}: want JSON: {e}") from None


def _check(plan, where, ranks):
    form = plan.get("format") if isinstance(plan, dict) else type(plan).__name__
    want(form == "gf-plan", where, "a document of format gf-plan", form)
    want(plan.get("version") == 1, f"{where}: /version", "1", plan.get("version"))
    want(plan.get("ranks", ranks) == ranks, f"{where}: /ranks", f"{ranks}, the job's",
         plan.get("ranks"))
    method = plan.get("selection", {}).get("method", "dense")
    want(method == "dense", f"{where}: /selection/method", "dense", method)
    want(not plan.get("servers"), f"{where}: /servers", "none", plan.get("servers"))


def _bind(plan, where, parameters):
    tensors = plan["tensors"]
    for i, t in enumerate(tensors):
        place = f"{where}: /tensors/{i}"
        want(t["name"] in parameters, f"{place}/name", "a trained parameter of the model",
             t["name"])
        count = parameters[t["name"]].numel()
        want(t["count_elems"] == count, f"{place}/count_elems",
             f"{count}, as {t['name']} has", t["count_elems"])
    names = [t["name"] for t in tensors]
    left = sorted(set(parameters) - set(names))
    want(not left and len(names) == len(parameters), f"{where}: /tensors",
         "every trained parameter once",
         f"none named {left[0]}" if left else f"{len(names)} of {len(parameters)}")
    times = plan.get("predicted", {}).get("messages") or [None] * len(plan["messages"])
    messages, at = [], 0
    for i, m in enumerate(plan["messages"]):
        place = f"{where}: /messages/{i}"
        want(m["first"] == at <= m["last"] < len(names), place,
             f"a range of tensors that begins with {at}", f"{m['first']} to {m['last']}")
        want(m.get("half", "all") == "all", f"{place}/half",
             "all (gf-plan without --halves)", m.get("half"))
        codec = m.get("codec", "f32")
        want(codec in _WIRE, f"{place}/codec", " or ".join(_WIRE), codec)
        at = m["last"] + 1
        messages.append(Message(names[m["first"]:at], m.get("release") == "backward_end",
                                _WIRE[codec], times[i]))
    want(at == len(names), f"{where}: /messages", f"all {len(names)} tensors in them", at)
    return messages


def _by_rule(rule, parameters):
    """Lazy all-reduce: a message leaves once it is longer than the threshold.
    Gradients are made in the reverse of the order of registration."""
    messages, names, size = [], [], 0
    for name, p in reversed(list(parameters.items())):
        names.append(name)
        size += p.numel() * p.element_size()
        if size > rule["threshold_bytes"]:
            messages.append(Message(names))
            names, size = [], 0
    if names:
        messages.append(Message(names))
    return messages


# --- for libgradflow, which checks the rest ---

def check_names(plan, where, parameters):
    """PlanError: the plan is of a model with other parameters."""
    tensors = plan.get("tensors") if isinstance(plan, dict) else None
    if not isinstance(tensors, list):
        return
    planned = {t.get("name"): t.get("count_elems") for t in tensors if isinstance(t, dict)}
    lacks = [n for n in parameters if n not in planned]
    knows = [n for n in planned if n not in parameters]
    want(not lacks and not knows, f"{where}: /tensors",
         "a plan of this model (gradflow.profile, then gf-plan)",
         "one that " + " and ".join(
             f"{verb} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
             for verb, names in (("lacks", lacks), ("has", knows)) if names))
    for n, p in parameters.items():
        want(planned[n] == p.numel(), f"{where}: /tensors: {n}",
             f"{p.numel()} elements, as the model has", planned[n])


def _ranges(plan):
    """(first, last) of the messages of a whole plan, each once."""
    return sorted({(m["first"], m["last"]) for m in plan.get("messages", [])})


def bucket_bytes(plan):
    """The sizes of the plan's messages in its order; none for a rule."""
    widths = {"f16": 2, "bf16": 2, "f64": 8}
    return [sum(t["count_elems"] * widths.get(t.get("dtype"), 4)
                for t in plan["tensors"][first:last + 1]) for first, last in _ranges(plan)]


def holds_nothing_back(plan):
    return plan.get("selection", {}).get("method", "dense") == "dense"


def in_order(plan, names):
    """The plan with the tensors of each message in the order of names. Times and
    types stay at their places."""
    if not plan.get("tensors"):
        return plan
    at = {n: i for i, n in enumerate(names)}
    tensors = list(plan["tensors"])
    for first, last in _ranges(plan):
        tensors[first:last + 1] = sorted(tensors[first:last + 1], key=lambda t: at[t["name"]])
    tensors = [{**t, **{k: p[k] for k in ("ready_s", "type") if k in p}}
               for t, p in zip(tensors, plan["tensors"])]
    return {**plan, "tensors": tensors}
