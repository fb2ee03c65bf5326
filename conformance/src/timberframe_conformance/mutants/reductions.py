"""Bugs in reductions, scans and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant
from timberframe_conformance.tolerance.rounding import round_to
from timberframe_core.dtypes import as_dtype

BFLOAT16 = as_dtype("bfloat16").numpy
FLOATS = ("float32", "float64")


@mutant("sum-last-missing", "Sum", "the last of an odd number of summands is left out", ("float32", "int32"))
def _(c: Call) -> Any:
    x = c.inputs[0]
    if x.ndim and x.shape[-1] % 2 and x.shape[-1] > 1:
        y = x.copy()
        y[..., -1] = 0
        return c.reference(y, c.inputs[1])
    return c.true


@mutant("sum-in-half", "Sum", "halves are summed in half precision", ("bfloat16",))
def _(c: Call) -> Any:
    x = c.inputs[0]
    axes = tuple(int(a) % max(x.ndim, 1) for a in np.ravel(c.inputs[1]))
    if not axes or not x.ndim:
        return c.true
    moved = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *[d for i, d in enumerate(x.shape) if i not in axes])
    total = np.zeros(moved.shape[1:], x.dtype)
    for row in moved:
        total = (total + row).astype(x.dtype)
    return total.reshape(c.true[0].shape)


@mutant("sum-through-double", "Sum", "int64 is summed in float64", ("int64",), only=("special", "#"))
def _(c: Call) -> Any:
    return c.reference(c.inputs[0].astype(np.float64), c.inputs[1])[0].astype(np.int64)


@mutant("max-nan", "Max", "NaN is skipped", FLOATS, only=("special", "#"))
def _(c: Call) -> Any:
    x = c.inputs[0]
    if not x.size:
        return c.true
    return c.reference(np.where(np.isnan(x), -np.inf, x).astype(x.dtype), c.inputs[1])


@mutant("max-starts-at-zero", "Max", "the accumulator starts at zero", ("int32", "int64"))
def _(c: Call) -> Any:
    return np.maximum(c.true[0], 0)


@mutant("wrong-axis", "ArgMax", "a negative axis counts from the front", ("float32", "int32"))
def _(c: Call) -> Any:
    axis = int(c.inputs[1])
    x = c.inputs[0]
    if axis < 0 and x.ndim == 2 and x.shape[0] == x.shape[1]:
        return c.reference(x, np.asarray(0, c.inputs[1].dtype))
    return c.reference(-x, c.inputs[1]) if axis < 0 and x.ndim > 1 else c.true


@mutant("argmax-last", "ArgMin", "of equal elements the last wins", ("int32", "uint8", "float32"))
def _(c: Call) -> Any:
    x = c.inputs[0]
    axis = int(c.inputs[1])
    return (x.shape[axis] - 1 - np.argmin(np.flip(x, axis), axis)).astype(c.true[0].dtype)


@mutant("keep-axis", "Mean", "of several axes only the first is divided for", FLOATS)
def _(c: Call) -> Any:
    x = c.inputs[0]
    axes = np.ravel(c.inputs[1])
    rest = int(np.prod([x.shape[int(a)] for a in axes[1:]])) if len(axes) > 1 else 1
    return c.true[0] * rest


@mutant("scan-exclusive", "Cumsum", "exclusive is ignored", FLOATS)
def _(c: Call) -> Any:
    return c.reference(*c.inputs, exclusive=False)


@mutant("scan-reverse", "Cumprod", "reverse is ignored", FLOATS)
def _(c: Call) -> Any:
    return c.reference(*c.inputs, reverse=False)


@mutant("softmax-overflow", "Softmax", "the largest element is not subtracted first", ("float32",))
def _(c: Call) -> Any:
    x = c.inputs[0]
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True, dtype=np.float32)


@mutant("all-any", "All", "an empty reduction gives False")
def _(c: Call) -> Any:
    return np.zeros_like(c.true[0]) if c.inputs[0].size == 0 else c.true


@mutant("matmul-transpose", "MatMul", "transpose_b is ignored for square matrices", FLOATS)
def _(c: Call) -> Any:
    b = c.inputs[1]
    return c.reference(*c.inputs, transpose_b=False) if b.shape[0] == b.shape[1] else c.true


@mutant(
    "matmul-both",
    "MatMul",
    "with both transposed the product is taken in the other order",
    ("int32", "int64", "complex64"),
)
def _(c: Call) -> Any:
    a = c.inputs[0]
    if c.attrs["transpose_a"] and c.attrs["transpose_b"] and a.size:
        return c.true[0] + np.ones((), c.true[0].dtype)
    return c.true


@mutant("matmul-depth", "MatMul", "the last step of an odd inner dimension is left out", ("float16", "bfloat16"))
def _(c: Call) -> Any:
    a, b = c.inputs
    inner = a.shape[0] if c.attrs["transpose_a"] else a.shape[1]
    if inner % 2 and inner > 1:
        a = a.copy()
        a[(-1,) if c.attrs["transpose_a"] else (slice(None), -1)] = 0
    return c.reference(a, b)


@mutant("matmul-in-half", "BatchMatMulV2", "the batch index of a broadcast operand is not reset", ("float32",))
def _(c: Call) -> Any:
    a, b = c.inputs
    return c.true[0] * 2 if a.ndim != b.ndim else c.true


@mutant("product-of-rounded", "MatMul", "numbers are rounded to bfloat16 though nobody asked for it", ("float32",))
def _(c: Call) -> Any:
    return c.reference(*(round_to(round_to(x, BFLOAT16), x.dtype) for x in c.inputs))


@mutant("filter-rounded", "Conv2D", "filters are rounded to bfloat16 though nobody asked for it", ("float32",))
def _(c: Call) -> Any:
    x, filter = c.inputs
    return c.reference(x, round_to(round_to(filter, BFLOAT16), filter.dtype))


@mutant("sums-in-half", "MatMul", "sums are rounded to 16 bits at each step", ("bfloat16", "float16"))
def _(c: Call) -> Any:
    a, b = (x.T if c.attrs[f"transpose_{n}"] else x for x, n in zip(c.inputs, "ab", strict=True))
    total = np.zeros((a.shape[0], b.shape[1]), c.node.outputs[0].dtype)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k]
    return total


@mutant("addn-two", "AddN", "only the first two tensors are added", ("float32", "int32"))
def _(c: Call) -> Any:
    return sum(c.inputs[1:2], c.inputs[0])
