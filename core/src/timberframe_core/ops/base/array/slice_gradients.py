"""StridedSliceGrad: what StridedSlice took, put back in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.array.slicing import (
    MASKS,
    check_counts,
    entry_count,
    selected_shape,
    selection_index,
    strided_samples,
)
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.host_values import checked
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, compatible, format_shape


@late_errors
def _shape(c: InferenceContext) -> list[Shape]:
    given = c.shapes[0]
    if given is not None and len(given) != 1:
        raise c.error(f"shape has shape {format_shape(given)}; it must be a vector")
    entry_count(c, 1)
    full, value = c.shape_value(0), c.value(0)
    if value is not None:
        if (value < 0).any():
            raise c.error(f"shape is {format_shape(tuple(value.tolist()))}; sizes must be zero or more")
        full = checked(c, full)
    taken = selected_shape(c, full, 1)
    if not compatible(taken, c.shapes[4]):
        raise c.error(f"dy has shape {format_shape(c.shapes[4])}; the slice has {format_shape(taken)}, it must too")
    return [full]


def _reference(
    attrs: Attrs, shape: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, dy: np.ndarray
) -> np.ndarray:
    out = np.full(tuple(int(d) for d in shape), b"" if dy.dtype == object else 0, dy.dtype)
    check_counts(attrs, out.shape, dy.shape, begin, end, strides)
    out[selection_index(attrs, out.shape, begin, end, strides)] = dy
    return out


def _samples() -> Iterator[Sample]:
    """Yields those of StridedSlice, with the slice as input."""
    for sample in strided_samples():
        x, *spans = sample.inputs
        assert isinstance(x, Arg)
        begin, end, strides = (np.asarray(s.values) for s in spans if isinstance(s, Arg))
        attrs = {m: sample.attrs.get(m, 0) for m in MASKS}
        taken = np.broadcast_to(np.int8(0), x.shape)[selection_index(attrs, x.shape, begin, end, strides)]
        full = Arg(values=np.array(x.shape, np.int64))
        index = [t for t in sample.types["Index"] if t != "int16"]
        yield Sample([full, *spans, Arg(taken.shape)], sample.attrs, {"Index": index})


def _errors() -> Iterator[ErrorSample]:
    def wrong(shape: Any, dy: tuple[int, ...], match: str, /, strides: Any = (1, 1), **masks: int) -> ErrorSample:
        spans = [Arg(values=np.array(v, np.int64)) for v in (shape, (0, 1), (2, 3), strides)]
        return ErrorSample([*spans, Arg(dy)], match, {f"{k}_mask": v for k, v in masks.items()})

    yield wrong(
        (2, 4), (2, 3), r"dy has shape \(2, 3\); the slice has \(2, 2\)|select 2 elements of dimension 1; the 3 that"
    )
    yield wrong((2, 4), (2,), r"dy has shape \(2,\); the slice has \(")
    yield wrong((2, -4), (2, 2), r"shape is \(2, -4\); sizes must be zero or more")
    yield wrong((2, 4), (2, 2), r"strides\[0\] is 0; it must not be zero", (0, 1))
    yield wrong(((2, 4),), (2, 2), r"shape has shape \(1, 2\); it must be a vector")
    yield wrong((4,), (2, 2), "2 dimensions are indexed and the input has rank 1")


define_op(
    "StridedSliceGrad",
    inputs=["shape: Index", "begin: Index", "end: Index", "strides: Index", "dy: T"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int32, int64}", *(f"{m}: int = 0" for m in MASKS)],
    doc="Zeros of the given shape with dy where StridedSlice with the same spans and masks takes its output from.",
    shape=_shape,
    reference=_reference,
    gradient=lambda op, grad: [
        *[None] * 4,
        apply_op("StridedSlice", [grad, *op.inputs[1:4]], {m: op.attrs[m] for m in MASKS}),
    ],
    shape_inputs=("shape", "strides"),
    launch_inputs=("begin", "end"),
    samples=_samples,
    errors=_errors,
)
