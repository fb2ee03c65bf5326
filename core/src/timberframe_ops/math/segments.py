"""Reductions over groups of rows that share a segment number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import NUMERIC, as_dtype, int32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.accuracy import ANY_ZERO, Accumulation
from timberframe_core.ops.definition.gradients import (
    apply_op,
    conjugate,
    constant,
    gather,
    indicator,
    shape_of,
    zeros_like,
)
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, StaticShape
from timberframe_ops.nn.windows import widen

NUMBERS = "T: {" + ", ".join(t.name for t in NUMERIC) + ", qint8, quint8, qint16, quint16, qint32}"
REALS = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
FLOATING = ("float16", "bfloat16", "float32", "float64")
SPECIAL_ROWS = (np.nan, 1.0, 1.0, np.nan, -np.inf, np.inf, 2.0, -np.inf, np.inf)
"""Rows of which segments hold a NaN before or after a number, both infinities, and one of them alone."""
_COMBINE: dict[str, Any] = {"Sum": np.add, "Mean": np.add, "Prod": np.multiply, "Min": np.minimum, "Max": np.maximum}


def start(kind: str, dtype: np.dtype[Any]) -> Any:
    """Returns what the first element of an unsorted segment is combined with, which is the result of an empty one."""
    if kind in ("Sum", "Mean", "Prod"):
        return int(kind == "Prod")
    return as_dtype(dtype).max if kind == "Min" else as_dtype(dtype).min


def sorted_start(kind: str, dtype: np.dtype[Any]) -> Any:
    """Returns what the first element of a sorted segment is combined with: an infinity for extremes of floats, so that
    those of infinities alone are right."""
    if kind in ("Min", "Max") and as_dtype(dtype).is_floating:
        return np.inf if kind == "Min" else -np.inf
    return start(kind, dtype)


def reduced(kind: str, rows: np.ndarray, ids: np.ndarray, count: int, first: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns the reduction of each segment, `first` where it is empty, and how many rows each has."""
    result = np.full((count, *rows.shape[1:]), first, rows.dtype)
    _COMBINE[kind].at(result, ids, rows)
    return result, np.bincount(ids, minlength=count)


