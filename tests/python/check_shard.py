#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradflow.shard: check_shard.py RANKS CASE... (forked.py), beside fully_shard itself."""
import functools
import io
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import forked  # noqa: E402
import gradflow  # noqa: E402

gradflow.shard = functools.partial(gradflow.shard, tune=False)  # gradflow moves from the first step on


def rule(codec="f32", algorithm="ring", selection=None):
    return {"format": "gf-plan", "version": 1, "rule": {
        "threshold_bytes": 4096, "lanes": 1,
        "algorithms": [{"min_bytes": 0, "algorithm": algorithm, "codec": codec}]},
        "selection": selection or {"method": "dense"}, "pipeline": {"staleness": 1, "warmup_steps": 0}}


class Block(nn.Module):
    """Rows that no number of ranks here divides."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(13), nn.Linear(13, 31), nn.Linear(31, 13)
        self.scale = nn.Parameter(torch.ones(1, 13))

    def forward(self, x):
        return x * self.scale.to(x.dtype) + self.down(torch.tanh(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, blocks=3):
        super().__init__()
        self.embed = nn.Embedding(17, 13)
        self.h = nn.ModuleList(Block() for _ in range(blocks))
        self.head = nn.Linear(13, 17, bias=False)

    def forward(self, x):
        x = self.embed(x)
        for block in self.h:
            x = block(x)
        return self.head(x)


def build(kind=Model):
    torch.manual_seed(1)
    return kind()


def tokens(step, rank=None):
    rank = dist.get_rank() if rank is None else rank
    return torch.randint(17, (4, 5), generator=torch.Generator().manual_seed(100 * rank + step))


def world():
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", (dist.get_world_size(),))


def both():
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicas", "shards"))


def plain(model, mesh=None, **how):
    """As gradflow.shard cuts it."""
    from torch.distributed.fsdp import fully_shard
    mesh = mesh or world()
    for block in model.h:
        fully_shard(block, mesh=mesh, **{"reshard_after_forward": True, **how})
    return fully_shard(model, mesh=mesh, **{"reshard_after_forward": False, **how})


def plain_unit(module):
    from torch.distributed.fsdp import fully_shard
    return fully_shard(module, mesh=world())


def loss_of(model, x):
    return nn.functional.cross_entropy(model(x).float().flatten(0, 1), x.flatten())


def whole(model):
    return [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in model.parameters()]


def train(model, steps=4, use=None, make=torch.optim.AdamW, first=0, optimizer=None):
    optimizer = optimizer or make([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for step in range(first, first + steps):
        (use or (lambda m, s: loss_of(m, tokens(s)).backward()))(model, step)
        optimizer.step()
        optimizer.zero_grad()
    return whole(model)


def near(stock, own, what, bound=0.0):
    """The same bits on two ranks; on more, sums come in another order."""
    bound = bound or (0 if dist.get_world_size() == 2 else 2e-6)
    found = max((a.float() - b.float()).abs().max().item() for a, b in zip(stock, own) if a.numel())
    assert len(stock) == len(own) and found <= bound, (what, found)


def refused(call, *texts):
    try:
        call()
    except (OSError, TypeError, ValueError, RuntimeError) as e:
        assert all(text in str(e) for text in texts), str(e)
        return
    raise AssertionError(f"not refused: {texts}")


def pair(what, use=None, change=None, kind=Model, bound=0.0, beside=None, plan=None, steps=4,
         make=torch.optim.AdamW, **how):
    """fully_shard's parameters after some steps, beside gradflow's. beside: whether any
    reduce-scatter, or none, went on beside backward."""
    found = []
    for shard in (plain, lambda m, **h: gradflow.shard(m, plan, **h)):
        model = shard(build(kind), **how)
        changed = change(model) if change else None
        model = changed if isinstance(changed, nn.Module) else model
        found.append(train(model, steps, use, make))
    near(*found, what, bound)
    shards = getattr(model, "_orig_mod", model).gradflow
    all_of, some = shards.reduced
    assert beside is None or (all_of and bool(some) == beside), (what, shards.reduced)
    assert not shards.reducing and bool(shards.sent_bytes) == bool(all_of), what
    assert not shards.replicas or {x.steps for x in shards.replicas.exchanges.values()} == {steps}, what
    shards.close()


def halves():
    """Sums and parts by gradflow.Exchange itself: two units, one after the other."""
    ranks, own = dist.get_world_size(), dist.get_rank()
    named = {n: torch.empty(1).expand(elems) for n, elems in (("a", 6 * ranks), ("b", 40 * ranks))}
    exchange = gradflow.Exchange(named, messages=[1, 1], halves=True)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        flat = [torch.arange(40 * ranks).to(dtype) * (r + 1) / 64 for r in range(ranks)]
        sums = sum(f.float() for f in flat)
        for divisor, by in ((0.0, ranks), (1.0, 1), (4.0, 4)):
            given, other = flat[own].clone(), torch.full((6 * ranks,), float(own), dtype=dtype)
            first = exchange.all_gather(0, other)
            last = exchange.reduce_scatter(1, given, divisor)
            assert last == first + 1
            exchange.wait_half(last)
            want = (sums / by).to(dtype).chunk(ranks)[own]
            torch.testing.assert_close(given.chunk(ranks)[own], want)
            assert torch.equal(other, torch.arange(ranks).repeat_interleave(6).to(dtype))
    for _ in range(20):  # more than may be under way
        exchange.all_gather(1, torch.ones(40 * ranks))
    refused(lambda: exchange.all_gather(2, torch.ones(8)), "want a tensor below 2")
    refused(lambda: exchange.reduce_scatter(0, torch.ones(8, dtype=torch.float64)), "f32, f16 or bf16")
    exchange.close()
    refused(lambda: exchange.all_gather(0, torch.ones(8)), "closed")


def same():
    pair("plain", beside=True)
    pair("a rule", plan=rule(), beside=True)
    pair("kept", reshard_after_forward=False, beside=True)


def policy(**types):
    from torch.distributed.fsdp import MixedPrecisionPolicy
    return {"mp_policy": MixedPrecisionPolicy(**types)}


def precision():
    """Sums of 16 bits are of f32 in gradflow, and rounded once."""
    from torch.distributed.fsdp import MixedPrecisionPolicy
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    more = dist.get_world_size() > 2
    for param, reduce, beside, bound in ((bf16, f32, True, 2e-3), (bf16, bf16, False, 2e-2), (f16, f16, False, 5e-3),
                                         (f16, f32, True, 2e-3), (None, bf16, False, 2e-2), (bf16, None, None, 2e-2)):
        pair((param, reduce), beside=beside, bound=more * bound, make=torch.optim.SGD,
             **policy(param_dtype=param, reduce_dtype=reduce))
    # modules in another type, whose parameters fully_shard gathers as bytes
    if "param_dtype_override_fn" in MixedPrecisionPolicy.__dataclass_fields__:
        pair("scales in f32", bound=more * 2e-3, make=torch.optim.SGD, **policy(
            param_dtype=bf16, reduce_dtype=f32, param_dtype_override_fn=lambda p: f32 if len(p) == 1 else None))
    pair("f64", change=lambda m: m.double(), bound=more * 1e-12)


def accumulated():
    """With exchange in the last part, or in each; and without giving back between them."""
    def parts(sync, **settings):
        def use(model, step):
            for part in range(3):
                model.set_requires_gradient_sync(sync or part == 2)
                model.set_is_last_backward(part == 2)
                for name, value in settings.items():
                    getattr(model, name)(value or part == 2)
                (loss_of(model, tokens(10 * step + part)) / 3).backward()
        return use
    pair("last", parts(False), beside=True)
    pair("each", parts(True), beside=True)  # the first of three
    pair("kept", parts(False, set_reshard_after_backward=False), beside=True)
    pair("each, kept", parts(True, set_reshard_after_backward=False), beside=True)


def every(model, name, *values):
    for module in model.modules():
        getattr(module, name, lambda *_: None)(*values)


def factors():
    """gloo has factors of forced sums alone; gradflow has the others, too."""
    from torch.distributed.fsdp import FSDPModule
    assert hasattr(FSDPModule, "set_gradient_divide_factor")

    def forced(factor):
        def change(model):
            every(model, "set_force_sum_reduction_for_comms", True)
            every(model, "set_gradient_divide_factor", factor)
        return change
    for factor in (1.0, 3.0, 8.0):
        pair(("forced", factor), change=forced(factor), beside=False, make=torch.optim.SGD)
        stock = plain(build())
        forced(factor)(stock)
        own = gradflow.shard(build())
        every(own, "set_gradient_divide_factor", factor)
        near(train(stock, make=torch.optim.SGD), train(own, make=torch.optim.SGD), factor, bound=2e-6)
        assert own.gradflow.reduced[1]
        own.gradflow.close()
    pair("as many as ranks", change=lambda m: every(m, "set_gradient_divide_factor", dist.get_world_size()))


def clipped():
    def use(model, step):
        loss_of(model, tokens(step)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    pair("clip", use, beside=True)


def offloaded():
    from torch.distributed.fsdp import CPUOffloadPolicy
    pair("offload", offload_policy=CPUOffloadPolicy(pin_memory=False), beside=False)


class Recomputed(Model):
    reentrant = False

    def forward(self, x):
        x = self.embed(x)
        for block in self.h:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


class Reentrant(Recomputed):
    reentrant = True


def recomputed():
    import torch.utils.checkpoint
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing

    def wrapped():
        model = Model()
        apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, Block))
        return model
    pair("checkpoint", kind=Recomputed, beside=True)
    pair("reentrant", kind=Reentrant)

    def head(model):  # a unit of the outer backward
        from torch.distributed.fsdp import fully_shard
        fully_shard(model.head, mesh=world())
        return model
    found = []
    for wrap in (lambda m: m, gradflow.shard):
        found.append(train(wrap(plain(head(build(Reentrant))))))
    near(*found, "reentrant, outer units")
    # blocks within wrappers, as they are called then
    names = [n for n, m in wrapped().named_modules() if isinstance(m, Block)]
    assert names[0] == "h.0._checkpoint_wrapped_module"
    pair("wrapped", kind=wrapped, beside=True)


def compiled():
    pair("after", change=lambda m: torch.compile(m, backend="aot_eager"), steps=3, beside=True)

    def before():
        model = Model()
        for block in model.h:
            block.compile(backend="aot_eager")
        return model
    pair("blocks", kind=before, steps=3, beside=True)


def frozen():
    def kind():
        model = Model()
        model.embed.requires_grad_(False)
        model.h[0].requires_grad_(False)
        model.h[1].up.weight.requires_grad_(False)
        return model
    pair("frozen", kind=kind, beside=True)

    def use(model, step):  # in turns
        for p in model.h[1].parameters():
            p.requires_grad_(step % 2 == 0)
        loss_of(model, tokens(step)).backward()
        for p in model.parameters():
            p.requires_grad_(True)
    pair("in turns", use, beside=True)


def tied():
    def kind():
        model = Model()
        model.head.weight = model.embed.weight
        return model
    pair("tied", kind=kind, beside=True)


def meta():
    def filled(shard):
        with torch.device("meta"):
            model = Model()
        model = shard(model)
        model.to_empty(device="cpu")
        for p, source in zip(model.parameters(), build().parameters()):
            own = source.detach().chunk(dist.get_world_size())
            with torch.no_grad():
                p.to_local().copy_(own[dist.get_rank()] if dist.get_rank() < len(own) else source[:0])
        return train(model)
    near(filled(plain), filled(gradflow.shard), "meta")


def replaced():
    """Parameters that the job puts in the place of others."""
    def change(model):
        model.load_state_dict({n: p.detach().clone() for n, p in model.state_dict().items()}, assign=True)
    pair("replaced", change=change)
    found = []
    for shard in (plain, lambda m: gradflow.shard(m, tune={"steps": 1000})):
        model = shard(build())
        change(model)
        found.append(train(model))
    near(*found, "replaced, beside a Tuner")
    assert len(model.gradflow.tuner.moments) == len(model.gradflow.parameters), model.gradflow.tuner.moments


def untaken():
    """A plan that cannot be taken up leaves all as it was."""
    model = gradflow.shard(build(), tune={"steps": 1000})
    model.gradflow.settings["library"] = "/nowhere.so"
    refused(lambda: model.gradflow.take(json.loads(planned(Model, dist.get_world_size(), "--shard", "zero3"))), "/nowhere.so")
    near(train(plain(build())), train(model), "untaken")
    assert not model.gradflow.sent_bytes


def without_elements():
    def kind():
        model = Model()
        model.device = nn.Parameter(torch.empty(0))
        for p in (model.embed, model.head):
            p.requires_grad_(False)
        return model
    pair("without elements", kind=kind)

    def unit():
        model = build(kind)
        for part in (*model.h, model.embed, model.head):
            plain_unit(part)
        return plain_unit(model)
    model = gradflow.shard(unit())
    near(train(unit()), train(model), "a unit without elements")
    assert model.gradflow.sizes["the root"] == 0, model.gradflow.sizes


def saved(model, optimizer):
    from torch.distributed.checkpoint.state_dict import get_state_dict
    parts = get_state_dict(model, optimizer)
    return {"model": parts[0], "optimizer": parts[1]}


def checkpointed():
    """Saved by one and loaded by the other."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import set_state_dict
    kinds = {"plain": plain, "gradflow": gradflow.shard}
    make = lambda m: torch.optim.AdamW(m.parameters(), lr=0.01)  # noqa: E731
    wanted = plain(build())
    wanted = train(wanted, 6, optimizer=make(wanted))
    for writer, reader in (("plain", "gradflow"), ("gradflow", "plain"), ("gradflow", "gradflow")):
        model = kinds[writer](build())
        optimizer = make(model)
        train(model, 3, optimizer=optimizer)
        state = saved(model, optimizer)
        dcp.save(state, checkpoint_id=f"{writer}-{reader}")
        other = kinds[reader](Model())
        optimizer = make(other)
        state = saved(other, optimizer)
        dcp.load(state, checkpoint_id=f"{writer}-{reader}")
        set_state_dict(other, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        near(wanted, train(other, 3, first=3, optimizer=optimizer), (writer, reader))
        if reader == "gradflow":  # it holds nothing back, and says so
            dcp.save({"gradflow": other.gradflow, "step": 3}, checkpoint_id="nothing")
            dcp.load({"gradflow": other.gradflow, "step": 3}, checkpoint_id="nothing")


def several():
    """Two models that train in turns, one through the other, and a third one."""
    found = []
    for shard in (plain, gradflow.shard):
        a, b, c = (shard(build(lambda n=n: Model(n))) for n in (1, 2, 3))
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (a, b, c)]
        for step in range(4):
            (loss_of(a, tokens(step)) + loss_of(b, tokens(step))).backward()
            loss_of(c, b(tokens(step)).argmax(-1).detach()).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        found.append(whole(a) + whole(b) + whole(c))
    near(*found, "several")


