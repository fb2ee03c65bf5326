"""Convolutions over two spatial dimensions, and the bias that follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe.dtypes import NUMERIC
from timberframe.ops.accuracy import Accumulation
from timberframe.ops.opdef import Attrs, InferenceContext, define_op
from timberframe.ops.samples import Arg, ErrorSample, Sample
from timberframe.ops.windows import (
    channel_axis,
    check_window_attr,
    explicit_pairs,
    from_channels_last,
    output_size,
    pad_spatial,
    padding_amounts,
    spatial_axes,
    to_channels_last,
    unimplemented,
    widen,
    windows,
)
from timberframe.shapes import Shape, format_shape

_NUMBERS = "{" + ", ".join(t.name for t in NUMERIC) + ", qint8, quint8, qint16, quint16, qint32}"


def _bias_shape(c: InferenceContext) -> Sequence[Shape]:
    value, (count,) = c.shapes[0], c.require_rank(1, 1)
    if value is None:
        return [None]
    data_format = c.attrs.get("data_format", "NHWC")
    least = 3 if data_format == "NCHW" else 2
    if len(value) < least:
        raise c.error(f"value has shape {format_shape(value)}; with {data_format} it must have rank {least} or more")
    axis = channel_axis(data_format, len(value))
    if count is not None and value[axis] is not None and value[axis] != count:
        raise c.error(f"value has {value[axis]} channels and bias {count} elements; they must agree")
    return [value[:axis] + (value[axis] if count is None else count,) + value[axis + 1 :]]


def _bias_reference(attrs: Attrs, value: np.ndarray, bias: np.ndarray) -> np.ndarray:
    axis = channel_axis(attrs.get("data_format", "NHWC"), value.ndim)
    result: np.ndarray = value + bias.reshape([-1 if i == axis else 1 for i in range(value.ndim)])
    return result


def _bias_samples(with_format: bool) -> Iterator[Sample]:
    layouts: list[dict[str, str]] = [{"data_format": f} for f in ("NHWC", "NCHW")] if with_format else [{}]
    for attrs in layouts:
        first = attrs.get("data_format") == "NCHW"
        for shape in ((2, 3), (1, 1), (4, 5, 7), (2, 3, 5, 17), (0, 3, 2), (2, 3, 0, 2), (1, 2, 3, 4, 5), (3, 70000)):
            channels = shape[1] if first else shape[-1]
            if channels and not (first and len(shape) == 2):
                yield Sample((Arg(shape), Arg((channels,))), attrs)


def _bias_errors(with_format: bool) -> Iterator[ErrorSample]:
    yield ErrorSample((Arg((3,)), Arg((3,))), "rank 2 or more")
    if with_format:
        yield ErrorSample((Arg((2, 3)), Arg((3,))), "rank 3 or more", {"data_format": "NCHW"})
    yield ErrorSample((Arg((2, 3)), Arg((4,))), "3 channels and bias 4")
    yield ErrorSample((Arg((2, 3)), Arg((1, 3))), "must have rank 1")


define_op(
    "BiasAdd",
    inputs=("value: T", "bias: T"),
    outputs=("output: T",),
    attrs=(f"T: {_NUMBERS}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'"),
    doc="Adds a vector along the channels: the last dimension, or with NCHW the second.",
    shape=_bias_shape,
    reference=_bias_reference,
    samples=lambda: _bias_samples(True),
    errors=lambda: _bias_errors(True),
    level="inference",
)

define_op(
    "BiasAddV1",
    inputs=("value: T", "bias: T"),
    outputs=("output: T",),
    attrs=(f"T: {_NUMBERS}",),
    doc="BiasAdd along the last dimension.",
    shape=_bias_shape,
    reference=_bias_reference,
    samples=lambda: _bias_samples(False),
    errors=lambda: _bias_errors(False),
    level="inference",
)


def _check_attrs(c: InferenceContext) -> None:
    """strides and dilations that both convolutions accept."""
    strides, dilations = c.attrs["strides"], c.attrs["dilations"]
    check_window_attr(c, "strides", strides)
    check_window_attr(c, "dilations", dilations)
    for axis in (0, channel_axis(c.attrs["data_format"], 4)):
        if strides[axis] != 1 or dilations[axis] != 1:
            raise unimplemented(
                c,
                f"stride {strides[axis]} and dilation {dilations[axis]} in dimension {axis}; "
                "batch and channels allow only 1",
            )


def _check_filter(c: InferenceContext, filter: Sequence[int | None]) -> None:
    if 0 in filter:
        raise c.error(f"filter has shape {format_shape(tuple(filter))}; all its sizes must be positive")


def _convolved(
    c: InferenceContext, x: Sequence[int | None], kernel: Sequence[int | None], channels: int | None
) -> Shape:
    """The output's shape, given the input's, the kernel's height and width and the number of output channels."""
    strides, dilations, data_format = c.attrs["strides"], c.attrs["dilations"], c.attrs["data_format"]
    pairs = explicit_pairs(c)
    shape = list(x)
    shape[channel_axis(data_format, 4)] = channels
    for axis, taps in zip(spatial_axes(data_format), kernel, strict=True):
        shape[axis] = output_size(c, x[axis], taps, strides[axis], dilations[axis], c.attrs["padding"], pairs[axis])
    return tuple(shape)


