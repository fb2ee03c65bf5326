"""Bincount and DenseBincount: how often each number occurs, or the sum of the weights where it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, compatible, format_shape

_NO_GRADIENT = MissingGradient("sums of weights have the derivatives of weights, which TensorFlow does not define")
_WEIGHTS = "T: {int32, int64, float, double}"


def _size(c: InferenceContext) -> int | None:
    """Returns the number of counts, where it is known."""
    if not compatible(c.shapes[1], ()):
        raise c.error(f"size has shape {format_shape(c.shapes[1])}; it must be a scalar")
    count = c.value(1)
    if count is None:
        return None
    if int(count) < 0:
        raise c.late_error(f"size is {int(count)}; it must be at least 0")
    return int(count)


def _shape(c: InferenceContext) -> Sequence[Shape]:
    return [(_size(c),)]


def _dense_shape(c: InferenceContext) -> Sequence[Shape]:
    size, shape = _size(c), c.shapes[0]
    if shape is None:
        return [None]
    if len(shape) > 2:
        raise c.error(f"input has shape {format_shape(shape)}; it must have rank 2 at most")
    return [(shape[0], size) if len(shape) == 2 else (size,)]


def _counts(rows: np.ndarray, size: int, weights: np.ndarray, binary: bool) -> np.ndarray:
    """Counts each row of numbers. weights: as many as numbers, or none. binary: 1 for what occurs, however often."""
    if size < 0:
        raise InvalidArgumentError(f"size is {size}; it must be at least 0")
    if (rows < 0).any():
        raise InvalidArgumentError(f"{rows[rows < 0][0]} is counted; numbers must be at least 0")
    made = np.zeros((len(rows), size), weights.dtype)
    at = np.nonzero(rows < size)
    places = at[0], rows[at]
    if binary:
        made[places] = 1
    else:
        np.add.at(made, places, weights[at] if weights.size else weights.dtype.type(1))
    return made


def _reference(attrs: Attrs, arr: np.ndarray, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if weights.size not in (0, arr.size):
        raise InvalidArgumentError(f"{weights.size} weights for {arr.size} numbers; as many or none are required")
    by_row = weights.reshape(1, -1) if weights.size else weights
    made: np.ndarray = _counts(arr.reshape(1, -1), int(size), by_row, False)[0]
    return made


def _dense_reference(attrs: Attrs, numbers: np.ndarray, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if weights.size and weights.shape != numbers.shape:
        raise InvalidArgumentError(
            f"weights have shape {list(weights.shape)}; {list(numbers.shape)}, as the numbers, or none are required"
        )
    rows = numbers if numbers.ndim == 2 else numbers.reshape(1, -1)
    by_row = weights.reshape(rows.shape) if weights.size else weights
    made = _counts(rows, int(size), by_row, attrs["binary_output"])
    return made if numbers.ndim == 2 else made[0]


def _arguments(shape: tuple[int, ...], size: int, weighted: bool, dtype: str | None = None) -> list[Arg]:
    weights = Arg(shape, special=False) if weighted else Arg((0,))
    return [Arg(shape, low=0, high=9, special=False, dtype=dtype), Arg(values=size, dtype=dtype), weights]


def _samples() -> Iterator[Sample]:
    for shape, size in (((), 12), ((0,), 3), ((7,), 5), ((13, 5), 10), ((1023,), 9), ((4,), 0)):
        for weighted in (False, True):
            yield Sample(_arguments(shape, size, weighted and shape != (0,), "int32"))


def _dense_samples() -> Iterator[Sample]:
    for shape, size in (((0,), 3), ((7,), 5), ((1023,), 9), ((13, 5), 10), ((3, 0), 2), ((2, 511), 6), ((4,), 0)):
        for weighted, binary in ((False, False), (True, False), (False, True)):
            yield Sample(_arguments(shape, size, weighted and 0 not in shape), {"binary_output": binary})


def _errors(dtype: str | None) -> list[ErrorSample]:
    none = Arg((0,))
    return [
        ErrorSample(
            [Arg(values=[3, -2], dtype=dtype), Arg(values=4, dtype=dtype), none], "-2 is counted; .*at least 0"
        ),
        ErrorSample([Arg(values=[3], dtype=dtype), Arg(values=-4, dtype=dtype), none], "size is -4; .*at least 0"),
        ErrorSample([Arg(values=[3], dtype=dtype), Arg(values=[4], dtype=dtype), none], "size has shape .*a scalar"),
        ErrorSample([Arg(values=[3, 1, 2], dtype=dtype), Arg(values=4, dtype=dtype), Arg((2,))], "weights"),
    ]


define_op(
    "Bincount",
    inputs=["arr: int32", "size: int32", "weights: T"],
    outputs=["bins: T"],
    attrs=[_WEIGHTS],
    doc="How often each number below size occurs in arr, or with weights, one for each number, their sum; larger "
    "numbers are left out.",
    shape=_shape,
    reference=_reference,
    gradient=_NO_GRADIENT,
    shape_inputs=("size",),
    samples=_samples,
    errors=lambda: _errors("int32"),
    on_host=True,
)
define_op(
    "DenseBincount",
    inputs=["input: Tidx", "size: Tidx", "weights: T"],
    outputs=["output: T"],
    attrs=["Tidx: {int32, int64}", _WEIGHTS, "binary_output: bool = false"],
    doc="How often each number below size occurs in a vector or in each row of a matrix, or with weights, one for each "
    "number, their sum; binary_output: 1 for numbers that occur. Larger numbers are left out.",
    shape=_dense_shape,
    reference=_dense_reference,
    gradient=_NO_GRADIENT,
    shape_inputs=("size",),
    samples=_dense_samples,
    errors=lambda: [
        *_errors(None),
        ErrorSample([Arg((2, 2, 2), low=0, high=3), Arg(values=4), Arg((0,))], "input has shape .*rank 2 at most"),
    ],
    on_host=True,
)
