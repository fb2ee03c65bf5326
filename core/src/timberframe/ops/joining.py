"""Ops that join tensors along a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe.dtypes import int32
from timberframe.ops.gradients import apply_op, constant, dense, known, shape_of, size_of
from timberframe.ops.host_values import HostValue, scalar_value, settle, static_output
from timberframe.ops.opdef import UNKNOWN, Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe.ops.samples import Arg, ErrorSample, Sample
from timberframe.shapes import Shape, format_shape, merge


def _concatenated(c: InferenceContext, shapes: Sequence[Shape], axis: int | None) -> Shape:
    """The shape of the inputs put one behind the other along an axis, checked as far as shapes are known."""
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
            raise c.error(f"inputs have shapes {_listed(shapes)}; sizes must be equal but for axis {at}") from None
    assert merged is not None
    sizes = [None if s is None else s[at] for s in shapes]
    total = None if None in sizes else sum(d for d in sizes if d is not None)
    return (*merged[:at], total, *merged[at + 1 :])


def _listed(shapes: Sequence[Shape]) -> str:
    shown = ", ".join(format_shape(s) for s in shapes[:8])
    return shown + (f", ... ({len(shapes)} in all)" if len(shapes) > 8 else "")


def _joined_value(c: InferenceContext, values: Sequence[HostValue], axis: int) -> list[HostValue]:
    if static_output(c) is None:
        return [None]
    filled = [_or_unknown(v, s) for v, s in zip(values, c.shapes, strict=False)]
    return [settle(np.concatenate([v.astype(object) for v in filled], axis), c.dtypes[0])]


def _or_unknown(value: HostValue, shape: Shape) -> np.ndarray:
    """The value, or unknown elements in its static shape."""
    if value is not None:
        return value
    unknown = np.empty([d or 0 for d in shape or ()], object)
    unknown[...] = UNKNOWN
    return unknown


def _concat_v2_shape(c: InferenceContext) -> list[Shape]:
    return [_concatenated(c, c.shapes[:-1], scalar_value(c, len(c.shapes) - 1, "axis"))]


def _concat_v2_value(c: InferenceContext) -> list[HostValue]:
    axis = c.value(len(c.values) - 1)
    return [None] if axis is None else _joined_value(c, c.values[:-1], int(axis.reshape(-1)[0]))


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
    (((2, 3), (2, 4)), 0, r"inputs have shapes \(2, 3\), \(2, 4\); sizes must be equal but for axis 0"),
    (((2, 3), (2,)), 0, r"inputs have shapes \(2, 3\), \(2,\); all must have the same rank"),
    (((2, 3), (2, 3)), 2, r"axis 2 is outside the input's rank 2; it must lie in \[-2, 2\)"),
    (((), ()), 0, "inputs are scalars; they must have at least one dimension"),
)

_MOST_SLICES = 16  # beyond, one SplitV takes the parts out faster


def _parts(grad: Any, values: Sequence[Any], axis: Any) -> list[Any]:
    """The parts of a joined gradient that belong to each of the values."""
    grad = dense(grad)
    value = known(axis)
    if value is not None and (int(value.reshape(-1)[0]) >= 0 or grad.static_shape is not None):
        at = int(value.reshape(-1)[0])
        axis = at if at >= 0 else at + len(grad.static_shape)
    else:
        axis = apply_op("FloorMod", [apply_op("Cast", [axis], {"DstT": int32}), apply_op("Rank", [grad])])
    if len(values) > _MOST_SLICES:
        sizes = constant([size_of(x, axis, axis + 1) for x in values], int32)
        parts: list[Any] = apply_op("SplitV", [grad, sizes, axis], {"num_split": len(values)})
        return parts
    shapes = [shape_of(x) for x in values]
    offsets = apply_op("ConcatOffset", [axis, shapes])
    return [apply_op("Slice", [grad, offset, shape]) for offset, shape in zip(offsets, shapes, strict=True)]


define_op(
    "ConcatV2",
    inputs=["values: N * T", "axis: Tidx"],
    outputs=["output: T"],
    attrs=["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    doc="The inputs one behind the other along the dimension `axis`.",
    shape=_concat_v2_shape,
    reference=_concat_v2,
    value=_concat_v2_value,
    gradient=lambda op, grad: [*_parts(grad, op.inputs[:-1], op.inputs[-1]), None],
    shape_inputs=("axis",),
    samples=lambda: (Sample([[Arg(s) for s in shapes], Arg(values=axis)]) for shapes, axis in _CONCAT_SHAPES),
    errors=lambda: (
        ErrorSample([[Arg(s) for s in shapes], Arg(values=a)], match) for shapes, a, match in _CONCAT_ERRORS
    ),
)


def _concat_value(c: InferenceContext) -> list[HostValue]:
    axis = c.value(0)
    if axis is None or static_output(c) is None:
        return [None]
    filled = [_or_unknown(v, s).astype(object) for v, s in zip(c.values[1:], c.shapes[1:], strict=True)]
    return [settle(np.concatenate(filled, int(axis)), c.dtypes[1])]


define_op(
    "Concat",
    inputs=["concat_dim: int32", "values: N * T"],
    outputs=["output: T"],
    attrs=["N: int >= 2", "T: type"],
    doc="The inputs one behind the other along the dimension `concat_dim`; ConcatV2 with the arguments exchanged.",
    shape=lambda c: [_concatenated(c, c.shapes[1:], scalar_value(c, 0, "concat_dim"))],
    reference=lambda attrs, axis, *values: np.concatenate(values, int(axis)),
    value=_concat_value,
    gradient=lambda op, grad: [None, *_parts(grad, op.inputs[1:], op.inputs[0])],
    shape_inputs=("concat_dim",),
    samples=lambda: (Sample([Arg(values=axis), [Arg(s) for s in shapes]]) for shapes, axis in _CONCAT_SHAPES),
    errors=lambda: (
        ErrorSample([Arg(values=a), [Arg(s) for s in shapes]], match) for shapes, a, match in _CONCAT_ERRORS
    ),
)


def _offset_shape(c: InferenceContext) -> list[Shape]:
    """Everything that can be wrong is told once the shapes themselves are known, as TensorFlow does."""
    shapes = [c.value(i) for i in range(1, len(c.shapes))]
    axis = scalar_value(c, 0, "concat_dim")
    if axis is not None and all(s is not None for s in shapes):
        _check_concat_shapes(c, [np.asarray(s) for s in shapes], axis)
    return list(c.shapes[1:])


def _check_concat_shapes(c: InferenceContext, shapes: list[np.ndarray], axis: int) -> None:
    for i, s in enumerate(shapes):
        if s.ndim != 1:
            raise c.error(f"shape[{i}] has shape {format_shape(s.shape)}; it must be a vector")
        if s.size != shapes[0].size:
            raise c.late_error(f"shapes have lengths {', '.join(str(x.size) for x in shapes)}; all must be equal")
    at = c.axis(axis, shapes[0].size, "concat_dim")
    for s in shapes[1:]:
        if any(a != b for i, (a, b) in enumerate(zip(shapes[0], s, strict=True)) if i != at):
            listed = _listed([tuple(x.tolist()) for x in shapes])
            raise c.error(f"shapes are {listed}; sizes must be equal but for axis {at}")


def _concat_offset(attrs: Attrs, axis: np.ndarray, *shapes: np.ndarray) -> tuple[np.ndarray, ...]:
    offsets, at = [], shapes[0][0] * 0 if shapes[0].size else 0
    for shape in shapes:
        offset = np.zeros(shape.shape, shape.dtype)
        if shape.size:
            offset[int(axis)] = at
            at = at + shape[int(axis)]
        offsets.append(offset)
    return tuple(offsets)


def _offset_value(c: InferenceContext) -> list[HostValue]:
    if c.value(0) is None or any(v is None for v in c.values):
        return [None] * (len(c.values) - 1)
    return [settle(v, c.dtypes[1]) for v in _concat_offset(c.attrs, *c.values)]  # type: ignore[arg-type]  # none is None


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
    if static_output(c) is None:
        return [None]
    shape: Shape = None
    for other in c.shapes:
        shape = merge(shape, other)
    filled = [_or_unknown(v, shape).astype(object) for v in c.values]
    return [settle(np.stack(filled, c.attrs["axis"]), c.dtypes[0])]


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


define_op(
    "Pack",
    inputs=["values: N * T"],
    outputs=["output: T"],
    attrs=["N: int >= 1", "T: type", "axis: int = 0"],
    doc="Tensors of one shape, put side by side along a new dimension at `axis`.",
    shape=_pack_shape,
    reference=lambda attrs, *values: np.stack(values, attrs["axis"]),
    value=_pack_value,
    gradient=lambda op, grad: apply_op("Unpack", [grad], {"num": op.attrs["N"], "axis": op.attrs["axis"]}),
    samples=_pack_samples,
    errors=_pack_errors,
)
