"""Ops that give a tensor's shape, or give it another one over the same elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.gradients import reshape_like
from timberframe_core.ops.definition.host_values import (
    HostValue,
    checked,
    elements,
    host_array,
    reshaped_value,
    scalar_value,
)  # fmt: skip
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape

_SHAPES = ((), (1,), (0,), (3, 0, 2), (7, 13), (65_537,), (2, 1, 3, 1, 2, 1, 3, 1))
_NO_GRADIENT = NotDifferentiable("the output depends on the shape alone")
_INT32_MAX = 2**31 - 1


def _fits_out_type(c: InferenceContext, size: int, what: str) -> None:
    if size > _INT32_MAX and c.attrs["out_type"].name == "int32":
        raise c.late_error(f"{what} is {size}; an out_type of int32 holds at most {_INT32_MAX}")


def _shape_shape(c: InferenceContext) -> list[Shape]:
    for shape in c.shapes:
        for size in shape or ():
            _fits_out_type(c, size or 0, "a size")
    return [(None,) if shape is None else (len(shape),) for shape in c.shapes]


def _shape_value(c: InferenceContext) -> list[HostValue]:
    return [None if shape is None else host_array(shape, c.attrs["out_type"]) for shape in c.shapes]


def _one_of_each_shape() -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample([Arg(shape)])


_TOO_LARGE_SIZE = ErrorSample(
    [Arg((0, 2**31))],
    "a size is 2147483648; an out_type of int32 holds at most",
    types={"T": ("int8",), "out_type": ("int32",)},
)

define_op(
    "Shape",
    inputs=["input: T"],
    outputs=["output: out_type"],
    attrs=["T: type", "out_type: {int32, int64} = DT_INT32"],
    doc="The sizes of the input as a vector.",
    shape=_shape_shape,
    reference=lambda attrs, x: np.array(x.shape, attrs["out_type"].numpy),
    value=_shape_value,
    shape_only=True,
    gradient=_NO_GRADIENT,
    samples=_one_of_each_shape,
    errors=lambda: [_TOO_LARGE_SIZE],
)

define_op(
    "ShapeN",
    inputs=["input: N * T"],
    outputs=["output: N * out_type"],
    attrs=["N: int >= 1", "T: type", "out_type: {int32, int64} = DT_INT32"],
    doc="The sizes of each input as a vector.",
    shape=_shape_shape,
    reference=lambda attrs, *xs: tuple(np.array(x.shape, attrs["out_type"].numpy) for x in xs),
    value=_shape_value,
    shape_only=True,
    gradient=_NO_GRADIENT,
    samples=lambda: (Sample([[Arg(s) for s in shapes]]) for shapes in (_SHAPES[:1], _SHAPES)),
)

define_op(
    "Rank",
    inputs=["input: T"],
    outputs=["output: int32"],
    attrs=["T: type"],
    doc="The number of dimensions of the input.",
    shape=lambda c: [()],
    reference=lambda attrs, x: np.array(x.ndim, np.int32),
    value=lambda c: [None if c.shapes[0] is None else np.array(len(c.shapes[0]), np.int32)],
    shape_only=True,
    gradient=_NO_GRADIENT,
    samples=_one_of_each_shape,
)


def _size_value(c: InferenceContext) -> list[HostValue]:
    shape = c.shapes[0]
    if shape is None or (None in shape and 0 not in shape):
        return [None]
    size = 0 if 0 in shape else math.prod(d for d in shape if d is not None)
    _fits_out_type(c, size, "the number of elements")
    return [np.array(size, c.attrs["out_type"].numpy)]


define_op(
    "Size",
    inputs=["input: T"],
    outputs=["output: out_type"],
    attrs=["T: type", "out_type: {int32, int64} = DT_INT32"],
    doc="The number of elements of the input.",
    shape=lambda c: [()],
    reference=lambda attrs, x: np.array(x.size, attrs["out_type"].numpy),
    value=_size_value,
    shape_only=True,
    gradient=_NO_GRADIENT,
    samples=_one_of_each_shape,
)


def _reshape_shape(c: InferenceContext) -> list[Shape]:
    given = c.shapes[1]
    if given is not None and len(given) > 1:
        raise c.error(f"shape has shape {format_shape(given)}; it must be a vector")
    if c.values[1] is None:
        length = 1 if given == () else None if given is None else given[0]
        return [c.unknown_sizes(length)]
    source = c.shapes[0]
    sizes: list[Any] = elements(c, 1, 0)
    if any(d is not None and d < -1 for d in sizes):
        raise c.error(f"shape is {format_shape(tuple(sizes))}; sizes must be zero or more, or -1 once")
    if sizes.count(-1) > 1:
        raise c.error(f"shape is {format_shape(tuple(sizes))}; only one size may be -1")
    known_source = source is not None and None not in source
    if None not in sizes:
        if -1 in sizes:
            return [_with_inferred_size(c, source, sizes)]
        if known_source:
            _same_number_of_elements(c, source, sizes)
        return [checked(c, tuple(sizes))]
    if known_source and sizes.count(None) == 1 and -1 not in sizes:
        # one size is not known yet, but can only be what makes the numbers of elements agree
        total, rest = math.prod(d for d in source or () if d is not None), math.prod(d for d in sizes if d is not None)
        if rest and total and total % rest == 0:
            return [tuple(total // rest if d is None else d for d in sizes)]
    return [tuple(None if d is None or d < 0 else d for d in sizes)]


def _same_number_of_elements(c: InferenceContext, source: Shape, sizes: list[Any]) -> None:
    have, want = math.prod(d for d in source or () if d is not None), math.prod(sizes)
    if have != want:
        raise c.error(
            f"input {format_shape(source)} has {have} elements and shape {format_shape(tuple(sizes))} needs {want}; "
            "the numbers must be equal"
        )


def _with_inferred_size(c: InferenceContext, source: Shape, sizes: list[Any]) -> Shape:
    """Returns the shape with its -1 replaced, where the input's sizes are known.

    For an empty input the sizes of zero on both sides are left out of the division, as TensorFlow does.
    """
    at = sizes.index(-1)
    rest = math.prod(d for i, d in enumerate(sizes) if i != at and d)
    if source is None or None in source:
        inferred = _from_equal_unknown(source, sizes, rest)
        return tuple(inferred if i == at else d for i, d in enumerate(sizes))
    empty = 0 in sizes
    total = math.prod(d for d in source if d is not None and (d or not empty))
    if (empty and 0 not in source) or total % rest:
        raise c.error(
            f"input {format_shape(source)} has {math.prod(d or 0 for d in source)} elements; shape "
            f"{format_shape(tuple(sizes))} needs a multiple of {0 if empty else rest}"
        )
    return tuple(total // rest if i == at else d for i, d in enumerate(sizes))


def _from_equal_unknown(source: Shape, sizes: list[Any], rest: int) -> int | None:
    """Returns what -1 stands for when the input's sizes are not all known: only ever zero, when a known one is zero."""
    if source is not None and 0 in source and rest and 0 not in sizes:
        return 0
    return None


