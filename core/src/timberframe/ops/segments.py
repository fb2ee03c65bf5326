"""Reductions over groups of rows that share a segment number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe.dtypes import NUMERIC, as_dtype
from timberframe.ops.accuracy import EXACT, Accumulation
from timberframe.ops.opdef import Attrs, InferenceContext, define_op
from timberframe.ops.samples import Arg, ErrorSample, Sample
from timberframe.ops.windows import widen
from timberframe.shapes import Shape, StaticShape, compatible, format_shape

_NUMBERS = "T: {" + ", ".join(t.name for t in NUMERIC) + ", qint8, quint8, qint16, quint16, qint32}"
_REALS = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_COMBINE: dict[str, Any] = {"Sum": np.add, "Mean": np.add, "Prod": np.multiply, "Min": np.minimum, "Max": np.maximum}


def _start(kind: str, dtype: np.dtype[Any]) -> Any:
    """What the first element of a segment is combined with."""
    if kind in ("Sum", "Mean", "Prod"):
        return int(kind == "Prod")
    return as_dtype(dtype).max if kind == "Min" else as_dtype(dtype).min


def _reduced(kind: str, rows: np.ndarray, ids: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The reduction of each segment (starting value where it is empty), and how many rows each has."""
    result = np.full((count, *rows.shape[1:]), _start(kind, rows.dtype), rows.dtype)
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
        if ids.size and int(ids[0]) < 0:
            raise c.error(f"segment id {int(ids[0])} at position 0; it must not be negative")
        falls = np.flatnonzero(np.diff(ids) < 0)
        if falls.size:
            at = int(falls[0])
            raise c.error(
                f"segment id {int(ids[at + 1])} follows {int(ids[at])} at position {at + 1}; ids must not decrease"
            )
        segments = int(ids[-1]) + 1 if ids.size else 0
    return [None if data is None else (segments, *data[1:])]


def _sorted_reference(kind: str) -> Callable[..., np.ndarray]:
    def reference(attrs: Attrs, data: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        result, counts = _reduced(kind, widen(data), segment_ids, count)
        if kind == "Mean":
            result = _divided(result, counts)
        result[counts == 0] = int(kind == "Prod")
        return result.astype(data.dtype)

    return reference


def _longest(ids: np.ndarray) -> int:
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


def _sorted_errors() -> Iterator[ErrorSample]:
    x = Arg((3,))
    yield ErrorSample((x, Arg(values=[0, 1, 0])), "segment id 0 follows 1 at position 2")
    yield ErrorSample((x, Arg(values=[-1, 0, 0])), "segment id -1 at position 0")
    yield ErrorSample((x, Arg(values=[0, 0])), "they must agree")
    yield ErrorSample((x, Arg(values=[[0], [0], [0]])), "must have rank 1")
    yield ErrorSample((Arg(()), Arg(values=[0])), "rank 1 or more")


def _define_sorted(kind: str, verb: str) -> None:
    define_op(
        f"Segment{kind}",
        inputs=("data: T", "segment_ids: Tindices"),
        outputs=("output: T",),
        attrs=(_REALS if kind in ("Min", "Max") else _NUMBERS, "Tindices: {int32, int64}"),
        doc=f"{verb} of the rows of data with equal id, ids being sorted; "
        f"a number that is left out gives {int(kind == 'Prod')}.",
        shape=_sorted_shape,
        reference=_sorted_reference(kind),
        shape_inputs=("segment_ids",),
        accuracy=EXACT
        if kind in ("Min", "Max")
        else Accumulation(lambda attrs, data, segment_ids: _longest(segment_ids)),
        samples=_sorted_samples,
        errors=_sorted_errors,
    )


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


def _unsorted_reference(kind: str) -> Callable[..., np.ndarray]:
    def reference(attrs: Attrs, data: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray) -> np.ndarray:
        ids = segment_ids.reshape(-1).astype(np.int64)
        rows = data.reshape(ids.size, *data.shape[segment_ids.ndim :])
        keep = ids >= 0
        result = _reduced(kind, widen(rows[keep]), ids[keep], int(num_segments))[0].astype(data.dtype)
        if kind in ("Min", "Max"):  # the lowest or highest value of data's own type where a segment is empty
            result[np.bincount(ids[keep], minlength=int(num_segments)) == 0] = _start(kind, data.dtype)
        return result

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
    large = (Arg((70001,), special=False, low=-2, high=2), Arg(values=np.arange(70001) % 700, dtype="int32"))
    yield Sample((*large, Arg(values=700, dtype="int32")))


def _unsorted_errors() -> Iterator[ErrorSample]:
    x = Arg((2,))
    yield ErrorSample((x, Arg(values=[0, 3]), Arg(values=3)), r"segment id 3 at position 1 is outside \[0, 3\)")
    yield ErrorSample((x, Arg(values=[0, 1]), Arg(values=-1)), "num_segments is -1")
    yield ErrorSample((x, Arg(values=[0, 1, 0]), Arg(values=3)), "data's must begin with that")
    yield ErrorSample((x, Arg(values=[0, 1]), Arg(values=[3])), "must be a scalar")


def _define_unsorted(kind: str, verb: str, empty: str) -> None:
    ids = "Tindices: {int16, int32, int64}" if kind == "Sum" else "Tindices: {int32, int64}"
    define_op(
        f"UnsortedSegment{kind}",
        inputs=("data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"),
        outputs=("output: T",),
        attrs=(_REALS if kind in ("Min", "Max") else _NUMBERS, ids, "Tnumsegments: {int32, int64} = DT_INT32"),
        doc=f"{verb} of the slices of data with equal id, in any order; "
        f"negative ids are left out, an empty segment gives {empty}.",
        shape=_unsorted_shape,
        reference=_unsorted_reference(kind),
        shape_inputs=("num_segments",),
        accuracy=EXACT if kind in ("Min", "Max") else Accumulation(lambda attrs, data, ids, count: _longest(ids)),
        samples=_unsorted_samples,
        errors=_unsorted_errors,
    )


for _kind, _verb in (("Sum", "Sum"), ("Mean", "Mean"), ("Prod", "Product"), ("Min", "Minimum"), ("Max", "Maximum")):
    _define_sorted(_kind, _verb)
for _kind, _verb, _empty in (
    ("Sum", "Sum", "0"),
    ("Prod", "Product", "1"),
    ("Min", "Minimum", "the highest finite value"),
    ("Max", "Maximum", "the lowest finite value"),
):
    _define_unsorted(_kind, _verb, _empty)
