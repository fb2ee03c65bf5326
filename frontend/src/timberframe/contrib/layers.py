"""`tf.contrib.layers`: layers as functions that take `scope`, with variables named weights and biases.

The functions take defaults from `tf.contrib.framework.arg_scope`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from timberframe import layers as tf_layers
from timberframe.api.arrays import identity
from timberframe.api.framework import GraphKeys, add_to_collections, control_dependencies, name_scope
from timberframe.api.indexing import one_hot
from timberframe.api.initializers import ones_initializer, zeros_initializer
from timberframe.api.nn import batch_normalization, moments
from timberframe.api.unary import relu
from timberframe.api.variable_scope import VariableScope, variable_scope
from timberframe.boundary import guard
from timberframe.contrib.embeddings import embed_sequence as embed_sequence
from timberframe.contrib.framework import add_arg_scope, add_model_variable, model_variable
from timberframe.contrib.optimize import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from timberframe.contrib.optimize import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from timberframe.contrib.optimize import optimize_loss as optimize_loss
from timberframe.contrib.weights import apply_regularization as apply_regularization
from timberframe.contrib.weights import l1_l2_regularizer as l1_l2_regularizer
from timberframe.contrib.weights import l1_regularizer as l1_regularizer
from timberframe.contrib.weights import l2_regularizer as l2_regularizer
from timberframe.contrib.weights import sum_regularizer as sum_regularizer
from timberframe.contrib.weights import variance_scaling_initializer as variance_scaling_initializer
from timberframe.contrib.weights import xavier_initializer as xavier_initializer
from timberframe.layers.base import Layer
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor

__all__ = [
    "apply_regularization", "avg_pool2d", "batch_norm", "conv2d", "conv2d_transpose", "convolution2d",
    "convolution2d_transpose", "dropout", "embed_sequence", "flatten", "fully_connected", "l1_l2_regularizer",
    "l1_regularizer", "l2_regularizer", "layer_norm", "linear", "max_pool2d", "one_hot_encoding", "optimize_loss",
    "relu", "separable_conv2d", "separable_convolution2d", "stack", "sum_regularizer", "variance_scaling_initializer",
    "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip

xavier_initializer_conv2d = xavier_initializer

_NAMES = {
    "kernel": "weights", "bias": "biases", "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}  # fmt: skip
"""What variables are called here, by their names in `tf.layers`."""


def _get_renamed(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """A getter of variables that gives them the names of this module and makes them the model's."""
    scope, separator, last = name.rpartition("/")
    made = getter(f"{scope}{separator}{_NAMES.get(last, last)}", *args, **kwargs)
    add_model_variable(made)
    return made


@contextmanager
def _opened(scope: Any, default: str, inputs: Any, reuse: Any) -> Iterator[VariableScope]:
    with variable_scope(scope, default, [inputs], reuse=reuse, custom_getter=_get_renamed) as opened:
        yield opened


def _called(layer: Layer, inputs: Any, collections: Any, **arguments: Any) -> Any:
    """A layer's outputs; its variables join collections, all or by their names here."""
    outputs = layer(convert_to_tensor(inputs), **arguments)
    for variable in layer.variables if collections else ():
        last = variable.op.name.rpartition("/")[2]
        names = collections.get(last) if isinstance(collections, Mapping) else collections
        if names:
            add_to_collections(names, variable)
    return outputs


def _collected(outputs: Any, collections: Any) -> Any:
    if collections:
        add_to_collections([collections] if isinstance(collections, str) else list(collections), outputs)
    return outputs


def _finished(outputs: Any, normalizer: Any, parameters: Any, activation: Any, collections: Any) -> Any:
    """Normalised, activated, and added to collections."""
    if normalizer is not None:
        outputs = normalizer(outputs, **(parameters or {}))
    return _collected(outputs if activation is None else activation(outputs), collections)


def _layout(data_format: str | None) -> str:
    """The name in `tf.layers` of an order of axes."""
    if data_format not in (None, "NHWC", "NCHW"):
        raise InvalidArgumentError(f"tf.contrib.layers: data_format is {data_format!r}; 'NHWC' or 'NCHW' is required")
    return "channels_first" if data_format == "NCHW" else "channels_last"


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
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
    """activation_fn(inputs . weights + biases) along the last axis; with a normalizer_fn there are no biases.

    The variables are `weights` and `biases` in scope `fully_connected`.
    """
    with _opened(scope, "fully_connected", inputs, reuse) as opened:
        layer = tf_layers.Dense(
            num_outputs, None, normalizer_fn is None and biases_initializer is not None, weights_initializer,
            biases_initializer, weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened,
            _reuse=reuse,
        )  # fmt: skip
        outputs = _called(layer, inputs, variables_collections)
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


def linear(inputs: Any, num_outputs: int, **arguments: Any) -> Any:
    """`fully_connected` without an activation."""
    return fully_connected(inputs, num_outputs, **{"activation_fn": None, **arguments})