def _reshape(attrs: Attrs, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    sizes = [int(d) for d in shape.reshape(-1)]
    if -1 in sizes:
        empty = 0 in sizes
        total = math.prod(d for d in x.shape if d or not empty)
        sizes[sizes.index(-1)] = total // math.prod(d for d in sizes if d > 0)
    return x.reshape(sizes)


def _reshape_samples() -> Iterator[Sample]:
    for shape, new in (
        ((), ()), ((), (1, 1)), ((6,), (2, 3)), ((2, 3), (-1,)), ((2, 3, 4), (4, -1, 2)), ((0,), (0, 5)),
        ((0, 3), (-1,)), ((0, 3), (-1, 0)), ((0, 3), (7, 0)), ((0, 4), (0, -1, 2)), ((65_537, 2), (2, -1)),
        ((1, 1, 2, 1, 3, 1, 2, 1), (2, 1, 3, 1, 1, 2, 1, 1)), ((1,), ()),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(new, np.int64))])
    yield Sample([Arg((2, 3)), Arg(values=6)])


def _reshape_errors() -> Iterator[ErrorSample]:
    def wrong(shape: tuple[int, ...], new: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg(shape), Arg(values=np.array(new, np.int64))], match)

    yield wrong((2, 3), (4,), r"input \(2, 3\) has 6 elements and shape \(4,\) needs 4; the numbers must be equal")
    yield wrong((2, 3), (4, -1), r"has 6 elements; shape \(4, -1\) needs a multiple of 4")
    yield wrong((2, 3), (0, -1), r"shape \(0, -1\) needs a multiple of 0")
    yield wrong((2, 3), (-1, -1), "only one size may be -1")
    yield wrong((2, 3), (-2, 3), "sizes must be zero or more, or -1 once")
    yield wrong((2, 3), [[2, 3]], r"shape has shape \(1, 2\); it must be a vector")


