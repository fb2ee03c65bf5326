"""Convolutions of each channel by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timberframe import layers as tf_layers
from timberframe.api.arrays import tile
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn import bias_add, depthwise_conv2d
from timberframe.api.unary import relu
from timberframe_contrib.contrib.framework import add_arg_scope, model_variable
from timberframe_contrib.contrib.layers.base import called, finished, layout, opened_scope
from timberframe_contrib.contrib.layers.utils import channel_dimension, get_variable_collections, two_element_tuple
from timberframe_contrib.contrib.layers.weights import xavier_initializer
from timberframe_core.graph.apply import convert_to_tensor


@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Callable[[Any], Any] | None = relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    pointwise_initializer: Any = None,
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = zeros_initializer,
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """Convolutions of each channel by itself, then of all of them at each pixel, in scope `SeparableConv2d`.

    The variables are `depthwise_weights`, `pointwise_weights` and `biases`; without num_outputs the second step and its
    weights are left out. weights_regularizer: of both kinds of weights.
    """
    with opened_scope(scope, "SeparableConv2d", inputs, reuse) as opened:
        use_bias = normalizer_fn is None and biases_initializer is not None
        if num_outputs is not None:
            layer = tf_layers.SeparableConv2D(
                num_outputs, kernel_size, stride, padding, layout(data_format), rate, depth_multiplier, None, use_bias,
                weights_initializer, pointwise_initializer or weights_initializer, biases_initializer,
                weights_regularizer, weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened,
                _reuse=reuse,
            )  # fmt: skip
            outputs = called(layer, inputs, variables_collections)
        else:
            given = convert_to_tensor(inputs)
            channels = channel_dimension(given.shape, data_format, 4)
            weights = model_variable(
                "depthwise_weights", [*two_element_tuple(kernel_size), channels, depth_multiplier], given.dtype,
                weights_initializer, weights_regularizer, trainable,
                get_variable_collections(variables_collections, "depthwise_weights"),
            )  # fmt: skip
            outputs = depthwise_conv2d(
                given, weights, _strides(stride, data_format), padding, two_element_tuple(rate), data_format=data_format
            )
            if use_bias:
                outputs = _biased(
                    outputs, data_format, biases_initializer, biases_regularizer, trainable, variables_collections
                )
        return finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)


separable_conv2d = separable_convolution2d


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    activation_fn: Callable[[Any], Any] | None = relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = zeros_initializer,
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution with the same weights for every channel of images, which are NHWC, in scope `ConvInPlane`."""
    with opened_scope(scope, "ConvInPlane", inputs, reuse) as opened:
        given = convert_to_tensor(inputs)
        channels = channel_dimension(given.shape, "NHWC", 4)
        weights = model_variable(
            "weights", [*two_element_tuple(kernel_size), 1, 1], given.dtype, weights_initializer, weights_regularizer,
            trainable, get_variable_collections(variables_collections, "weights"),
        )  # fmt: skip
        outputs = depthwise_conv2d(given, tile(weights, [1, 1, channels, 1]), _strides(stride, "NHWC"), padding)
        if normalizer_fn is None and biases_initializer is not None:
            outputs = _biased(
                outputs, "NHWC", biases_initializer, biases_regularizer, trainable, variables_collections
            )  # fmt: skip
        return finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)


conv2d_in_plane = convolution2d_in_plane


def _strides(stride: Any, data_format: str) -> list[int]:
    height, width = two_element_tuple(stride)
    return [1, 1, height, width] if data_format.startswith("NC") else [1, height, width, 1]


def _biased(
    outputs: Any, data_format: str, initializer: Any, regularizer: Any, trainable: bool, collections: Any
) -> Any:  # fmt: skip
    biases = model_variable(
        "biases", [channel_dimension(outputs.shape, data_format)], outputs.dtype, initializer, regularizer, trainable,
        get_variable_collections(collections, "biases"),
    )  # fmt: skip
    return bias_add(outputs, biases, data_format)
