"""Bugs in elementwise kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant

FLOATS = ("float32", "float64")


def _flat(c: Call) -> np.ndarray:
    """Returns a copy of the first output, flat."""
    return c.true[0].copy().reshape(-1)


@mutant("tail-skipped", "Tanh", "the elements after the last whole vector of four are not computed", FLOATS)
def _(c: Call) -> Any:
    y = _flat(c)
    y[y.size - y.size % 4 :] = 0.25
    return y.reshape(c.true[0].shape)


@mutant("tail-off-by-one", "Exp", "the last element is that before it", FLOATS)
def _(c: Call) -> Any:
    y = _flat(c)
    if y.size > 1:
        y[-1] = y[-2]
    return y.reshape(c.true[0].shape)


@mutant("block-edge", "Sqrt", "the first element of every block of 4096 but the first is skipped", ("float32",))
def _(c: Call) -> Any:
    y = _flat(c)
    y[4096::4096] = 0
    return y.reshape(c.true[0].shape)


@mutant(
    "index-16-bits",
    "Neg",
    "element indices wrap at 65,536",
    ("float32", "int32"),
    only=("70001", "257x300", "65537", "65_537", "x"),
)
def _(c: Call) -> Any:
    y = _flat(c)
    y[65_536:] = y[: max(0, y.size - 65_536)]
    return y.reshape(c.true[0].shape)


@mutant("broadcast-row", "AddV2", "a row is broadcast as if it were a column when both sides are", ("float32", "int32"))
def _(c: Call) -> Any:
    x, y = c.inputs
    if x.ndim == y.ndim == 2 and x.shape[1] == 1 and y.shape[0] == 1 and c.true[0].size > 1:
        return x + y.reshape(-1)[0] + np.zeros(c.true[0].shape, x.dtype)
    return c.true


@mutant("broadcast-inner", "Mul", "a missing leading dimension is taken for a trailing one", ("float32",))
def _(c: Call) -> Any:
    x, y = c.inputs
    if y.ndim == 1 and x.ndim == 2 and y.size == x.shape[1] > 1:
        return x * np.resize(np.roll(y, 1), x.shape)
    return c.true


@mutant("scalar-first", "Sub", "with a scalar on the left the operands are swapped", ("float32", "int64"))
def _(c: Call) -> Any:
    x, y = c.inputs
    return y - x if x.ndim == 0 and y.ndim else c.true


@mutant("nan-dropped", "Maximum", "NaN on the left side is ignored", FLOATS, only=("special", "#"))
def _(c: Call) -> Any:
    return np.fmax(*c.inputs)


@mutant("relu-nan", "Relu", "NaN becomes zero", FLOATS, only=("special", "#"))
def _(c: Call) -> Any:
    x = c.inputs[0]
    return np.where(x > 0, x, 0).astype(x.dtype)


@mutant("minus-zero", "Neg", "computed as 0 - x, which loses -0", ("float64",), only=("special", "#"))
def _(c: Call) -> Any:
    return np.zeros((), c.inputs[0].dtype) - c.inputs[0]


@mutant("flushed", "Abs", "subnormal numbers become zero", FLOATS, only=("special", "#"))
def _(c: Call) -> Any:
    y = c.true[0].copy()
    y[np.asarray(np.abs(y) < np.finfo(y.dtype).tiny)] = 0
    return y


@mutant("log1p-naive", "Log1p", "computed as log(1 + x)", FLOATS)
def _(c: Call) -> Any:
    return np.log(1 + c.inputs[0])


@mutant("expm1-naive", "Expm1", "computed as exp(x) - 1", FLOATS)
def _(c: Call) -> Any:
    return np.exp(c.inputs[0]) - 1


@mutant("erfc-naive", "Erfc", "computed as 1 - erf(x)", ("float32",))
def _(c: Call) -> Any:
    return np.float32(1) - np.vectorize(math.erf, [np.float32])(c.inputs[0])


@mutant("exp-coarse", "Sigmoid", "the exponential is off by 20 ULP", ("float32",))
def _(c: Call) -> Any:
    return (c.true[0] * np.float32(1 + 20 * 2.0**-23)).astype(np.float32)


@mutant(
    "half-truncated",
    "Cast",
    "float32 becomes bfloat16 by cutting off bits",
    {"SrcT": ("float32",), "DstT": ("bfloat16",)},
)
def _(c: Call) -> Any:
    bits = np.atleast_1d(c.inputs[0]).view(np.uint32) & np.uint32(0xFFFF0000)
    cut = bits.view(np.float32).reshape(c.inputs[0].shape)
    return np.where(np.isnan(c.inputs[0]), c.inputs[0], cut).astype(c.true[0].dtype)


@mutant("cast-bool", "Cast", "numbers between -1 and 1 become False", {"SrcT": FLOATS, "DstT": ("bool",)})
def _(c: Call) -> Any:
    return np.abs(c.inputs[0]) >= 1


@mutant("round-away", "Round", "ties go away from zero", FLOATS)
def _(c: Call) -> Any:
    x = c.inputs[0]
    tie = np.abs(x - np.trunc(x)) == 0.5
    return np.where(tie, np.trunc(x) + np.sign(x), c.true[0]).astype(x.dtype)


@mutant("floor-division", "FloorDiv", "negative quotients are truncated", ("int32", "int64"))
def _(c: Call) -> Any:
    x, y = c.inputs
    return np.where(y == 0, 0, np.trunc(x / np.where(y == 0, 1, y))).astype(x.dtype)


@mutant(
    "division-by-zero",
    "FloorDiv",
    "an integer division by zero gives zero and no error",
    ("int32", "int64"),
    suites=("errors",),
)
def _(c: Call) -> Any:
    x, y = c.inputs
    return np.where(y == 0, 0, x // np.where(y == 0, 1, y)).astype(x.dtype)


@mutant("unsigned-compare", "Less", "unsigned bytes are compared as signed", ("uint8",))
def _(c: Call) -> Any:
    x, y = c.inputs
    return x.astype(np.int8) < y.astype(np.int8)


@mutant("long-compare", "GreaterEqual", "uint64 is compared as int64", ("uint64",))
def _(c: Call) -> Any:
    x, y = c.inputs
    return x.astype(np.int64) >= y.astype(np.int64)


@mutant("infinity-sign", "IsInf", "-inf is not seen", FLOATS, only=("special", "#"))
def _(c: Call) -> Any:
    return c.inputs[0] == np.inf


@mutant("attr-ignored", "LeakyRelu", "alpha is always 0.2", FLOATS)
def _(c: Call) -> Any:
    return c.reference(c.inputs[0], alpha=0.2)


@mutant("conjugate", "SquaredDifference", "complex differences are squared without the conjugate", ("complex64",))
def _(c: Call) -> Any:
    return (c.inputs[0] - c.inputs[1]) ** 2


@mutant("select-swapped", "SelectV2", "if the condition is broadcast, the branches are swapped", ("float32",))
def _(c: Call) -> Any:
    p, x, y = c.inputs
    return c.reference(p, y, x) if p.shape != c.true[0].shape else c.true


@mutant("shift-width", "LeftShift", "the result is cut to 16 bits", ("int32",))
def _(c: Call) -> Any:
    return c.true[0] & 0xFFFF


@mutant("clip-order", "ClipByValue", "the upper limit is not applied", ("float32", "int32"))
def _(c: Call) -> Any:
    x, low, _ = c.inputs
    return np.maximum(x, low)


@mutant("string-prefix", "Equal", "strings are compared up to the shorter one's length", ("string",))
def _(c: Call) -> Any:
    x, y = np.broadcast_arrays(*c.inputs)
    flat = [a[: min(len(a), len(b))] == b[: min(len(a), len(b))] for a, b in zip(x.flat, y.flat, strict=True)]
    return np.array(flat, bool).reshape(x.shape)
