"""Convolutions, and transposed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timberframe import layers as tf_layers
from timberframe.api.initializers import zeros_initializer
from timberframe.api.unary import relu
from timberframe_contrib.contrib.framework import add_arg_scope
from timberframe_contrib.contrib.layers.base import called, finished, layout, opened_scope
from timberframe_contrib.contrib.layers.weights import xavier_initializer
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor


@add_arg_scope
def convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
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
    conv_dims: int | None = None,
) -> Any:
    """Convolution along one to three axes, `weights` and `biases` in scope `Conv`; with a normalizer_fn no biases.

    data_format: NWC, NHWC or NDHWC, or with the channels first NCW, NCHW or NCDHW. rate: distance between the values
    that neighbouring weights take. conv_dims: the number of spatial axes that inputs must have.
    """
    with opened_scope(scope, "Conv", inputs, reuse) as opened:
        given = convert_to_tensor(inputs)
        rank = given.shape.ndims
        if rank not in (3, 4, 5) or conv_dims not in (None, rank - 2):
            raise InvalidArgumentError(
                f"tf.contrib.layers.convolution: the inputs have shape {given.shape}; "
                f"{'3 to 5' if conv_dims is None else conv_dims + 2} axes are required"
            )
        kind = (tf_layers.Conv1D, tf_layers.Conv2D, tf_layers.Conv3D)[rank - 3]
        layer = kind(
            num_outputs, kernel_size, stride, padding, layout(data_format), rate, None,
            normalizer_fn is None and biases_initializer is not None, weights_initializer, biases_initializer,
            weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs = called(layer, given, variables_collections)
        return finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)


def _convolution(name: str, conv_dims: int) -> Callable[..., Any]:
    """`convolution` of inputs with so many spatial axes; argument scopes know it by its own name."""

    def convolve(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str | None = None,
        rate: Any = 1,
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
        return convolution(
            inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
            normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer,
            reuse, variables_collections, outputs_collections, trainable, scope, conv_dims,
        )  # fmt: skip

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"`convolution` along {conv_dims} ax{'is' if conv_dims == 1 else 'es'}, in scope `Conv`."
    return add_arg_scope(convolve)


conv1d = convolution1d = _convolution("convolution1d", 1)
conv2d = convolution2d = _convolution("convolution2d", 2)
conv3d = convolution3d = _convolution("convolution3d", 3)


def _transposed(name: str, kind: Any, default_scope: str, default_layout: str) -> Callable[..., Any]:
    """Returns a transposed convolution by a layer of `tf.layers`."""

    def convolve(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str | None = default_layout,
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
        with opened_scope(scope, default_scope, inputs, reuse) as opened:
            layer = kind(
                num_outputs, kernel_size, stride, padding, layout(data_format), None,
                normalizer_fn is None and biases_initializer is not None, weights_initializer, biases_initializer,
                weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened, _reuse=reuse,
            )  # fmt: skip
            outputs = called(layer, inputs, variables_collections)
            return finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, opened.name)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"The gradient of a convolution by its input, as a layer in scope `{default_scope}`."
    return add_arg_scope(convolve)


conv2d_transpose = convolution2d_transpose = _transposed(
    "convolution2d_transpose", tf_layers.Conv2DTranspose, "Conv2d_transpose", "NHWC"
)
conv3d_transpose = convolution3d_transpose = _transposed(
    "convolution3d_transpose", tf_layers.Conv3DTranspose, "Conv3d_transpose", "NDHWC"
)
