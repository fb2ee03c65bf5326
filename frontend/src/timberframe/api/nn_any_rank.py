"""`tf.nn.*` functions of windows over one, two or three spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import expand_dims, squeeze
from timberframe.api.framework import name_scope
from timberframe.api.nn import avg_pool, conv2d, max_pool
from timberframe.api.nn_arguments import either, padding_attrs
from timberframe.api.nn_backward import conv1d, conv2d_transpose
from timberframe.api.nn_windows import avg_pool3d, conv3d, conv3d_transpose, max_pool3d
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "nn": (
        "atrous_conv2d",
        "atrous_conv2d_transpose",
        "avg_pool1d",
        "avg_pool_v2",
        "conv1d_transpose",
        "conv_transpose",
        "convolution",
        "max_pool1d",
        "max_pool_v2",
        "pool",
    ),
}

_LAYOUTS = {False: ("NWC", "NHWC", "NDHWC"), True: ("NCW", "NCHW", "NCDHW")}


def _each(function: str, what: str, given: Any, count: int) -> list[int]:
    """Returns a value for each spatial dimension; 1 where none is given."""
    values = [1] * count if given is None else list(given) if isinstance(given, Sequence) else [given] * count
    if len(values) != count or any(int(v) < 1 for v in values):
        raise InvalidArgumentError(f"tf.nn.{function}: {what} is {given}; {count} positive integers are required")
    return [int(v) for v in values]


def _layout(function: str, data_format: str | None, count: int) -> str:
    if count not in (1, 2, 3):
        raise InvalidArgumentError(f"tf.nn.{function}: {count} spatial dimensions are asked for; 1 to 3 are possible")
    layout = _LAYOUTS[(data_format or "N").startswith("NC")][count - 1]
    if data_format not in (None, layout):
        raise InvalidArgumentError(f"tf.nn.{function}: data_format is {data_format!r}; {layout!r} is required")
    return layout


def convolution(
    input: Any,
    filter: Any = None,
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Slides a filter [*sizes, input channels, output channels] over one, two or three spatial dimensions.

    strides, dilation_rate (dilations is its newer name): a value for each spatial dimension, or one for all; one of
    both may be above 1. padding: "SAME" or "VALID".
    """
    weights = convert_to_tensor(either("convolution", "filter", filter, "filters", filters))
    count = (weights.shape.ndims or 0) - 2
    layout = _layout("convolution", data_format, count)
    steps = _each("convolution", "strides", strides, count)
    spread = _each("convolution", "dilation_rate", dilation_rate if dilations is None else dilations, count)
    if max(steps) > 1 and max(spread) > 1:
        raise InvalidArgumentError(
            f"tf.nn.convolution: strides are {steps} and dilation_rate is {spread}; one of them must be all 1"
        )
    with name_scope(name, "convolution", [input, weights]) as scope:
        if count == 1:
            return conv1d(input, weights, steps[0], padding, data_format=layout, dilations=spread[0])
        if count == 2:
            return conv2d(input, weights, steps, padding, data_format=layout, dilations=spread, name=scope)
        return conv3d(input, weights, steps, padding, layout, spread, scope)


