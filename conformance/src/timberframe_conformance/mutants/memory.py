"""Bugs in how kernels treat memory, threads and the process."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant

FOREVER = 3600
_leaked: list[Any] = []
_calls = [0]
_scratch: list[Any] = []


def _address(a: Any) -> int:
    return int(a.__array_interface__["data"][0])


@mutant(
    "writes-past-end",
    "Square",
    "four bytes after the output are written",
    ("float32",),
    suites=("guards",),
    isolate=True,
)
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    if isinstance(c.outputs[0], np.ndarray) and c.outputs[0].size:
        ctypes.memset(_address(c.outputs[0]) + c.outputs[0].nbytes, 0x11, 4)


@mutant(
    "writes-before-start",
    "Reciprocal",
    "four bytes before the output are written",
    ("float32",),
    suites=("guards",),
    isolate=True,
)
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    if isinstance(c.outputs[0], np.ndarray) and c.outputs[0].size and c.device is not None and c.outputs[0].size < 200:
        ctypes.memset(_address(c.outputs[0]) - 4, 0x11, 4)


@mutant(
    "reads-past-end",
    "Exp",
    "a byte after the input is read",
    ("float32",),
    suites=("guards",),
    verdict="crash",
    isolate=True,
)
def _(c: Call) -> Any:
    ctypes.string_at(_address(c.passed[0]) + c.passed[0].nbytes, 1)
    return c.true


@mutant(
    "reads-before-start",
    "Log",
    "the byte before the input is read",
    ("float32",),
    suites=("guards",),
    verdict="crash",
    isolate=True,
)
def _(c: Call) -> Any:
    ctypes.string_at(_address(c.passed[0]) - 1, 1)
    return c.true


@mutant("output-unwritten", "Rsqrt", "every third element is not written", ("float32",), suites=("guards",))
def _(c: Call) -> Any:
    if not isinstance(c.outputs[0], np.ndarray):
        return c.true
    out = c.outputs[0].reshape(-1)
    written = np.arange(out.size) % 3 != 2
    out[written] = c.true[0].reshape(-1)[written]
    return None


@mutant("adds-to-output", "Softsign", "adds to the output as if it were zero", ("float32",), suites=("guards",))
def _(c: Call) -> Any:
    if not isinstance(c.outputs[0], np.ndarray):
        return c.true
    c.outputs[0][...] += c.true[0]
    return None


@mutant("writes-input", "Softplus", "writes its exponentials to the input", ("float32",), suites=("guards",))
def _(c: Call) -> Any:
    source = c.passed[0]
    c.write(0, c.true[0])
    if isinstance(source, np.ndarray) and source.flags.writeable:
        source[...] = 0.5


@mutant(
    "writes-input-on-device",
    "Elu",
    "writes to the input, which is a tensor of the device",
    ("float32",),
    suites=("guards", "aliasing"),
)
def _(c: Call) -> Any:
    source = c.passed[0]
    c.write(0, c.true[0])
    if not isinstance(source, np.ndarray):
        c.device.copy(c.device.copy_in(np.full(source.shape, 7, source.dtype)), source)
    elif source.flags.writeable:
        source[...] = 7


@mutant(
    "in-place-order",
    "ReverseV2",
    "declares that it runs in place, and reads what it has overwritten",
    {"T": ("float32",)},
    suites=("aliasing",),
    inplace=((0, 0),),
)
def _(c: Call) -> Any:
    if not isinstance(c.outputs[0], np.ndarray) or _address(c.passed[0]) != _address(c.outputs[0]):
        return c.true
    x = c.inputs[0].copy()
    half = x.shape[0] // 2 if x.ndim else 0
    y = c.true[0].copy()
    if half:
        y[-half:] = y[:half][::-1]
    return y


@mutant("same-input", "Sub", "wrong when both inputs are one tensor", ("float32",), suites=("aliasing",))
def _(c: Call) -> Any:
    a, b = c.passed
    same = isinstance(a, np.ndarray) and _address(a) == _address(b) and a.size > 1
    return c.true[0] + 1 if same else c.true


@mutant("stale", "Cos", "gives the result of its first run again", ("float32",), suites=("aliasing",))
def _(c: Call) -> Any:
    return c.state.setdefault("first", c.true)


@mutant(
    "order-by-time",
    "Sum",
    "the order of summation changes from run to run",
    ("float32",),
    suites=("determinism",),
)
def _(c: Call) -> Any:
    _calls[0] += 1
    return np.nextafter(c.true[0], np.float32(np.inf)) if _calls[0] % 2 and c.inputs[0].size > 1 else c.true


@mutant(
    "shared-scratch",
    "Expm1",
    "computes in memory that runs of other threads use at the same time",
    ("float32",),
    suites=("concurrency",),
)
def _(c: Call) -> Any:
    _scratch[:] = c.true
    time.sleep(0.001)
    return list(_scratch)


@mutant("lanes-differ", "Tan", "an unaligned start gives other last bits", ("float32",), suites=("forward",))
def _(c: Call) -> Any:
    a = c.passed[0]
    off = isinstance(a, np.ndarray) and _address(a) % 16 != 0
    return c.true[0] * np.float32(1.001) if off else c.true


@mutant(
    "leak", "Sinh", "each run keeps a buffer of the device", ("float32",), suites=("leaks",), also=frozenset({"faults"})
)
def _(c: Call) -> Any:
    _leaked.append(c.device.allocator.allocate(256))
    return c.true


@mutant(
    "leak-at-build",
    "Cosh",
    "scratch memory is taken at each run and given back at none",
    ("float32",),
    suites=("leaks",),
    also=frozenset({"faults"}),
)
def _(c: Call) -> Any:
    _leaked.append(c.device.allocator.allocate(64 * (1 + c.inputs[0].size)))
    return c.true


@mutant(
    "error-swallowed",
    "Asinh",
    "a failed allocation inside the kernel is ignored",
    ("float32",),
    suites=("faults",),
    also=frozenset(),
)
def _(c: Call) -> Any:
    try:
        c.device.allocator.allocate(128).close()
    except MemoryError:
        return np.zeros_like(c.true[0])
    return c.true


@mutant("wrong-error", "CheckNumerics", "raises the wrong class of error", ("float32",), suites=("errors",))
def _(c: Call) -> Any:
    if not np.isfinite(c.inputs[0].astype(np.float64)).all():
        raise RuntimeError("bad number")
    return c.true


@mutant("crash", "Atanh", "reads an address that is not there", ("float32",), verdict="crash", isolate=True)
def _(c: Call) -> Any:
    return ctypes.string_at(1 << 62, 1)


@mutant("abort", "Acosh", "calls abort()", ("float64",), verdict="crash", isolate=True)
def _(c: Call) -> Any:
    return ctypes.CDLL(None).abort()


@mutant("exit", "Asin", "ends the process", ("float32",), verdict="crash", isolate=True)
def _(c: Call) -> Any:
    os._exit(0)


@mutant("hang", "Acos", "waits forever without the GIL", ("float32",), verdict="timeout", isolate=True)
def _(c: Call) -> Any:
    return ctypes.CDLL(None).sleep(FOREVER)


@mutant("hang-with-gil", "Atan", "waits forever with the GIL held", ("float32",), verdict="timeout", isolate=True)
def _(c: Call) -> Any:
    return ctypes.PyDLL(None).sleep(FOREVER)
