# SPDX-License-Identifier: BSD-3-Clause
"""What messages cost in the job itself: whole steps by two plans, in turns."""
import copy
import functools
import json
import os
import statistics
import time

import torch.distributed as dist

from . import commands
from .common import by_rank_0, folder_of_rank_0, gathered, warn, write_whole
from .plan import WITHOUT_PLAN

_TURNS, _UNCOUNTED = 5, 3
_SETTLE = 5        # steps after which messages are laid out as buckets
_PARTS = 8         # messages of the second plan, at most
_MOST_COST = 16    # times what messages were measured to cost alone
_LATER_S = 1e-7, 0.1  # that a message may begin later
_MOST_SLOWDOWN = 100
_HALVINGS = 12
_MUCH = 2          # times the shortest of the same steps
_NEAR = 0.02       # of a measured step: a fit that misses it has ended at a bound


def _read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def _plan(folder, model, network, options):
    paths = []
    for name, document in (("model", model), ("network", network)):
        paths.append(os.path.join(folder, name + ".json"))
        with open(paths[-1], "w", encoding="utf-8") as f:
            json.dump(document, f)
    return json.loads(commands.run(["gf-plan", *options, *paths]))


def _where(name, rising, wanted, low, high, none=1):
    """Between low and high, where the function is that large. `none`, and a warning: nowhere."""
    least, most = low, high
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    found, at = rising((low * high) ** 0.5), (low * high) ** 0.5
    if abs(found - wanted) <= _NEAR * wanted:
        return at
    warn(f"gradflow.profile: {name}: steps took {wanted * 1e3:.1f} ms, and from {least:.3g} to "
         f"{most:.3g} the nearest prediction is {found * 1e3:.1f} ms: it is left as it was: profile "
         "again on an idle machine")
    return none


def _takes(document, step_s):
    """The model half, if a step without messages takes so long."""
    model = copy.deepcopy(document["model"])
    factor = step_s / sum(model[k] for k in ("forward_s", "backward_s", "update_s"))
    for k in ("forward_s", "backward_s", "update_s"):
        model[k] *= factor
    for t in model["tensors"]:
        t.update({k: t[k] * factor for k in ("ready_s", "need_s") if k in t})
    return {**document, "model": model}


def _lines(network, times=1, more_s=0):
    """The network half, if messages cost so many times as much; or if each begins so much later, as
    where ranks wait for each other at each unit."""
    found = copy.deepcopy(network)
    for cost in found["network"]["allreduce"]:
        for line in (cost, *cost.get("larger", ())):
            line["startup_s"] = line["startup_s"] * times + more_s
            line["per_byte_s"] *= times
    return found


def _beside(network, slowdown):
    """If backward advances by 1/slowdown while messages are under way."""
    found = copy.deepcopy(network)
    for cost in found["network"]["allreduce"]:
        if slowdown != 1:
            cost["beside_backward"] = {"compute_slowdown": [slowdown]}
    return found


def _processing(network, plan, factor):
    """If what the plan's selection, or else its codec, computes takes so many times as long."""
    found = copy.deepcopy(network)
    method = plan.get("selection", {}).get("method", "dense")
    codec = plan["messages"][0].get("codec", "f32")
    for cost in found.get("selections", ()) if method != "dense" else found.get("codecs", ()):
        if method in (cost.get("method"), "dense") and cost.get("codec", codec) == codec:
            for key in cost:
                if key == "alpha_s" or key.endswith("_s_per_byte"):
                    cost[key] *= factor
            if "fit" in cost:  # which tells a selection's passes
                cost["fit"]["time_s"] = [s * factor for s in cost["fit"]["time_s"]]
    return found


