"""Lazy kernels: bugs that any op's kernel may have, and which suites must find each of them for every op.

They are known bugs like the others (see `base`), made for each op in turn.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_conformance.cases.weaknesses import (
    COPIES,
    EQUAL_OUTPUT,
    NO_SECOND,
    NOT_TRIED,
    SAME_OUTPUTS,
    ZEROS,
    copied,
)
from timberframe_conformance.mutants.base import Bug, Call, Mutant
from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import Value
from timberframe_core.plugin.nodes import passed_inputs


@dataclass(frozen=True)
class LazyKernel:
    """A bug that the kernel of any op may have.

    suites: those that must find it for every op that they try. excuses: weaknesses for which it is not found where all
    samples of an op have one of them, see `cases.weaknesses`.
    """

    name: str
    what: str
    bug: Bug
    suites: tuple[str, ...]
    excuses: tuple[str, ...] = ()

    def mutant(self, op: str) -> Mutant:
        """Returns the bug as one of an op's kernel."""
        return Mutant(f"lazy-{self.name}", op, self.what, self.bug, self.suites)


LAZY_KERNELS: dict[str, LazyKernel] = {}
VALUES = ("forward", "networks", "guards", "prepared", "variants")
"""Suites that compare each result with the truth."""

TRIES_NO_SINGLE_KERNEL: Mapping[str, str] = {
    "device": "asks the device for memory and copies",
    "shapes": "nothing runs on the device",
    "gradient": "judges gradient functions; kernels that give wrong results fail in it by chance",
    "random": "numbers are known for its own graphs alone",
    "graphs": "graphs of many ops",
    "patterns": "kernels of several nodes; mutants of patterns are for it",
    "kernels": "the cases of forward and guards on kernels that others hide",
    "passes": "graphs of many ops",
    "host-ops": "ops of the executor",
    "resources": "ops of the executor",
    "targets": "devices of other processes",
    "collectives": "the device's own sums; mutants of collectives are for it",
    "models": "networks of many ops",
    "failures": "asks the driver for failures, whichever op runs",
    "programs": "graphs of its own, of a few ops; mutants of strangers are for it",
    "traces": "judges what traces say, whichever op runs",
    "soak": "the samples of forward that take long",
}
"""Why no lazy kernel is asked of a suite."""


EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("goes-on-without-memory", "CholeskyGrad"): "the bounds of the sample's ill-conditioned matrices allow zeros",
    ("first-entry", "DrawBoundingBoxes"): "its samples of several images are large",
    ("first-entry", "DrawBoundingBoxesV2"): "its samples of several images are large",
    ("first-weights", "FractionalMaxPoolGrad"): "its last inputs are positions that the samples fix",
}
"""Why no suite finds a lazy kernel of an op that could be found."""


def lazy(name: str, what: str, *suites: str, excuses: tuple[str, ...] = ()) -> Callable[[Bug], Bug]:
    """Declares a function as the bug of a lazy kernel."""

    def add(bug: Bug) -> Bug:
        LAZY_KERNELS[name] = LazyKernel(name, what, bug, suites, excuses)
        return bug

    return add


def _zero(like: np.ndarray) -> np.ndarray:
    return np.full_like(like, b"" if like.dtype.hasobject else 0)


@lazy("zeros", "writes zeros", *VALUES, excuses=(ZEROS,))
def _(c: Call) -> Any:
    return [_zero(y) for y in c.true]


@lazy("untouched", "leaves the output alone", "guards")  # which fills it first; elsewhere the right values may be in it
def _(c: Call) -> Any:
    return None


@lazy("copy", "copies its first input", *VALUES, excuses=(COPIES,))
def _(c: Call) -> Any:
    return [copied(c.inputs[_data(c)[0]], y) if _data(c) else _zero(y) for y in c.true]


@lazy("first-entry", "ignores the entries of a batch after the first", *VALUES, excuses=(NO_SECOND,))
def _(c: Call) -> Any:
    return [_only_first(y) for y in c.true]


def _only_first(y: np.ndarray) -> np.ndarray:
    result = _zero(y)
    if y.ndim:
        result[:1] = y[:1]
    else:
        result[...] = y
    return result


@lazy(
    "repeat", "gives the result of the run before", "aliasing", "concurrency", "prepared",
    excuses=(NOT_TRIED, SAME_OUTPUTS),
)  # fmt: skip
def _(c: Call) -> Any:
    before = c.state.get("before", c.true)
    c.state["before"] = c.true
    return before if all(map(_fits, before, c.node.outputs, c.outputs)) else c.true