def looked():
    """Forwards without gradients between steps."""
    def use(model, step):
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                model.eval()
                seen = loss_of(model, tokens(50 + step))
                model.train()
        loss_of(model, tokens(step)).backward()
        with torch.no_grad():
            torch.testing.assert_close(loss_of(model, tokens(50 + step)), seen.clone())
        model.reshard()
    pair("eval", use, beside=True)


class Branch(nn.Module):
    """Layers by turns, in another order in odd steps."""

    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(13, 17)
        self.order = [0, 1, 2, 3]

    def forward(self, x):
        x = nn.functional.one_hot(x, 13 + 4)[..., :13].float()
        for i in self.order:
            x = self.h[i](x)
        return self.head(x)


def ordered():
    def use(orders):
        def call(model, step):
            model.order = orders[step % len(orders)]
            loss_of(model, tokens(step)).backward()
        return call
    pair("order", use([[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]]), kind=Branch, beside=True)
    pair("again", use([[0, 1, 0, 1, 2, 3], [3, 3, 3, 2, 1, 0]]), kind=Branch, beside=True)
    pair("unused", use([[0, 1], [2, 3, 0], [1]]), kind=Branch, beside=True)
    pair("unused, as zeros", use([[0, 1], [2, 3, 0], [1]]), kind=Branch,
         change=lambda m: m.set_reduce_scatter_unused_params(True))