@add_arg_scope
def conv2d(
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
    """Convolution of images, `weights` and `biases` in scope `Conv`; with a normalizer_fn there are no biases."""
    with _opened(scope, "Conv", inputs, reuse) as opened:
        layer = tf_layers.Conv2D(
            num_outputs, kernel_size, stride, padding, _layout(data_format), rate, None,
            normalizer_fn is None and biases_initializer is not None, weights_initializer, biases_initializer,
            weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs = _called(layer, inputs, variables_collections)
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


convolution2d = conv2d


@add_arg_scope
def conv2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
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
    """Transposed convolution of images, in scope `Conv2d_transpose`."""
    with _opened(scope, "Conv2d_transpose", inputs, reuse) as opened:
        layer = tf_layers.Conv2DTranspose(
            num_outputs, kernel_size, stride, padding, _layout(data_format), None,
            normalizer_fn is None and biases_initializer is not None, weights_initializer, biases_initializer,
            weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs = _called(layer, inputs, variables_collections)
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


convolution2d_transpose = conv2d_transpose


@add_arg_scope
def separable_conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
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
    """Separable convolution of images, `depthwise_weights`, `pointwise_weights` and `biases` in `SeparableConv2d`."""
    with _opened(scope, "SeparableConv2d", inputs, reuse) as opened:
        layer = tf_layers.SeparableConv2D(
            num_outputs, kernel_size, stride, padding, _layout(data_format), rate, depth_multiplier, None,
            normalizer_fn is None and biases_initializer is not None, weights_initializer,
            pointwise_initializer or weights_initializer, biases_initializer, weights_regularizer,
            weights_regularizer, biases_regularizer, trainable=trainable, _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs = _called(layer, inputs, variables_collections)
        return _finished(outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections)


separable_convolution2d = separable_conv2d


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Callable[[Any], Any] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    fused: bool | None = None,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Batch normalisation, in scope `BatchNorm`; see `tf.layers.BatchNormalization`.

    updates_collections: of the operations that move the means; None makes the output wait for them.
    """
    initializers, regularizers = param_initializers or {}, param_regularizers or {}
    with _opened(scope, "BatchNorm", inputs, reuse) as opened:
        layer = tf_layers.BatchNormalization(
            1 if _layout(data_format) == "channels_first" else -1, decay, epsilon, center, scale,
            initializers.get("beta", zeros_initializer), initializers.get("gamma", ones_initializer),
            initializers.get("moving_mean", zeros_initializer),
            initializers.get("moving_variance", ones_initializer), regularizers.get("beta"),
            regularizers.get("gamma"), fused=fused, trainable=trainable, _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs = _called(layer, inputs, variables_collections, training=is_training)
        outputs = _with_updates(outputs, layer, updates_collections)
        return _finished(outputs, None, None, activation_fn, outputs_collections)


def _with_updates(outputs: Any, layer: Layer, collections: Any) -> Any:
    if collections is None:
        with control_dependencies(layer.updates):
            return identity(outputs)
    if collections != GraphKeys.UPDATE_OPS:
        for update in layer.updates:
            add_to_collections([collections] if isinstance(collections, str) else list(collections), update)
    return outputs


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Ba et al. 2016: (x - mean) / sqrt(variance + 1e-12) * gamma + beta, in scope `LayerNorm`.

    Mean and variance are over the axes from begin_norm_axis on; beta and gamma have those from begin_params_axis on.
    """
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse):
        given = convert_to_tensor(inputs)
        rank = given.shape.ndims
        if rank is None or not (-rank <= begin_norm_axis < rank and -rank <= begin_params_axis < rank):
            raise InvalidArgumentError(
                f"tf.contrib.layers.layer_norm: begin_norm_axis {begin_norm_axis} and begin_params_axis "
                f"{begin_params_axis} for an input of shape {given.shape}; they must be axes of it"
            )
        sizes = given.shape.as_list()[begin_params_axis % rank :]
        made = [
            model_variable(name, sizes, given.dtype, initializer, trainable=trainable) if wanted else None
            for name, initializer, wanted in (
                ("beta", zeros_initializer(), center), ("gamma", ones_initializer(), scale)
            )
        ]  # fmt: skip
        mean, variance = moments(given, list(range(begin_norm_axis % rank, rank)), keep_dims=True)
        outputs = batch_normalization(given, mean, variance, made[0], made[1], 1e-12)
        outputs.set_shape(given.static_shape)
        return _finished(outputs, None, None, activation_fn, outputs_collections)


@add_arg_scope
def max_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The largest value in windows of images."""
    with name_scope(scope, "MaxPool2D", [inputs]):
        layer = tf_layers.MaxPooling2D(kernel_size, stride, padding, _layout(data_format))
        return _collected(layer(convert_to_tensor(inputs)), outputs_collections)


@add_arg_scope
def avg_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The mean of windows of images."""
    with name_scope(scope, "AvgPool2D", [inputs]):
        layer = tf_layers.AveragePooling2D(kernel_size, stride, padding, _layout(data_format))
        return _collected(layer(convert_to_tensor(inputs)), outputs_collections)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """All axes but the first as one."""
    with name_scope(scope, "Flatten", [inputs]):
        return _collected(tf_layers.flatten(inputs), outputs_collections)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Any:
    """Dropout while training; keep_prob: the probability of keeping a value."""
    with name_scope(scope, "Dropout", [inputs]):
        layer = tf_layers.Dropout(1 - keep_prob, noise_shape, seed)
        return _collected(layer(convert_to_tensor(inputs), training=is_training), outputs_collections)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """`tf.one_hot`, added to collections."""
    with name_scope(scope, "OneHotEncoding", [labels]):
        return _collected(one_hot(labels, num_classes, on_value, off_value), outputs_collections)


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """A layer function called again and again on its own output, each time with the next of stack_args."""
    scope, reuse = kwargs.pop("scope", None), kwargs.pop("reuse", None)
    if not stack_args:
        raise InvalidArgumentError("tf.contrib.layers.stack: stack_args is empty; one at least is required")
    with variable_scope(scope, "Stack", [inputs], reuse=reuse):
        outputs = inputs
        name = scope or getattr(layer, "__name__", "layer")
        for i, given in enumerate(stack_args, 1):
            arguments = given if isinstance(given, list | tuple) else [given]
            outputs = layer(outputs, *arguments, scope=f"{name}_{i}", **kwargs)
        return outputs


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
