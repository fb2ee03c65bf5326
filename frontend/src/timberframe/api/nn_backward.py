"""`tf.nn.*` functions: gradients of convolutions, and moments with weights."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import expand_dims, squeeze
from timberframe.api.framework import name_scope
from timberframe.api.nn_arguments import either, padding_attrs, spatial_values
from timberframe.api.selection import cast
from timberframe_core.dtypes import DType, bfloat16, float16, float32, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "nn": (
        "conv1d", "conv2d_backprop_filter", "conv2d_backprop_input", "conv2d_transpose",
        "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input",
        "depthwise_conv2d_native_backprop_filter", "depthwise_conv2d_native_backprop_input", "max_pool_with_argmax",
        "weighted_moments",
    ),
}  # fmt: skip


def _attrs(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    layout = data_format or "NHWC"
    return {
        "strides": spatial_values(strides, layout, "strides"),
        "dilations": spatial_values(1 if dilations is None else dilations, layout, "dilations"),
        "data_format": layout,
        **padding_attrs(padding),
    }


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Returns the transpose of a convolution, its gradient by the input, for a filter [height,
    width, output, input channels].

    output_shape: the four sizes of the result. strides, dilations: one value, two or four.
    """
    image = either("conv2d_transpose", "value", value, "input", input)
    weights = either("conv2d_transpose", "filter", filter, "filters", filters)
    attrs = _attrs(strides, padding, data_format, dilations)
    result: Tensor = apply_op("Conv2DBackpropInput", [output_shape, weights, image], attrs, name or "conv2d_transpose")
    return result


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Returns the gradient of `conv2d` by its input, whose shape is input_sizes.

    The arguments are those of `conv2d`, and out_backprop is the gradient of its result. The result has the dtype of
    out_backprop.
    """
    weights = either("conv2d_backprop_input", "filter", filter, "filters", filters)
    attrs = {"use_cudnn_on_gpu": use_cudnn_on_gpu, **_attrs(strides, padding, data_format, dilations)}
    result: Tensor = apply_op("Conv2DBackpropInput", [input_sizes, weights, out_backprop], attrs, name)
    return result


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of `conv2d` by its filter, whose shape is filter_sizes.

    The arguments are those of `conv2d`, and out_backprop is the gradient of its result. The result has the dtype of
    out_backprop.
    """
    attrs = {"use_cudnn_on_gpu": use_cudnn_on_gpu, **_attrs(strides, padding, data_format, dilations)}
    result: Tensor = apply_op("Conv2DBackpropFilter", [input, filter_sizes, out_backprop], attrs, name)
    return result


def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of `depthwise_conv2d_native` by its input, whose shape is input_sizes."""
    attrs = _attrs(strides, padding, data_format, dilations)
    inputs = [input_sizes, filter, out_backprop]
    result: Tensor = apply_op("DepthwiseConv2dNativeBackpropInput", inputs, attrs, name)
    return result


def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Returns the gradient of `depthwise_conv2d_native` by its filter, whose shape is filter_sizes."""
    attrs = _attrs(strides, padding, data_format, dilations)
    inputs = [input, filter_sizes, out_backprop]
    result: Tensor = apply_op("DepthwiseConv2dNativeBackpropFilter", inputs, attrs, name)
    return result


depthwise_conv2d_backprop_input = depthwise_conv2d_native_backprop_input
depthwise_conv2d_backprop_filter = depthwise_conv2d_native_backprop_filter


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Slides a filter [width, input, output channels] along [N, width, channels], or with NCW [N, channels, width].

    stride, dilations: one value, or three. padding: "SAME" or "VALID". data_format: "NWC" (or "NHWC"), or "NCW" (or
    "NCHW"). input is another name of value.
    """
    series = either("conv1d", "value", value, "input", input)
    first = data_format in ("NCW", "NCHW")
    if not first and data_format not in (None, "NWC", "NHWC"):
        raise InvalidArgumentError(f"tf.nn.conv1d: data_format is {data_format!r}; it must be NWC or NCW")
    axis, layout = (-2, "NCHW") if first else (-3, "NHWC")
    steps, spread = (_single(v, first, what) for v, what in ((stride, "stride"), (dilations, "dilations")))
    with name_scope(name, "conv1d"):
        attrs = {"use_cudnn_on_gpu": use_cudnn_on_gpu is not False, **_attrs([1, steps], padding, layout, [1, spread])}
        result = apply_op("Conv2D", [expand_dims(series, axis), expand_dims(filters, 0)], attrs)
        return squeeze(result, [axis])


def _single(values: Any, channels_first: bool, what: str) -> int:
    """Returns the value for the width: the only one, or that of the three of a layout."""
    given = (1,) if values is None else tuple(values) if isinstance(values, list | tuple) else (values,)
    if len(given) not in (1, 3):
        raise InvalidArgumentError(f"tf.nn.conv1d: {what} is {list(given)}; it must have 1 or 3 values")
    return int(given[0] if len(given) == 1 else given[2 if channels_first else 1])


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: DType | None = None,  # noqa: N803 - TensorFlow's name
    name: str | None = None,
    output_dtype: DType | None = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns the largest value in each window, and its flat index in the image (or in the whole batch)."""
    if data_format != "NHWC":
        raise InvalidArgumentError(f"tf.nn.max_pool_with_argmax: data_format is {data_format!r}; it must be NHWC")
    attrs = {
        "ksize": spatial_values(ksize, data_format, "ksize"),
        "strides": spatial_values(strides, data_format, "strides"),
        "padding": padding,
        "include_batch_in_index": include_batch_in_index,
        "Targmax": Targmax or output_dtype or int64,
    }
    values, indices = apply_op("MaxPoolWithArgmax", [input], attrs, name)
    return values, indices


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over the axes, each element counted by its weight; 16-bit floats are computed in float32."""
    keep = bool(keep_dims if keepdims is None else keepdims)
    with name_scope(name, "weighted_moments"):
        value = convert_to_tensor(x)
        narrow = value.dtype in (float16, bfloat16)
        wide = cast(value, float32) if narrow else value
        weights = cast(convert_to_tensor(frequency_weights), wide.dtype)
        total = _sum_keeping_axes(weights + apply_op("ZerosLike", [wide]), axes)
        mean = apply_op("DivNoNan", [_sum_keeping_axes(weights * wide, axes), total])
        deviations = weights * apply_op("SquaredDifference", [wide, mean])
        variance = apply_op("DivNoNan", [_sum_keeping_axes(deviations, axes), total])
        if not keep:
            mean, variance = (squeeze(t, axes if isinstance(axes, list | tuple) else [axes]) for t in (mean, variance))
        return (cast(mean, value.dtype), cast(variance, value.dtype)) if narrow else (mean, variance)


def _sum_keeping_axes(x: Any, axes: Any) -> Any:
    return apply_op("Sum", [x, axes], {"keep_dims": True})