class Parts(nn.Module):
    """A block whose parameters are used by turns: its gradients have other lengths in each step."""

    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(17, 17), nn.Linear(17, 17, bias=False)

        def forward(self, x, name):
            return getattr(self, name)(x)

    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList([Parts.Twins()])
        self.name = "a"

    def forward(self, x):
        return self.h[0](nn.functional.one_hot(x, 17).float(), self.name)


def lengths():
    def use(model, step):
        model.name = "ab"[step % 2]
        loss_of(model, tokens(step)).backward()
    pair("lengths", use, kind=Parts)
    pair("as zeros", use, kind=Parts, change=lambda m: m.set_reduce_scatter_unused_params(True))


def in_backward():
    """Optimisers that step as soon as a gradient is there."""
    def change(model):
        for p in model.parameters():
            own = torch.optim.SGD([p], lr=0.1)
            p.register_post_accumulate_grad_hook(lambda _, own=own: (own.step(), own.zero_grad()))
    pair("hooks of parameters", change=change, beside=False)

    def seen(model):  # gradients are read where a module's backward ends
        def double(*_):
            for p in model.h.parameters():
                if hasattr(p.grad, "to_local"):
                    p.grad.to_local().mul_(2)
        for block in model.h:
            block.register_full_backward_hook(double)
    pair("hooks of modules", change=seen, beside=False, make=torch.optim.SGD)


