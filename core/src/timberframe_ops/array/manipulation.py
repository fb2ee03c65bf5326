"""Ops that move whole elements around within one tensor: transposing, reversing, rolling, repeating."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, constant, known, shape_of
from timberframe_core.ops.definition.host_values import HostValue, checked, elements, reference_value, vector_length
from timberframe_core.ops.definition.opdef import (
    UNKNOWN,
    Attrs,
    InferenceContext,
    NotDifferentiable,
    define_op,
    is_known,
)
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape


def _transpose_shape(c: InferenceContext) -> list[Shape]:
    shape, length = c.shapes[0], vector_length(c, 1, "perm")
    rank = length if shape is None else len(shape)
    if rank is None:
        return [None]
    if length is not None and length != rank:
        raise c.error(f"perm has {length} elements and the input {format_shape(shape)} rank {rank}; they must be equal")
    perm = elements(c, 1, rank)
    known = [d for d in perm if d is not None]
    if any(not -rank <= d < rank for d in known) or len({d % rank for d in known}) < len(known):
        raise c.error(f"perm is {format_shape(tuple(perm))}; it must be a permutation of 0 to {rank - 1}")
    return [tuple(None if d is None or shape is None else shape[d] for d in perm)]


def _transpose(attrs: Attrs, x: np.ndarray, perm: np.ndarray) -> np.ndarray:
    return np.transpose(x, [int(d) for d in perm])


def _conjugate_transpose(attrs: Attrs, x: np.ndarray, perm: np.ndarray) -> np.ndarray:
    moved = np.transpose(x, [int(d) for d in perm])
    return np.conj(moved) if moved.dtype.kind == "c" else moved


def _transpose_samples() -> Iterator[Sample]:
    for shape, perm in (
        ((), ()), ((5,), (0,)), ((0, 3), (1, 0)), ((1, 7), (1, 0)), ((7, 1), (1, 0)), ((7, 13), (1, 0)),
        ((64, 64), (1, 0)), ((67, 131), (1, 0)), ((3, 65_537), (1, 0)), ((65_537, 3), (1, 0)), ((67, 131), (0, 1)),
        ((5, 7, 11), (0, 2, 1)), ((5, 7, 11), (1, 0, 2)), ((5, 7, 11), (2, 1, 0)), ((5, 7, 2), (1, 0, 2)),
        ((5, 7, 4), (1, 0, 2)), ((17, 19, 23), (2, 0, 1)), ((2, 3, 4, 5), (0, 3, 1, 2)), ((2, 5, 6, 3), (0, 3, 1, 2)),
        ((2, 3, 4, 5), (3, 2, 1, 0)), ((2, 3, 4, 5), (2, 0, 3, 1)), ((2, 3, 4, 5), (-1, 1, -4, 2)),
        ((2, 3, 2, 3, 2), (4, 2, 0, 3, 1)), ((2, 2, 2, 3, 2, 2, 1, 2), (7, 5, 3, 1, 6, 4, 2, 0)),
        ((2, 0, 3), (2, 0, 1)),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(perm, np.int64))])


def _transpose_errors() -> Iterator[ErrorSample]:
    def wrong(perm: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg((2, 3)), Arg(values=perm)], match)

    yield wrong((0, 0), r"perm is \(0, 0\); it must be a permutation of 0 to 1")
    yield wrong((0, 2), r"perm is \(0, 2\); it must be a permutation of 0 to 1")
    yield wrong((0,), r"perm has 1 elements and the input \(2, 3\) rank 2; they must be equal")
    yield wrong([[0, 1]], r"perm has shape \(1, 2\); it must be a vector")


def _transpose_gradient(op: Any, grad: Any) -> list[Any]:
    perm, value = op.inputs[1], known(op.inputs[1])
    if value is None:
        back = apply_op("InvertPermutation", [perm])
    else:
        back = constant(np.argsort(value % max(value.size, 1)), perm.dtype)
    return [apply_op(op.type, [grad, back]), None]


define_op(
    "Transpose",
    inputs=["x: T", "perm: Tperm"],
    outputs=["y: T"],
    attrs=["T: type", "Tperm: {int32, int64} = DT_INT32"],
    doc="The dimensions of x in another order: dimension i of y is dimension perm[i] of x.",
    shape=_transpose_shape,
    reference=_transpose,
    gradient=_transpose_gradient,
    shape_inputs=("perm",),
    samples=_transpose_samples,
    errors=_transpose_errors,
)

define_op(
    "ConjugateTranspose",
    inputs=["x: T", "perm: Tperm"],
    outputs=["y: T"],
    attrs=["T: type", "Tperm: {int32, int64} = DT_INT32"],
    doc="The dimensions of x in another order, and each complex element replaced by its conjugate.",
    shape=_transpose_shape,
    reference=_conjugate_transpose,
    gradient=_transpose_gradient,
    shape_inputs=("perm",),
    samples=_transpose_samples,
    errors=_transpose_errors,
)


def _reverse_v2_shape(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[0]
    length = vector_length(c, 1, "axis")
    axes = [] if length is None or shape is None else [d for d in elements(c, 1, length) if d is not None]
    seen: set[int] = set()
    for axis in axes:
        at = c.axis(axis, len(shape or ()))
        if at in seen:
            raise c.error(f"axis {axis} is given twice; each axis may be given once")
        seen.add(at)
    return [shape]


def _reverse_v2(attrs: Attrs, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return np.flip(x, tuple(int(a) for a in axis))


def _reverse_v2_samples() -> Iterator[Sample]:
    for shape, axis in (
        ((), ()), ((5,), (0,)), ((0, 3), (0, 1)), ((7, 13), (0,)), ((7, 13), (1,)), ((7, 13), (-1, -2)), ((7, 13), ()),
        ((3, 5, 7), (1,)), ((3, 5, 7), (0, 2)), ((65_537,), (0,)), ((2, 65_537), (1,)),
        ((2, 1, 3, 1, 2, 2, 3, 2), (0, 2, 4, 7)),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(axis, np.int64))])


def _reverse_v2_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((3,)), Arg(values=(1,))], r"axis 1 is outside the input's rank 1; it must lie in \[-1, 1\)")
    yield ErrorSample([Arg((3, 2)), Arg(values=(0, -2))], "axis -2 is given twice; each axis may be given once")
    yield ErrorSample([Arg((3,)), Arg(values=0)], r"axis has shape \(\); it must be a vector")


define_op(
    "ReverseV2",
    inputs=["tensor: T", "axis: Tidx"],
    outputs=["output: T"],
    attrs=[
        "Tidx: {int32, int64} = DT_INT32",
        "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, "
        "complex128, string}",
    ],
    doc="The tensor with the order of elements reversed along each given axis.",
    shape=_reverse_v2_shape,
    reference=_reverse_v2,
    gradient=lambda op, grad: [apply_op("ReverseV2", [grad, op.inputs[1]]), None],
    shape_inputs=("axis",),
    samples=_reverse_v2_samples,
    errors=_reverse_v2_errors,
)


def _reverse_shape(c: InferenceContext) -> list[Shape]:
    shape, length = c.shapes[0], vector_length(c, 1, "dims")
    if shape is not None and length is not None and length != len(shape):
        raise c.error(f"dims has {length} elements and the input rank {len(shape)}; they must be equal")
    return [shape]


def _reverse(attrs: Attrs, x: np.ndarray, dims: np.ndarray) -> np.ndarray:
    return np.flip(x, tuple(int(i) for i in np.flatnonzero(dims)))


def _reverse_samples() -> Iterator[Sample]:
    for shape, dims in (((5,), (True,)), ((7, 13), (False, True)), ((3, 0, 2), (True, True, False)), ((), ())):
        yield Sample([Arg(shape), Arg(values=np.array(dims, bool))])


define_op(
    "Reverse",
    inputs=["tensor: T", "dims: bool"],
    outputs=["output: T"],
    attrs=[
        "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, "
        "complex128, string}"
    ],
    doc="The tensor with the order of elements reversed along each dimension for which `dims` is true.",
    shape=_reverse_shape,
    reference=_reverse,
    gradient=lambda op, grad: [apply_op("Reverse", [grad, op.inputs[1]]), None],
    shape_inputs=("dims",),
    samples=_reverse_samples,
    errors=lambda: [ErrorSample([Arg((3,)), Arg(values=(True, False))], "dims has 2 elements and the input rank 1")],
)


def _roll_shape(c: InferenceContext) -> list[Shape]:
    shape, shift, axis = c.shapes
    if shape == ():
        raise c.error("input has shape (); its rank must be at least 1")
    for name, s in (("shift", shift), ("axis", axis)):
        if s is not None and len(s) > 1:
            raise c.error(f"{name} has shape {format_shape(s)}; it must be a scalar or a vector")
    if shift is not None and axis is not None and None not in shift and None not in axis and shift != axis:
        raise c.error(f"shift has shape {format_shape(shift)} and axis {format_shape(axis)}; they must be equal")
    axes = c.value(2)
    if shape is not None and axes is not None:
        for a in axes.reshape(-1):
            c.axis(int(a), len(shape))
    return [shape]


def _roll(attrs: Attrs, x: np.ndarray, shift: np.ndarray, axis: np.ndarray) -> np.ndarray:
    for s, a in zip(shift.reshape(-1), axis.reshape(-1), strict=True):
        x = np.roll(x, int(s), int(a))
    return x


def _roll_samples() -> Iterator[Sample]:
    for shape, shift, axis in (
        ((5,), 2, 0), ((5,), (-7,), (0,)), ((7, 13), (3, -4), (0, 1)), ((7, 13), (3, 4), (-1, -1)),
        ((0, 3), (1,), (0,)),
        ((3, 5, 7), (1, 2, 3), (0, 1, 2)), ((3, 5, 7), (0, 5), (0, 1)), ((65_537,), (40_000,), (0,)), ((7, 13), (), ()),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(shift, np.int64)), Arg(values=np.array(axis, np.int64))])


def _roll_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((5,)), Arg(values=[1]), Arg(values=[1])], "axis 1 is outside the input's rank 1")
    yield ErrorSample(
        [Arg((5,)), Arg(values=[1]), Arg(values=0)], r"shift has shape \(1,\) and axis \(\); they must be equal"
    )
    yield ErrorSample([Arg(()), Arg(values=1), Arg(values=0)], "its rank must be at least 1")
    yield ErrorSample([Arg((5,)), Arg(values=[[1]]), Arg(values=[0])], "must be a scalar or a vector")


def _roll_gradient(op: Any, grad: Any) -> list[Any]:
    back = apply_op("Sub", [constant(0, op.inputs[1].dtype), op.inputs[1]])
    return [apply_op("Roll", [grad, back, op.inputs[2]]), None, None]


define_op(
    "Roll",
    inputs=["input: T", "shift: Tshift", "axis: Taxis"],
    outputs=["output: T"],
    attrs=["T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"],
    doc="The input moved by `shift` places towards larger indices along each axis; what leaves comes in at the front.",
    shape=_roll_shape,
    reference=_roll,
    gradient=_roll_gradient,
    shape_inputs=("shift", "axis"),
    samples=_roll_samples,
    errors=_roll_errors,
)


def _tile_shape(c: InferenceContext) -> list[Shape]:
    shape, length = c.shapes[0], vector_length(c, 1, "multiples")
    rank = length if shape is None else len(shape)
    if rank is None:
        return [None]
    if length is not None and length != rank:
        raise c.error(
            f"multiples has {length} elements and the input {format_shape(shape)} rank {rank}; they must be equal"
        )
    multiples = elements(c, 1, rank)
    if any(m is not None and m < 0 for m in multiples):
        raise c.error(f"multiples is {format_shape(tuple(multiples))}; each must be zero or more")
    sizes = shape if shape is not None else (None,) * rank
    tiled = tuple(None if d is None or m is None else d * m for d, m in zip(sizes, multiples, strict=True))
    return [checked(c, tiled)]


def _tile(attrs: Attrs, x: np.ndarray, multiples: np.ndarray) -> np.ndarray:
    return np.tile(x, tuple(int(m) for m in multiples))


def _tile_samples() -> Iterator[Sample]:
    for shape, multiples in (
        ((), ()), ((5,), (1,)), ((5,), (3,)), ((5,), (0,)), ((0, 3), (2, 2)), ((7, 13), (2, 3)), ((7, 1), (1, 5)),
        ((1, 7), (5, 1)), ((3, 5, 7), (1, 2, 1)), ((3, 2, 2, 3), (2, 1, 3, 2)), ((1,), (65_537,)),
        ((65_537, 1), (1, 2)),
        ((2, 1, 2, 1, 2, 1, 2, 1), (2, 2, 1, 2, 2, 1, 2, 2)),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(multiples, np.int64))])


def _tile_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 4)), Arg(values=(1, -1))], r"multiples is \(1, -1\); each must be zero or more")
    yield ErrorSample([Arg((2, 4)), Arg(values=(1,))], r"multiples has 1 elements and the input \(2, 4\) rank 2")
    huge = Arg(values=[2**40, 2**40])
    yield ErrorSample([Arg((2, 4)), huge], "must fit 63 bits", types={"Tmultiples": ("int64",)})


def _tile_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the sum over the copies: each dimension is split in two, (copy, element), and
    the first of them summed.
    """
    x, multiples = op.inputs
    times, shape = known(multiples), x.static_shape
    if times is not None and shape is not None and None not in shape:
        split: list[int] = []
        axes: list[int] = []
        for count, size in zip(times.tolist(), shape, strict=True):
            if count != 1:
                axes.append(len(split))
                split.append(count)
            split.append(size)
        if not axes:
            return [grad, None]
        apart = apply_op("Reshape", [grad, constant(split, multiples.dtype)])
        return [apply_op("Sum", [apart, constant(axes, multiples.dtype)]), None]
    pairs = apply_op("Pack", [[multiples, shape_of(x, multiples.dtype)]], {"axis": 1})
    split = apply_op("Reshape", [pairs, constant([-1], multiples.dtype)])
    axes = apply_op("Range", [constant(0, int32), apply_op("Size", [split]), constant(2, int32)])
    return [apply_op("Sum", [apply_op("Reshape", [grad, split]), axes]), None]


