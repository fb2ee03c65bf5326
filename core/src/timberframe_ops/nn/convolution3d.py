"""Convolutions over three spatial dimensions, and their gradients by the input and by the filter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import float32
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, format_shape, merge
from timberframe_ops.nn.convolution_gradients import Sizes, described_shape
from timberframe_ops.nn.windows import (
    channel_axis,
    check_window_attr,
    from_channels_last,
    input_gradient_terms,
    output_size,
    padding_amounts,
    spatial_axes,
    to_channels_last,
    widen,
)


def _convolved(c: InferenceContext, x: Sizes, filter: Sizes) -> tuple[int | None, ...]:
    """Returns the shape of the convolution of x by filter, all attrs and both shapes being checked."""
    data_format, strides, dilations = c.attrs["data_format"], c.attrs["strides"], c.attrs["dilations"]
    channels = channel_axis(data_format, 5)
    for name, values in (("strides", strides), ("dilations", dilations)):
        check_window_attr(c, name, values, 5)
        if values[0] != 1 or values[channels] != 1:
            raise c.error(f"{name} is {list(values)}; it must be 1 for batch and channels")
    if 0 in filter:
        raise c.late_error(f"filter has shape {format_shape(tuple(filter))}; all its sizes must be positive")
    if None not in (x[channels], filter[3]) and x[channels] != filter[3]:
        raise c.late_error(f"input has {x[channels]} channels; the filter takes {filter[3]}, they must agree")
    shape = list(x)
    shape[channels] = filter[4]
    for i, axis in enumerate(spatial_axes(data_format, 5)):
        shape[axis] = output_size(c, x[axis], filter[i], strides[axis], dilations[axis], c.attrs["padding"])
    return tuple(shape)


def _check_gradient(c: InferenceContext, x: Sizes, filter: Sizes) -> None:
    expected, given = _convolved(c, x, filter), c.require_rank(2, 5)
    try:
        merge(expected, given)
    except ValueError:
        raise c.late_error(
            f"out_backprop has shape {format_shape(given)}; it must have the convolution's, {format_shape(expected)}"
        ) from None


@late_errors
def _input_shape(c: InferenceContext) -> Sequence[Shape]:
    sizes, filter = described_shape(c, 0, "input_sizes", (5,)), c.require_rank(1, 5)
    _check_gradient(c, sizes, filter)
    return [tuple(sizes)]


@late_errors
def _filter_shape(c: InferenceContext) -> Sequence[Shape]:
    x, sizes = c.require_rank(0, 5), described_shape(c, 1, "filter_sizes", (5,))
    _check_gradient(c, x, sizes)
    return [tuple(sizes)]


def _padding(attrs: Attrs, shape: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
    axes = spatial_axes(attrs["data_format"], 5)
    return [
        padding_amounts(shape[a], kernel[i], attrs["strides"][a], attrs["dilations"][a], attrs["padding"])
        for i, a in enumerate(axes)
    ]


def _padded(attrs: Attrs, x: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
    """x with channels last and zeros around it."""
    return np.pad(to_channels_last(x, attrs["data_format"]), [(0, 0), *_padding(attrs, x.shape, kernel), (0, 0)])


def _taps(
    attrs: Attrs, padded: np.ndarray, kernel: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """For each tap the view of a padded volume that `counts` windows have under it."""
    axes = spatial_axes(attrs["data_format"], 5)
    for tap in np.ndindex(*kernel):
        starts = [t * attrs["dilations"][a] for t, a in zip(tap, axes, strict=True)]
        steps = [attrs["strides"][a] for a in axes]
        cuts = [slice(f, f + (n - 1) * s + 1, s) for f, n, s in zip(starts, counts, steps, strict=True)]
        yield tap, padded[:, cuts[0], cuts[1], cuts[2]]


def _conv3d(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> np.ndarray:
    x, w = widen(input), widen(filter)
    pads = _padding(attrs, x.shape, w.shape[:3])
    counts = []
    for i, a in enumerate(spatial_axes(attrs["data_format"], 5)):
        room = x.shape[a] + sum(pads[i]) - (w.shape[i] - 1) * attrs["dilations"][a] - 1
        counts.append(max(room // attrs["strides"][a] + 1, 0) if x.shape[a] else 0)
    result = np.zeros((x.shape[0], *counts, w.shape[4]), x.dtype)
    if result.size:
        for tap, part in _taps(attrs, _padded(attrs, x, w.shape[:3]), w.shape[:3], counts):
            result += part @ w[tap]
    return from_channels_last(result.astype(input.dtype), attrs["data_format"])


def _by_input(attrs: Attrs, input_sizes: np.ndarray, filter: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    shape, w = tuple(int(d) for d in input_sizes), widen(filter)
    dy = to_channels_last(widen(out_backprop), attrs["data_format"])
    padded = _padded(attrs, np.zeros(shape, w.dtype), w.shape[:3])
    if dy.size:
        for tap, part in _taps(attrs, padded, w.shape[:3], dy.shape[1:4]):
            part += dy @ w[tap].T
    sizes = [shape[a] for a in spatial_axes(attrs["data_format"], 5)]
    cuts = [slice(p[0], p[0] + n) for p, n in zip(_padding(attrs, shape, w.shape[:3]), sizes, strict=True)]
    inside = padded[:, cuts[0], cuts[1], cuts[2]].astype(filter.dtype)
    return from_channels_last(inside, attrs["data_format"])


def _by_filter(attrs: Attrs, input: np.ndarray, filter_sizes: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    shape = tuple(int(d) for d in filter_sizes)
    dy = to_channels_last(widen(out_backprop), attrs["data_format"])
    result = np.zeros(shape, dy.dtype)
    if dy.size:
        pixels = ([0, 1, 2, 3], [0, 1, 2, 3])
        for tap, part in _taps(attrs, _padded(attrs, widen(input), shape[:3]), shape[:3], dy.shape[1:4]):
            result[tap] = np.tensordot(part, dy, pixels)
    return result.astype(input.dtype)


# (input NDHWC, kernel, output channels, strides, dilations, padding)
_GEOMETRIES = (
    ((1, 1, 1, 1, 1), (1, 1, 1), 1, (1, 1, 1), (1, 1, 1), "VALID"),
    ((2, 4, 5, 6, 3), (3, 3, 3), 5, (1, 1, 1), (1, 1, 1), "SAME"),
    ((1, 5, 7, 6, 2), (2, 3, 2), 17, (2, 2, 3), (1, 1, 1), "SAME"),
    ((2, 6, 5, 7, 2), (3, 2, 3), 4, (1, 2, 1), (1, 1, 1), "VALID"),
    ((1, 7, 6, 9, 3), (3, 2, 3), 3, (2, 1, 1), (2, 3, 2), "SAME"),
    ((1, 3, 4, 5, 17), (1, 1, 1), 33, (1, 1, 1), (1, 1, 1), "SAME"),
    ((1, 7, 5, 5, 2), (1, 2, 1), 2, (3, 1, 2), (1, 1, 1), "VALID"),
    ((0, 3, 4, 4, 3), (2, 2, 2), 2, (1, 1, 1), (1, 1, 1), "SAME"),
    ((1, 3, 0, 4, 3), (2, 2, 2), 2, (1, 1, 1), (1, 1, 1), "SAME"),
)


def _layout(values: Sequence[int], data_format: str) -> tuple[int, ...]:
    return tuple(values) if data_format == "NDHWC" else (values[0], values[4], *values[1:4])


def _attrs(strides: Sequence[int], dilations: Sequence[int], padding: str, data_format: str) -> dict[str, Any]:
    return {
        "strides": _layout((1, *strides, 1), data_format),
        "dilations": _layout((1, *dilations, 1), data_format),
        "padding": padding,
        "data_format": data_format,
    }


def _cases() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]]:
    """Yields shapes of the input, the filter and the output, and attrs."""
    for shape, kernel, outside, strides, dilations, padding in _GEOMETRIES:
        for data_format in ("NDHWC", "NCDHW"):
            x, filter = _layout(shape, data_format), (*kernel, shape[4], outside)
            attrs = _attrs(strides, dilations, padding, data_format)
            known: Any = InferenceContext(_CONV3D, "sample", attrs, [x, filter], [None] * 2, [float32] * 2)
            result: Any = _convolved(known, x, filter)
            yield x, filter, result, attrs


def _samples() -> Iterator[Sample]:
    for x, filter, _, attrs in _cases():
        yield Sample((Arg(x), Arg(filter, special=False)), attrs)


def _input_samples() -> Iterator[Sample]:
    for number, (x, filter, y, attrs) in enumerate(_cases()):
        sizes = Arg(values=x, dtype=("int32", "int64")[number % 2])
        types = {"Tshape": (("int32", "int64")[number % 2],)}
        yield Sample((sizes, Arg(filter, special=False), Arg(y, special=False)), attrs, types)


def _filter_samples() -> Iterator[Sample]:
    for x, filter, y, attrs in _cases():
        yield Sample((Arg(x, special=False), Arg(values=filter, dtype="int32"), Arg(y, special=False)), attrs)


_BASE = _attrs((1, 1, 1), (1, 1, 1), "VALID", "NDHWC")


def _errors() -> Iterator[ErrorSample]:
    x, w = Arg((1, 4, 4, 4, 2)), Arg((2, 2, 2, 2, 3))
    yield ErrorSample((Arg((4, 4, 4, 2)), w), "must have rank 5", _BASE)
    yield ErrorSample((x, Arg((2, 2, 2, 3, 3))), "input has 2 channels; the filter takes 3", _BASE)
    yield ErrorSample((x, Arg((2, 0, 2, 2, 3))), "sizes must be positive", _BASE)
    yield ErrorSample((x, Arg((2, 7, 2, 2, 3))), "not be larger than the padded input", _BASE)
    yield ErrorSample((x, w), "must be 1 for batch and channels", _BASE | {"strides": (1, 1, 1, 1, 2)})
    yield ErrorSample((x, w), "strides is .*must be positive", _BASE | {"strides": (1, 0, 1, 1, 1)})
    yield ErrorSample((x, w), "dilations is .*must have 5 values", _BASE | {"dilations": (1, 1, 1, 1)})


def _gradient_errors(by_filter: bool) -> Iterator[ErrorSample]:
    x, w, y = (1, 4, 4, 4, 2), (2, 2, 2, 2, 3), (1, 3, 3, 3, 3)

    def sample(match: str, sizes: tuple[int, ...], grad: tuple[int, ...]) -> ErrorSample:
        described = Arg(values=sizes, dtype="int32")
        inputs = (Arg(x), described, Arg(grad)) if by_filter else (described, Arg(w), Arg(grad))
        return ErrorSample(inputs, match, _BASE)

    yield sample("out_backprop has shape", w if by_filter else x, (1, 3, 3, 4, 3))
    yield sample("has 4 values; it must have 5", (w if by_filter else x)[:4], y)
    yield sample("must have rank 5", w if by_filter else x, (3, 3, 3, 3))


def _attrs_of(op: Any) -> dict[str, Any]:
    return {name: op.attrs[name] for name in ("strides", "padding", "data_format", "dilations")}


def _gradient(op: Any, grad: Any) -> list[Any]:
    x, filter = op.inputs
    return [
        apply_op("Conv3DBackpropInputV2", [shape_of(x), filter, grad], _attrs_of(op)),
        apply_op("Conv3DBackpropFilterV2", [x, shape_of(filter), grad], _attrs_of(op)),
    ]


def _input_gradient(op: Any, grad: Any) -> list[Any]:
    _, filter, dy = op.inputs
    by_filter = apply_op("Conv3DBackpropFilterV2", [grad, shape_of(filter), dy], _attrs_of(op))
    return [None, by_filter, apply_op("Conv3D", [grad, filter], _attrs_of(op))]


def _filter_gradient(op: Any, grad: Any) -> list[Any]:
    x, _, dy = op.inputs
    by_input = apply_op("Conv3DBackpropInputV2", [shape_of(x), grad, dy], _attrs_of(op))
    return [by_input, None, apply_op("Conv3D", [x, grad], _attrs_of(op))]


def _pixels(attrs: Attrs, input: np.ndarray, filter_sizes: np.ndarray, out_backprop: np.ndarray) -> int:
    return int(out_backprop.size // max(out_backprop.shape[channel_axis(attrs["data_format"], 5)], 1))


_DECLARED = (
    "T: {half, bfloat16, float, double}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
)

_CONV3D = define_op(
    "Conv3D",
    inputs=("input: T", "filter: T"),
    outputs=("output: T",),
    attrs=_DECLARED,
    doc="Slides a filter [depth, height, width, input channels, output channels] over volumes and sums the products.",
    shape=lambda c: [_convolved(c, c.require_rank(0, 5), c.require_rank(1, 5))],
    reference=_conv3d,
    gradient=_gradient,
    accuracy=Accumulation(lambda attrs, x, filter: math.prod(filter.shape[:4])),
    samples=_samples,
    errors=_errors,
)

define_op(
    "Conv3DBackpropInputV2",
    inputs=("input_sizes: Tshape", "filter: T", "out_backprop: T"),
    outputs=("output: T",),
    attrs=(*_DECLARED, "Tshape: {int32, int64} = DT_INT32"),
    doc="The gradient of Conv3D by its input, whose shape is input_sizes.",
    shape=_input_shape,
    reference=_by_input,
    gradient=_input_gradient,
    accuracy=Accumulation(input_gradient_terms),
    shape_inputs=("input_sizes",),
    samples=_input_samples,
    errors=lambda: _gradient_errors(False),
)

define_op(
    "Conv3DBackpropFilterV2",
    inputs=("input: T", "filter_sizes: int32", "out_backprop: T"),
    outputs=("output: T",),
    attrs=_DECLARED,
    doc="The gradient of Conv3D by its filter, whose shape is filter_sizes.",
    shape=_filter_shape,
    reference=_by_filter,
    gradient=_filter_gradient,
    accuracy=Accumulation(_pixels),
    shape_inputs=("filter_sizes",),
    samples=_filter_samples,
    errors=lambda: _gradient_errors(True),
)
