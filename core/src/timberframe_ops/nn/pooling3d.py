"""Maxima and means over windows of volumes, and their gradients; like those of images in `pooling`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.ops.definition.accuracy import EXACT, Accumulation, Accuracy, Exact
from timberframe_core.ops.definition.gradients import apply_op, shape_of, zeros_like
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, OpDef, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape, merge
from timberframe_ops.nn.windows import (
    channel_axis,
    check_window_attr,
    from_channels_last,
    output_size,
    padding_amounts,
    spatial_axes,
    to_channels_last,
    unimplemented,
    widen,
)

_ATTRS = (
    "ksize: list(int) >= 5",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
)


def _pooled(c: InferenceContext, x: Sequence[int | None]) -> Shape:
    ksize, strides, data_format = c.attrs["ksize"], c.attrs["strides"], c.attrs["data_format"]
    check_window_attr(c, "ksize", ksize, 5)
    check_window_attr(c, "strides", strides, 5)
    for axis in (0, channel_axis(data_format, 5)):
        if ksize[axis] != 1 or strides[axis] != 1:
            raise unimplemented(
                c, f"ksize {list(ksize)} and strides {list(strides)} pool over dimension {axis}; both must be 1 there"
            )
    shape = list(x)
    for axis in spatial_axes(data_format, 5):
        shape[axis] = output_size(c, x[axis], ksize[axis], strides[axis], 1, c.attrs["padding"])
    return tuple(shape)


def _merge(c: InferenceContext, name: str, given: Shape, wanted: Shape) -> None:
    try:
        merge(given, wanted)
    except ValueError:
        raise c.late_error(f"{name} has shape {format_shape(given)}; it must be {format_shape(wanted)}") from None


def _windows(attrs: Attrs, x: np.ndarray, fill: Any) -> np.ndarray:
    """Returns all windows of a padded volume, channels last: [N, planes, rows, columns, C, taps]."""
    axes = spatial_axes(attrs["data_format"], 5)
    kernel, strides = [attrs["ksize"][a] for a in axes], [attrs["strides"][a] for a in axes]
    pads = [
        padding_amounts(x.shape[a], k, s, 1, attrs["padding"]) for a, k, s in zip(axes, kernel, strides, strict=True)
    ]
    last = np.pad(to_channels_last(x, attrs["data_format"]), [(0, 0), *pads, (0, 0)], constant_values=fill)
    if any(size < k for size, k in zip(last.shape[1:4], kernel, strict=True)):  # an empty volume
        counts = [max(size - k + s, 0) // s for size, k, s in zip(last.shape[1:4], kernel, strides, strict=True)]
        return np.zeros((last.shape[0], *counts, last.shape[4], math.prod(kernel)), last.dtype)
    view = np.lib.stride_tricks.sliding_window_view(last, kernel, axis=(1, 2, 3))
    view = view[:, :: strides[0], :: strides[1], :: strides[2]]
    return view.reshape(*view.shape[:5], math.prod(kernel))


def _positions(attrs: Attrs, shape: Sequence[int]) -> np.ndarray:
    """For each output (channels last) and tap the element of the channels-last volume that is there, -1 outside."""
    last = to_channels_last(np.zeros(shape, np.int8), attrs["data_format"]).shape
    order = np.arange(math.prod(shape), dtype=np.int64).reshape(last)
    return _windows(attrs, from_channels_last(order, attrs["data_format"]), -1)


def _max_pool(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    lowest = np.asarray(as_dtype(x.dtype).min, x.dtype)
    taps = _windows(attrs, x, lowest)
    clean = np.where(taps > lowest, taps, lowest)
    largest = np.argmax(clean, axis=-1)[..., None]
    return from_channels_last(np.take_along_axis(clean, largest, axis=-1)[..., 0], attrs["data_format"])


def _first(where: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Of each window the first element that was chosen."""
    return np.take_along_axis(where, chosen.argmax(axis=-1)[..., None], axis=-1)[..., 0]


def _max_grad(attrs: Attrs, orig_input: np.ndarray, orig_output: np.ndarray, grad: np.ndarray) -> np.ndarray:
    data_format, where = attrs["data_format"], _positions(attrs, orig_input.shape)
    x, dy = to_channels_last(orig_input, data_format), to_channels_last(widen(grad), data_format)
    result = np.zeros(x.size, dy.dtype)
    if where.size:
        equal = (where >= 0) & (
            x.ravel()[np.maximum(where, 0)] == to_channels_last(orig_output, data_format)[..., None]
        )
        np.add.at(result, where[equal], np.broadcast_to(dy[..., None], where.shape)[equal])
    return from_channels_last(result.reshape(x.shape).astype(grad.dtype), data_format)