define_op(
    "Tile",
    inputs=["input: T", "multiples: Tmultiples"],
    outputs=["output: T"],
    attrs=["T: type", "Tmultiples: {int32, int64} = DT_INT32"],
    doc="The input repeated multiples[i] times along each dimension i.",
    shape=_tile_shape,
    reference=_tile,
    value=reference_value,
    gradient=_tile_gradient,
    shape_inputs=("multiples",),
    sized_by_values=True,
    samples=_tile_samples,
    errors=_tile_errors,
)


def _invert_shape(c: InferenceContext) -> list[Shape]:
    vector_length(c, 0, "x")
    return [(None,) if c.shapes[0] is None else c.shapes[0]]


NO_PERMUTATION = (
    "x holds {0}; x must be a permutation of 0 to {1}",
    "{0} occurs twice; x must be a permutation of 0 to {1}",
)


def _invert(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    y = np.full(x.shape, -1, x.dtype)
    for i, at in enumerate(int(v) for v in x):
        inside = 0 <= at < x.size
        if not inside or y[at] != -1:
            raise InvalidArgumentError(NO_PERMUTATION[inside].format(at, x.size - 1))
        y[at] = i
    return y


def _invert_value(c: InferenceContext) -> list[HostValue]:
    x = c.values[0]
    if x is None:
        return [None]
    if not is_known(x):
        y = np.empty(x.shape, object)
        y[:] = UNKNOWN
        return [y]
    sound = sorted(x.tolist()) == list(range(x.size))
    return [_invert(c.attrs, x) if sound else None]


def _invert_samples() -> Iterator[Sample]:
    for x in ([0], [2, 0, 1], [3, 4, 0, 2, 1], []):
        yield Sample([Arg(values=np.array(x, np.int64))])
    yield Sample([Arg(values=np.arange(65_537)[::-1].copy())])


def _invert_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg(values=[0, 0])], "0 occurs twice; x must be a permutation of 0 to 1")
    yield ErrorSample([Arg(values=[0, 2, 2])], "2 occurs twice; x must be a permutation of 0 to 2")
    yield ErrorSample([Arg(values=[0, 2])], "x holds 2; x must be a permutation of 0 to 1")
    yield ErrorSample([Arg(values=[-1, 0])], "x holds -1; x must be a permutation of 0 to 1")
    yield ErrorSample([Arg(values=[[0]])], r"x has shape \(1, 1\); it must be a vector")


define_op(
    "InvertPermutation",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: {int32, int64} = DT_INT32"],
    doc="The permutation that undoes x: y[x[i]] = i.",
    shape=_invert_shape,
    reference=_invert,
    value=_invert_value,
    gradient=NotDifferentiable("the input is a permutation"),
    samples=_invert_samples,
    errors=_invert_errors,
)
