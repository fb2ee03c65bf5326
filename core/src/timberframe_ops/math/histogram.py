"""HistogramFixedWidth: how many values lie in each of equally wide bins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, compatible, format_shape

RANGE = "two numbers of finite distance are required, the first below the second"
NAN = "is NaN, which lies in no bin; numbers are required"
"""What is wrong about an input, for all devices."""


def _shape(c: InferenceContext) -> list[Shape]:
    limits, bins = c.shapes[1], c.shapes[2]
    if not compatible(limits, (2,)):
        raise c.error(f"value_range has shape {format_shape(limits)}; it must be [2]")
    if not compatible(bins, ()):
        raise c.error(f"nbins has shape {format_shape(bins)}; it must be a scalar")
    count = c.value(2)
    if count is None:
        return [(None,)]
    if int(count) <= 0:
        raise c.late_error(f"nbins is {int(count)}; it must be positive")
    return [(int(count),)]


def _reference(attrs: Attrs, values: np.ndarray, value_range: np.ndarray, nbins: np.ndarray) -> np.ndarray:
    low, high = value_range
    width = np.float64(high) - np.float64(low)
    if not (low < high and width < np.inf):
        raise InvalidArgumentError(f"value_range is [{low}, {high}]; {RANGE}")
    if np.isnan(values).any():
        raise InvalidArgumentError(f"values[{np.argmax(np.isnan(values.ravel()))}] {NAN}")
    step = width / int(nbins)
    inside = np.clip(values, low, high).astype(np.float64).ravel()
    bins = np.minimum(((inside - np.float64(low)) / step).astype(np.int32), int(nbins) - 1)
    return np.bincount(bins, minlength=int(nbins)).astype(attrs["dtype"].numpy)


def _samples() -> Iterator[Sample]:
    for shape in ((), (0,), (7, 13), (65_537,)):
        for low, high, bins in ((-1, 2, 5), (0, 1, 1), (0, 5, 7)):
            limits = Arg(values=np.array([low, high]))
            yield Sample([Arg(shape, special=False), limits, Arg(values=np.int32(bins))])


_FLOATS = {"T": ("float32", "float64")}

define_op(
    "HistogramFixedWidth",
    inputs=["values: T", "value_range: T", "nbins: int32"],
    outputs=["out: dtype"],
    attrs=["T: {int32, int64, float, double}", "dtype: {int32, int64} = DT_INT32"],
    doc="Counts of the values in nbins equal parts of value_range; values outside count in the first and last part.",
    shape=_shape,
    reference=_reference,
    gradient=NotDifferentiable("a count does not change with small changes of the inputs"),
    shape_inputs=("nbins",),
    samples=_samples,
    errors=lambda: [
        ErrorSample(
            [Arg((3,)), Arg(values=[1, 1]), Arg(values=np.int32(2))], r"value_range is \[1.*the first below the second"
        ),
        ErrorSample([Arg((3,)), Arg(values=[0, np.inf]), Arg(values=np.int32(2))], "finite distance", types=_FLOATS),
        ErrorSample(
            [Arg(values=[1, np.nan]), Arg(values=[0, 5]), Arg(values=np.int32(2))], r"values\[1\] is NaN", types=_FLOATS
        ),
        ErrorSample([Arg((3,)), Arg(values=[0, 1]), Arg(values=np.int32(0))], "nbins is 0; it must be positive"),
    ],
)