def _max_grad_grad(attrs: Attrs, orig_input: np.ndarray, orig_output: np.ndarray, grad: np.ndarray) -> np.ndarray:
    data_format, where = attrs["data_format"], _positions(attrs, orig_input.shape)
    if not where.size:
        return np.zeros(orig_output.shape, grad.dtype)
    values = to_channels_last(orig_input, data_format).ravel()[np.maximum(where, 0)]
    equal = (where >= 0) & (values == to_channels_last(orig_output, data_format)[..., None])
    taken = to_channels_last(grad, data_format).ravel()[np.maximum(_first(where, equal), 0)]
    result = np.where(equal.any(axis=-1), taken, np.zeros((), grad.dtype))
    return from_channels_last(result.astype(grad.dtype), data_format)


def _avg_pool(attrs: Attrs, input: np.ndarray) -> np.ndarray:
    wide = widen(input)
    count = _windows(attrs, np.ones_like(wide, shape=(1, *input.shape[1:])), 0).sum(axis=-1)
    mean = _windows(attrs, wide, 0).sum(axis=-1) / np.maximum(count, 1)
    return from_channels_last(mean.astype(input.dtype), attrs["data_format"])


def _avg_grad(attrs: Attrs, orig_input_shape: np.ndarray, grad: np.ndarray) -> np.ndarray:
    shape, data_format = tuple(int(d) for d in orig_input_shape), attrs["data_format"]
    where, dy = _positions(attrs, shape), to_channels_last(widen(grad), data_format)
    inside = where >= 0
    share = dy / np.maximum(inside.sum(axis=-1), 1)
    result = np.zeros(math.prod(shape), dy.dtype)
    np.add.at(result, where[inside], np.broadcast_to(share[..., None], where.shape)[inside])
    last = to_channels_last(np.zeros(shape, np.int8), data_format).shape
    return from_channels_last(result.reshape(last).astype(grad.dtype), data_format)