def nested():
    """Blocks in lists of lists; a head that is called in parts; a frozen root."""
    class Stages(nn.Module):
        def __init__(self):
            super().__init__()
            self.stages = nn.ModuleList(nn.ModuleList(Block() for _ in range(2)) for _ in range(2))
            self.embed, self.head = nn.Embedding(17, 13), nn.Linear(13, 17)

        def forward(self, x):
            x = self.embed(x)
            for stage in self.stages:
                for block in stage:
                    x = block(x)
            return torch.cat([self.head(part) for part in x.chunk(2)])

    def cut(model, mesh):
        from torch.distributed.fsdp import fully_shard
        for stage in model.stages:
            for block in stage:
                fully_shard(block, mesh=mesh)
        fully_shard(model.head, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    model = gradflow.shard(build(Stages))
    found = [train(cut(build(Stages), world())), train(gradflow.shard(cut(build(Stages), world()))), train(model)]
    near(found[0], found[1], "parts")
    near(found[0], found[2], "nested")
    assert list(model.gradflow.sizes) == ["the root", *(f"stages.{i}.{j}" for i in (0, 1) for j in (0, 1))]
    assert "stages.1.1: " in model.gradflow.report() and "of them beside backward" in model.gradflow.report()


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, _):
        raise ArithmeticError("as told")