def _conv2d_shape(c: InferenceContext) -> Sequence[Shape]:
    _check_attrs(c)
    x, filter = c.require_rank(0, 4), c.require_rank(1, 4)
    _check_filter(c, filter)
    inside, per_group, outside = x[channel_axis(c.attrs["data_format"], 4)], filter[2], filter[3]
    if inside is not None and per_group is not None:
        if inside % per_group:
            raise c.error(f"input has {inside} channels and filter {per_group}; the filter's must divide the input's")
        groups = inside // per_group
        if inside and outside is not None and outside % groups:
            raise c.error(f"filter has {outside} output channels for {groups} groups; the groups must divide them")
    return [_convolved(c, x, filter[:2], outside)]


def _geometry(attrs: Attrs, x: np.ndarray, kernel: Sequence[int]) -> tuple[np.ndarray, list[int], list[int]]:
    """Input with channels last and padded, and the spatial strides and dilations."""
    data_format, padding = attrs["data_format"], attrs["padding"]
    axes = spatial_axes(data_format)
    strides, dilations = [attrs["strides"][a] for a in axes], [attrs["dilations"][a] for a in axes]
    amounts = attrs["explicit_paddings"]
    pairs = [(amounts[2 * a], amounts[2 * a + 1]) if padding == "EXPLICIT" else (0, 0) for a in axes]
    pads = [
        padding_amounts(x.shape[a], kernel[i], strides[i], dilations[i], padding, pairs[i]) for i, a in enumerate(axes)
    ]
    return pad_spatial(to_channels_last(x, data_format), pads), strides, dilations