def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> Tensor:
    """`conv2d` with a distance of `rate` between the pixels that a filter sees.

    value: images [N, height, width, channels]. filters: [height, width, input channels, output channels]. padding:
    "SAME" or "VALID".
    """
    return convolution(value, filters, padding, dilation_rate=rate, name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """Returns the gradient of `atrous_conv2d` with respect to its images, of shape output_shape.

    value: images [N, height, width, channels of the result of `atrous_conv2d`]. The other arguments are those of
    `atrous_conv2d`.
    """
    attrs = {"strides": [1] * 4, "dilations": [1, rate, rate, 1], **padding_attrs(padding)}
    inputs = [convert_to_tensor(output_shape, "int32"), filters, value]
    made: Tensor = apply_op("Conv2DBackpropInput", inputs, attrs, name or "atrous_conv2d_transpose")
    return made


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns the transpose of `conv1d`, its gradient by the input, for a filter [width, output
    channels, input channels].

    output_shape: the three sizes of the result. strides, dilations: one value, or three.
    """
    first = _layout("conv1d_transpose", data_format, 1) == "NCW"
    axis, layout = (2, "NCHW") if first else (1, "NHWC")
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]):
        sizes = convert_to_tensor(output_shape, name="output_shape")
        before, after = (apply_op("StridedSlice", [sizes, [b], [e], [1]]) for b, e in ((0, axis), (axis, 3)))
        whole = apply_op("ConcatV2", [[before, convert_to_tensor([1], sizes.dtype), after], 0])
        steps, spread = ([1, *_width("conv1d_transpose", 1 if v is None else v)] for v in (strides, dilations))
        series, weights = expand_dims(input, axis), expand_dims(filters, 0)
        made = conv2d_transpose(series, weights, whole, steps, padding, layout, dilations=spread)
        return squeeze(made, [axis])


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns the transpose of `convolution` over one, two or three spatial dimensions: its gradient by the input.

    filters: [*sizes, output channels, input channels]. output_shape: the sizes of the result, batch and channels with
    them. strides, dilations: one value, or one for each spatial dimension.
    """
    weights = convert_to_tensor(filters, name="filters")
    count = (weights.shape.ndims or 0) - 2
    layout = _layout("conv_transpose", data_format, count)
    function = (conv1d_transpose, conv2d_transpose, conv3d_transpose)[count - 1]
    with name_scope(name, "conv_transpose", [input, weights, output_shape]) as scope:
        named = {"data_format": layout, "dilations": dilations, "name": scope}
        made: Tensor = function(input, weights, output_shape, strides, padding, **named)
        return made


def pool(
    input: Any,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the largest value ("MAX") or the mean ("AVG") of windows over one, two or three spatial dimensions.

    strides: a value for each, 1 if None. Windows with holes (dilation_rate above 1) raise UnimplementedError.
    """
    count = len(window_shape)
    layout = _layout("pool", data_format, count)
    window, steps = (_each("pool", w, v, count) for w, v in (("window_shape", window_shape), ("strides", strides)))
    if pooling_type not in ("MAX", "AVG"):
        raise InvalidArgumentError(f"tf.nn.pool: pooling_type is {pooling_type!r}; 'MAX' or 'AVG' is required")
    spread = _each("pool", "dilation_rate", dilation_rate if dilations is None else dilations, count)
    if max(spread) > 1:
        raise UnimplementedError(f"tf.nn.pool: dilation_rate is {spread}; it must be all 1")
    largest = pooling_type == "MAX"
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        if count == 3:
            return (max_pool3d if largest else avg_pool3d)(input, window, steps, padding, layout, scope)
        flat = max_pool if largest else avg_pool
        if count == 2:
            return flat(input, window, steps, padding, layout, scope)
        axis, flat_layout = (2, "NCHW") if layout == "NCW" else (1, "NHWC")
        return squeeze(flat(expand_dims(input, axis), [1, *window], [1, *steps], padding, flat_layout), [axis])


def max_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Returns the largest value in each window over one, two or three spatial dimensions; see `avg_pool_v2`."""
    return _pooled("max_pool", (max_pool1d, max_pool, max_pool3d), input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Returns the mean of each window over one, two or three spatial dimensions, which the rank of the input tells.

    ksize, strides: one value, one for each spatial dimension, or one for each dimension.
    """
    return _pooled("avg_pool", (avg_pool1d, avg_pool, avg_pool3d), input, ksize, strides, padding, data_format, name)


def _pooled(
    function: str, functions: Sequence[Any], input: Any, ksize: Any, strides: Any, padding: str, data_format: Any,
    name: str | None,
) -> Tensor:  # fmt: skip
    x = convert_to_tensor(input, name="input")
    count = (x.shape.ndims or 0) - 2
    layout = _layout(function, data_format, count)
    made: Tensor = functions[count - 1](x, ksize, strides, padding, layout, name)
    return made


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Returns the largest value in each window of [N, width, channels].

    input: with data_format "NCW" [N, channels, width]. ksize, strides: one value, or three of which the width's is not
    1. padding: "SAME" or "VALID".
    """
    return pool(input, _width("max_pool1d", ksize), "MAX", padding, None, _width("max_pool1d", strides), name,
                data_format)  # fmt: skip


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Returns the mean of each window of [N, width, channels], padding not counted.

    input: with data_format "NCW" [N, channels, width]. ksize, strides: one value, or three of which the width's is not
    1. padding: "SAME" or "VALID".
    """
    return pool(input, _width("avg_pool1d", ksize), "AVG", padding, None, _width("avg_pool1d", strides), name,
                data_format)  # fmt: skip


def _width(function: str, given: Any) -> list[int]:
    """Returns the value for the width: the only one, or the one of three that is not 1."""
    values = list(given) if isinstance(given, Sequence) else [given]
    if len(values) == 3:
        values = [max(values)]
    return _each(function, "ksize or strides", values, 1)