def raises():
    """A backward that an exception ends on all ranks; then the job goes on."""
    def use(forget):
        def call(model, step):
            if step == 1:
                handle = model.h[1].register_forward_hook(lambda *a: Fails.apply(a[-1]))
                try:
                    loss_of(model, tokens(step)).backward()
                    raise AssertionError("no exception")
                except ArithmeticError:
                    pass
                handle.remove()
                forget(model)
            loss_of(model, tokens(step)).backward()
        return call
    pair("forgotten", use(lambda m: m.reset_iter_state()), beside=True)
    for none in (True, False):
        pair(("zeroed", none), use(lambda m: m.zero_grad(set_to_none=none)), beside=True)
    pair("left", use(lambda m: None), beside=True)


def lost(model=None):
    """One rank goes: the others have a line, and do not wait."""
    if model is None:
        model = gradflow.shard(build(), timeout_s=5)
        train(model, 1)
        if dist.get_rank() == 1:
            os._exit(0)
    try:
        train(model, 3)
    except RuntimeError as e:
        print(e)
        assert str(e).startswith("gradflow: ") and "rank" in str(e), str(e)
        os._exit(0)
    os._exit(1)


def lost_in_backward():
    model = gradflow.shard(build(), timeout_s=5)
    train(model, 1)
    model.h[1].register_forward_hook(lambda *a: Ends.apply(a[-1]))
    lost(model)


