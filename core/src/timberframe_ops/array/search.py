"""Where elements are, which of them differ, and which are missing: outputs whose size depends on the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import NUMERIC
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, StaticShape, format_shape
from timberframe_ops.nn.windows import widen

_WHERE_TYPES = "{" + ", ".join(t.name for t in NUMERIC) + ", qint8, quint8, qint16, quint16, qint32, bool} = DT_BOOL"
_NUMBERS = tuple(t.name for t in NUMERIC)
_INTEGER_OUTPUT = NotDifferentiable("the output is an integer index")


def _static(shape: Shape) -> StaticShape:
    return tuple(d or 0 for d in shape or ())


def _where_shape(c: InferenceContext) -> Sequence[Shape]:
    shape = c.shapes[0]
    if shape is not None and not 1 <= len(shape) <= 8:
        raise c.late_error(f"input has shape {format_shape(shape)}; its rank must be 1 to 8")
    return [(None, None if shape is None else len(shape))]


def _where_bound(c: InferenceContext) -> list[StaticShape]:
    shape = _static(c.shapes[0])
    return [(math.prod(shape), len(shape))]


def _where_samples() -> Iterator[Sample]:
    yield Sample((Arg(values=[0, 3, 0, 1, 1]),))
    yield Sample((Arg(values=[[0, 1, 0], [1, 0, 1]]),))
    for shape in ((17,), (5, 7), (2, 3, 5), (2, 1, 2, 1, 2, 1, 2, 2), (0,), (3, 0), (70001,), (257, 129)):
        yield Sample((Arg(shape, low=0, high=2, whole=True),))  # of which some are zero


define_op(
    "Where",
    inputs=("input: T",),
    outputs=("index: int64",),
    attrs=(f"T: {_WHERE_TYPES}",),
    python_names={"input": "condition"},
    doc="Coordinates of the elements that are not zero, [count, rank], in row-major order.",
    shape=_where_shape,
    bound=_where_bound,
    reference=lambda attrs, input: np.argwhere(input != 0).astype(np.int64),
    samples=_where_samples,
    errors=lambda: [ErrorSample((Arg(()),), "rank must be 1 to 8")],
    gradient=_INTEGER_OUTPUT,
)


def _keys(x: np.ndarray) -> np.ndarray:
    """Returns a sortable array whose elements are equal where x's are."""
    return widen(x) if x.dtype.kind in "fV" else x


