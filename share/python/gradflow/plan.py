# SPDX-License-Identifier: BSD-3-Clause
"""A gf-plan(5) document beside a model's parameters; libgradflow checks the rest."""
import contextlib
import io
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
    """The plan as a dictionary, and its name. It is given as one, as text or as a file."""
    if isinstance(source, dict):
        return source, "plan"
    want(isinstance(source, (str, os.PathLike)), "plan", "a file's name, a text or a dictionary",
         type(source).__name__)
    where = os.fspath(source)
    is_text = str(where).lstrip().startswith("{")
    with contextlib.nullcontext(io.StringIO(where)) if is_text else \
            open(where, encoding="utf-8") as f:
        where = "plan" if is_text else where
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
    """(predicted, measured without a plan) in seconds, if a plan that changes no gradients is
    predicted slower; else None."""
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


def warms_up_by_epochs(plan):
    """Densities that fall from epoch to epoch (topk, gtopk)."""
    return bool(_of(plan, "selection", "warmup_densities"))


def staleness(plan, where, epoch_steps=0):
    """(K, the steps before it begins): the means of K - 1 steps ago are handed out."""
    pipeline = (plan or {}).get("pipeline", {})
    late, begins = pipeline.get("staleness", 1), pipeline.get("warmup_steps", 0)
    want(late in (1, 2), f"{where}: /pipeline/staleness",
         "1 or 2 (gf-plan --staleness)", late)
    if isinstance(begins, dict):
        want("epochs" in begins and epoch_steps, f"{where}: /pipeline/warmup_steps",
             "steps, or epochs beside epoch_steps", json.dumps(begins))
        begins = round(begins["epochs"] * epoch_steps)
    return late, begins


def synchronous(plan):
    """The plan of each step's own exchange."""
    return {**plan, "pipeline": {"staleness": 1, "warmup_steps": 0}} if "pipeline" in plan else plan


def has_period(plan):
    return _of(plan, "period", "method") not in (None, "every")


def inner(plan):
    """The plan of a group of a period's, which exchanges in every step."""
    if not has_period(plan):
        return plan
    return {**{k: v for k, v in plan.items() if k not in ("period", "predicted")},
            "ranks": plan["period"]["group_ranks"]}


