"""`tf.nn.*` functions of convolution, pooling and normalisation."""

from __future__ import annotations

from typing import Any

from timberframe.api.arrays import rank, squeeze, stop_gradient
from timberframe.api.framework import name_scope
from timberframe.api.nn_arguments import either, padding_attrs, spatial_values
from timberframe.api.selection import cast
from timberframe_core.dtypes import bfloat16, float16, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "nn": (
        "avg_pool", "avg_pool2d", "batch_norm_with_global_normalization", "batch_normalization", "bias_add",
        "bias_add_v1", "conv2d", "depthwise_conv2d", "depthwise_conv2d_native", "fused_batch_norm", "l2_normalize",
        "local_response_normalization", "lrn", "max_pool", "max_pool2d", "moments", "relu_layer", "separable_conv2d",
        "xw_plus_b",
    ),
    "math": ("l2_normalize",),
    "linalg": ("l2_normalize",),
}  # fmt: skip


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Slides a filter [height, width, input channels / groups, output channels] over images.

    padding: "SAME", "VALID", or a pair of amounts for each of the four dimensions. strides, dilations: one value, two
    or four. `filters` is another name of `filter`.
    """
    weights = either("conv2d", "filter", filter, "filters", filters)
    data_format = data_format or "NHWC"
    attrs = {
        "strides": spatial_values(strides, data_format, "strides"),
        "dilations": spatial_values(dilations or 1, data_format, "dilations"),
        "use_cudnn_on_gpu": use_cudnn_on_gpu,
        "data_format": data_format,
        **padding_attrs(padding),
    }
    result: Tensor = apply_op("Conv2D", [input, weights], attrs, name)
    return result


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Convolves each channel with filters of its own, [height, width, channels, multiplier].

    The arguments are those of `depthwise_conv2d`, the dilations four values.
    """
    data_format = data_format or "NHWC"
    attrs = {
        "strides": spatial_values(strides, data_format, "strides"),
        "dilations": spatial_values(dilations or 1, data_format, "dilations"),
        "data_format": data_format,
        **padding_attrs(padding),
    }
    result: Tensor = apply_op("DepthwiseConv2dNative", [input, filter], attrs, name)
    return result


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolves each channel with filters of its own; `rate` (or dilations) is two values.

    input: images [N, height, width, channels] of floats. filter: [height, width, channels, multiplier], for channels *
    multiplier channels of the result. strides: four values. padding: as in `conv2d`. data_format: "NHWC" or "NCHW".
    """
    spread = dilations if rate is None else rate
    return depthwise_conv2d_native(
        input, filter, strides, padding, data_format or "NHWC", spread or 1, name or "depthwise"
    )


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Returns a depthwise convolution, then one with a 1 x 1 filter that mixes the channels."""
    layout = data_format or "NHWC"
    with name_scope(name, "separable_conv2d"):
        deep = depthwise_conv2d(input, depthwise_filter, strides, padding, rate, "depthwise", layout, dilations)
        return conv2d(deep, pointwise_filter, 1, "VALID", data_format=layout, name="pointwise")


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Adds a vector along the channels: the last dimension, or the second where data_format begins with "NC"."""
    if data_format is not None and not data_format.startswith(("NC", "N")):
        raise InvalidArgumentError(f"tf.nn.bias_add: data_format is {data_format!r}; it must begin with N")
    layout = "NCHW" if data_format is not None and data_format.startswith("NC") else "NHWC"
    result: Tensor = apply_op("BiasAdd", [value, bias], {"data_format": layout}, name or "BiasAdd")
    return result


def bias_add_v1(value: Any, bias: Any, name: str | None = None) -> Tensor:
    """Adds a vector along the last dimension."""
    result: Tensor = apply_op("BiasAddV1", [value, bias], None, name)
    return result


def _pool(op: str, value: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None) -> Tensor:
    attrs = {
        "ksize": spatial_values(ksize, data_format, "ksize"),
        "strides": spatial_values(strides, data_format, "strides"),
        "data_format": data_format,
        **padding_attrs(padding),
    }
    result: Tensor = apply_op(op, [value], attrs, name or op)
    return result


def max_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the largest value in each window of `value` (or `input`).

    [N, height, width, channels], with data_format "NCHW" [N, channels, height, width]. ksize, strides: one value, two
    or four. padding: as in `conv2d`. The result has the dtype of value, and ceil(size / stride) pixels with SAME.
    """
    return _pool(
        "MaxPool", either("max_pool", "value", value, "input", input), ksize, strides, padding, data_format, name
    )


def avg_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the mean of each window of `value` (or `input`), padding not counted.

    The arguments and the result are those of `max_pool`; value has floats.
    """
    return _pool(
        "AvgPool", either("avg_pool", "value", value, "input", input), ksize, strides, padding, data_format, name
    )


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`max_pool` with its first argument named input."""
    return max_pool(input, ksize, strides, padding, data_format, name)