def _divided(total: np.ndarray, counts: np.ndarray) -> np.ndarray:
    by = np.maximum(counts, 1).reshape(-1, *[1] * (total.ndim - 1))
    quotient: np.ndarray
    if total.dtype.kind not in "iu":
        quotient = total / by.astype(total.real.dtype)
    else:  # integer division truncates
        wide = total.astype(np.uint64 if total.dtype.kind == "u" else np.int64)
        quotient = np.sign(wide) * (np.abs(wide) // by.astype(wide.dtype))
    return quotient


def _sorted_shape(c: InferenceContext) -> Sequence[Shape]:
    data = c.shapes[0]
    c.require_rank(1, 1)
    if data is not None and not data:
        raise c.error("data has rank 0; it must have rank 1 or more")
    # That data has as many rows is left to the kernel, as TensorFlow does: graphs with such a node may be built.
    ids = c.value(1)
    segments = None
    if ids is not None:
        fault = _order_fault(ids)
        if fault:
            raise c.error(fault)
        segments = int(ids[-1]) + 1 if ids.size else 0
    return [None if data is None else (segments, *data[1:])]


def _order_fault(ids: np.ndarray) -> str:
    """Returns what is wrong with ids that are not sorted, or begin below zero; "" where nothing is."""
    if ids.size and int(ids[0]) < 0:
        return f"segment id {int(ids[0])} at position 0; it must not be negative"
    falls = np.flatnonzero(ids[1:] < ids[:-1])
    if not falls.size:
        return ""
    at = int(falls[0])
    return f"segment id {int(ids[at + 1])} follows {int(ids[at])} at position {at + 1}; ids must not decrease"


def check_sorted(ids: np.ndarray, rows: int) -> None:
    """Raises InvalidArgumentError where ids of a sorted segment op are not sorted, or not one for each row of data."""
    fault = _order_fault(ids)
    if not fault and ids.size != rows:
        fault = f"data has {rows} rows and segment_ids {ids.size} elements; they must agree"
    if fault:
        raise InvalidArgumentError(fault)


def _sorted_reference(kind: str) -> Callable[..., np.ndarray]:
    def reference(attrs: Attrs, data: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        check_sorted(segment_ids, len(data))
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        result, counts = reduced(kind, widen(data), segment_ids, count, sorted_start(kind, data.dtype))
        if kind == "Mean":
            result = _divided(result, counts)
        result[counts == 0] = int(kind == "Prod")
        return result.astype(data.dtype)

    return reference


def longest(ids: np.ndarray) -> int:
    inside = ids.reshape(-1)[ids.reshape(-1) >= 0]
    return int(np.bincount(inside).max(initial=1)) + 1


def _sorted_samples() -> Iterator[Sample]:
    cases: tuple[tuple[StaticShape, Any], ...] = (
        ((5,), [0, 0, 1, 1, 1]),
        ((4, 3), [0, 0, 2, 2]),
        ((3, 2, 5), [1, 2, 4]),
        ((1,), [0]),
        ((0, 2), np.zeros(0, np.int32)),
        ((2, 0), [0, 1]),
        ((131, 17), sorted(i * 7 % 9 for i in range(131))),
        ((70001,), np.arange(70001) // 100),
    )
    for shape, ids in cases:
        yield Sample((Arg(shape, special=False, low=-2, high=2), Arg(values=ids)))
    yield Sample((Arg(values=SPECIAL_ROWS), Arg(values=[0, 0, 1, 1, 2, 2, 3, 4, 5])), types={"T": FLOATING})


def _sorted_errors() -> Iterator[ErrorSample]:
    x = Arg((3,))
    yield ErrorSample((x, Arg(values=[0, 1, 0])), "segment id 0 follows 1 at position 2")
    yield ErrorSample((x, Arg(values=[-1, 0, 0])), "segment id -1 at position 0")
    yield ErrorSample((x, Arg(values=[0, 0])), "they must agree")
    yield ErrorSample((x, Arg(values=[[0], [0], [0]])), "must have rank 1")
    yield ErrorSample((Arg(()), Arg(values=[0])), "rank 1 or more")


def select(condition: Any, yes: Any, no: Any) -> Any:
    return apply_op("SelectV2", [condition, yes, no])


def _sum_gradient(op: Any, grad: Any) -> list[Any]:
    return [gather(grad, op.inputs[1]), None]


def _mean_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns each segment's gradient over the number of its rows."""
    data, ids = op.inputs
    ones = apply_op("OnesLike", [apply_op("Cast", [ids], {"DstT": grad.dtype})])
    counts = apply_op("SegmentSum", [ones, ids])
    trailing = apply_op("OnesLike", [shape_of(data)])
    trailing = apply_op("StridedSlice", [trailing, [1], [0], [1]], {"end_mask": 1})
    shape = apply_op("ConcatV2", [[constant([-1], int32), trailing], constant(0, int32)])
    scaled = apply_op("RealDiv", [grad, apply_op("Reshape", [counts, shape])])
    return [gather(scaled, ids), None]


def _extreme_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns where several elements of a segment are the extreme one they share the gradient."""
    data, ids = op.inputs
    chosen = apply_op("Equal", [data, gather(op.outputs[0], ids)])
    count = apply_op("SegmentSum", [indicator(chosen, grad.dtype), ids])
    share = gather(apply_op("RealDiv", [grad, count]), ids)
    return [select(chosen, share, zeros_like(data)), None]


def product_parts(op: Any, segment: Callable[[str, Any], Any], ids: Any) -> Any:
    """Returns the derivative of each segment's product by each element, with elements of zero treated apart.

    Of the first and the last zero of a segment it is the product with that element replaced by one: it depends on the
    other zero, and so has the right derivatives where there are two. Where there are more, all derivatives are 0.
    """
    data = op.inputs[0]
    none, one = zeros_like(data), apply_op("OnesLike", [data])
    is_zero = apply_op("Equal", [data, none])
    each = apply_op("RealDiv", [gather(op.outputs[0], ids), select(is_zero, one, data)])
    result = select(is_zero, none, each)
    size = apply_op("Size", [data], {"out_type": int64})
    numbers = apply_op("Reshape", [apply_op("Range", [constant(0, int64), size, constant(1, int64)]), shape_of(data)])
    nowhere = {"Max": constant(-1, int64), "Min": size}
    for kind in nowhere:
        of_zeros = apply_op("SelectV2", [is_zero, numbers, nowhere[kind]])
        end = gather(segment(kind, of_zeros), ids)
        chosen = apply_op("Equal", [numbers, end])
        result = select(chosen, gather(segment("Prod", select(chosen, one, data)), ids), result)
    return result


def _product_gradient(op: Any, grad: Any) -> list[Any]:
    ids = op.inputs[1]
    parts = product_parts(op, lambda kind, x: apply_op(f"Segment{kind}", [x, ids]), ids)
    return [gather(grad, ids) * conjugate(parts), None]


_SORTED_GRADIENTS: dict[str, Callable[..., list[Any]]] = {
    "Sum": _sum_gradient,
    "Mean": _mean_gradient,
    "Prod": _product_gradient,
    "Min": _extreme_gradient,
    "Max": _extreme_gradient,
}


def _define_sorted(kind: str, verb: str) -> None:
    define_op(
        f"Segment{kind}",
        inputs=("data: T", "segment_ids: Tindices"),
        outputs=("output: T",),
        attrs=(REALS if kind in ("Min", "Max") else NUMBERS, "Tindices: {int32, int64}"),
        doc=f"{verb} of the rows of data with equal id, ids being sorted; "
        f"a number that is left out gives {int(kind == 'Prod')}.",
        shape=_sorted_shape,
        reference=_sorted_reference(kind),
        gradient=_SORTED_GRADIENTS[kind],
        shape_inputs=("segment_ids",),
        accuracy=ANY_ZERO
        if kind in ("Min", "Max")
        else Accumulation(lambda attrs, data, segment_ids: longest(segment_ids)),
        samples=_sorted_samples,
        errors=_sorted_errors,
    )


for _kind, _verb in (("Sum", "Sum"), ("Mean", "Mean"), ("Prod", "Product"), ("Min", "Minimum"), ("Max", "Maximum")):
    _define_sorted(_kind, _verb)