def outer(plan, sizes):
    """Each fragment of the period as a plan of its own. sizes are those of this rank's parts of the
    tensors, by name; what is empty is left out."""
    messages, parts = plan["period"]["messages"], plan["period"].get("fragments", 1)
    plans = []
    for f in range(parts):
        tensors, kept = [], []
        for m in messages[f * len(messages) // parts:(f + 1) * len(messages) // parts]:
            first = len(tensors)
            tensors += [{"name": t["name"], "count_elems": sizes[t["name"]], "dtype": "f32",
                         "ready_s": 0} for t in plan["tensors"][m["first"]:m["last"] + 1]
                        if sizes[t["name"]]]
            if len(tensors) > first:
                kept.append({**m, "first": first, "last": len(tensors) - 1})
        plans.append({**{k: plan[k] for k in ("format", "version", "ranks", "reproducible",
                                              "segment_bytes", "levels") if k in plan},
                      "lanes": plan["period"].get("lanes", 1),
                      "model": {"name": "fragment", "forward_s": 0, "backward_s": 0},
                      "tensors": tensors, "messages": kept})
    return plans


def _layer(name):
    return name.rpartition(".")[0] or name


def _block(name):
    """h.0 of h.0.attn.weight; the layer where it is in none."""
    parts = _layer(name).split(".")
    number = next((i for i, p in enumerate(parts) if p.isascii() and p.isdecimal()), len(parts))
    return ".".join(parts[:number + 1])


def blocks(names, fits):
    """The modules that are the blocks of these parameters, in order: of those that end in a number,
    the first that fits."""
    found = {}
    for name in names:
        parts = _layer(name).split(".")
        modules = [".".join(parts[:i + 1]) for i, p in enumerate(parts) if p.isdecimal()]
        found.update(dict.fromkeys([m for m in modules if fits(m)][:1]))
    return list(found)


def units(plan, where):
    """(modules, whether they stay gathered) of each message of a plan of shards, in the order of
    forward, as gf-plan --emit fsdp2 has them: the block's where the unit has the whole of it, else
    the layer's. What is the model's own has no module."""
    tensors, shard, made, taken = plan["tensors"], plan.get("shard", {}), [], set()

    def begins(i, of):
        now, before = tensors[i], tensors[i - 1]
        return i == 0 or now.get("dtype") != before.get("dtype") or \
            of(now["name"]) != of(before["name"])

    for unit, message in reversed(list(enumerate(plan["messages"]))):
        k, modules = message["last"], []
        while k >= message["first"]:
            first, block, name = k, k, tensors[k]["name"]
            while not begins(first, _layer):
                first -= 1
            while not begins(block, _block):
                block -= 1
            module = _layer(name)
            if block >= message["first"] and (k + 1 == len(tensors) or begins(k + 1, _block)):
                module, first = _block(name), block
            want(module not in taken, f"{where}: /messages/{unit}",
                 "units of whole modules (gf-plan --shard zero3:units=layer)", f"a cut through {module}")
            modules += [module] if "." in name and module not in modules else []
            k = first - 1
        taken.update(modules)
        stays = unit == 0 or message.get("keep") or 2 * unit + 1 <= shard.get("ahead", 0)
        made.append((modules, bool(stays or shard.get("method") == "zero2")))
    return made


def _stages(message, ranks):
    """Those of the message within a copy of so many ranks, and those between copies."""
    stages, size, inner = message.get("stages", []), 1, 0
    while size < ranks and inner < len(stages):
        size, inner = size * stages[inner]["factor"], inner + 1
    return stages[:inner], stages[inner:]


def within(plan, sizes, messages):
    """The plan of halves of units {name: elements}, each by that message of a plan of shards; or
    the rule."""
    if "rule" in plan:
        return {**{k: v for k, v in plan.items() if k != "shard"}, "selection": {"method": "dense"}}
    ranks, made = plan["shard"]["group_ranks"], []
    for i, number in enumerate(messages):
        m = {k: v for k, v in plan["messages"][number].items() if k != "keep"}
        if ranks < plan["ranks"]:
            m = {**m, "algorithm": "blueconnect", "stages": _stages(m, ranks)[0]}
        made.append({**m, "first": i, "last": i})
    return {**{k: plan[k] for k in ("format", "version", "reproducible", "segment_bytes", "lanes")
               if k in plan},
            "ranks": ranks, "model": {"name": "units", "forward_s": 0, "backward_s": 0},
            "tensors": [{"name": n, "count_elems": s, "dtype": "f32", "ready_s": 0}
                        for n, s in sizes.items()], "messages": made}


def between(plan):
    """The rule of the exchange between copies; None where the plan has one copy alone."""
    if "rule" in plan or plan["shard"]["group_ranks"] == plan["ranks"]:
        return plan if "rule" in plan else None
    m = plan["messages"][0]
    way = {"min_bytes": 0, "algorithm": "blueconnect", "codec": m["codec"],
           "stages": _stages(m, plan["shard"]["group_ranks"])[1]}
    return {"format": "gf-plan", "version": 1, "rule": {
        "threshold_bytes": 0, "lanes": plan.get("lanes", 1), "algorithms": [way]}}


def in_order(plan, names):
    """The plan with the tensors of each message in the order of names. Times and types stay at
    their places."""
    if not plan.get("tensors"):
        return plan
    at = {n: i for i, n in enumerate(names)}
    tensors = list(plan["tensors"])
    for first, last in _ranges(plan):
        tensors[first:last + 1] = sorted(tensors[first:last + 1], key=lambda t: at[t["name"]])
    tensors = [{**t, **{k: p[k] for k in ("ready_s", "type") if k in p}}
               for t, p in zip(tensors, plan["tensors"])]
    return {**plan, "tensors": tensors}
