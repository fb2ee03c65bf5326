"""`tf.nn.*` functions of windows over volumes, and of morphology."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe.api.framework import name_scope
from timberframe.api.nn_arguments import either
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "nn": (
        "avg_pool3d",
        "conv3d",
        "conv3d_backprop_filter",
        "conv3d_backprop_filter_v2",
        "conv3d_transpose",
        "dilation2d",
        "erosion2d",
        "fractional_avg_pool",
        "fractional_max_pool",
        "max_pool3d",
    )
}


def _volume_values(values: Any, data_format: str, what: str) -> tuple[int, ...]:
    """Returns one value, the three spatial ones, or all five, as the five values of a layout."""
    given = tuple(values) if isinstance(values, list | tuple) else (values,)
    if len(given) == 5:
        return given
    if len(given) not in (1, 3):
        raise InvalidArgumentError(f"tf.nn: {what} is {list(given)}; it must have 1, 3 or 5 values")
    spatial = given * 3 if len(given) == 1 else given
    return (1, 1, *spatial) if data_format == "NCDHW" else (1, *spatial, 1)


def _convolution_attrs(strides: Any, padding: str, data_format: str | None, dilations: Any) -> dict[str, Any]:
    layout = data_format or "NDHWC"
    return {
        "strides": _volume_values(strides, layout, "strides"),
        "dilations": _volume_values(1 if dilations is None else dilations, layout, "dilations"),
        "padding": padding,
        "data_format": layout,
    }


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Slides a filter [depth, height, width, input channels, output channels] over volumes.

    input: [N, depth, height, width, channels], with data_format "NCDHW" the channels second. strides, dilations: one
    value, three or five. padding: "SAME" or "VALID". filters is another name of filter.
    """
    weights = either("conv3d", "filter", filter, "filters", filters)
    attrs = _convolution_attrs(strides, padding, data_format, dilations)
    result: Tensor = apply_op("Conv3D", [input, weights], attrs, name)
    return result


def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the transpose of `conv3d`, its gradient by the input; filter: [depth, height,
    width, output, input channels].

    output_shape: the five sizes of the result.
    """
    volume = either("conv3d_transpose", "value", value, "input", input)
    weights = either("conv3d_transpose", "filter", filter, "filters", filters)
    attrs = _convolution_attrs(strides, padding, data_format, dilations)
    inputs = [output_shape, weights, volume]
    result: Tensor = apply_op("Conv3DBackpropInputV2", inputs, attrs, name or "conv3d_transpose")
    return result


def conv3d_backprop_filter_v2(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of `conv3d` by its filter, whose shape is filter_sizes."""
    attrs = _convolution_attrs(strides, padding, data_format, dilations)
    result: Tensor = apply_op("Conv3DBackpropFilterV2", [input, filter_sizes, out_backprop], attrs, name)
    return result


conv3d_backprop_filter = conv3d_backprop_filter_v2


class FractionalPooling(NamedTuple):
    """The results of fractional pooling: the pooled images, and the starts of its windows along both dimensions."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalPooling:
    """Returns the largest values of windows of NHWC images, with random windows such that
    sizes shrink by pooling_ratio.

    pooling_ratio: four numbers of at least 1, the first and last 1. pseudo_random: the windows are drawn as one
    pattern, otherwise each separately. overlapping: neighbours share a row or column. Seeds need deterministic.
    """
    attrs = (pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2)
    return _fractional("FractionalMaxPool", value, attrs, name)


def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalPooling:
    """Returns the means of windows of NHWC images; the arguments are those of `fractional_max_pool`."""
    attrs = (pooling_ratio, pseudo_random, overlapping, deterministic, seed, seed2)
    return _fractional("FractionalAvgPool", value, attrs, name)


def _fractional(op: str, value: Any, attrs: tuple[Any, ...], name: str | None) -> FractionalPooling:
    names = ("pooling_ratio", "pseudo_random", "overlapping", "deterministic", "seed", "seed2")
    return FractionalPooling(*apply_op(op, [value], dict(zip(names, attrs, strict=True)), name))


def _pool3d(op: str, input: Any, ksize: Any, strides: Any, padding: str, data_format: str, name: str | None) -> Tensor:
    attrs = {
        "ksize": _volume_values(ksize, data_format, "ksize"),
        "strides": _volume_values(strides, data_format, "strides"),
        "padding": padding,
        "data_format": data_format,
    }
    result: Tensor = apply_op(op, [input], attrs, name)
    return result


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """Returns the largest value in each window of a volume; ksize and strides are one value, three or five.

    input: [N, depth, height, width, channels], with data_format "NCDHW" the channels second. padding: "SAME" or
    "VALID".
    """
    return _pool3d("MaxPool3D", input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """Returns the mean of each window of a volume, padding not counted; ksize and strides are one value, three or five.

    input: [N, depth, height, width, channels], with data_format "NCDHW" the channels second. padding: "SAME" or
    "VALID".
    """
    return _pool3d("AvgPool3D", input, ksize, strides, padding, data_format, name)


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the largest sum of an NHWC pixel and the filter's value for it; strides and rates have four values.

    filter: [height, width, channels]. padding: "SAME" or "VALID". filters and dilations are other names of filter and
    rates.
    """
    weights = either("dilation2d", "filter", filter, "filters", filters)
    spread = either("dilation2d", "rates", rates, "dilations", dilations)
    attrs = {"strides": tuple(strides), "rates": tuple(spread), "padding": padding}
    result: Tensor = apply_op("Dilation2D", [input, weights], attrs, name)
    return result


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """Returns the smallest difference of an NHWC pixel and the kernel's value for it; strides
    and rates have four values.

    kernel: [height, width, channels]. padding: "SAME" or "VALID".
    """
    with name_scope(name, "erosion2d") as scope:
        mirrored = apply_op("ReverseV2", [kernel, [0, 1]])
        attrs = {"strides": tuple(strides), "rates": tuple(rates), "padding": padding}
        result: Tensor = apply_op(
            "Neg", [apply_op("Dilation2D", [apply_op("Neg", [value]), mirrored], attrs)], None, scope
        )
        return result
