"""Places of extremes along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape


def _argument_shape(c: InferenceContext) -> list[Shape]:
    c.require_rank(1, 0)
    shape, value = c.shapes[0], c.value(1)
    if shape is None:
        return [None]
    if value is None:
        return [(None,) * (len(shape) - 1) if shape else None]
    axis = c.axis(int(value), len(shape), "dimension")
    if shape[axis] == 0:
        raise c.error(f"dimension {axis} of shape {format_shape(shape)} is empty; it needs at least one element")
    return [shape[:axis] + shape[axis + 1 :]]


def _argument(best: Callable[..., Any], argument: Callable[..., Any], worst: float) -> Callable[..., Any]:
    def reference(attrs: Attrs, input: Any, dimension: Any) -> Any:
        axis = int(dimension)
        if input.dtype.kind in "iub":
            return argument(input, axis=axis).astype(attrs["output_type"].numpy)
        # The first element equal to the best that is a number; the index 0 where there is none.
        known = np.where(np.isnan(input), np.asarray(worst, input.dtype), input)
        return np.argmax(input == best(known, axis=axis, keepdims=True), axis=axis).astype(attrs["output_type"].numpy)

    return reference


def _argument_samples() -> Iterable[Sample]:
    for shape, axis in (
        ((1,), 0), ((17,), -1), ((0, 3), 1), ((7, 13), 0), ((7, 13), 1), ((7, 13), -2), ((3, 2, 5), 1), ((2, 0, 3), 0),
        ((64, 3), 0), ((3, 1100), 1), ((5, 600), 0), ((1, 5), 0), ((65_537,), 0), ((65_537, 2), 0), ((2, 65_537), 0),
        ((2, 65_537), 1), ((2, 1, 3, 1, 2, 1, 3, 1), 4), ((3, 127), 1), ((127, 3), 0),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=axis)])
        yield Sample([Arg(shape, distinct=True), Arg(values=axis)], types={"T": ("float32", "int64")})
    nan, inf = math.nan, math.inf
    floats = {"T": ("float16", "bfloat16", "float32", "float64")}
    rows = ((1, nan, 2), (nan, 1, 2), (nan, nan, nan), (nan, -inf, inf), (nan, inf, -inf), (-inf, -inf, nan), (3, 3, 1))
    for axis in (0, 1):
        yield Sample([Arg(values=rows), Arg(values=axis)], types=floats)
    for axis, x in enumerate((_extremes_before_nan().T, _extremes_before_nan())):
        yield Sample([Arg(values=x), Arg(values=axis)], types=floats)


def _extremes_before_nan() -> np.ndarray:
    """Row k has its largest element at k and its smallest at k + 1, each with NaN in the same lane of the next vectors:
    a NaN must not replace what a lane has found."""
    x = np.zeros((64, 192))
    k = np.arange(64)
    x[k, k], x[k, k + 1] = 1, -1
    x[k, k + 64] = x[k, k + 65] = math.nan
    return x


def _argument_errors() -> Iterable[ErrorSample]:
    yield ErrorSample([Arg((2, 3)), Arg(values=2)], r"dimension 2 is outside the input's rank 2")
    yield ErrorSample([Arg((2, 3)), Arg(values=-3)], r"dimension -3 is outside the input's rank 2")
    yield ErrorSample([Arg(()), Arg(values=0)], r"dimension 0 is outside the input's rank 0")
    yield ErrorSample([Arg((0, 3)), Arg(values=0)], r"dimension 0 of shape \(0, 3\) is empty")
    yield ErrorSample([Arg((2, 3)), Arg(values=(1,))], r"must have rank 0")


def _define_argument(name: str, adjective: str, reference: Any, index_types: str, axis_types: str) -> None:
    define_op(
        name,
        inputs=["input: T", "dimension: Tidx"],
        outputs=["output: output_type"],
        attrs=[
            "T: {realnumbertype, quantizedtype, bool}",
            f"Tidx: {{{axis_types}}} = DT_INT32",
            f"output_type: {{{index_types}}} = DT_INT64",
        ],
        doc=f"Index of the first {adjective} element along one axis. NaN is passed over; a line of only NaN gives 0.",
        shape=_argument_shape,
        reference=reference,
        gradient=NotDifferentiable("an index is piecewise constant"),
        shape_inputs=("dimension",),
        samples=_argument_samples,
        errors=_argument_errors,
    )


_define_argument(
    "ArgMax", "largest", _argument(np.max, np.argmax, -math.inf), "int16, uint16, int32, int64", "int16, int32, int64"
)
_define_argument("ArgMin", "smallest", _argument(np.min, np.argmin, math.inf), "int32, int64", "int32, int64")
