# SPDX-License-Identifier: BSD-3-Clause
"""Has PyTorch's tests of DistributedDataParallel run on processors, over gloo, and gradflow.ddp
stand in its place. To be imported before PyTorch."""
import inspect
import os
import sys
import weakref
from typing import NamedTuple

# What the tests read when they are imported.
os.environ.update({"BACKEND": "gloo", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
                   "MASTER_PORT": "29500", "CUDA_VISIBLE_DEVICES": "",
                   "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"})

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

sys.path.insert(0, os.path.join(os.environ["GF_SOURCE"], "share", "python"))
import gradflow  # noqa: E402


def version():
    return tuple(map(int, torch.__version__.split(".")[:2]))


def set_rng_seed():
    from torch.testing._internal import common_utils
    common_utils.set_rng_seed()


def skips():
    """Reasons, by the status that a process exits with to skip its test."""
    from torch.testing._internal.common_distributed import TEST_SKIPS
    return {skip.exit_code: skip.message for skip in TEST_SKIPS.values()}


# --- GPU tests on processors ---

def on_gpu(device):
    """As tests name GPUs: by number, by text, by torch.device."""
    if isinstance(device, (str, torch.device)):
        return str(device).split(":")[0] == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


def moved(arguments):
    return tuple("cpu" if on_gpu(a) else a for a in arguments)


class Stream:
    """Of a GPU, or an event on one: a processor has done already what was enqueued."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait(self, *_, **__):
        pass

    record = wait_stream = wait


class OnProcessors(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function is torch.Tensor.cuda:
            return args[0]
        if function is torch.Tensor.to:
            args = args[:1] + moved(args[1:])
        if on_gpu(kwargs.get("device")):
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)


def without_gpus():
    """Has to come before the tests are imported: their decorators look for GPUs."""
    from torch.testing._internal import common_distributed as common
    for name in ("skip_if_no_gpu", "skip_if_rocm_multiprocess"):
        setattr(common, name, lambda function: function)
    for name in ("skip_if_lt_x_gpu", "nccl_skip_if_lt_x_gpu", "require_n_gpus_for_nccl_backend"):
        setattr(common, name, lambda *_, **__: lambda function: function)
    common.init_multigpu_helper = lambda ranks, backend: {r: [r] for r in range(ranks)}
    for name in ("set_device", "synchronize"):
        setattr(torch.cuda, name, lambda *_, **__: None)
    torch.cuda.current_device = lambda: 0
    torch.Stream = torch.Event = torch.accelerator.current_stream = Stream
    to = torch.nn.Module.to
    torch.nn.Module.cuda = lambda self, device=None: self
    torch.nn.Module.to = lambda self, *args, **kwargs: to(self, *moved(args), **{
        k: "cpu" if on_gpu(v) else v for k, v in kwargs.items()})


# --- gradflow.ddp in the place of DistributedDataParallel ---

# Models of the tests are small: several buckets for them, and the first no larger.
BUCKET_MB = 1e-4
dist._DEFAULT_FIRST_BUCKET_BYTES = 100


class Model(NamedTuple):
    """One that gradflow.ddp made."""
    wrapped: weakref.ref
    before_forward: tuple  # keys of its hooks


counts = {"made": 0, "gave way": 0}  # models of gradflow.ddp; those with hooks of the test
models = weakref.WeakKeyDictionary()  # Model by its reducer, while it has gradflow's hook


def stand_in(make):
    """A class that DistributedDataParallel's callers may call and ask about."""
    names = list(inspect.signature(DDP).parameters)[1:]

    class Kind(type(DDP)):
        def __call__(cls, module, *args, **kwargs):
            arguments = {**dict(zip(names, args)), **kwargs}
            for name in ("device_ids", "output_device"):
                arguments.pop(name, None)
            if not {"bucket_cap_mb", "bucket_cap_mb_list"} & set(arguments):
                arguments["bucket_cap_mb"] = BUCKET_MB
            counts["made"] += 1  # also if that fails, as some tests want
            wrapped = make(module, **arguments)
            if hasattr(wrapped, "gradflow"):
                models[wrapped.reducer] = Model(weakref.ref(wrapped),
                                                tuple(wrapped._forward_pre_hooks))
            return wrapped

        def __instancecheck__(cls, thing):
            return isinstance(thing, DDP)

    return Kind("DistributedDataParallel", (DDP,), {})


def give_way():
    """PyTorch takes one hook for a model. One that a test registers replaces gradflow's."""
    register, hooks = dist._register_comm_hook, weakref.WeakKeyDictionary()

    def call(own, bucket):
        state, hook = own
        return hook(state, bucket)

    def replace(reducer, state, hook):
        if isinstance(state, gradflow.State):
            hooks[reducer] = [state, hook]
            register(reducer, hooks[reducer], call)
        elif reducer in models:
            model = models.pop(reducer)
            wrapped = model.wrapped()
            for key in model.before_forward:
                del wrapped._forward_pre_hooks[key]
            wrapped.gradflow.close()
            hooks[reducer][:] = state, hook
            counts["gave way"] += 1
        else:
            register(reducer, state, hook)

    dist._register_comm_hook = replace


def install(plain):
    """Under all names that the loaded tests have for DistributedDataParallel; plain: itself."""
    stand = stand_in(DDP if plain else gradflow.ddp)
    give_way()
    torch.nn.parallel.DistributedDataParallel = stand
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal.distributed."):
            for own, value in list(vars(module).items()):
                if value is DDP:
                    setattr(module, own, stand)


# --- which tests ---

class Test(NamedTuple):
    name: str
    suite: type
    grouped: bool  # it wants the process group to be there
    threads: bool = False  # its ranks are threads, which it starts


def load():
    """The installed PyTorch's tests that use DistributedDataParallel. ImportError: it has not
    got them, or not what they need."""
    without_gpus()
    from torch.testing._internal.common_distributed import MultiProcessTestCase
    from torch.testing._internal.distributed import ddp_under_dist_autograd_test as rpc
    from torch.testing._internal.distributed import distributed_test as main
    from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import (
        TensorPipeRpcAgentTestFixture as Agent)
    suites = [(type("DistributedTest", (main.TestDistBackend, main.DistributedTest._DistTestBase),
                    {}), True)]
    for base in (rpc.DdpUnderDistAutogradTest, rpc.DdpComparisonTest, rpc.CudaDdpComparisonTest):
        suites.append((type(base.__name__, (base, Agent, MultiProcessTestCase), {}), False))
    return [Test(name, suite, grouped) for suite, grouped in suites for name in sorted(dir(suite))
            if name.startswith("test") and uses_ddp(getattr(suite, name), suite)]


def names_in(function):
    """In its code, and in that of functions in it."""
    pending = [inspect.unwrap(function).__code__]
    while pending:
        code = pending.pop()
        yield from code.co_names
        pending += [c for c in code.co_consts if inspect.iscode(c)]


def uses_ddp(test, suite):
    """By the names in its code, and in that of functions and classes of the tests that it
    names."""
    around = inspect.unwrap(test).__globals__
    seen, pending = set(), [test]
    while pending:
        for name in set(names_in(pending.pop())) - seen:
            seen.add(name)
            named = inspect.getattr_static(suite, name, around.get(name))
            if getattr(named, "__module__", None) == around["__name__"]:
                inner = vars(named).values() if inspect.isclass(named) else [named]
                pending += [f for f in inner if inspect.isfunction(f)]
    return "DistributedDataParallel" in seen