def _first_occurrence(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns positions of the distinct elements' first occurrence in order, each element's
    number among them, and counts.
    """
    _, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return first[order], number[inverse.ravel()], counts[order]


@late_errors
def _unique_shape(c: InferenceContext) -> Sequence[Shape]:
    (size,) = c.require_rank(0, 1)
    return [(None,), (size,), (None,)][: len(c.op.outputs)]


def _unique_bound(c: InferenceContext) -> list[StaticShape]:
    return [_static(c.shapes[0])] * len(c.op.outputs)


def _unique_reference(attrs: Attrs, x: np.ndarray, *axis: np.ndarray) -> tuple[np.ndarray, ...]:
    at = int(axis[0].ravel()[0]) % x.ndim if axis and axis[0].size else 0
    moved = np.moveaxis(x, at, 0)
    if x.ndim == 1:
        first, number, counts = _first_occurrence(_keys(x))
    else:
        numbers = _first_occurrence(_keys(moved.reshape(-1)))[1].reshape(len(moved), math.prod(moved.shape[1:]))
        first, number, counts = _first_occurrence(_row_numbers(numbers))
    kind = attrs["out_idx"].numpy
    y = np.ascontiguousarray(np.moveaxis(moved[first], 0, at))
    return y, number.astype(kind), counts.astype(kind)


def _row_numbers(rows: np.ndarray) -> np.ndarray:
    """Returns a number for each row, equal where rows are."""
    if not rows.size:
        return np.zeros(len(rows), np.int64)
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()


def _unique_pair(attrs: Attrs, x: np.ndarray, *axis: np.ndarray) -> tuple[np.ndarray, ...]:
    return _unique_reference(attrs, x, *axis)[:2]


def _unique_samples() -> Iterator[Sample]:
    for out_idx in ("int32", "int64"):
        attrs = {"out_idx": out_idx}
        yield Sample((Arg(values=[1, 1, 2, 0, 2, 5]),), attrs, {"T": _NUMBERS})
        yield Sample((Arg((0,)),), attrs)
        yield Sample((Arg((1,)),), attrs)
        yield Sample((Arg((131,), low=0, high=9),), attrs)
        yield Sample((Arg((1009,), distinct=True),), attrs | {})
    yield Sample((Arg((70001,)),), types={"T": ("int32", "int64", "float32", "float64")})


def _unique_axis_samples() -> Iterator[Sample]:
    none, rows = Arg(values=np.zeros(0, np.int64)), [[1, 2, 1], [3, 4, 3], [1, 2, 1]]
    for sample in _unique_samples():
        yield Sample((*sample.inputs, none), sample.attrs, sample.types)
    for values in ([0], [1], [-1], [-2]):
        yield Sample((Arg(values=rows), Arg(values=values)), types={"T": _NUMBERS})
    yield Sample((Arg((5, 3, 4), low=0, high=1), Arg(values=[1])))
    yield Sample((Arg((40, 2), low=0, high=3), Arg(values=[0])))
    yield Sample((Arg((0, 3)), Arg(values=[0])))
    yield Sample((Arg((3, 0)), Arg(values=[0])))
    yield Sample((Arg((2, 1, 2, 1, 2, 1, 2, 3), low=0, high=1), Arg(values=[7])))


def _unique_errors() -> Iterator[ErrorSample]:
    yield ErrorSample((Arg((2, 2)),), "must have rank 1")
    yield ErrorSample((Arg(()),), "must have rank 1")


@late_errors
def _unique_v2_shape(c: InferenceContext) -> Sequence[Shape]:
    x, axis = c.shapes[0], c.value(1)
    (length,) = c.require_rank(1, 1)
    if length is not None and length > 1:
        raise c.error(f"axis has {length} elements; it must have at most one")
    if x is None:
        return [None, (None,), (None,)][: len(c.op.outputs)]
    if length == 0 and len(x) != 1:
        raise c.error(f"x has shape {format_shape(x)} and axis is empty; without axis x must have rank 1")
    if length != 0 and axis is None:
        return [(None,) * len(x), (None,), (None,)][: len(c.op.outputs)]
    at = 0 if axis is None or not axis.size else c.axis(int(axis[0]), len(x))
    return [x[:at] + (None,) + x[at + 1 :], (x[at],), (None,)][: len(c.op.outputs)]


def _unique_v2_bound(c: InferenceContext) -> list[StaticShape]:
    x, axis = _static(c.shapes[0]), c.value(1)
    size = x[int(axis[0]) if axis is not None and axis.size else 0]
    return [x, (size,), (size,)][: len(c.op.outputs)]


def _unique_v2_errors() -> Iterator[ErrorSample]:
    x = Arg((2, 3))
    yield ErrorSample((x, Arg(values=np.zeros(0, np.int64))), "without axis x must have rank 1")
    yield ErrorSample((x, Arg(values=1)), "must have rank 1")
    yield ErrorSample((x, Arg(values=[2])), "axis 2 is outside")
    yield ErrorSample((x, Arg(values=[0, 1])), "at most one")


def _define_unique(name: str, axis: bool, counts: bool, doc: str) -> None:
    define_op(
        name,
        inputs=("x: T", *(("axis: Taxis",) if axis else ())),
        outputs=("y: T", "idx: out_idx", *(("count: out_idx",) if counts else ())),
        attrs=(
            "T: type",
            *(("Taxis: {int32, int64} = DT_INT64",) if axis else ()),
            "out_idx: {int32, int64} = DT_INT32",
        ),
        doc=doc,
        shape=_unique_v2_shape if axis else _unique_shape,
        bound=_unique_v2_bound if axis else _unique_bound,
        reference=_unique_reference if counts else _unique_pair,
        shape_inputs=("axis",) if axis else (),
        samples=_unique_axis_samples if axis else _unique_samples,
        errors=_unique_v2_errors if axis else _unique_errors,
        gradient=MissingGradient("TensorFlow has none of the elements that it finds either"),
    )


_define_unique(
    "Unique",
    False,
    False,
    "The distinct elements y of a vector in order of first occurrence, and each element's place idx in y. "
    "NaN equals nothing.",
)
_define_unique("UniqueWithCounts", False, True, "Unique, with how often each element of y occurs.")
_define_unique(
    "UniqueV2", True, False, "Unique over the slices along axis (of a vector's elements when axis is empty)."
)
_define_unique("UniqueWithCountsV2", True, True, "UniqueV2, with how often each slice of y occurs.")


def _list_diff_shape(c: InferenceContext) -> Sequence[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 1)
    return [(None,), (None,)]


def _list_diff_reference(attrs: Attrs, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = np.flatnonzero(~np.isin(_keys(x), _keys(y))) if x.size else np.zeros(0, np.int64)
    return x[kept], kept.astype(attrs["out_idx"].numpy)


def _list_diff_samples() -> Iterator[Sample]:
    pairs: tuple[tuple[Any, Any], ...] = (([1, 2, 3, 2, 4], [2, 9]), ([5, 5], [5]), ([3, 1, 2], [7]))
    for out_idx in ("int32", "int64"):
        for x, y in pairs:
            yield Sample((Arg(values=x), Arg(values=y)), {"out_idx": out_idx}, {"T": _NUMBERS})
        yield Sample((Arg((0,)), Arg((3,))), {"out_idx": out_idx})
        yield Sample((Arg((3,)), Arg((0,))), {"out_idx": out_idx})
        yield Sample((Arg((200,), low=0, high=50), Arg((31,), low=0, high=50)), {"out_idx": out_idx})


define_op(
    "ListDiff",
    inputs=("x: T", "y: T"),
    outputs=("out: T", "idx: out_idx"),
    attrs=("T: type", "out_idx: {int32, int64} = DT_INT32"),
    doc="The elements of x that y does not hold, in order and with repetitions, and their positions.",
    shape=_list_diff_shape,
    bound=lambda c: [_static(c.shapes[0])] * 2,
    reference=_list_diff_reference,
    samples=_list_diff_samples,
    errors=lambda: [
        ErrorSample((Arg((1, 1)), Arg((1,))), "must have rank 1"),
        ErrorSample((Arg((1,)), Arg((1, 1))), "must have rank 1"),
    ],
    gradient=MissingGradient("TensorFlow has none of the elements that it finds either"),
)
