"""Cross products of vectors in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import merge_inputs
from timberframe_core.shapes import Shape, format_shape


def _shape(c: InferenceContext) -> list[Shape]:
    shape = merge_inputs(c, (0, 1))
    if shape is not None and (not shape or shape[-1] not in (None, 3)):
        raise c.error(f"inputs have shape {format_shape(shape)}; the last dimension must have size 3")
    return [shape]


def _cross(attrs: Attrs, a: Any, b: Any) -> Any:
    rolled = ((1, 2, 0), (2, 0, 1))
    first, second = (a[..., list(i)] * b[..., list(j)] for i, j in (rolled, rolled[::-1]))
    return (first - second).astype(a.dtype)


def _magnitude(attrs: Attrs, a: Any, b: Any) -> Any:
    a, b = np.abs(a), np.abs(b)
    return a[..., [1, 2, 0]] * b[..., [2, 0, 1]] + a[..., [2, 0, 1]] * b[..., [1, 2, 0]]


cross = define_op(
    "Cross",
    inputs=["a: T", "b: T"],
    outputs=["product: T"],
    attrs=["T: realnumbertype"],
    doc="The cross product of vectors along the last dimension, whose size is 3; integers wrap.",
    shape=_shape,
    reference=_cross,
    accuracy=Accumulation(lambda attrs, a, b: 3, _magnitude),
    gradient=lambda op, grad: [apply_op("Cross", [op.inputs[1], grad]), apply_op("Cross", [grad, op.inputs[0]])],
    samples=lambda: [Sample([Arg(s), Arg(s)]) for s in ((3,), (0, 3), (7, 3), (2, 5, 3), (65_537, 3))],
    errors=lambda: [
        ErrorSample([Arg((2, 2)), Arg((2, 2))], r"inputs have shape \(2, 2\); the last dimension must have size 3"),
        ErrorSample([Arg(()), Arg(())], r"inputs have shape \(\)"),
        ErrorSample([Arg((1, 3)), Arg((2, 3))], r"have shapes \(1, 3\) and \(2, 3\); they must be equal"),
    ],
)