avg_pool2d = avg_pool


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation of [N, H, W, C] or [N, C, H, W]: the result, and the running mean and variance.

    Outside training, and with exponential_avg_factor other than 1, mean and variance must be given.
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise InvalidArgumentError("tf.nn.fused_batch_norm: mean or variance is not given; both are required here")
    image = convert_to_tensor(x)
    with name_scope(name, "FusedBatchNorm", [image]) as scope:
        empty: list[float] = []
        statistics = [
            convert_to_tensor(empty if v is None else v, float32 if v is None else None) for v in (mean, variance)
        ]
        attrs = {
            "epsilon": max(epsilon, 1.001e-5),  # TensorFlow's least value
            "data_format": data_format,
            "is_training": is_training,
            "exponential_avg_factor": exponential_avg_factor,
        }
        outputs = apply_op("FusedBatchNormV3", [image, scale, offset, *statistics], attrs, scope)
    return outputs[0], outputs[1], outputs[2]


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """`batch_normalization` of t with mean m and variance v; gamma counts only with scale_after_normalization.

    input, mean and variance are other names of t, m and v.
    """
    x, middle, spread = (a if b is None else b for a, b in ((t, input), (m, mean), (v, variance)))
    scale = gamma if scale_after_normalization else None
    return batch_normalization(x, middle, spread, beta, scale, variance_epsilon, name)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """(x - mean) * scale / sqrt(variance + variance_epsilon) + offset, broadcasting; offset and scale may be None."""
    with name_scope(name, "batchnorm"):
        value = convert_to_tensor(x)
        spread = convert_to_tensor(variance, value.dtype)
        factor = apply_op("Rsqrt", [apply_op("AddV2", [spread, variance_epsilon])])
        if scale is not None:
            factor = apply_op("Mul", [factor, scale])
        shift = apply_op("Mul", [mean, factor])
        shift = apply_op("Neg", [shift]) if offset is None else apply_op("Sub", [offset, shift])
        result: Tensor = apply_op("AddV2", [apply_op("Mul", [value, factor]), shift])
        return result


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over the axes, of 16-bit floats computed in float32. `shift` is not used (as in TensorFlow)."""
    keep = bool(keep_dims if keepdims is None else keepdims)
    with name_scope(name, "moments"):
        value = convert_to_tensor(x)
        narrow = value.dtype in (float16, bfloat16)
        wide = cast(value, float32) if narrow else value
        center = apply_op("Mean", [wide, axes], {"keep_dims": True}, "mean")
        deviations = apply_op("SquaredDifference", [wide, stop_gradient(center)])
        spread = apply_op("Mean", [deviations, axes], {"keep_dims": True}, "variance")
        if not keep:
            dims = _static_axes(axes)
            center, spread = (squeeze(t, dims) for t in (center, spread))
        return (cast(center, value.dtype), cast(spread, value.dtype)) if narrow else (center, spread)


def _static_axes(axes: Any) -> list[int]:
    given = axes if isinstance(axes, list | tuple) else [axes]
    if isinstance(axes, Tensor) or any(isinstance(a, Tensor) for a in given):
        raise InvalidArgumentError("tf.nn.moments: axes is a tensor; without keepdims it must be Python integers")
    return [int(a) for a in given]


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / sqrt(max(sum(x^2), epsilon)) along the axes (formerly `dim`), all of them where none are given."""
    along = dim if axis is None else axis
    with name_scope(name, "l2_normalize"):
        value = convert_to_tensor(x)
        if along is None:
            along = apply_op("Range", [0, rank(value), 1])
        squares = apply_op("Sum", [apply_op("Square", [value]), along], {"keep_dims": True})
        inverse = apply_op("Rsqrt", [apply_op("Maximum", [squares, epsilon])])
        result: Tensor = apply_op("Mul", [value, inverse])
        return result


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases."""
    with name_scope(name, "xw_plus_b") as scope:
        return bias_add(apply_op("MatMul", [x, weights]), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)."""
    with name_scope(name, "relu_layer") as scope:
        result: Tensor = apply_op("Relu", [bias_add(apply_op("MatMul", [x, weights]), biases)], None, scope)
        return result


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Tensor:
    """Divides by (bias + alpha * sum of squares of the nearest channels) ^ beta.

    input: images [N, height, width, channels] of floats. depth_radius: how many channels on each side count.
    """
    attrs = {"depth_radius": depth_radius, "bias": float(bias), "alpha": float(alpha), "beta": float(beta)}
    result: Tensor = apply_op("LRN", [input], attrs, name)
    return result


lrn = local_response_normalization
