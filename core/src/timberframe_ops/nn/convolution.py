"""Convolutions over two spatial dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape
from timberframe_ops.nn.convolution_windows import (
    CONV_ATTRS,
    check_attrs,
    check_filter,
    conv_attrs,
    conv_errors,
    conv_samples,
    convolution_attrs,
    convolved,
    padded_input,
    spatial_attrs,
)
from timberframe_ops.nn.windows import channel_axis, from_channels_last, widen, windows


def _conv2d_shape(c: InferenceContext) -> Sequence[Shape]:
    check_attrs(c)
    x, filter = c.require_rank(0, 4), c.require_rank(1, 4)
    check_filter(c, filter)
    inside, per_group, outside = x[channel_axis(c.attrs["data_format"], 4)], filter[2], filter[3]
    if inside is not None and per_group is not None:
        if inside % per_group:
            raise c.error(f"input has {inside} channels; the filter takes {per_group}, which must divide them")
        groups = inside // per_group
        if inside and outside is not None and outside % groups:
            raise c.error(
                f"input has {inside} channels; the filter takes {per_group}, so its {outside} output channels are for "
                f"{groups} groups, which must divide them"
            )
    return [convolved(c, x, filter[:2], outside)]


def _conv2d_reference(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> np.ndarray:
    x, w = widen(input), widen(filter)
    patches = windows(padded_input(attrs, x, w.shape[:2]), w.shape[:2], *spatial_attrs(attrs))
    per_group = w.shape[2]
    groups = patches.shape[3] // per_group
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


def conv2d_samples() -> Iterator[Sample]:
    yield from conv_samples(lambda channels, number: [(channels, (1, 3, 17, 64, 5)[number % 5])], ("NHWC", "NCHW"))
    same = conv_attrs((1, 1), (1, 1), "SAME", "NHWC")
    for channels, per_group, outside in ((4, 2, 6), (6, 1, 6), (8, 4, 34), (3, 1, 3)):  # grouped
        yield Sample((Arg((2, 5, 4, channels)), Arg((3, 3, per_group, outside), special=False)), same)
    yield Sample(
        (Arg((1, 4, 5, 5)), Arg((2, 2, 2, 6), special=False)), conv_attrs((1, 1), (1, 1), "VALID", "NCHW") | {}
    )
    # sizes that fill whole register tiles, pass them by one, and need several blocks of the summed dimension
    for shape, filter in (
        ((1, 14, 14, 32), (3, 3, 32, 128)),
        ((1, 13, 7, 65), (3, 3, 65, 33)),
        ((1, 3, 3, 600), (3, 3, 600, 20)),
    ):
        yield Sample((Arg(shape), Arg(filter, special=False)), same)
    unpadded = conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
    for shape, filter in (((1, 7, 7, 16), (3, 3, 16, 16)), ((2, 6, 7, 32), (3, 3, 32, 32))):  # odd and even rows
        yield Sample((Arg(shape), Arg(filter, special=False)), unpadded)
    yield Sample((Arg((1, 1, 70001, 1)), Arg((1, 3, 1, 2), special=False)), same)
    yield Sample((Arg((1, 1, 2, 2)), Arg((1, 1, 2, 65_541), special=False)), same)
    for shape, filter in (((2, 5, 7, 3), (4, 2, 3, 5)), ((7, 4, 4, 18), (2, 2, 18, 3))):  # a side gets more padding
        yield Sample((Arg(shape), Arg(filter, special=False)), same)


def _conv2d_errors() -> Iterator[ErrorSample]:
    yield from conv_errors((2, 2, 2, 3))
    base = conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
    yield ErrorSample((Arg((1, 2, 2, 3)), Arg((1, 1, 2, 1))), "input has 3 channels; the filter takes 2", base)
    yield ErrorSample((Arg((1, 2, 2, 4)), Arg((1, 1, 2, 3))), "3 output channels are for 2 groups", base)


def _convolution_gradient(input_op: str, filter_op: str, op: Any, grad: Any) -> list[Any]:
    x, filter = op.inputs
    attrs = convolution_attrs(op)
    return [
        apply_op(input_op, [shape_of(x), filter, grad], attrs),
        apply_op(filter_op, [x, shape_of(filter), grad], attrs),
    ]


CONV2D = define_op(
    "Conv2D",
    inputs=("input: T", "filter: T"),
    outputs=("output: T",),
    attrs=("T: {half, bfloat16, float, double, int32}", "use_cudnn_on_gpu: bool = true", *CONV_ATTRS),
    doc="Slides a filter [height, width, input channels / groups, output channels] over images and sums the products.",
    shape=_conv2d_shape,
    reference=_conv2d_reference,
    gradient=lambda op, grad: _convolution_gradient("Conv2DBackpropInput", "Conv2DBackpropFilter", op, grad),
    accuracy=Accumulation(_conv_terms),
    samples=conv2d_samples,
    errors=_conv2d_errors,
)


def _depthwise_shape(c: InferenceContext) -> Sequence[Shape]:
    check_attrs(c)
    x, filter = c.require_rank(0, 4), c.require_rank(1, 4)
    check_filter(c, filter)
    inside = x[channel_axis(c.attrs["data_format"], 4)]
    if inside is not None and filter[2] is not None and inside != filter[2]:
        raise c.error(f"input has {inside} channels; the filter takes {filter[2]}, they must agree")
    channels = inside if filter[2] is None else filter[2]
    return [convolved(c, x, filter[:2], None if channels is None or filter[3] is None else channels * filter[3])]


def _depthwise_reference(attrs: Attrs, input: np.ndarray, filter: np.ndarray) -> np.ndarray:
    x, w = widen(input), widen(filter)
    patches = windows(padded_input(attrs, x, w.shape[:2]), w.shape[:2], *spatial_attrs(attrs))
    result = np.einsum("nhwcij,ijcm->nhwcm", patches, w)
    flat = result.reshape(*result.shape[:3], w.shape[2] * w.shape[3]).astype(input.dtype)
    return from_channels_last(flat, attrs["data_format"])


def depthwise_samples() -> Iterator[Sample]:
    yield from conv_samples(lambda channels, number: [(channels, 1 + number % 3)], ("NHWC", "NCHW"))
    same = conv_attrs((1, 1), (1, 1), "SAME", "NHWC")
    for shape, filter in (
        ((1, 9, 9, 67), (3, 3, 67, 1)),
        ((2, 5, 4, 128), (3, 3, 128, 1)),
        ((1, 4, 4, 33), (2, 2, 33, 2)),
    ):
        yield Sample((Arg(shape), Arg(filter, special=False)), same)


def _depthwise_errors() -> Iterator[ErrorSample]:
    yield from conv_errors((2, 2, 2, 1))
    yield ErrorSample(
        (Arg((1, 2, 2, 3)), Arg((1, 1, 2, 1))), "the filter takes 2", conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
    )


DEPTHWISE_CONV2D = define_op(
    "DepthwiseConv2dNative",
    inputs=("input: T", "filter: T"),
    outputs=("output: T",),
    attrs=("T: {half, bfloat16, float, double}", *CONV_ATTRS),
    doc="Convolves each channel c with its own filters [height, width, channels, multiplier] into c * multiplier + m.",
    shape=_depthwise_shape,
    reference=_depthwise_reference,
    gradient=lambda op, grad: _convolution_gradient(
        "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", op, grad
    ),
    accuracy=Accumulation(lambda attrs, input, filter: int(filter.shape[0] * filter.shape[1])),
    samples=depthwise_samples,
    errors=_depthwise_errors,
)
