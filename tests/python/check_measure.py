#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.profile and the import of a profiler's trace: check_measure.py RANKS
CASE... (forked.py)"""
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
import gradflow  # noqa: E402

NAMES = ["2.bias", "2.weight", "0.bias", "0.weight"]


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))


def measured(model, loss=None, **arguments):
    """The document that rank 0 has written; on the others None."""
    gradflow.profile(model, loss or (lambda: model(torch.ones(2, 4)).sum()), "model.json",
                     steps=4, warmup=1, **arguments)
    if dist.get_rank():
        return None
    with open("model.json", encoding="utf-8") as f:
        return json.load(f)["model"]


def names(model):
    return sorted(t["name"] for t in model["tensors"])


def wrapped():
    """A model inside DistributedDataParallel is measured alone."""
    model, exchanged = DistributedDataParallel(net()), []

    def count(state, bucket):
        exchanged.append(bucket.index())
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(
            lambda f: f.value()[0])

    model.register_comm_hook(None, count)
    found = measured(model)
    assert not exchanged, exchanged
    assert found is None or names(found) == sorted(NAMES), found
    model(torch.ones(2, 4)).sum().backward()
    assert exchanged  # afterwards it exchanges as before


def ignoring():
    """What DistributedDataParallel is to leave out is none of the plan's."""
    model = net()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ["0.bias"])
    for of in (model, DistributedDataParallel(model)):
        found = measured(of, lambda m: m(torch.ones(2, 4)).sum())
        assert found is None or names(found) == sorted(n for n in NAMES if n != "0.bias"), found


@forked.of_shards("set_custom_all_gather")
def sharded():
    """A model of fully_shard exchanges nothing meanwhile, and as before afterwards. What forward keeps
    counts once: the input of the first layer, and that of the second, which is ReLU's result."""
    from torch.distributed.fsdp import FSDPModule, fully_shard
    model, called = net(), []
    fully_shard(model[0])
    fully_shard(model)

    class Counted(type(model._get_fsdp_state()._fsdp_param_group._all_gather_comm)):
        def __call__(self, *args, **how):
            called.append(1)
            return super().__call__(*args, **how)

    for module in (model[0], model):
        module.set_custom_all_gather(Counted())
    optimizer = torch.optim.AdamW(model.parameters())
    for loss in (lambda: model(torch.ones(2, 4)).sum(), lambda m: m(torch.ones(2, 4)).sum()):
        found = measured(model, loss, update=optimizer.step, passes=2)
        assert not called, called
        if found:
            tensors = {t["name"]: t for t in found["tensors"]}
            assert sorted(tensors) == sorted(NAMES), found
            assert [t["name"] for t in found["tensors"]] == NAMES, found
            assert [t["ready_s"] for t in found["tensors"]] == sorted(t["ready_s"] for t in found["tensors"])
            assert tensors["0.weight"]["activation_bytes"] == 2 * 4 * 4 + 2 * 6 * 4, found
            assert not any("activation_bytes" in tensors[n] for n in NAMES if n != "0.weight"), found
            assert tensors["0.weight"]["need_s"] < tensors["2.weight"]["need_s"], found
    model(torch.ones(2, 4)).sum().backward()
    assert called
    there = type(model).set_custom_all_gather
    del FSDPModule.set_custom_all_gather
    forked.raises(lambda: measured(model, loss), "want fully_shard of a PyTorch that has set_custom_all_gather")
    FSDPModule.set_custom_all_gather = there
    text = gradflow.memory(model, lambda: (model(torch.ones(2, 4)).sum().backward(), optimizer.step()),
                           optimizer, {"predicted": {"memory": {"parameters_bytes": 102, "peak_bytes": 999}}})
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}
    assert rows["parameters"][0] == "102" and rows["all"][0] == "999" and rows["state"][0] == "-", text
    # 51 elements in halves, but for the rows that do not divide
    assert 51 // 2 * 4 <= int(rows["parameters"][1]) <= 51 * 4, text
    assert sum(int(r[1]) for n, r in rows.items() if n != "all") == int(rows["all"][1]), text
    # a unit that is all frozen
    model = net()
    model[0].requires_grad_(False)
    for part in (model[0], model):
        fully_shard(part)
    found = measured(model, lambda m: m(torch.ones(2, 4)).sum())
    assert found is None or names(found) == [n for n in sorted(NAMES) if n[0] != "0"], found


