"""What convolutions share: checks of attrs and filters, geometry, and the samples that reach all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import Attrs, InferenceContext
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.nn.windows import (
    channel_axis,
    check_window_attr,
    explicit_pairs,
    output_size,
    pad_spatial,
    padding_amounts,
    spatial_axes,
    to_channels_last,
    unimplemented,
)


def check_attrs(c: InferenceContext) -> None:
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


def check_filter(c: InferenceContext, filter: Sequence[int | None]) -> None:
    if 0 in filter:
        raise c.error(f"filter has shape {format_shape(tuple(filter))}; all its sizes must be positive")


def convolved(
    c: InferenceContext, x: Sequence[int | None], kernel: Sequence[int | None], channels: int | None
) -> Shape:
    """Returns the output's shape, given the input's, the kernel's height and width and the
    number of output channels.
    """
    strides, dilations, data_format = c.attrs["strides"], c.attrs["dilations"], c.attrs["data_format"]
    pairs = explicit_pairs(c)
    shape = list(x)
    shape[channel_axis(data_format, 4)] = channels
    for axis, taps in zip(spatial_axes(data_format), kernel, strict=True):
        shape[axis] = output_size(c, x[axis], taps, strides[axis], dilations[axis], c.attrs["padding"], pairs[axis])
    return tuple(shape)


def spatial_attrs(attrs: Attrs) -> tuple[list[int], list[int]]:
    """Strides and dilations of height and width."""
    axes = spatial_axes(attrs["data_format"])
    return [attrs["strides"][a] for a in axes], [attrs["dilations"][a] for a in axes]


def spatial_padding(attrs: Attrs, shape: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
    """Returns zeros before and after height and width of an input of this shape."""
    padding, amounts, (strides, dilations) = attrs["padding"], attrs["explicit_paddings"], spatial_attrs(attrs)
    axes = spatial_axes(attrs["data_format"])
    pairs = [(amounts[2 * a], amounts[2 * a + 1]) if padding == "EXPLICIT" else (0, 0) for a in axes]
    return [
        padding_amounts(shape[a], kernel[i], strides[i], dilations[i], padding, pairs[i]) for i, a in enumerate(axes)
    ]


def padded_input(attrs: Attrs, x: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
    """Returns an input with channels last and padded."""
    return pad_spatial(to_channels_last(x, attrs["data_format"]), spatial_padding(attrs, x.shape, kernel))


def layout(shape: tuple[int, ...], data_format: str) -> tuple[int, ...]:
    """Returns an NHWC shape or list of attrs in another layout."""
    return shape if data_format == "NHWC" else (shape[0], shape[3], shape[1], shape[2])


def conv_attrs(strides: tuple[int, int], dilations: tuple[int, int], padding: str, data_format: str) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "strides": layout((1, *strides, 1), data_format),
        "dilations": layout((1, *dilations, 1), data_format),
        "padding": padding,
        "data_format": data_format,
    }
    if padding == "EXPLICIT":
        pairs = layout((0, 1, 2, 0), data_format), layout((0, 2, 0, 0), data_format)
        attrs["explicit_paddings"] = tuple(v for pair in zip(*pairs, strict=True) for v in pair)
    return attrs


# (input NHWC, kernel, strides, dilations, padding): every padding, strides to 3, dilation, odd and prime sizes, 1x1, a
# kernel larger than the input, an empty batch and an empty image
GEOMETRIES: tuple[tuple[tuple[int, int, int, int], tuple[int, int], tuple[int, int], tuple[int, int], str], ...] = (
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
    ((2, 5, 6, 20), (2, 4), (1, 1), (1, 1), "SAME"),  # the odd pixel of even kernels is padded at the end
    ((3, 7, 8, 5), (2, 2), (3, 4), (1, 1), "SAME"),  # strides past the kernel
)


def conv_samples(
    filter_shapes: Callable[[int, int], list[tuple[int, int]]], formats: tuple[str, ...]
) -> Iterator[Sample]:
    for number, (shape, kernel, strides, dilations, padding) in enumerate(GEOMETRIES):
        for data_format in formats:
            for last_two in filter_shapes(shape[3], number):
                yield Sample(
                    (Arg(layout(shape, data_format)), Arg((*kernel, *last_two), special=False)),
                    conv_attrs(strides, dilations, padding, data_format),
                )


def conv_errors(filter: tuple[int, ...]) -> Iterator[ErrorSample]:
    x, w = Arg((1, 4, 4, 2)), Arg(filter)
    base = conv_attrs((1, 1), (1, 1), "VALID", "NHWC")
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


CONV_ATTRS = (
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
)


def convolution_attrs(op: Any) -> dict[str, Any]:
    """Returns the attrs of an operation that its gradients take over."""
    names = ("strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu")
    return {name: op.attrs[name] for name in names if name in op.attrs}