def _take_turns(jobs, group, steps):
    """Medians of each job's steps, of the rank that takes longest. A warning if they vary much."""
    took = [[] for _ in jobs]
    for _ in range(_TURNS):
        for (prepare, job), times in zip(jobs, took):
            prepare()
            dist.barrier(group)
            for i in range(-_UNCOUNTED, steps):
                start = time.perf_counter()
                job()
                if i >= 0:
                    times.append(time.perf_counter() - start)
    took = [list(map(max, zip(*of))) for of in zip(*gathered(group, took))]
    for of in took if dist.get_rank(group) == 0 else ():
        turns = [statistics.median(of[i:i + steps]) for i in range(0, len(of), steps)]
        if max(turns) > _MUCH * min(turns):
            warn(f"gradflow.profile: the same steps took {min(turns) * 1e3:.1f} to {max(turns) * 1e3:.1f} "
                 "ms, as where other programs keep processors busy: profile again on an idle machine")
            break
    return [statistics.median(of) for of in took]


def adapt(nothing, job, state, model, network, steps, also=()):
    """Whole steps of the job tell what is not seen in parts of them: steps that exchange nothing;
    by a plan with one message after backward; and by one with messages beside backward; and without
    a plan. Messages cost more in a job than in a row of messages, since ranks come late and caches
    are cold. Where ranks share processors, backward stands still for them. And selections and
    codecs find memory that is not in a cache: `also` has options of gf-plan for plans of this kind.
    The files `model` and `network` are changed so that gf-plan predicts these steps as they were
    measured. Of shards one plan tells what their messages cost, by the units that the model has. On
    all ranks; rank 0 has the files."""
    group, halves = state.group, bool(state.options)
    size = sum(p.numel() * p.element_size() for p in state.parameters.values())
    kinds = [["--policy", "single"], ["--policy", "threshold", "--threshold", str(size // _PARTS)]]
    kinds = [state.options] * halves + kinds * (not halves) + [[*state.options, *options] for options in also]
    with folder_of_rank_0(group) as folder:
        def make():
            documents = _read(model), _read(network)
            return [_plan(folder, *documents, options) for options in kinds]
        plans = by_rank_0(group, make, (OSError, ValueError, KeyError))
        for _ in range(_SETTLE):
            job()
        takes = [functools.partial(state.take, *state.former())]
        takes += [functools.partial(state.take, plan) for plan in plans]
        times = _take_turns([(state.rest, nothing), *((take, job) for take in takes)], group, steps)

        def fit():
            documents = _fitted(folder, _read(model), _read(network), kinds, plans, times, halves)
            for path, document in zip((model, network), documents):
                write_whole(path, json.dumps(document, indent=1) + "\n")
        by_rank_0(group, fit, (OSError, RuntimeError, ValueError, KeyError))


def _fitted(folder, compute, costs, kinds, plans, times, halves):
    """Both documents by the times of steps: that exchange nothing, without a plan, and by each plan."""
    alone_s, plain_s, whole_s, *others_s = times
    compute = _takes(compute, alone_s)

    def fit(change, name, kind, step_s, low=1 / _MOST_COST, high=_MOST_COST, none=1):
        """The costs by change(x), where steps of that kind are predicted to take as long as they did."""
        return change(_where(name, lambda x: _plan(folder, compute, change(x), kinds[kind])["predicted"]["iteration_s"],
                             step_s, low, high, none))

    if halves:
        costs = fit(lambda x: _lines(costs, more_s=x), "costs of messages", 0, whole_s, *_LATER_S, none=0)
    else:
        costs = fit(functools.partial(_lines, costs), "costs of messages", 0, whole_s)
        costs = fit(functools.partial(_beside, costs), "compute_slowdown", 1, others_s.pop(0), 1, _MOST_SLOWDOWN)
    for i, step_s in enumerate(others_s, len(kinds) - len(others_s)):
        costs = fit(functools.partial(_processing, costs, plans[i]), "costs of " + " ".join(kinds[i]), i, step_s)
    if not halves:
        costs["network"][WITHOUT_PLAN] = plain_s
    return compute, costs
