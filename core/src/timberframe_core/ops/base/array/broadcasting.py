"""BroadcastTo, and the axes along which gradients of broadcasting ops are summed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from timberframe_core.ops.definition.gradients import sum_to_shape
from timberframe_core.ops.definition.host_values import HostValue, checked, elements, vector_length
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape


def _broadcast_to_shape(c: InferenceContext) -> list[Shape]:
    source = c.shapes[0]
    length = vector_length(c, 1, "shape")
    if c.values[1] is None:
        return [c.unknown_sizes(length)]
    sizes = elements(c, 1, length or 0)
    if any(d is not None and d < 0 for d in sizes):
        raise c.error(f"shape is {format_shape(tuple(sizes))}; sizes must be zero or more")
    if source is not None:
        aligned = (1,) * (len(sizes) - len(source)) + source
        fits = len(source) <= len(sizes) and all(
            a is None or b is None or a in (1, b) for a, b in zip(aligned, sizes, strict=True)
        )
        if not fits:
            raise c.error(
                f"input {format_shape(source)} does not broadcast to {format_shape(tuple(sizes))}; each of its sizes, "
                "counted from the last, must be 1 or the wanted one"
            )
    return [checked(c, tuple(sizes))]


def _broadcast_to(attrs: Attrs, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, tuple(int(d) for d in shape.reshape(-1)))


def _broadcast_to_samples() -> Iterator[Sample]:
    for shape, new in (
        ((), ()), ((), (3, 5)), ((1,), (0,)), ((0,), (3, 0)), ((7,), (5, 7)), ((5, 1), (5, 7)), ((1, 7), (5, 7)),
        ((3, 1, 5), (2, 3, 4, 5)), ((1, 3, 1, 2), (2, 3, 5, 2)), ((7, 13), (7, 13)), ((1, 3), (65_537, 3)),
        ((3, 1), (3, 65_537)), ((2, 1, 3, 1, 2, 1, 1, 1), (2, 3, 3, 2, 2, 2, 1, 5)),
    ):  # fmt: skip
        yield Sample([Arg(shape), Arg(values=np.array(new, np.int64))])


def _broadcast_to_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg(()), Arg(values=4)], r"shape has shape \(\); it must be a vector")
    yield ErrorSample([Arg((2, 1)), Arg(values=(3, 3))], r"input \(2, 1\) does not broadcast to \(3, 3\)")
    yield ErrorSample([Arg((2, 1)), Arg(values=(2,))], r"input \(2, 1\) does not broadcast to \(2,\)")
    yield ErrorSample([Arg((0,)), Arg(values=(1,))], r"input \(0,\) does not broadcast to \(1,\)")
    yield ErrorSample([Arg((2, 1)), Arg(values=(-1, 3))], r"shape is \(-1, 3\); sizes must be zero or more")
    huge = Arg(values=[2**40, 2**40])
    yield ErrorSample([Arg(()), huge], "must fit 63 bits", types={"Tidx": ("int64",)})


define_op(
    "BroadcastTo",
    inputs=["input: T", "shape: Tidx"],
    outputs=["output: T"],
    attrs=["T: type", "Tidx: {int32, int64} = DT_INT32"],
    doc="The input repeated along its dimensions of size one, and along new leading ones, up to `shape`.",
    shape=_broadcast_to_shape,
    reference=_broadcast_to,
    gradient=lambda op, grad: [sum_to_shape(grad, op.inputs[0]), None],
    shape_inputs=("shape",),
    samples=_broadcast_to_samples,
    errors=_broadcast_to_errors,
)


def _gradient_axes_shape(c: InferenceContext) -> list[Shape]:
    for i, arg in enumerate(c.op.inputs):
        vector_length(c, i, arg.name)
    first, second = c.value(0), c.value(1)
    if first is not None and second is not None:
        return [r.shape for r in _gradient_axes_checked(c, first, second)]
    return [(None,), (None,)]


def _gradient_axes_checked(c: InferenceContext, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rank = max(first.size, second.size)
    for a, b in zip(_aligned(first, rank), _aligned(second, rank), strict=True):
        if a != b and 1 not in (a, b):
            raise c.error(
                f"shapes {format_shape(tuple(first.tolist()))} and {format_shape(tuple(second.tolist()))} "
                "do not broadcast; "
                "sizes must be equal or 1, counted from the last dimension"
            )
    return _gradient_axes(c.attrs, first, second)


def _aligned(shape: np.ndarray, rank: int) -> list[int]:
    return [1] * (rank - shape.size) + [int(d) for d in shape]


def _gradient_axes(attrs: Attrs, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if first.shape == second.shape and (first == second).all():
        return np.zeros(0, first.dtype), np.zeros(0, first.dtype)
    rank = max(first.size, second.size)
    pairs = list(zip(_aligned(first, rank), _aligned(second, rank), strict=True))
    left = [i for i, (a, b) in enumerate(pairs) if a == 1]
    right = [i for i, (a, b) in enumerate(pairs) if b == 1]
    return np.array(left, first.dtype), np.array(right, first.dtype)


def _gradient_axes_value(c: InferenceContext) -> list[HostValue]:
    first, second = c.value(0), c.value(1)
    if first is None or second is None:
        return [None, None]
    return list(_gradient_axes_checked(c, first, second))


def _gradient_axes_samples() -> Iterator[Sample]:
    for first, second in (
        ((2, 1, 3), (4, 3)), ((2, 1, 1), (1, 1)), ((1,), (1,)), ((2, 2), (2, 2)), ((1, 2, 1), (1, 2, 3)), ((), (2, 3)),
        ((), ()), ((0, 1), (1, 5)), ((7,), (3, 1)),
    ):  # fmt: skip
        yield Sample([Arg(values=np.array(first, np.int64)), Arg(values=np.array(second, np.int64))])


define_op(
    "BroadcastGradientArgs",
    inputs=["s0: T", "s1: T"],
    outputs=["r0: T", "r1: T"],
    attrs=["T: {int32, int64} = DT_INT32"],
    doc="For two shapes that broadcast: the axes over which each one's gradient must be summed.",
    shape=_gradient_axes_shape,
    reference=_gradient_axes,
    value=_gradient_axes_value,
    gradient=NotDifferentiable("the inputs are shapes"),
    shape_inputs=("s0", "s1"),
    samples=_gradient_axes_samples,
    errors=lambda: [
        ErrorSample([Arg(values=(2, 3)), Arg(values=(2, 4))], r"shapes \(2, 3\) and \(2, 4\) do not broadcast")
    ],
)
