"""Segments of rows that indices choose: TensorFlow's SparseSegmentSum and the ops like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, gather
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.math.segments import REALS

_INDICES = ("Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32")
_FLOATS = "T: {bfloat16, half, float, double}"


def _shape(c: InferenceContext) -> Sequence[Shape]:
    c.require_rank(1, 1)
    c.require_rank(2, 1)
    data, ids = c.shapes[0], c.value(2)
    if data is None:
        return [None]
    if not data:
        raise c.error("data is a scalar; rows are required")
    return [(None if ids is None else int(ids[-1]) + 1 if len(ids) else 0, *data[1:])]


def _divisors(kind: str, ids: np.ndarray, count: int, dtype: Any) -> np.ndarray:
    """Returns what each segment's sum is divided by, at least 1."""
    sizes = np.maximum(np.bincount(ids, minlength=count), 1).astype(dtype)
    return sizes if kind == "Mean" else np.sqrt(sizes) if kind == "SqrtN" else np.ones_like(sizes)


def _reference(attrs: Attrs, data: np.ndarray, indices: np.ndarray, ids: np.ndarray, kind: str) -> np.ndarray:
    if len(indices) != len(ids):
        raise InvalidArgumentError(f"{len(indices)} indices for {len(ids)} segment_ids; each needs one")
    if len(ids) and (int(ids[0]) < 0 or (np.diff(ids) < 0).any()):
        raise InvalidArgumentError("segment_ids are negative or not in order; they must be neither")
    if ((indices < 0) | (indices >= len(data))).any():
        wrong = indices[(indices < 0) | (indices >= len(data))][0]
        raise InvalidArgumentError(f"indices has {wrong} for {len(data)} rows of data; it must lie inside")
    count = int(ids[-1]) + 1 if len(ids) else 0
    made = np.zeros((count, *data.shape[1:]), data.dtype)
    found, starts = np.unique(ids, return_index=True)
    if len(found):
        made[found] = np.add.reduceat(data[indices], starts, axis=0, dtype=data.dtype)
    if kind == "Sum":
        return made
    divisors = _divisors(kind, ids, count, data.dtype).reshape(-1, *[1] * (data.ndim - 1))
    return np.asarray(made / divisors, data.dtype)


def _sum_gradient(op: Any, grad: Any) -> list[Any]:
    data, indices, ids = op.inputs
    count = apply_op("GatherV2", [apply_op("Shape", [data]), 0, 0])
    return [apply_op("UnsortedSegmentSum", [gather(grad, ids), indices, count]), None, None]


def _scaled_gradient(name: str) -> Any:
    def gradient(op: Any, grad: Any) -> list[Any]:
        data, indices, ids = op.inputs
        count = apply_op("GatherV2", [apply_op("Shape", [data]), 0, 0])
        return [apply_op(name, [grad, indices, ids, count]), None, None]

    return gradient


def _backward_shape(c: InferenceContext) -> Sequence[Shape]:
    grad, count = c.shapes[0], c.value(3)
    return [None if grad is None else (None if count is None else int(count), *grad[1:])]


def _backward(
    attrs: Attrs, grad: np.ndarray, indices: np.ndarray, ids: np.ndarray, rows: np.ndarray, kind: str
) -> np.ndarray:
    count = int(rows)
    if len(indices) != len(ids) or ((ids < 0) | (ids >= len(grad))).any():
        raise InvalidArgumentError(f"segment_ids leave the {len(grad)} rows of grad or are not one for each index")
    if ((indices < 0) | (indices >= count)).any():
        raise InvalidArgumentError(f"indices leave the {count} rows of output_dim0; they must not")
    divisors = _divisors(kind, ids, len(grad), grad.dtype).reshape(-1, *[1] * (grad.ndim - 1))
    made = np.zeros((count, *grad.shape[1:]), grad.dtype)
    np.add.at(made, indices, (grad / divisors).astype(grad.dtype)[ids])
    return made


def _second(name: str) -> Any:
    def gradient(op: Any, grad: Any) -> list[Any]:
        return [apply_op(name, [grad, op.inputs[1], op.inputs[2]]), None, None, None]

    return gradient


for _kind, _what in (
    ("Sum", "The sum"),
    ("Mean", "The mean"),
    ("SqrtN", "The sum, divided by the root of their number,"),
):
    define_op(
        f"SparseSegment{_kind}",
        inputs=["data: T", "indices: Tidx", "segment_ids: Tsegmentids"],
        outputs=["output: T"],
        attrs=[REALS if _kind == "Sum" else _FLOATS, *_INDICES],
        doc=f"{_what} of the rows of data that indices choose, for each segment; segment_ids are sorted, and one that "
        "is left out gives zeros.",
        shape=_shape,
        reference=lambda attrs, data, indices, ids, kind=_kind: _reference(attrs, data, indices, ids, kind),
        gradient=_sum_gradient if _kind == "Sum" else _scaled_gradient(f"SparseSegment{_kind}Grad"),
        on_host=True,
    )
    define_op(
        f"SparseSegment{_kind}Grad",
        inputs=["grad: T", "indices: Tidx", "segment_ids: Tsegmentids", "output_dim0: int32"],
        outputs=["output: T"],
        attrs=[_FLOATS, *_INDICES],
        doc=f"The gradient of the data of SparseSegment{_kind}, which has output_dim0 rows.",
        shape=_backward_shape,
        reference=lambda attrs, grad, indices, ids, rows, kind=_kind: _backward(attrs, grad, indices, ids, rows, kind),
        gradient=_second(f"SparseSegment{_kind}"),
        on_host=True,
    )