def refused():
    """Before anything is measured, on every rank."""
    def raises(call, *texts):
        try:
            call()
        except (OSError, TypeError) as e:
            assert all(text in str(e) for text in texts), (texts, str(e))
        except RuntimeError as e:  # another rank's
            assert "rank 0" in str(e) and all(text in str(e) for text in texts), (texts, str(e))
        else:
            raise AssertionError(f"not refused: {texts}")

    model, x = net(), torch.ones(2, 4)
    begun = []
    place = "/no/such/folder/x.json"
    raises(lambda: gradflow.profile(model, lambda: begun.append(1), place), place, "not there")
    raises(lambda: gradflow.network(place), place, "not there")
    raises(lambda: gradflow.exchange_costs(place), place, "not there")
    assert not begun
    raises(lambda: measured(model, lambda: model(x).sum().item()), "loss", "got float", ".item()")
    raises(lambda: measured(model, lambda: model(x).sum().detach()), "loss", "without a graph")
    raises(lambda: gradflow.profile([model], model, "x.json"), "profile", "list")
    raises(lambda: gradflow.profile(model, model(x).sum(), "x.json"), "a function", "Tensor")
    raises(lambda: gradflow.profile(torch.nn.ReLU(), model, "x.json"), "got none")


def adapted(model, **arguments):
    """The warnings of a profile that fits a ring's costs in network.json."""
    if dist.get_rank() == 0:
        cost = {"algorithm": "ring", "startup_s": 1e-5, "per_byte_s": 1e-9}
        with open("network.json", "w", encoding="utf-8") as f:
            json.dump({"format": "gf-profile", "version": 1,
                       "network": {"ranks": 2, "allreduce": [cost]}}, f)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        measured(model, lambda model: model(torch.ones(2, 64)).sum(), network="network.json", **arguments)
    assert all(w.filename == __file__ for w in found), [w.filename for w in found]
    return [str(w.message) for w in found]


def until_fits(profile):
    """Where another program stops a pass, gradients come too late for any fit: then again."""
    again = [True]
    while again[0]:
        found = profile()
        again = [any("left as it was" in w for w in found)]
        dist.broadcast_object_list(again)
    return found


def _full(*_):
    raise OSError("no space is left")


def fitted():
    """Costs are such that gf-plan predicts the steps that were measured."""
    from gradflow import turns
    real, seen = turns._take_turns, []

    def told(jobs, group, steps):
        seen.append(real(jobs, group, 1))
        return [1e-3, 1.31e-3, 1.3e-3, 1.38e-3]  # slower than parts are for any backward

    turns._take_turns = told
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
    before = [p.detach().clone() for p in model.parameters()]

    def profile():
        seen.clear()
        return adapted(model)

    # a file that rank 0 cannot write is told on all ranks
    there, turns.write_whole = turns.write_whole, _full
    forked.raises(lambda: adapted(model), "no space is left")
    turns.write_whole = there
    until_fits(profile)
    turns._take_turns = real
    assert len(seen) == 1 and min(seen[0]) > 0, seen
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert all(p.grad is None for p in model.parameters())
    if dist.get_rank() == 0:
        size = 4 * sum(p.numel() for p in model.parameters())
        for step_s, *options in ((1.3e-3, "single"), (1.38e-3, "threshold", "--threshold", str(size // turns._PARTS))):
            plan = subprocess.run(["gf-plan", "-q", "--policy", *options, "model.json", "network.json"],
                                  capture_output=True, check=True).stdout
            found = json.loads(plan)["predicted"]["iteration_s"]
            assert abs(found - step_s) < 0.005 * step_s, (options, found)
    dist.barrier()


@forked.of_shards("set_custom_all_gather")
def fitted_shards():
    """Of a model of fully_shard, too, which is moved as before in the end."""
    from torch.distributed.fsdp import fully_shard
    from gradflow import turns
    real, seen = turns._take_turns, []

    def told(jobs, group, steps):
        seen.append(real(jobs, group, 1))
        return [5e-3, 8e-3, 9e-3]

    turns._take_turns = told
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64)) for _ in range(4)])
    for block in model:
        fully_shard(block)
    fully_shard(model)
    moved = [type(m._get_fsdp_state()._fsdp_param_group._all_gather_comm) for m in model]
    if dist.get_rank() == 0:
        cost = {"algorithm": "ring", "startup_s": 1e-5, "per_byte_s": 1e-9}
        with open("network.json", "w", encoding="utf-8") as f:
            json.dump({"format": "gf-profile", "version": 1, "network": {"ranks": 2, "allreduce": [
                cost, {**cost, "collective": "reduce_scatter"}, {**cost, "collective": "all_gather"}]}}, f)
    measured(model, lambda: model(torch.ones(2, 64)).sum(), network="network.json")
    turns._take_turns = real
    assert len(seen) == 1 and len(seen[0]) == 3 and min(seen[0]) > 0, seen
    assert moved == [type(m._get_fsdp_state()._fsdp_param_group._all_gather_comm) for m in model]
    assert all(p.grad is None for p in model.parameters())
    if dist.get_rank() == 0:
        plan = subprocess.run(["gf-plan", "-q", "--shard", "zero3:units=block,ahead=1,keep=no", "model.json",
                               "network.json"], capture_output=True, check=True).stdout
        found = json.loads(plan)["predicted"]["iteration_s"]
        assert abs(found - 9e-3) < 0.02 * 9e-3, found
    dist.barrier()


