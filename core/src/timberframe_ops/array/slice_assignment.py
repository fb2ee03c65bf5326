"""Writing into a part of a tensor or variable: TensorStridedSliceUpdate and ResourceStridedSliceAssign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.base.array.slicing import MASKS, selected_shape, selection_index, strided_samples
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, variable_shape_of
from timberframe_core.shapes import Shape, compatible, format_shape

_SPANS = ("begin: Index", "end: Index", "strides: Index")
_ATTRS = ("T: type", "Index: {int32, int64}", *(f"{m}: int = 0" for m in MASKS))
_PLANNED = ("begin", "end", "strides")


def _check(c: InferenceContext, full: Shape) -> None:
    taken = selected_shape(c, full, 1)
    if all(shape is not None and 0 in shape for shape in (taken, c.shapes[4])):
        return  # TensorFlow lets a value without elements have any shape
    if not compatible(taken, c.shapes[4]):
        raise c.error(f"value has shape {format_shape(c.shapes[4])}; the slice has {format_shape(taken)}, it must too")


@late_errors
def _updated_shape(c: InferenceContext) -> list[Shape]:
    _check(c, c.shapes[0])
    return [c.shapes[0]]


@late_errors
def _assigned_shape(c: InferenceContext) -> Sequence[Shape]:
    _check(c, variable_shape_of(c, 0, c.attrs["T"]))
    return []


def _reference(
    attrs: Attrs, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, value: np.ndarray
) -> np.ndarray:
    result = np.array(x)
    if value.size == 0:
        return result
    result[selection_index(attrs, x.shape, begin, end, strides)] = value
    return result


def _gradient(op: Any, grad: Any) -> list[Any]:
    """Returns what is kept passes its gradient to the input, what is written to the value."""
    spans, masks = list(op.inputs[1:4]), {m: op.attrs[m] for m in MASKS}
    kept = apply_op("TensorStridedSliceUpdate", [grad, *spans, apply_op("ZerosLike", [op.inputs[4]])], masks)
    return [kept, None, None, None, apply_op("StridedSlice", [grad, *spans], masks)]


def _samples() -> Iterator[Sample]:
    """Yields those of StridedSlice, with a value of the slice's shape."""
    for sample in strided_samples():
        x, *spans = sample.inputs
        assert isinstance(x, Arg)
        begin, end, strides = (np.asarray(s.values) for s in spans if isinstance(s, Arg))
        attrs = {m: sample.attrs.get(m, 0) for m in MASKS}
        taken = np.broadcast_to(np.int8(0), x.shape)[selection_index(attrs, x.shape, begin, end, strides)]
        index = [t for t in sample.types["Index"] if t != "int16"]
        yield Sample([x, *spans, Arg(taken.shape)], sample.attrs, {"Index": index})


def _errors() -> Iterator[ErrorSample]:
    def wrong(value: tuple[int, ...], match: str, /, strides: Any = (1, 1), **masks: int) -> ErrorSample:
        spans = [Arg(values=np.array(v, np.int64)) for v in ((0, 1), (2, 3), strides)]
        return ErrorSample([Arg((2, 4)), *spans, Arg(value)], match, {f"{k}_mask": v for k, v in masks.items()})

    yield wrong((2, 3), r"value has shape \(2, 3\); the slice has \(2, 2\), it must too")
    yield wrong((2,), r"value has shape \(2,\); the slice has \(2, 2\)")
    yield wrong((2, 2), r"strides\[0\] is 0; it must not be zero", (0, 1))


define_op(
    "TensorStridedSliceUpdate",
    inputs=["input: T", *_SPANS, "value: T"],
    outputs=["output: T"],
    attrs=_ATTRS,
    doc="The input with `value` where StridedSlice with the same spans and masks takes its output from.",
    shape=_updated_shape,
    reference=_reference,
    gradient=_gradient,
    shape_inputs=_PLANNED,
    samples=_samples,
    errors=_errors,
)

define_op(
    "ResourceStridedSliceAssign",
    inputs=["ref: resource", *_SPANS, "value: T"],
    attrs=_ATTRS,
    doc="Writes `value` to where StridedSlice with the same spans and masks takes its output from in the variable.",
    shape=_assigned_shape,
    reference=_reference,
    gradient=NotDifferentiable("an update of variables is not a function of its inputs"),
    stateful=True,
    shape_inputs=_PLANNED,
    updates=("ref",),
    samples=_samples,
    errors=_errors,
)
