# SPDX-License-Identifier: BSD-3-Clause
"""include/gradflow.h for ctypes: the structs and functions of the exchange."""
import contextlib
import ctypes
import math
import os

import torch

from .commands import environment

_NAME = "libgradflow.so.0"
_DIMENSIONS = 8
_JOB, _SIZE, _TEXT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p

ALL = _SIZE(-1).value  # GRADFLOW_ALL
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_PAIRS = {torch.complex64: torch.float32, torch.complex128: torch.float64}
MEET_ALLGATHER = 3  # GRADFLOW_MEET_ALLGATHER
ON_DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _SIZE, ctypes.c_int)
ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _SIZE,
                             ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [("name", _TEXT), ("dimensions", _SIZE), ("shape", _SIZE * _DIMENSIONS)]


class Gradient(ctypes.Structure):
    _fields_ = [("tensor", _SIZE), ("data", ctypes.c_void_p), ("count", _SIZE),
                ("dtype", ctypes.c_int)]


class Half(ctypes.Structure):
    _fields_ = [("tensor", _SIZE), ("data", ctypes.c_void_p), ("count", _SIZE),
                ("dtype", ctypes.c_int), ("owners", ctypes.c_void_p), ("nowners", _SIZE),
                ("divisor", ctypes.c_double)]


class ExchangeOptions(ctypes.Structure):
    _fields_ = [("size", _SIZE), ("dtypes", ctypes.POINTER(ctypes.c_int)), ("plan", _TEXT),
                ("plan_text", _TEXT), ("messages", ctypes.POINTER(_SIZE)), ("nmessages", _SIZE),
                ("ways", _TEXT), ("epoch_steps", _SIZE), ("timeout_s", ctypes.c_double),
                ("join_s", ctypes.c_double), ("momentum", ctypes.c_double), ("meet", ctypes.c_int),
                ("rank", ctypes.c_int), ("ranks", ctypes.c_int), ("former", ctypes.c_int),
                ("flat", ctypes.c_int), ("halves", ctypes.c_int), ("place", _TEXT),
                ("transport", _TEXT), ("allgather", ALLGATHER), ("allgather_ctx", ctypes.c_void_p),
                ("on_device", ctypes.c_int), ("device", ctypes.c_int), ("stream", ctypes.c_void_p)]


class Array(ctypes.Structure):
    _fields_ = [("name", _TEXT), ("data", ctypes.c_void_p), ("size_bytes", _SIZE),
                ("shared", ctypes.c_int)]


_STATUS, _COUNT = ctypes.c_int, ctypes.c_uint64
_EXCHANGE = {  # gradflow_exchange_...
    "check": (_STATUS, _TEXT, ctypes.c_int),
    "wants": (_TEXT, _TEXT, ctypes.c_double, ctypes.c_int),
    "options_init": (_STATUS, ctypes.POINTER(ExchangeOptions), _SIZE),
    "open": (_STATUS, ctypes.POINTER(Tensor), _SIZE, ctypes.POINTER(ExchangeOptions),
             ctypes.POINTER(_JOB)),
    "close": (None, _JOB), "post": (_STATUS, _JOB, ctypes.POINTER(Gradient), _SIZE),
    "flush": (_STATUS, _JOB), "wait": (_STATUS, _JOB, _SIZE),
    "on_done": (_STATUS, _JOB, ON_DONE, ctypes.c_void_p), "drop": (_STATUS, _JOB),
    "rescale": (_STATUS, _JOB, ctypes.c_double),
    "state": (_STATUS, _JOB, _SIZE, ctypes.POINTER(Array)), "restored": (_STATUS, _JOB, _COUNT),
    "ways": (_TEXT, _JOB), "messages": (_SIZE, _JOB), "message": (_SIZE, _JOB, _SIZE),
    "steps": (_COUNT, _JOB), "sent_bytes": (_COUNT, _JOB), "copied_bytes": (_COUNT, _JOB),
    "wait_half": (_STATUS, _JOB, _COUNT)}
_HALF = (_STATUS, _JOB, ctypes.POINTER(Half), ctypes.POINTER(_COUNT))
_FUNCTIONS = {"version": (_TEXT,), "version_number": (_STATUS,), "error": (_TEXT,),
              "reduce_scatter": _HALF, "all_gather": _HALF,
              **{"exchange_" + name: types for name, types in _EXCHANGE.items()}}


@contextlib.contextmanager
def _own_ucx():
    """UCX looks for modules once, while the library is loaded."""
    if "UCX_MODULE_DIR" in os.environ or "UCX_MODULE_DIR" not in environment():
        yield
        return
    os.environ["UCX_MODULE_DIR"] = environment()["UCX_MODULE_DIR"]
    try:
        yield
    finally:
        del os.environ["UCX_MODULE_DIR"]


def find(path=None):
    """The shared library: the given path, $GRADFLOW_LIBRARY, the library that came with this
    package (in its wheel, or by make install), or the system's."""
    here = os.path.dirname(os.path.abspath(__file__))
    near = (os.path.join(here, _NAME), os.path.join(here, "..", "..", "..", "..", "lib", _NAME))
    path = path or os.environ.get("GRADFLOW_LIBRARY")
    return path or next(filter(os.path.exists, near), _NAME)


def load(path=None):
    """Its functions. OSError: it cannot be loaded, or is another library."""
    with _own_ucx():
        lib = ctypes.CDLL(find(path))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(lib, "gradflow_" + name, None)
        if function is None:
            raise OSError(f"{find(path)}: want the libgradflow of this package's version, got a "
                          f"library without gradflow_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


def described():
    return f"{find()}, {load().gradflow_version().decode()}"


def check(lib, status):
    """RuntimeError: the call has failed, and why."""
    if status:
        raise RuntimeError("gradflow: " + lib.gradflow_error().decode(errors="replace"))


def options(lib, **given):
    """A struct gradflow_exchange_options with the library's defaults but for these. The caller
    keeps what they point to until the exchange is open."""
    made = ExchangeOptions()
    check(lib, lib.gradflow_exchange_options_init(ctypes.byref(made), ctypes.sizeof(made)))
    for name, value in given.items():
        setattr(made, name, value)
    return made


def dtype(tensor):
    """The type of its numbers: a complex one is a pair of them."""
    return _PAIRS.get(tensor.dtype, tensor.dtype)


def one_number(value=0):
    """As a tensor of f32 on the host, whatever the job's defaults are."""
    return torch.tensor([float(value)], dtype=torch.float32, device="cpu")


def count(tensor):
    """How many of them it has."""
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def tensors(named):
    """{name: torch.Tensor} as an array of struct gradflow_tensor. A selection that works on shapes
    sees rows and columns: dimensions beyond its most are joined."""
    out = (Tensor * len(named))()
    for t, (name, tensor) in zip(out, named.items()):
        shape = list(tensor.shape) + ([2] if tensor.is_complex() else [])
        rest = shape[_DIMENSIONS - 1:]
        shape = shape[:_DIMENSIONS - 1] + ([math.prod(rest)] if rest else []) or [1]
        t.name, t.dimensions = name.encode(), len(shape)
        t.shape[:len(shape)] = shape
    return out