@forked.of_shards("set_custom_all_gather")
def replicated():
    """Replicas of shards exchange nothing meanwhile, and have means as before in the end."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh, real, seen = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards")), dist.all_reduce, []
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64)) for _ in range(2)])
    for module in (*model, model):
        fully_shard(module, mesh=mesh)

    def counted(*args, **how):
        seen.append(1)
        return real(*args, **how)

    dist.all_reduce = counted
    measured(model, lambda: model(torch.ones(2, 64)).sum())
    dist.all_reduce = real
    assert not seen, seen
    forked.raises(lambda: measured(model, lambda: model(torch.ones(2, 64)).sum(), network="network.json"),
                  "want shards without replicas")
    model(torch.full((2, 64), 1.0 + dist.get_rank())).sum().backward()
    for p in model.parameters():
        other = [torch.empty_like(p.grad.to_local()) for _ in range(2)]
        dist.all_gather(other, p.grad.to_local(), group=mesh["replicas"].get_group())
        assert torch.equal(*other)


def bounds():
    """A fit that ends at its bound changes nothing, and says so; and so are steps that vary."""
    from gradflow import turns
    real = turns._take_turns
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])

    def told(times, among=lambda profile: profile()):
        turns._take_turns = lambda *_: times
        found = among(lambda: adapted(model, gradient_as_bucket_view=True))
        turns._take_turns = real
        if dist.get_rank():
            assert not found, found
            return [], {}
        with open("network.json", encoding="utf-8") as f:
            return found, json.load(f)["network"]

    own = dist.get_rank() == 0
    found, network = told([1e-3, 1.31e-3, 1.3e-3, 1.38e-3], until_fits)
    assert not found, found
    assert not own or "compute_slowdown" in json.dumps(network), network
    found, network = told([1e-3, 1.31e-3, 1.3e-3, 9.0])
    assert not own or len(found) == 1 and "compute_slowdown" in found[0], found
    assert "compute_slowdown" not in json.dumps(network), network
    found, network = told([1e-3, 1.31e-3, 5.0, 1.38e-3])
    assert not own or any("costs of messages" in text for text in found), found
    assert not own or network["allreduce"][0]["startup_s"] == 1e-5, network
    count = itertools.count()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        real([(lambda: None, lambda: time.sleep(0.05 if next(count) < 6 else 0.005))], None, 3)
    assert len(found) == own and (not own or "the same steps took" in str(found[0].message)), found


def compiled():
    if not hasattr(torch, "compile"):
        return
    for model in (torch.compile(net(), backend="eager"),
                  DistributedDataParallel(torch.compile(net(), backend="eager"))):
        found = measured(model)
        assert found is None or names(found) == sorted(NAMES), found


def mixed():
    model = net()

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(torch.ones(2, 4)).float().sum() * 1024

    found = measured(model, loss)
    assert found is None or [t["dtype"] for t in found["tensors"]] == ["f32"] * 4, found


def accumulated():
    """The passes before the last are part of forward; gradients count in the last."""
    model = net()

    def loss():
        time.sleep(0.2)
        return model(torch.ones(2, 4)).sum()

    found = measured(model, loss, passes=3)
    assert found is None or (found["forward_s"] >= 0.6 and found["backward_s"] < 0.6), found


def updated():
    """The optimiser's step is measured along; the last rank of each step counts."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]

    def update():
        time.sleep(0.02 + 0.4 * (dist.get_rank() == 1))  # it is last on a busy machine, too
        optimizer.step()

    found = measured(model, update=update)
    assert found is None or 0.42 <= found["update_s"] < 4, found
    assert found is None or found["backward_s"] < 0.4, found
    assert not all(torch.equal(p, b) for p, b in zip(model.parameters(), before))
    found = measured(model, update_s=0.25)
    assert found is None or found["update_s"] == 0.25, found