def _conv2d_reference(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> np.ndarray:
    x, w = widen(input), widen(filter)
    x, strides, dilations = _geometry(attrs, x, w.shape[:2])
    patches = windows(x, w.shape[:2], strides, dilations)
    per_group = w.shape[2]
    groups = x.shape[3] // per_group
    each = w.shape[3] // max(groups, 1)
    parts = [
        np.tensordot(
            patches[:, :, :, g * per_group : (g + 1) * per_group],
            w[..., g * each : (g + 1) * each],
            ([3, 4, 5], [2, 0, 1]),
        )
        for g in range(groups)
    ]
    result = np.concatenate(parts, axis=-1).astype(input.dtype)
    return from_channels_last(result, attrs["data_format"])


def _conv_terms(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> int:
    return int(filter.shape[0] * filter.shape[1] * filter.shape[2])


def _layout(shape: tuple[int, ...], data_format: str) -> tuple[int, ...]:
    """An NHWC shape or list of attrs in another layout."""
    return shape if data_format == "NHWC" else (shape[0], shape[3], shape[1], shape[2])


def _conv_attrs(strides: tuple[int, int], dilations: tuple[int, int], padding: str, data_format: str) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "strides": _layout((1, *strides, 1), data_format),
        "dilations": _layout((1, *dilations, 1), data_format),
        "padding": padding,
        "data_format": data_format,
    }
    if padding == "EXPLICIT":
        pairs = _layout((0, 1, 2, 0), data_format), _layout((0, 2, 0, 0), data_format)
        attrs["explicit_paddings"] = tuple(v for pair in zip(*pairs, strict=True) for v in pair)
    return attrs


# (input NHWC, kernel, strides, dilations, padding): every padding, strides to 3, dilation, odd and prime sizes, 1x1, a
# kernel larger than the input, an empty batch and an empty image
_GEOMETRIES: tuple[tuple[tuple[int, int, int, int], tuple[int, int], tuple[int, int], tuple[int, int], str], ...] = (
    ((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), "VALID"),
    ((2, 5, 7, 3), (3, 3), (1, 1), (1, 1), "SAME"),
    ((1, 9, 8, 4), (3, 2), (2, 3), (1, 1), "SAME"),
    ((2, 9, 11, 2), (3, 3), (2, 1), (1, 1), "VALID"),
    ((1, 11, 10, 3), (3, 3), (1, 1), (2, 3), "SAME"),
    ((1, 11, 10, 3), (2, 3), (1, 2), (3, 2), "VALID"),
    ((2, 6, 5, 2), (3, 3), (1, 1), (1, 1), "EXPLICIT"),
    ((1, 7, 6, 2), (2, 3), (3, 2), (2, 1), "EXPLICIT"),
    ((3, 4, 5, 13), (1, 1), (1, 1), (1, 1), "SAME"),
    ((1, 7, 7, 5), (1, 1), (2, 2), (1, 1), "VALID"),
    ((1, 2, 3, 2), (5, 5), (1, 1), (1, 1), "SAME"),
    ((0, 4, 4, 3), (3, 3), (1, 1), (1, 1), "SAME"),
    ((1, 0, 4, 3), (3, 3), (1, 1), (1, 1), "SAME"),
)


def _conv_samples(
    filter_shapes: Callable[[int, int], list[tuple[int, int]]], formats: tuple[str, ...]
) -> Iterator[Sample]:
    for number, (shape, kernel, strides, dilations, padding) in enumerate(_GEOMETRIES):
        for data_format in formats:
            for last_two in filter_shapes(shape[3], number):
                yield Sample(
                    (Arg(_layout(shape, data_format)), Arg((*kernel, *last_two), special=False)),
                    _conv_attrs(strides, dilations, padding, data_format),
                )


def _conv2d_samples() -> Iterator[Sample]:
    yield from _conv_samples(lambda channels, number: [(channels, (1, 3, 17, 64, 5)[number % 5])], ("NHWC", "NCHW"))
    same = _conv_attrs((1, 1), (1, 1), "SAME", "NHWC")
    for channels, per_group, outside in ((4, 2, 6), (6, 1, 6), (8, 4, 34), (3, 1, 3)):  # grouped
        yield Sample((Arg((2, 5, 4, channels)), Arg((3, 3, per_group, outside), special=False)), same)
    yield Sample(
        (Arg((1, 4, 5, 5)), Arg((2, 2, 2, 6), special=False)), _conv_attrs((1, 1), (1, 1), "VALID", "NCHW") | {}
    )
    # sizes that fill whole register tiles, pass them by one, and need several blocks of the summed dimension
    for shape, filter in (
        ((1, 14, 14, 32), (3, 3, 32, 128)),
        ((1, 13, 7, 65), (3, 3, 65, 33)),
        ((1, 3, 3, 600), (3, 3, 600, 20)),
    ):
        yield Sample((Arg(shape), Arg(filter, special=False)), same)
    yield Sample((Arg((1, 1, 70001, 1)), Arg((1, 3, 1, 2), special=False)), same)


def _conv_errors(filter: tuple[int, ...]) -> Iterator[ErrorSample]:
    x, w = Arg((1, 4, 4, 2)), Arg(filter)
    base = _conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
    yield ErrorSample((Arg((4, 4, 2)), w), "must have rank 4", base)
    yield ErrorSample((x, Arg(filter[:3])), "must have rank 4", base)
    yield ErrorSample((x, w), "strides is .*must have 4 values", base | {"strides": (1, 1, 1)})
    yield ErrorSample((x, w), "strides is .*must be positive", base | {"strides": (1, 0, 1, 1)})
    yield ErrorSample((x, w), "dilations is .*must be positive", base | {"dilations": (1, 1, 0, 1)})
    yield ErrorSample(
        (x, w), "batch and channels allow only 1", base | {"strides": (2, 1, 1, 1)}, error="UnimplementedError"
    )
    yield ErrorSample(
        (x, w), "batch and channels allow only 1", base | {"dilations": (1, 1, 1, 2)}, error="UnimplementedError"
    )
    yield ErrorSample((x, Arg((0, 1, *filter[2:]))), "sizes must be positive", base)
    yield ErrorSample((x, Arg((7, 7, *filter[2:]))), "not be larger than the padded input", base)
    explicit = base | {"padding": "EXPLICIT"}
    yield ErrorSample((x, w), "has 2 values; it must have 8", explicit | {"explicit_paddings": (1, 1)})
    yield ErrorSample((x, w), "must not be negative", explicit | {"explicit_paddings": (0, 0, -1, 0, 0, 0, 0, 0)})
    yield ErrorSample(
        (x, w), "batch and channels must not be padded", explicit | {"explicit_paddings": (1, 0, 0, 0, 0, 0, 0, 0)}
    )
    yield ErrorSample((x, w), "empty unless padding is EXPLICIT", base | {"explicit_paddings": (0,) * 8})


def _conv2d_errors() -> Iterator[ErrorSample]:
    yield from _conv_errors((2, 2, 2, 3))
    base = _conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
    yield ErrorSample((Arg((1, 2, 2, 3)), Arg((1, 1, 2, 1))), "input has 3 channels and filter 2", base)
    yield ErrorSample((Arg((1, 2, 2, 4)), Arg((1, 1, 2, 3))), "3 output channels for 2 groups", base)


_CONV_ATTRS = (
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
)

define_op(
    "Conv2D",
    inputs=("input: T", "filter: T"),
    outputs=("output: T",),
    attrs=("T: {half, bfloat16, float, double, int32}", "use_cudnn_on_gpu: bool = true", *_CONV_ATTRS),
    doc="Slides a filter [height, width, input channels / groups, output channels] over images and sums the products.",
    shape=_conv2d_shape,
    reference=_conv2d_reference,
    accuracy=Accumulation(_conv_terms),
    samples=_conv2d_samples,
    errors=_conv2d_errors,
    level="inference",
)


def _depthwise_shape(c: InferenceContext) -> Sequence[Shape]:
    _check_attrs(c)
    x, filter = c.require_rank(0, 4), c.require_rank(1, 4)
    _check_filter(c, filter)
    inside = x[channel_axis(c.attrs["data_format"], 4)]
    if inside is not None and filter[2] is not None and inside != filter[2]:
        raise c.error(f"input has {inside} channels and filter {filter[2]}; they must agree")
    channels = inside if filter[2] is None else filter[2]
    return [_convolved(c, x, filter[:2], None if channels is None or filter[3] is None else channels * filter[3])]


def _depthwise_reference(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> np.ndarray:
    x, w = widen(input), widen(filter)
    x, strides, dilations = _geometry(attrs, x, w.shape[:2])
    result = np.einsum("nhwcij,ijcm->nhwcm", windows(x, w.shape[:2], strides, dilations), w)
    flat = result.reshape(*result.shape[:3], w.shape[2] * w.shape[3]).astype(input.dtype)
    return from_channels_last(flat, attrs["data_format"])


def _depthwise_samples() -> Iterator[Sample]:
    yield from _conv_samples(lambda channels, number: [(channels, 1 + number % 3)], ("NHWC", "NCHW"))
    same = _conv_attrs((1, 1), (1, 1), "SAME", "NHWC")
    for shape, filter in (
        ((1, 9, 9, 67), (3, 3, 67, 1)),
        ((2, 5, 4, 128), (3, 3, 128, 1)),
        ((1, 4, 4, 33), (2, 2, 33, 2)),
    ):
        yield Sample((Arg(shape), Arg(filter, special=False)), same)


def _depthwise_errors() -> Iterator[ErrorSample]:
    yield from _conv_errors((2, 2, 2, 1))
    yield ErrorSample(
        (Arg((1, 2, 2, 3)), Arg((1, 1, 2, 1))), "3 channels and filter 2", _conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
    )


define_op(
    "DepthwiseConv2dNative",
    inputs=("input: T", "filter: T"),
    outputs=("output: T",),
    attrs=("T: {half, bfloat16, float, double}", *_CONV_ATTRS),
    doc="Convolves each channel c with its own filters [height, width, channels, multiplier] into c * multiplier + m.",
    shape=_depthwise_shape,
    reference=_depthwise_reference,
    accuracy=Accumulation(lambda attrs, input, filter: int(filter.shape[0] * filter.shape[1])),
    samples=_depthwise_samples,
    errors=_depthwise_errors,
    level="inference",
)