define_op(
    "Reshape",
    inputs=["tensor: T", "shape: Tshape"],
    outputs=["output: T"],
    attrs=["T: type", "Tshape: {int32, int64} = DT_INT32"],
    doc="The elements of the tensor, in row-major order, in another shape; one size may be -1 and is then inferred.",
    shape=_reshape_shape,
    reference=_reshape,
    value=reshaped_value,
    gradient=lambda op, grad: [reshape_like(grad, op.inputs[0]), None],
    shape_inputs=("shape",),
    alias=((0, 0),),
    samples=_reshape_samples,
    errors=_reshape_errors,
)


def _expand_shape(c: InferenceContext) -> list[Shape]:
    dim, shape = scalar_value(c, 1, "dim"), c.shapes[0]
    if shape is None:
        return [None]
    rank = len(shape)
    if dim is None:
        return [(None,) * (rank + 1)]
    if not -rank - 1 <= dim <= rank:
        raise c.error(f"dim {dim} is outside the input's rank {rank}; it must lie in [{-rank - 1}, {rank}]")
    at = dim % (rank + 1)
    return [(*shape[:at], 1, *shape[at:])]


def _expand_samples() -> Iterator[Sample]:
    for shape, dim in (((), 0), ((), -1), ((3,), 0), ((3,), 1), ((2, 3), -3), ((2, 3), -1), ((2, 3), 1), ((0, 2), 2)):
        yield Sample([Arg(shape), Arg(values=dim)])
    yield Sample([Arg((2, 65_537)), Arg(values=[1])])


def _expand_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 3)), Arg(values=3)], r"dim 3 is outside the input's rank 2; it must lie in \[-3, 2\]")
    yield ErrorSample([Arg((2, 3)), Arg(values=-4)], "dim -4 is outside the input's rank 2")
    yield ErrorSample([Arg((2, 3)), Arg(values=[0, 1])], r"dim has shape \(2,\); it must hold a single value")


define_op(
    "ExpandDims",
    inputs=["input: T", "dim: Tdim"],
    outputs=["output: T"],
    attrs=["T: type", "Tdim: {int32, int64} = DT_INT32"],
    python_names={"dim": "axis"},
    doc="The input with a dimension of one put in front of dimension `dim`.",
    shape=_expand_shape,
    reference=lambda attrs, x, dim: np.expand_dims(x, int(dim.reshape(-1)[0])),
    value=reshaped_value,
    total_value=True,
    gradient=lambda op, grad: [reshape_like(grad, op.inputs[0]), None],
    shape_inputs=("dim",),
    alias=((0, 0),),
    samples=_expand_samples,
    errors=_expand_errors,
)


def _squeeze_shape(c: InferenceContext) -> list[Shape]:
    shape, dims = c.shapes[0], c.attrs["squeeze_dims"]
    if shape is None:
        return [None]
    if not dims:
        return [None if None in shape else tuple(d for d in shape if d != 1)]
    axes = {c.axis(d, len(shape), "squeeze_dims") for d in dims}
    for axis in sorted(axes):
        if shape[axis] not in (None, 1):
            raise c.error(f"dimension {axis} of the input {format_shape(shape)} is {shape[axis]}; it must be 1")
    return [tuple(d for i, d in enumerate(shape) if i not in axes)]


def _squeeze(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    axes = tuple({d % x.ndim for d in attrs["squeeze_dims"]})
    return np.squeeze(x, axes or None)


def _squeeze_samples() -> Iterator[Sample]:
    for shape, dims in (
        ((), ()), ((1,), ()), ((1, 3, 1), ()), ((1, 3, 1), (0,)), ((1, 3, 1), (-1,)), ((1, 3, 1), (0, 2)),
        ((1, 0, 1), ()), ((1, 3, 1), (2, -1)), ((1, 65_537), (0,)),
    ):  # fmt: skip
        yield Sample([Arg(shape)], {"squeeze_dims": dims})


def _squeeze_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 1))], r"dimension 0 of the input \(2, 1\) is 2; it must be 1", {"squeeze_dims": (0,)})
    yield ErrorSample([Arg((2, 1))], "squeeze_dims 2 is outside the input's rank 2", {"squeeze_dims": (2,)})


define_op(
    "Squeeze",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type", "squeeze_dims: list(int) >= 0 = []"],
    python_names={"squeeze_dims": "axis"},
    doc="The input without the dimensions of size one, or without those of them that `squeeze_dims` names.",
    shape=_squeeze_shape,
    reference=_squeeze,
    value=reshaped_value,
    total_value=True,
    gradient=lambda op, grad: [reshape_like(grad, op.inputs[0])],
    alias=((0, 0),),
    samples=_squeeze_samples,
    errors=_squeeze_errors,
)