def sometimes():
    """A parameter that not every step uses has the median of those that do."""
    model, turns = net(), []

    def loss():
        turns.append(0)
        x = model[0](torch.ones(2, 4))
        return (model[2](x) if len(turns) % 2 else x).sum()

    found = measured(model, loss)
    assert found is None or names(found) == sorted(NAMES), found
    try:
        measured(model, lambda: model[0](torch.ones(2, 4)).sum())
    except ValueError as e:
        assert "2.weight got no gradient" in str(e) and "requires_grad_" in str(e), e
    else:
        raise AssertionError("an unused parameter was taken")


def traced(model, x, shapes):
    """Steps of a model by PyTorch's profiler, and what gf-profile makes of its trace."""
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=5)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                schedule=schedule, record_shapes=shapes) as profiler:
        for _ in range(7):
            model(x).sum().backward()
            profiler.step()
    if dist.get_rank():
        return None, None
    profiler.export_chrome_trace("trace.json")
    with open("params.csv", "w", encoding="utf-8") as f:
        f.write("name,count_elems\n")
        f.writelines(f"{n},{p.numel()}\n" for n, p in net().named_parameters())
    with open("trace.json", encoding="utf-8") as f:
        events = json.load(f)
    events = events if isinstance(events, list) else events["traceEvents"]
    names = [] if shapes else ["--imported", "params=params.csv"]
    text = subprocess.run(["gf-profile", "-q", "--import", "trace.json", *names, "--batch", "2"],
                          check=True, capture_output=True).stdout
    return [e for e in events if e.get("ph") == "X"], json.loads(text)["model"]


def host_times(events):
    """Forward, backward and when gradients are ready, in us: medians over the trace's steps
    without the calls that exchange gradients."""
    spans = [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in events]
    calls = [s for s in spans if s[0].startswith("c10d::")]

    def clock(at):
        return at - sum(min(at, end) - start for _, start, end in calls if start < at)

    steps = []
    for _, start, end in [s for s in spans if s[0].startswith("ProfilerStep")]:
        inside = [s for s in spans if start <= s[1] < end]
        engine = [s for s in inside if s[0].startswith("autograd::engine::evaluate_function")]
        begin = clock(min(s[1] for s in engine))
        ready = sorted(clock(s[2]) - begin for s in inside if s[0] == "torch::autograd::AccumulateGrad")
        # whole microseconds let the last gradient end after the engine's call around it
        steps.append((begin - clock(start), max(clock(max(s[2] for s in engine)) - begin, ready[-1]), *ready))
    assert len(steps) == 5, len(steps)
    return [statistics.median(s) for s in zip(*steps)]


def trace():
    """gf-profile --import of this PyTorch's trace, beside the same times found here."""
    # Debian's 1.13 records no shapes, and its gloo has no bf16
    late = torch.__version__ >= "2"
    for wrap, shapes in itertools.product((lambda m: m, DistributedDataParallel), (False, True)[:1 + late]):
        for dtype, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16"))[:1 + late]:
            model, x = net().to(dtype), torch.ones(2, 4, dtype=dtype)
            events, found = traced(wrap(model), x, shapes)
            if events is None:
                continue
            wanted, tensors = host_times(events), found["tensors"]
            got = [found["forward_s"], found["backward_s"]] + [t["ready_s"] for t in tensors]
            for a, b in zip(wanted, got, strict=True):  # the trace is in microseconds
                assert abs(a * 1e-6 - b) < 1e-8, (wanted, got)
            assert [t["count_elems"] for t in tensors] == [3, 18, 6, 24], found
            if shapes:  # types are there, but no names
                assert [t["dtype"] for t in tensors] == [name] * 4, found
            else:
                assert [t["name"] for t in tensors] == NAMES, found


if __name__ == "__main__":
    forked.main(globals())
