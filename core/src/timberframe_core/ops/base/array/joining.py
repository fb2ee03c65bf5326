"""Ops that join tensors along a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.gradients import (
    apply_op,
    constant,
    dense,
    gather,
    indexed_slices,
    is_slices,
    known,
    shape_of,
    size_of,
)
from timberframe_core.ops.definition.host_values import HostValue, scalar_value, static_output
from timberframe_core.ops.definition.opdef import UNKNOWN, Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.rows import next_axis, same_on_rows
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, merge


def _concatenated(c: InferenceContext, shapes: Sequence[Shape], axis: int | None) -> Shape:
    """Returns the shape of the inputs put one after the other along an axis, checked as far as shapes are known."""
    known = [s for s in shapes if s is not None]
    if not known:
        return None
    rank = len(known[0])
    for shape in known:
        if len(shape) != rank:
            raise c.error(f"inputs have shapes {_listed(shapes)}; all must have the same rank")
    if rank == 0:
        raise c.error("inputs are scalars; they must have at least one dimension")
    if axis is None:
        return (None,) * rank
    at = c.axis(axis, rank)
    merged: Shape = (None,) * rank
    for shape in known:
        try:
            merged = merge(merged, (*shape[:at], None, *shape[at + 1 :]))
        except ValueError:
            raise c.error(
                f"inputs have shapes {_listed(shapes)}; the sizes in both shapes must be equal but for axis {at}"
            ) from None
    assert merged is not None
    sizes = [None if s is None else s[at] for s in shapes]
    total = None if None in sizes else sum(d for d in sizes if d is not None)
    return (*merged[:at], total, *merged[at + 1 :])


def _listed(shapes: Sequence[Shape]) -> str:
    shown = ", ".join(format_shape(s) for s in shapes[:8])
    return shown + (f", ... ({len(shapes)} in all)" if len(shapes) > 8 else "")


def _joined_value(c: InferenceContext, axis: HostValue, inputs: slice) -> list[HostValue]:
    """Returns the known elements of the inputs, put one after the other along an axis, between unknown ones."""
    joined = static_output(c)
    if axis is None or joined is None:
        return [None]
    at = int(axis.reshape(-1)[0]) % len(joined)
    parts = []
    for value, shape in zip(c.values[inputs], c.shapes[inputs], strict=True):
        size = None if shape is None else shape[at]  # all are known: so is their sum
        parts.append(_or_unknown(value, (*joined[:at], size or 0, *joined[at + 1 :])))
    return [np.concatenate(parts, at)]


def _or_unknown(value: HostValue, shape: StaticShape) -> np.ndarray:
    """Returns the value as objects, or unknown elements in its shape."""
    return np.full(shape, UNKNOWN, object) if value is None else value.astype(object)


def _concat_v2_shape(c: InferenceContext) -> list[Shape]:
    return [_concatenated(c, c.shapes[:-1], scalar_value(c, len(c.shapes) - 1, "axis"))]


def _concat_v2(attrs: Attrs, *inputs: np.ndarray) -> np.ndarray:
    return np.concatenate(inputs[:-1], int(inputs[-1].reshape(-1)[0]))


_CONCAT_SHAPES: tuple[tuple[tuple[tuple[int, ...], ...], int], ...] = (
    (((3,), (5,)), 0),
    (((0,), (5,)), 0),
    (((2, 0), (2, 0)), 1),
    (((7, 13), (5, 13)), 0),
    (((7, 13), (7, 5), (7, 1)), 1),
    (((7, 13), (7, 5)), -1),
    (((3, 2, 5), (3, 4, 5)), 1),
    (((2, 3, 1), (2, 3, 1)), 2),
    (((2, 3, 2), (2, 3, 1)), -1),
    (((65_537, 1), (65_537, 2)), 1),
    (((1, 65_537), (2, 65_537)), 0),
    (((1, 2, 1, 2, 1, 2, 1, 2),) * 2, 4),
    (((2, 3),) * 19, 0),
)

_CONCAT_ERRORS: tuple[tuple[tuple[tuple[int, ...], ...], int, str], ...] = (
    (
        ((2, 3), (2, 4)),
        0,
        r"inputs have shapes \(2, 3\), \(2, 4\); the sizes in both shapes must be equal but for axis 0",
    ),
    (((2, 3), (2,)), 0, r"inputs have shapes \(2, 3\), \(2,\); all must have the same rank"),
    (((2, 3), (2, 3)), 2, r"axis 2 is outside the input's rank 2; it must lie in \[-2, 2\)"),
    (((), ()), 0, "inputs are scalars; they must have at least one dimension"),
)

_MOST_SLICES = 16  # beyond, one SplitV takes the parts out faster


def _parts(grad: Any, values: Sequence[Any], axis: Any) -> list[Any]:
    """Returns the parts of a joined gradient that belong to each of the values."""
    at = _known_axis(values, known(axis))
    if at is not None and is_slices(grad):
        return _parts_of_slices(grad, values, at)
    grad = dense(grad)
    if at is not None:
        axis = at
    else:
        axis = apply_op("FloorMod", [apply_op("Cast", [axis], {"DstT": int32}), apply_op("Rank", [grad])])
    if len(values) > _MOST_SLICES:
        sizes = constant([size_of(x, axis, axis + 1) for x in values], int32)
        parts: list[Any] = apply_op("SplitV", [grad, sizes, axis], {"num_split": len(values)})
        return parts
    shapes = [shape_of(x) for x in values]
    offsets = apply_op("ConcatOffset", [axis, shapes])
    return [apply_op("Slice", [grad, offset, shape]) for offset, shape in zip(offsets, shapes, strict=True)]


def _known_axis(values: Sequence[Any], axis: np.ndarray | None) -> int | None:
    """Returns the axis counted from the front; None where the graph does not show it."""
    at = None if axis is None else int(axis.reshape(-1)[0])
    if at is None or at >= 0:
        return at
    rank = next((len(x.static_shape) for x in values if x.static_shape is not None), None)
    return None if rank is None else at + rank


def _parts_of_slices(grad: Any, values: Sequence[Any], axis: int) -> list[Any]:
    """IndexedSlices for each of the values: its rows where rows were joined, else its part of each row."""
    shapes = [shape_of(x) for x in values]
    offsets = apply_op("ConcatOffset", [constant(axis, int32), shapes])
    parts = []
    for offset, shape in zip(offsets, shapes, strict=True):
        if axis > 0:
            rest = apply_op("StridedSlice", [shape, [1], [0], [1]], {"end_mask": 1})
            size = apply_op("ConcatV2", [[constant([-1], int32), rest], constant(0, int32)])
            parts.append(indexed_slices(apply_op("Slice", [grad.values, offset, size]), grad.indices, shape))
        else:
            first, count = (apply_op("Cast", [gather(x, 0)], {"DstT": grad.indices.dtype}) for x in (offset, shape))
            rows = grad.indices - first
            own = apply_op("LogicalAnd", [rows >= 0, rows < count])
            chosen = apply_op("Reshape", [apply_op("Where", [own]), constant([-1], int32)])
            parts.append(indexed_slices(gather(grad.values, chosen), gather(rows, chosen), shape))
    return parts


define_op(
    "ConcatV2",
    inputs=["values: N * T", "axis: Tidx"],
    outputs=["output: T"],
    attrs=["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    doc="The inputs one after the other along the dimension `axis`.",
    shape=_concat_v2_shape,
    reference=_concat_v2,
    value=lambda c: _joined_value(c, c.value(len(c.values) - 1), slice(-1)),
    total_value=True,
    gradient=lambda op, grad: [*_parts(grad, op.inputs[:-1], op.inputs[-1]), None],
    gradient_takes_slices=True,
    shape_inputs=("axis",),
    samples=lambda: (Sample([[Arg(s) for s in shapes], Arg(values=axis)]) for shapes, axis in _CONCAT_SHAPES),
    errors=lambda: (
        ErrorSample([[Arg(s) for s in shapes], Arg(values=a)], match) for shapes, a, match in _CONCAT_ERRORS
    ),
)


define_op(
    "Concat",
    inputs=["concat_dim: int32", "values: N * T"],
    outputs=["output: T"],
    attrs=["N: int >= 2", "T: type"],
    doc="The inputs one after the other along the dimension `concat_dim`; ConcatV2 with the arguments exchanged.",
    shape=lambda c: [_concatenated(c, c.shapes[1:], scalar_value(c, 0, "concat_dim"))],
    reference=lambda attrs, axis, *values: np.concatenate(values, int(axis)),
    value=lambda c: _joined_value(c, c.value(0), slice(1, None)),
    gradient=lambda op, grad: [None, *_parts(grad, op.inputs[1:], op.inputs[0])],
    gradient_takes_slices=True,
    shape_inputs=("concat_dim",),
    samples=lambda: (Sample([Arg(values=axis), [Arg(s) for s in shapes]]) for shapes, axis in _CONCAT_SHAPES),
    errors=lambda: (
        ErrorSample([Arg(values=a), [Arg(s) for s in shapes]], match) for shapes, a, match in _CONCAT_ERRORS
    ),
)


@late_errors
def _offset_shape(c: InferenceContext) -> list[Shape]:
    """Errors are raised only when the shapes are known, of which some elements may be missing here."""
    shapes = [v for v in c.values[1:] if v is not None]
    if c.shapes[0] not in (None, ()):
        raise c.error(f"concat_dim has shape {format_shape(c.shapes[0])}; it must be a scalar")
    axis = scalar_value(c, 0, "concat_dim")
    if axis is not None and len(shapes) == len(c.shapes) - 1:
        _check_concat_shapes(c, shapes, axis)
    return list(c.shapes[1:])


def _check_concat_shapes(c: InferenceContext, shapes: list[np.ndarray], axis: int) -> None:
    for i, s in enumerate(shapes):
        if s.ndim != 1:
            raise c.error(f"shape[{i}] has shape {format_shape(s.shape)}; it must be a vector")
        if s.size != shapes[0].size:
            raise c.error(f"shapes have lengths {', '.join(str(x.size) for x in shapes)}; all must be equal")
    at = c.axis(axis, shapes[0].size, "concat_dim")
    sizes = [tuple(None if d is UNKNOWN or i == at else int(d) for i, d in enumerate(s)) for s in shapes]
    if not all(compatible(sizes[0], other) for other in sizes[1:]):
        listed = _listed([tuple(None if d is UNKNOWN else int(d) for d in s) for s in shapes])
        raise c.error(f"shapes are {listed}; sizes must be equal but for axis {at}")


def _concat_offset(attrs: Attrs, axis: np.ndarray, *shapes: np.ndarray) -> tuple[np.ndarray, ...]:
    """In shapes of dtype object, sizes may be unknown."""
    offsets = [np.zeros(shape.shape, np.result_type(*shapes)) for shape in shapes]
    start: Any = 0
    for offset, shape in zip(offsets, shapes, strict=True):
        if shape.size:
            offset[int(axis)] = start
            start = start + shape[int(axis)]
    return tuple(offsets)


def _offset_value(c: InferenceContext) -> list[HostValue]:
    if c.value(0) is None or c.shapes[0] != () or any(v is None for v in c.values):
        return [None] * (len(c.values) - 1)
    return list(_concat_offset(c.attrs, *[v for v in c.values if v is not None]))


def _offset_samples() -> Iterator[Sample]:
    for shapes, axis in (([(2, 3), (2, 4), (2, 5)], 1), ([(2, 3), (7, 3)], -2), ([(5,), (0,)], 0)):
        yield Sample([Arg(values=axis), [Arg(values=s) for s in shapes]])


def _offset_errors() -> Iterator[ErrorSample]:
    first = Arg(values=(2, 3))
    yield ErrorSample(
        [Arg(values=0), [first, Arg(values=(2, 4))]], r"shapes are \(2, 3\), \(2, 4\); sizes must be equal but"
    )
    yield ErrorSample([Arg(values=2), [first, first]], "concat_dim 2 is outside the input's rank 2")
    yield ErrorSample([Arg(values=0), [first, Arg(values=(2,))]], r"shapes have lengths 2, 1; all must be equal")


define_op(
    "ConcatOffset",
    inputs=["concat_dim: int32", "shape: N * shape_type"],
    outputs=["offset: N * shape_type"],
    attrs=["N: int >= 2", "shape_type: {int32, int64} = DT_INT32"],
    doc="For tensors of the given shapes joined along `concat_dim`: where each begins in the result.",
    shape=_offset_shape,
    reference=_concat_offset,
    value=_offset_value,
    gradient=NotDifferentiable("the inputs are shapes"),
    shape_inputs=("concat_dim", "shape"),
    samples=_offset_samples,
    errors=_offset_errors,
)


def _pack_shape(c: InferenceContext) -> list[Shape]:
    merged: Shape = None
    for shape in c.shapes:
        try:
            merged = merge(merged, shape)
        except ValueError:
            raise c.error(f"inputs have shapes {_listed(c.shapes)}; all must be equal") from None
    if merged is None:
        return [None]
    at = c.axis(c.attrs["axis"], len(merged) + 1)
    return [(*merged[:at], len(c.shapes), *merged[at:])]


def _pack_value(c: InferenceContext) -> list[HostValue]:
    stacked = static_output(c)
    if stacked is None:
        return [None]
    at = c.axis(c.attrs["axis"], len(stacked))
    shape = (*stacked[:at], *stacked[at + 1 :])
    return [np.stack([_or_unknown(v, shape) for v in c.values], at)]


def _pack_samples() -> Iterator[Sample]:
    for shape, count, axis in (
        ((), 1, 0), ((), 5, -1), ((3,), 2, 0), ((3,), 2, 1), ((0,), 3, 1), ((7, 13), 3, 0), ((7, 13), 3, 1),
        ((7, 13), 3, 2),
        ((7, 13), 2, -3), ((65_537,), 2, 1), ((1, 2, 1, 2, 1, 2, 1), 2, 3),
    ):  # fmt: skip
        yield Sample([[Arg(shape)] * count], {"axis": axis})


def _pack_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([[Arg((2, 3)), Arg((3, 2))]], r"inputs have shapes \(2, 3\), \(3, 2\); all must be equal")
    yield ErrorSample([[Arg((2,)), Arg((2,))]], "axis 2 is outside the input's rank 2", {"axis": 2})


def _packed(attrs: Attrs, *values: np.ndarray) -> np.ndarray:
    if values[0].dtype.kind in "iu" and not any(x.ndim for x in values):
        return np.array([x.item() for x in values], values[0].dtype)  # sizes, which small functions are full of
    return np.stack(values, attrs["axis"])


define_op(
    "Pack",
    inputs=["values: N * T"],
    outputs=["output: T"],
    attrs=["N: int >= 1", "T: type", "axis: int = 0"],
    doc="Tensors of one shape, put side by side along a new dimension at `axis`.",
    shape=_pack_shape,
    reference=_packed,
    value=_pack_value,
    total_value=True,
    gradient=lambda op, grad: apply_op("Unpack", [grad], {"num": op.attrs["N"], "axis": op.attrs["axis"]}),
    on_rows=same_on_rows("values", attrs=next_axis()),
    samples=_pack_samples,
    errors=_pack_errors,
)