class Ends(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if dist.get_rank() == 1:
            os._exit(0)
        return gradient


def given_back_to_fewer():
    """reshard_after_forward of two ranks, of four."""
    pair("two", reshard_after_forward=2, beside=True)
    pair("two, coded", reshard_after_forward=2, plan=rule("bf16"), bound=0.1)


def of_unlike_meshes():
    from torch.distributed.tensor import Shard
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, ShardPlacementResult
    halves_of = FSDPMeshInfo(both(), shard_mesh_dim=1)
    refused(lambda: gradflow.shard(build(), mesh=world(), shard_placement_fn=lambda p: ShardPlacementResult(
        Shard(0), halves_of) if p.dim() == 1 else None), "h.0", "one mesh")


def columns():
    from torch.distributed.tensor import Shard
    kind = lambda: nn.Sequential(nn.Embedding(17, 8), nn.Linear(8, 24), nn.Linear(24, 17))  # noqa: E731

    def cut(model, mesh=None, **how):
        from torch.distributed.fsdp import fully_shard
        for layer in model:
            fully_shard(layer, mesh=mesh or world(), **how)
        return fully_shard(model, mesh=mesh or world(), **how)
    found = []
    for shard in (cut, gradflow.shard):
        found.append(train(shard(build(kind), shard_placement_fn=lambda p: Shard(1) if p.shape[-1] == 8 else None)))
    near(*found, "columns")


def taken():
    """A model that fully_shard has had: its units are its own."""
    found = []
    for wrap in (lambda m: m, gradflow.shard):
        from torch.distributed.fsdp import fully_shard
        model = build()
        fully_shard([model.h[0], model.h[1]], mesh=world())
        fully_shard(model, mesh=world())
        model = wrap(model)
        found.append(train(model))
    near(*found, "taken")
    assert sorted(model.gradflow.sizes) == ["h.0", "the root"], model.gradflow.sizes
    model.gradflow.close()


def coded():
    """One reduce-scatter and one all-gather lie within what the codec may change, and all ranks
    have the same parameters. The gradient of a layer is made of its input alone."""
    share = {"f16": 2 ** -11, "bf16": 2 ** -8, "trunc16": 2 ** -7, "q8": 1 / 127, "fp8": 2 ** -4, "fp4": 2 ** -2}
    ranks = dist.get_world_size()
    sent = {}
    for codec in ("f32", *share):
        def kind():
            return nn.Sequential(nn.Linear(24, 40, bias=False))
        model = gradflow.shard(build(kind), rule(codec))
        true = build(kind)
        x = torch.randn(ranks, 8, 24, generator=torch.Generator().manual_seed(3))
        model(x[dist.get_rank()]).sum().backward()
        model[0].unshard()
        used = model[0].weight.detach().clone()
        every_rank = [torch.empty_like(used) for _ in range(ranks)]
        dist.all_gather(every_rank, used)
        assert all(torch.equal(used, e) for e in every_rank), codec
        model[0].reshard()
        bound = share.get(codec, 0)
        weight = true[0].weight.detach()
        assert (used - weight).abs().max() <= bound * weight.abs().max(), codec
        assert torch.equal(model[0].weight.full_tensor(), weight), codec  # the owner's stays
        for part in x:
            true(part).sum().backward()
        want = true[0].weight.grad / ranks
        # each of the sums on the way is rounded, of so many terms at the most
        most = sum(sum(part.sum(0).abs().max() for part in x[:n + 1]) for n in range(ranks)) / ranks
        found = (model[0].weight.grad.full_tensor() - want).abs().max()
        assert found <= bound * most + 1e-5, (codec, found, bound * most)
        sent[codec] = model.gradflow.sent_bytes
        assert codec == "f32" or sent[codec] < 0.6 * sent["f32"], sent
        learned = gradflow.shard(build(), rule(codec))
        first = loss_of(learned, tokens(0)).item()
        train(learned, 8, lambda m, s: loss_of(m, tokens(0)).backward())
        assert loss_of(learned, tokens(0)).item() < 0.9 * first, codec
        for m in (model, learned):
            m.gradflow.close()


# --- plans -------------------------------------------------------------------

def planned(kind, ranks, *options, hosts=1):
    import subprocess
    tensors = [{"name": n, "count_elems": p.numel(), "dtype": "f32", "ready_s": 1e-3 * (i + 1)}
               for i, (n, p) in enumerate(reversed(list(build(kind).named_parameters()))) if p.requires_grad]
    profile = {"format": "gf-profile", "version": 1,
               "model": {"name": "model", "forward_s": 0.01, "backward_s": 0.1, "tensors": tensors}}
    levels = f"host:{ranks // hosts}@1GB/s,5us" + (f" net:{hosts}@1GB/s,5us" if hosts > 1 else "")
    topology = subprocess.run(["gf-topo", "--synthetic", levels], capture_output=True, text=True, check=True).stdout
    run = subprocess.run(["gf-plan", "-q", *options], input=json.dumps(profile) + topology, capture_output=True,
                         text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def groups(model):
    """Of each unit in PyTorch: its parameters, whether they are given back, and what is fetched
    with it."""
    states = {id(m._get_fsdp_state()): m._get_fsdp_state() for m in model.modules() if hasattr(m, "_get_fsdp_state")}
    name = lambda s: sorted(p._param_fqn for p in s._fsdp_param_group.fsdp_params)[0]  # noqa: E731
    return {tuple(sorted(p._param_fqn for p in s._fsdp_param_group.fsdp_params)):
            (s._fsdp_param_group._reshard_after_forward, [name(o) for o in s._states_to_forward_prefetch],
             [name(o) for o in s._states_to_backward_prefetch])
            for s in states.values() if s._fsdp_param_group}


def partly_frozen():
    model = Model()
    model.h[0].requires_grad_(False)
    return model


def by_plan():
    """A plan's units are those that gf-plan --emit fsdp2 writes, and train as without it."""
    ranks = dist.get_world_size()
    for options in (("layer,ahead=2,keep=no",), ("layer,ahead=1,keep=yes",), ("fsdp2,ahead=3",), ("8K,keep=no",)):
        units = "zero3:units=" + options[0]
        text = planned(Model, ranks, "--shard", units)
        model = gradflow.shard(build(), text)
        trained = train(model)
        near(train(plain(build())), trained, options)
        emitted = {}
        try:
            exec(planned(Model, ranks, "--shard", units, "--emit", "fsdp2"), emitted)
        except AssertionError as e:  # it is what PyTorch does by default
            assert "default" in str(e) or "nothing" in str(e), str(e)
        else:
            other = build()
            emitted["shard"](other)
            train(other, 1)
            found, want = groups(model), groups(other)
            if json.loads(text)["shard"]["ahead"] < 2:  # forward's is PyTorch's own on GPUs alone
                found, want = ({k: (v[0], v[2]) for k, v in g.items()} for g in (found, want))
            assert found == want, (options, found, want)
        assert model.gradflow.plan["messages"][0]["algorithm"] == json.loads(text)["messages"][0]["algorithm"]
        model.gradflow.close()
    text = planned(Model, ranks, "--shard", "zero2")
    model = gradflow.shard(build(), text)
    near(train(plain(build())), train(model), "zero2")
    assert not any(found[0] for found in groups(model).values())
    # blocks that are frozen, of which a plan knows nothing, are units, too
    for units in ("layer", "block"):
        text = planned(partly_frozen, ranks, "--shard", "zero3:units=" + units)
        model = gradflow.shard(build(partly_frozen), text)
        near(train(plain(build(partly_frozen))), train(model), "frozen, " + units)
        assert any(len(unit) == 7 and found[0] for unit, found in groups(model).items()), groups(model)
        lines = gradflow.memory(model, lambda: None, torch.optim.SGD(model.parameters(), lr=1)).splitlines()  # noqa: B023
        assert lines[1].split()[1].isdigit(), lines
    # of a model that has been sharded by other units
    model = gradflow.shard(plain(build()), planned(Model, ranks, "--shard", "zero3:units=layer"))
    near(train(plain(build())), train(model), "other units")
    coded_plan = planned(Model, ranks, "--shard", "zero3:units=layer", "--codecs", "bf16")
    near(train(plain(build())), train(gradflow.shard(build(), coded_plan)), "bf16", bound=0.1)


def refusals():
    ranks = dist.get_world_size()
    text = planned(Model, ranks, "--shard", "zero3:units=layer")
    for plan, *texts in (({"tensors": []}, "/format: want"), (planned(Model, ranks), "/shard/method", "zero3"),
                         (planned(Model, 2 * ranks, "--shard", "zero3"), "ranks"),
                         (rule(selection={"method": "dense"}, codec="none"), "none"), (7, "plan: want"),
                         ("nowhere.json", "nowhere.json")):
        refused(lambda plan=plan: gradflow.shard(build(), plan), *texts)
    refused(lambda: gradflow.shard(build(lambda: Model(2)), text), "a plan of this model", "has h.2")
    cut = {k: v for k, v in json.loads(text).items() if k != "predicted"}
    first = cut["messages"][0]
    for tensor in cut["tensors"]:
        tensor.pop("type", None)
    cut["messages"] = [{**first, "first": 0, "last": 1}, {**first, "first": 2, "last": len(cut["tensors"]) - 1}]
    refused(lambda: gradflow.shard(build(), cut), "units of whole modules", "a cut through")
    model = gradflow.shard(build())
    refused(lambda: gradflow.shard(model), "want fully_shard's own", "once")
    refused(lambda: gradflow.shard(plain(build()), mesh=world()), "want no mesh")
    refused(lambda: gradflow.shard(build(), timeout_s="long"), "timeout_s")


# --- replicas ----------------------------------------------------------------

def hybrid():
    """2 x 2: the bits of fully_shard's own on the whole mesh, and one exchange between replicas."""
    mesh = both()
    pair("2 x 2", mesh=mesh, bound=1e-12, beside=False)
    pair("a rule", mesh=mesh, plan=rule(), bound=1e-12)
    bf16 = policy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    pair("bf16/f32", mesh=mesh, bound=1e-12, make=torch.optim.SGD, **bf16)
    pair("given back", mesh=mesh, bound=1e-12, reshard_after_forward=True)

    def parts(name):
        def use(model, step):
            for part in range(3):
                getattr(model, name)(part == 2)
                (loss_of(model, tokens(10 * step + part)) / 3).backward()
        return use
    pair("accumulated", parts("set_requires_gradient_sync"), mesh=mesh, bound=1e-12)
    pair("put off", parts("set_requires_all_reduce"), mesh=mesh, bound=1e-6)

    def forced(model):
        every(model, "set_force_sum_reduction_for_comms", True)
        every(model, "set_gradient_divide_factor", 3.0)
    pair("factor", mesh=mesh, change=forced, make=torch.optim.SGD, bound=1e-6)
    # of a model that fully_shard has had, with replicas in its mesh
    found = [train(plain(build(), mesh)), train(gradflow.shard(plain(build(), mesh)))]
    near(*found, "native", bound=1e-12)
    text = planned(Model, 4, "--shard", "zero3:units=layer,across=host", hosts=2)
    near(found[0], train(gradflow.shard(build(), text, mesh=mesh)), "a plan with copies", bound=2e-6)


def selected():
    """What sends less between replicas: alike on them, goes on bit for bit, and its checkpoints."""
    import torch.distributed.checkpoint as dcp
    mesh, dense = both(), None
    for method in ({"method": "dense"}, {"method": "topk", "density": 0.05, "warmup_densities": []},
                   {"method": "gtopk", "density": 0.05, "warmup_densities": [], "putback": "paper"}):
        make = lambda: gradflow.shard(build(), rule(selection=method), mesh=mesh)  # noqa: E731
        model = make()
        train(model, 3, make=torch.optim.SGD)
        parameters = [p.detach().clone() for p in model.parameters()]
        dcp.save({"gradflow": model.gradflow}, checkpoint_id=method["method"])
        kept = io.BytesIO()
        torch.save(model.gradflow.state_dict(), kept)
        wanted = train(model, 3, first=3, make=torch.optim.SGD)
        own = torch.cat([t.reshape(-1) for t in wanted])
        ranks = [torch.empty_like(own) for _ in range(4)]
        dist.all_gather(ranks, own)
        assert own.isfinite().all() and all(torch.equal(own, r) for r in ranks), method
        dense = dense or model.gradflow.replicas.sent_bytes
        assert model.gradflow.replicas.sent_bytes < dense or method["method"] == "dense", method
        for load in (lambda m: dcp.load({"gradflow": m.gradflow}, checkpoint_id=method["method"]),
                     lambda m: m.gradflow.load_state_dict(torch.load(io.BytesIO(kept.getvalue())))):
            other = make()
            with torch.no_grad():
                for p, value in zip(other.parameters(), parameters):
                    p.copy_(value)
            load(other)
            near(wanted, train(other, 3, first=3, make=torch.optim.SGD), method, bound=1e-12)
            other.gradflow.close()
        model.gradflow.close()


def let_go():
    """Exchanges go with the model."""
    import gc
    import weakref

    def life():
        model = gradflow.shard(build())
        train(model, 2)
        return [weakref.ref(x) for x in (model, model.gradflow, *model.gradflow.exchanges.values())]
    held = life()
    gc.collect()
    assert not any(reference() for reference in held), held


def zero1():
    """ZeroRedundancyOptimizer beside gradflow.ddp."""
    from torch.distributed.optim import ZeroRedundancyOptimizer
    found = []
    for wrap in (nn.parallel.DistributedDataParallel, gradflow.ddp):
        model = wrap(build())
        found.append(train(model, optimizer=ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01)))
        for overlap in (True, False):
            optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1,
                                                parameters_as_bucket_view=overlap)
            found[-1] += train(model, optimizer=optimizer)
    near(*found, "zero1")


if __name__ == "__main__":
    forked.main(globals(), ["set_custom_reduce_scatter"])
