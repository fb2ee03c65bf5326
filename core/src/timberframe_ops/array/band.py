"""Bands of matrices, and the diagonal tensors of any rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape, merge_dim
from timberframe_ops.array.diagonal import require_matrix

BAND_TOO_WIDE = (
    "num_lower is {0} for {1} rows; it must be negative or at most that",
    "num_upper is {0} for {1} columns; it must be negative or at most that",
)


@late_errors
def _band_shape(c: InferenceContext) -> list[Shape]:
    shape = require_matrix(c)
    for i, message in enumerate(BAND_TOO_WIDE, 1):
        c.require_rank(i, 0)
        value, limit = c.value(i), None if shape is None else shape[i - 3]
        if value is not None and limit is not None and int(value) > limit:
            raise c.error(message.format(int(value), limit))
    return [shape]


def _band(attrs: Attrs, input: Any, num_lower: Any, num_upper: Any) -> Any:
    rows, columns = input.shape[-2:]
    lower, upper = int(num_lower), int(num_upper)
    for message, value, limit in zip(BAND_TOO_WIDE, (lower, upper), (rows, columns), strict=True):
        if value > limit:
            raise InvalidArgumentError(message.format(value, limit))
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    inside = ((lower < 0) | (-distance <= lower)) & ((upper < 0) | (distance <= upper))
    return np.where(inside, input, np.zeros((), input.dtype))


define_op(
    "MatrixBandPart",
    inputs=["input: T", "num_lower: Tindex", "num_upper: Tindex"],
    outputs=["band: T"],
    attrs=["T: type", "Tindex: {int32, int64} = DT_INT64"],
    doc="Zeros outside a band of num_lower diagonals below and num_upper above the main one; negative: all.",
    shape=_band_shape,
    reference=_band,
    gradient=lambda op, grad: [apply_op("MatrixBandPart", [grad, *op.inputs[1:]]), None, None],
    launch_inputs=("num_lower", "num_upper"),
    samples=lambda: [
        Sample([Arg(shape), Arg(values=lower), Arg(values=upper)])
        for shape in ((3, 4), (5, 3), (2, 3, 3), (0, 3), (2, 1, 2, 7), (257, 129))
        for lower, upper in ((0, 0), (-1, 0), (0, -1), (-1, -1), (0, 1), (-2, 2))
        if upper <= shape[-1] and lower <= shape[-2]
    ],
    errors=lambda: [
        ErrorSample([Arg((3, 4)), Arg(values=4), Arg(values=0)], r"num_lower is 4 for 3 rows"),
        ErrorSample([Arg((3, 4)), Arg(values=0), Arg(values=5)], r"num_upper is 5 for 4 columns"),
        ErrorSample([Arg((3,)), Arg(values=0), Arg(values=0)], r"input 0 has shape \(3,\); it must have rank 2"),
        ErrorSample([Arg((3, 4)), Arg(values=(0,)), Arg(values=0)], r"must have rank 0"),
    ],
)

_DIAG_TYPES = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"


def _tensor_diag_shape(c: InferenceContext) -> list[Shape]:
    shape = require_matrix(c, 0, 1)
    if shape is not None and len(shape) > 4:
        shown = format_shape(shape)
        raise c.late_error(f"diagonal has shape {shown}; its rank must be at most 4: the output's is twice that")
    return [None if shape is None else (*shape, *shape)]


def _tensor_diag(attrs: Attrs, diagonal: Any) -> Any:
    return np.diag(diagonal.reshape(-1)).reshape(diagonal.shape * 2)


def _tensor_diag_part_shape(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[0]
    if shape is None:
        return [None]
    half = len(shape) // 2
    if len(shape) % 2 or not shape:
        raise c.error(f"input has shape {format_shape(shape)}; its rank must be even and positive")
    try:
        return [tuple(merge_dim(a, b) for a, b in zip(shape[:half], shape[half:], strict=True))]
    except ValueError:
        raise c.error(f"input has shape {format_shape(shape)}; its two halves must be equal") from None


def _tensor_diag_part(attrs: Attrs, input: Any) -> Any:
    half = input.shape[: input.ndim // 2]
    size = int(np.prod(half))
    return np.diagonal(input.reshape(size, size)).reshape(half)


define_op(
    "Diag",
    inputs=["diagonal: T"],
    outputs=["output: T"],
    attrs=[_DIAG_TYPES],
    doc="The tensor of twice the rank with the input where both halves of the index are equal, and zeros elsewhere.",
    shape=_tensor_diag_shape,
    reference=_tensor_diag,
    gradient=lambda op, grad: [apply_op("DiagPart", [grad])],
    samples=lambda: [Sample([Arg(s)]) for s in ((1,), (0,), (7,), (2, 3), (2, 1, 2, 3), (131,))],
    errors=lambda: [
        ErrorSample([Arg(())], r"input 0 has shape \(\); it must have rank 1 or more"),
        ErrorSample([Arg((1, 1, 1, 1, 1))], r"its rank must be at most 4"),
    ],
)
define_op(
    "DiagPart",
    inputs=["input: T"],
    outputs=["diagonal: T"],
    attrs=[_DIAG_TYPES],
    doc="The elements of a tensor where both halves of the index are equal.",
    shape=_tensor_diag_part_shape,
    reference=_tensor_diag_part,
    gradient=lambda op, grad: [apply_op("Diag", [grad])],
    samples=lambda: [Sample([Arg(s * 2)]) for s in ((1,), (0,), (7,), (2, 3), (2, 1, 2, 3), (131,))],
    errors=lambda: [
        ErrorSample([Arg(())], r"input has shape \(\); its rank must be even and positive"),
        ErrorSample([Arg((2, 2, 2))], r"input has shape \(2, 2, 2\); its rank must be even"),
        ErrorSample([Arg((2, 3))], r"input has shape \(2, 3\); its two halves must be equal"),
    ],
)