def _overlaps(attrs: Attrs, *inputs: np.ndarray) -> int:
    """Returns the most windows that an element lies in."""
    return math.prod(-(-k // s) for k, s in zip(attrs["ksize"], attrs["strides"], strict=True))


def _max_grad_magnitude(attrs: Attrs, x: np.ndarray, y: np.ndarray, grad: np.ndarray) -> np.ndarray:
    return _max_grad(attrs, x, y, np.abs(grad))


# (input NDHWC, ksize, strides, padding)
_GEOMETRIES = (
    ((1, 1, 1, 1, 1), (1, 1, 1), (1, 1, 1), "VALID"),
    ((2, 5, 6, 7, 3), (2, 2, 2), (2, 2, 2), "VALID"),
    ((1, 4, 5, 7, 2), (3, 2, 3), (1, 2, 2), "SAME"),
    ((1, 3, 4, 5, 17), (3, 3, 3), (1, 1, 1), "SAME"),
    ((2, 3, 4, 5, 1), (1, 2, 1), (3, 1, 2), "SAME"),
    ((1, 3, 1, 5, 1), (1, 2, 1), (3, 1, 2), "SAME"),
    ((1, 2, 3, 2, 130), (2, 3, 2), (1, 1, 1), "VALID"),
    ((0, 4, 4, 4, 3), (2, 2, 2), (2, 2, 2), "SAME"),
    ((1, 4, 0, 4, 3), (2, 2, 2), (2, 2, 2), "SAME"),
)


_ALL_DIFFER = 2039  # a prime that is larger than the volumes, of which float16 holds all smaller numbers


def _layout(values: Sequence[int], data_format: str) -> tuple[int, ...]:
    return tuple(values) if data_format == "NDHWC" else (values[0], values[4], *values[1:4])


def _cases() -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Yields shapes of inputs, and attrs."""
    for shape, ksize, strides, padding in _GEOMETRIES:
        for data_format in ("NDHWC", "NCDHW"):
            yield (
                _layout(shape, data_format),
                {
                    "ksize": _layout((1, *ksize, 1), data_format),
                    "strides": _layout((1, *strides, 1), data_format),
                    "padding": padding,
                    "data_format": data_format,
                },
            )


def _result(forward: OpDef, shape: tuple[int, ...], attrs: Attrs) -> tuple[int, ...]:
    known: Any = _pooled(InferenceContext(forward, "sample", attrs, [shape], [None], [float32]), shape)
    return tuple(known)


def _samples() -> Iterator[Sample]:
    for shape, attrs in _cases():
        yield Sample((Arg(shape),), attrs)


def _max_samples(second: bool) -> Iterator[Sample]:
    """Volumes whose elements all differ, and volumes with ties.

    These have no second derivatives: where such are tried, values move a little, of which narrow floats keep too few.
    """
    wide = {"T": ("float32",), "TInput": ("float32",)}
    for shape, attrs in _cases():
        order = np.arange(math.prod(shape)) * 37
        for x, smooth in ((order % _ALL_DIFFER, True), (order % 5 // 2, False)):
            types = {} if smooth else wide
            pooled = _result(_MAX_POOL, shape, attrs)
            y = _max_pool(attrs, x.reshape(shape)) if math.prod(pooled) else np.zeros(pooled, np.int64)
            grad = Arg(shape if second else pooled, special=False)
            yield Sample((Arg(values=x.reshape(shape), fixed=smooth), Arg(values=y, fixed=smooth), grad), attrs, types)


def _avg_grad_samples() -> Iterator[Sample]:
    for shape, attrs in _cases():
        grad = Arg(_result(_AVG_POOL, shape, attrs), special=False)
        yield Sample((Arg(values=shape, dtype="int32"), grad), attrs)


_BASE: dict[str, Any] = {"ksize": (1, 2, 2, 2, 1), "strides": (1, 2, 2, 2, 1), "padding": "VALID"}
_DEEP = {"ksize": (1, 1, 1, 1, 2), "strides": (1, 1, 1, 1, 2)}


def _errors() -> Iterator[ErrorSample]:
    x = Arg((1, 4, 4, 4, 2))
    yield ErrorSample((Arg((4, 4, 4, 2)),), "must have rank 5", _BASE)
    yield ErrorSample((x,), "ksize is .*must be positive", _BASE | {"ksize": (1, 0, 2, 2, 1)})
    yield ErrorSample((x,), "pool over dimension 4", _BASE | _DEEP, error="UnimplementedError")
    yield ErrorSample((x,), "not be larger than the padded input", _BASE | {"ksize": (1, 7, 2, 2, 1)})


def _max_errors(second: bool) -> Iterator[ErrorSample]:
    x, y = Arg((1, 4, 4, 4, 2)), Arg((1, 2, 2, 2, 2))
    yield ErrorSample((x, Arg((1, 2, 3, 2, 2)), x if second else y), "orig_output has shape", _BASE)
    yield ErrorSample((x, y, Arg((1, 2, 3, 2, 2))), "grad has shape", _BASE)
    yield ErrorSample((Arg((4, 4, 4, 2)), y, y), "must have rank 5", _BASE)


def _avg_grad_errors() -> Iterator[ErrorSample]:
    x, grad = Arg(values=(1, 4, 4, 4, 2), dtype="int32"), Arg((1, 2, 2, 2, 2))
    yield ErrorSample((x, Arg((1, 2, 3, 2, 2))), "grad has shape", _BASE)
    yield ErrorSample((Arg(values=(1, 4, 4, 2), dtype="int32"), grad), "has 4 values; it must have 5", _BASE)


def _attrs_of(op: Any) -> dict[str, Any]:
    return {name: op.attrs[name] for name in ("ksize", "strides", "padding", "data_format")}


def _forward_shape(c: InferenceContext) -> Sequence[Shape]:
    return [_pooled(c, c.require_rank(0, 5))]


def _max_shape(second: bool) -> Callable[[InferenceContext], Sequence[Shape]]:
    def shape(c: InferenceContext) -> Sequence[Shape]:
        x = c.require_rank(0, 5)
        y = _pooled(c, x)
        _merge(c, "orig_output", c.require_rank(1, 5), y)
        _merge(c, "grad", c.require_rank(2, 5), x if second else y)
        return [y if second else x]

    return shape


@late_errors
def _avg_grad_shape(c: InferenceContext) -> Sequence[Shape]:
    (length,) = c.require_rank(0, 1)
    if length not in (None, 5):
        raise c.late_error(f"orig_input_shape has {length} values; it must have 5")
    sizes, grad = c.shape_value(0), c.require_rank(1, 5)
    x = (None,) * 5 if sizes is None else sizes
    _merge(c, "grad", grad, _pooled(c, x))
    return [x]


def _max_gradient(next_op: str) -> Callable[..., list[Any]]:
    """orig_input and orig_output move nothing but the positions of the maxima."""

    def gradient(op: Any, grad: Any) -> list[Any]:
        x, y, _ = op.inputs
        return [zeros_like(x), zeros_like(y), apply_op(next_op, [x, y, grad], _attrs_of(op))]

    return gradient


_MAX_TYPES = "{half, bfloat16, float}"
_MAX_DTYPES = ("float16", "bfloat16", "float32")
_MEAN_TYPES = "T: {half, bfloat16, float, double}"

_MAX_POOL = define_op(
    "MaxPool3D",
    inputs=("input: T",),
    outputs=("output: T",),
    attrs=(*_ATTRS, f"T: {_MAX_TYPES}"),
    doc="The largest value in each window of a volume. NaN is passed over, as in MaxPool.",
    shape=_forward_shape,
    reference=_max_pool,
    gradient=lambda op, grad: [apply_op("MaxPool3DGrad", [op.inputs[0], op.outputs[0], grad], _attrs_of(op))],
    gradient_notes=("every_tie",),
    accuracy=Exact(signed_zero=False),
    samples=_samples,
    errors=_errors,
)

_AVG_POOL = define_op(
    "AvgPool3D",
    inputs=("input: T",),
    outputs=("output: T",),
    attrs=(*_ATTRS, _MEAN_TYPES),
    doc="The mean of each window's positions inside the volume.",
    shape=_forward_shape,
    reference=_avg_pool,
    gradient=lambda op, grad: [apply_op("AvgPool3DGrad", [shape_of(op.inputs[0]), grad], _attrs_of(op))],
    accuracy=Accumulation(lambda attrs, value: math.prod(attrs["ksize"]) + 1),
    samples=_samples,
    errors=_errors,
)


def _define_max(name: str, types: tuple[str, ...], second: bool, of: str) -> None:
    given = "T" if second else "TInput"
    accuracy: Accuracy = EXACT if second else Accumulation(_overlaps, _max_grad_magnitude)
    define_op(
        name,
        inputs=(f"orig_input: {given}", f"orig_output: {given}", "grad: T"),
        outputs=("output: T",),
        attrs=(*_ATTRS, *types),
        doc=f"The gradient of {of}: "
        + (
            "of each window the grad at its first maximum."
            if second
            else "all elements that equal orig_output in a window get that window's grad."
        ),
        shape=late_errors(_max_shape(second)),
        reference=_max_grad_grad if second else _max_grad,
        defined_for=tuple(dict.fromkeys(("T",) if second else ("T", "TInput"), (t,)) for t in _MAX_DTYPES),
        gradient=_max_gradient("MaxPool3DGrad" if second else "MaxPool3DGradGrad"),
        gradient_notes=() if second else ("every_tie",),
        constant_inputs=("orig_input", "orig_output") if second else (),
        accuracy=accuracy,
        samples=lambda: _max_samples(second),
        errors=lambda: _max_errors(second),
    )


_NUMBERS = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_define_max("MaxPool3DGrad", (f"T: {_MAX_TYPES} = DT_FLOAT", f"TInput: {_MAX_TYPES} = DT_FLOAT"), False, "MaxPool3D")
_define_max("MaxPool3DGradGrad", (f"T: {_NUMBERS}",), True, "MaxPool3DGrad")

define_op(
    "AvgPool3DGrad",
    inputs=("orig_input_shape: int32", "grad: T"),
    outputs=("output: T",),
    attrs=(*_ATTRS, _MEAN_TYPES),
    doc="The gradient of AvgPool3D by its input, whose shape is orig_input_shape.",
    shape=_avg_grad_shape,
    reference=_avg_grad,
    gradient=lambda op, grad: [None, apply_op("AvgPool3D", [grad], _attrs_of(op))],
    accuracy=Accumulation(lambda attrs, *inputs: _overlaps(attrs) + 2),
    shape_inputs=("orig_input_shape",),
    samples=_avg_grad_samples,
    errors=_avg_grad_errors,
)