def _fits(x: np.ndarray, value: Value, output: Any) -> bool:
    """Returns whether an array may be a result; where the kernel decides on the size, up to the memory there."""
    return x.size <= math.prod(output.shape) if value.dynamic else x.shape == tuple(output.shape)


@lazy("first-weights", "keeps the weights of its first run", "prepared", excuses=(NOT_TRIED, SAME_OUTPUTS))
def _(c: Call) -> Any:
    inputs = list(c.inputs)
    for i in _data(c)[-1:]:
        kept = c.state.setdefault("weights", inputs[i])
        inputs[i] = kept if kept.shape == inputs[i].shape else inputs[i]
    return c.reference(*inputs)


def _data(c: Call) -> list[int]:
    """Returns the inputs that hold data, the last of which may be weights."""
    op = registry.get(c.node.op)
    ranges = arg_ranges(op.inputs, c.attrs)
    return [i for a in op.inputs if op.input_role(a) == "data" for i in ranges[a.name] if c.inputs[i].size]


@lazy("writes-input", "writes zeros to an input", "guards", "aliasing")
def _(c: Call) -> Any:
    for i, value in enumerate(c.true):
        c.write(i, value)
    for array in c.passed:
        if np.size(array) and (not isinstance(array, np.ndarray) or array.any()):
            _overwrite(c, array)
            break


def _overwrite(c: Call, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        c.device.copy(c.device.copy_in(np.zeros(array.shape, array.dtype)), array)
    elif array.dtype.hasobject:
        array.setflags(write=True)
        array[...] = b""
    else:  # kernels in C do not ask whether an array is writeable
        ctypes.memset(array.ctypes.data, 0, array.nbytes)


@lazy("writes-result", "writes zeros to the last input that another node made", "aliasing")
def _(c: Call) -> Any:
    for i, value in enumerate(c.true):
        c.write(i, value)
    positions = passed_inputs(c.node)
    for i, array in reversed(list(zip(positions, c.passed, strict=True))):
        if c.node.inputs[i].kind == "temp" and np.size(array) and array.any():
            _overwrite(c, array)
            break


@lazy("past-end", "writes one element past the end of its output", "guards")
def _(c: Call) -> Any:
    for i, value in enumerate(c.true):
        c.write(i, value)
    for array in c.outputs:
        if isinstance(array, np.ndarray) and array.size and not array.dtype.hasobject:
            ctypes.memset(array.ctypes.data + array.nbytes, 0x11, array.itemsize)


@lazy("drops-error", "computes something where it must raise an error", "errors")
def _(c: Call) -> Any:
    try:
        return c.true
    except Exception:  # whatever the error is
        DROPPED.append(c.node.op)
        return [np.zeros([d or 0 for d in v.shape], v.dtype) for v in c.node.outputs]


DROPPED: list[str] = []
"""The ops whose errors were dropped."""


@lazy("leak", "keeps memory of each run", "leaks")
def _(c: Call) -> Any:
    if any(y.size for y in c.true):
        _kept.append(c.device.allocator.allocate(256))
    return c.true


_kept: list[Any] = []


@lazy("goes-on-without-memory", "writes zeros where it is refused memory", "faults", excuses=(ZEROS,))
def _(c: Call) -> Any:
    try:
        c.device.allocator.allocate(128).close()
    except MemoryError:
        return [_zero(y) for y in c.true]
    return c.true


@lazy("order-of-runs", "gives its elements in another order in every other run", "determinism", excuses=(EQUAL_OUTPUT,))
def _(c: Call) -> Any:
    c.state["runs"] = c.state.get("runs", 0) + 1
    return c.true if c.state["runs"] % 2 else [y.reshape(-1)[::-1].reshape(y.shape) for y in c.true]


@lazy(
    "one-buffer", "computes in memory that all threads share", "concurrency",
    excuses=(NOT_TRIED, SAME_OUTPUTS, EQUAL_OUTPUT),
)  # fmt: skip
def _(c: Call) -> Any:
    buffer, begin = c.state.setdefault("buffer", []), time.perf_counter()
    buffer[:] = c.true
    time.sleep(max(0.005, time.perf_counter() - begin))  # long enough for another thread to compute as much
    return list(buffer)
