"""Reductions over groups of slices that share a segment number, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.accuracy import ANY_ZERO, Accumulation
from timberframe_core.ops.definition.gradients import (
    apply_op,
    conjugate,
    constant,
    gather,
    indicator,
    known,
    shape_of,
    zeros_like,
)
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import refuse_first
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape
from timberframe_ops.math.segments import (
    FLOATING,
    NUMBERS,
    REALS,
    SPECIAL_ROWS,
    longest,
    product_parts,
    reduced,
    select,
    start,
)
from timberframe_ops.nn.windows import widen


def _unsorted_shape(c: InferenceContext) -> Sequence[Shape]:
    data, ids = c.shapes[0], c.shapes[1]
    if c.shapes[2] not in (None, ()):
        raise c.error(f"num_segments has shape {format_shape(c.shapes[2])}; it must be a scalar")
    value = c.value(2)
    if value is not None and int(value) < 0:
        raise c.error(f"num_segments is {int(value)}; it must not be negative")
    if data is None or ids is None:
        return [None]
    if len(data) < len(ids) or not compatible(data[: len(ids)], ids):
        raise c.error(
            f"data has shape {format_shape(data)} and segment_ids {format_shape(ids)}; data's must begin with that"
        )
    return [(None if value is None else int(value), *data[len(ids) :])]


SEGMENT_OUTSIDE = "segment id {0} at position {1} is outside [0, {2}); it must be below num_segments"


def _unsorted_reference(kind: str) -> Callable[..., np.ndarray]:
    def reference(attrs: Attrs, data: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray) -> np.ndarray:
        ids = segment_ids.reshape(-1).astype(np.int64)
        rows = data.reshape(ids.size, *data.shape[segment_ids.ndim :])
        keep = ids >= 0
        refuse_first(ids >= int(num_segments), ids, SEGMENT_OUTSIDE, int(num_segments))
        first = start(
            kind, data.dtype
        )  # of data's own type, also where a segment has infinities alone, as in TensorFlow
        return reduced(kind, widen(rows[keep]), ids[keep], int(num_segments), first)[0].astype(data.dtype)

    return reference


def _unsorted_samples() -> Iterator[Sample]:
    cases: tuple[tuple[StaticShape, Any, int], ...] = (
        ((5,), [2, 0, 2, 1, 0], 3),
        ((4, 3), [3, -1, 3, 0], 4),
        ((2, 2, 5), [[0, 1], [1, 0]], 3),
        ((3,), 1, 2),
        ((1,), [0], 1),
        ((0, 2), np.zeros(0, np.int32), 2),
        ((2, 0), [0, 1], 2),
        ((0,), np.zeros(0, np.int32), 0),
        ((131, 17), [i * 7 % 9 for i in range(131)], 10),
    )
    for shape, ids, count in cases:
        yield Sample((Arg(shape, special=False, low=-2, high=2), Arg(values=ids), Arg(values=count)))
    rows = Arg(values=SPECIAL_ROWS), Arg(values=[0, 3, 2, 2, 1, 1, 0, 4, 5])
    yield Sample((*rows, Arg(values=6)), types={"T": FLOATING})
    large = (Arg((70001,), special=False, low=-2, high=2), Arg(values=np.arange(70001) % 700, dtype="int32"))
    yield Sample((*large, Arg(values=700, dtype="int32")))


def _unsorted_errors() -> Iterator[ErrorSample]:
    x = Arg((2,))
    yield ErrorSample((x, Arg(values=[0, 3]), Arg(values=3)), r"segment id 3 at position 1 is outside \[0, 3\)")
    yield ErrorSample((x, Arg(values=[0, 1]), Arg(values=-1)), "num_segments is -1")
    yield ErrorSample((x, Arg(values=[0, 1, 0]), Arg(values=3)), "data's must begin with that")
    yield ErrorSample((x, Arg(values=[0, 1]), Arg(values=[3])), "must be a scalar")


def _non_negative(ids: Any) -> Any:
    return apply_op("Maximum", [ids, zeros_like(ids)])


def _gather_inside(grad: Any, ids: Any) -> Any:
    """Returns rows of the gradient; zeros for negative ids, whose elements belong to no segment."""
    value = known(ids)
    if value is not None and (value >= 0).all():
        return gather(grad, ids)
    rows = gather(grad, _non_negative(ids))
    inside = apply_op("GreaterEqual", [ids, zeros_like(ids)])
    return select(_with_rank_of(inside, rows), rows, zeros_like(rows))


def _with_rank_of(x: Any, wide: Any) -> Any:
    """x with dimensions of one after its own, as many as the other tensor has more."""
    if None not in (x.static_shape, wide.static_shape):
        more = constant([1] * (len(wide.static_shape) - len(x.static_shape)), int32)
    else:
        count = apply_op("Sub", [apply_op("Rank", [wide]), apply_op("Rank", [x])])
        more = apply_op("Fill", [apply_op("ExpandDims", [count, constant(0, int32)]), constant(1, int32)])
    return apply_op("Reshape", [x, apply_op("ConcatV2", [[shape_of(x), more], constant(0, int32)])])


def _unsorted_sum_gradient(op: Any, grad: Any) -> list[Any]:
    return [_gather_inside(grad, op.inputs[1]), None, None]


def _unsorted_extreme_gradient(op: Any, grad: Any) -> list[Any]:
    data, ids, count = op.inputs
    chosen = apply_op("Equal", [data, gather(op.outputs[0], _non_negative(ids))])
    inside = apply_op("GreaterEqual", [ids, zeros_like(ids)])
    chosen = apply_op("LogicalAnd", [chosen, _with_rank_of(inside, data)])
    number = apply_op("UnsortedSegmentSum", [indicator(chosen, grad.dtype), ids, count])
    share = _gather_inside(apply_op("RealDiv", [grad, number]), ids)
    return [select(chosen, share, zeros_like(data)), None, None]


def _unsorted_product_gradient(op: Any, grad: Any) -> list[Any]:
    _, ids, count = op.inputs
    parts = product_parts(op, lambda kind, x: apply_op(f"UnsortedSegment{kind}", [x, ids, count]), _non_negative(ids))
    return [_gather_inside(grad, ids) * conjugate(parts), None, None]


_UNSORTED_GRADIENTS: dict[str, Callable[..., list[Any]]] = {
    "Sum": _unsorted_sum_gradient,
    "Prod": _unsorted_product_gradient,
    "Min": _unsorted_extreme_gradient,
    "Max": _unsorted_extreme_gradient,
}


def _define_unsorted(kind: str, verb: str, empty: str) -> None:
    ids = "Tindices: {int16, int32, int64}" if kind == "Sum" else "Tindices: {int32, int64}"
    define_op(
        f"UnsortedSegment{kind}",
        inputs=("data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"),
        outputs=("output: T",),
        attrs=(REALS if kind in ("Min", "Max") else NUMBERS, ids, "Tnumsegments: {int32, int64} = DT_INT32"),
        doc=f"{verb} of the slices of data with equal id, in any order; "
        f"negative ids are left out, an empty segment gives {empty}.",
        shape=_unsorted_shape,
        reference=_unsorted_reference(kind),
        gradient=_UNSORTED_GRADIENTS[kind],
        shape_inputs=("num_segments",),
        accuracy=ANY_ZERO if kind in ("Min", "Max") else Accumulation(lambda attrs, data, ids, count: longest(ids)),
        samples=_unsorted_samples,
        errors=_unsorted_errors,
    )


for _kind, _verb, _empty in (
    ("Sum", "Sum", "0"),
    ("Prod", "Product", "1"),
    ("Min", "Minimum", "the highest finite value"),
    ("Max", "Maximum", "the lowest finite value"),
):
    _define_unsorted(_kind, _verb, _empty)
