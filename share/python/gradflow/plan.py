# SPDX-License-Identifier: BSD-3-Clause
"""A gf-plan(5) document beside a model's parameters; libgradflow checks the rest."""
import json
import os

from .library import count


# In a profile's network half and in plans made of it: seconds of a step of the job, measured,
# without a plan.
WITHOUT_PLAN = "x-step-without-plan-s"


class PlanError(ValueError):
    """A plan that cannot be executed here, with the place in it."""


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
        except (ValueError, RecursionError) as e:
            raise PlanError(f"{where}: want JSON: {e}") from None


def check_names(plan, where, parameters):
    """PlanError: the plan is of a model with other parameters."""
    if not plan.get("tensors"):
        return
    planned = {t["name"]: t["count_elems"] for t in plan["tensors"]}
    lacks = [n for n in parameters if n not in planned]
    knows = [n for n in planned if n not in parameters]
    want(not lacks and not knows, f"{where}: /tensors",
         "a plan of this model (gradflow.profile, then gf-plan)",
         "one that " + " and ".join(
             f"{verb} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
             for verb, names in (("lacks", lacks), ("has", knows)) if names))
    for n, p in parameters.items():
        want(planned[n] == count(p), f"{where}: /tensors: {n}",
             f"{count(p)} elements, as the model has", planned[n])


def _ranges(plan):
    """(first, last) of the messages of a whole plan, each once."""
    return sorted({(m["first"], m["last"]) for m in plan.get("messages", [])})


def bucket_bytes(plan):
    """The sizes of the plan's messages in its order; none for a rule."""
    widths = {"f16": 2, "bf16": 2, "f64": 8}
    return [sum(t["count_elems"] * widths.get(t.get("dtype"), 4)
                for t in plan["tensors"][first:last + 1]) for first, last in _ranges(plan)]


def _of(document, *keys):
    """What stands there, or None."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def holds_nothing_back(plan):
    """Every step's gradients come back whole, in that step."""
    return selects_all(plan) and _of(plan, "pipeline", "staleness") in (None, 1)


def slower_than_none(plan):
    """(predicted, measured without a plan) in seconds, if a plan that changes no gradients
    is predicted slower; else None."""
    found = _of(plan, "predicted", "iteration_s"), _of(plan, "network", WITHOUT_PLAN)
    messages = _of(plan, "messages")
    exact = holds_nothing_back(plan) and isinstance(messages, list) and \
        all(_of(m, "codec") in (None, "f32") for m in messages)
    known = all(isinstance(x, (int, float)) for x in found)
    return found if exact and known and found[0] > found[1] > 0 else None


def selects_all(plan):
    return _of(plan, "selection", "method") in (None, "dense")


def wants_momentum(plan):
    """What waits shrinks as the optimiser's momentum would have it (csc)."""
    return _of(plan, "selection", "decay") == "momentum"


def staleness(plan, where):
    """(K, the steps before it begins): the means of K - 1 steps ago are handed out."""
    pipeline = (plan or {}).get("pipeline", {})
    late, begins = pipeline.get("staleness", 1), pipeline.get("warmup_steps", 0)
    want(late in (1, 2), f"{where}: /pipeline/staleness",
         "1 or 2 (gf-plan --staleness)", late)
    return late, begins


def synchronous(plan):
    """The plan of each step's own exchange."""
    return {**plan, "pipeline": {"staleness": 1, "warmup_steps": 0}} if "pipeline" in plan else plan


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
