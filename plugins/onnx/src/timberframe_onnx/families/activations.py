"""Activations, and softmax."""

from __future__ import annotations

import math

from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


@translates("Relu")
def _relu(node: Node, x: Tensor) -> Tensor:
    return tf.nn.relu(x)


@translates("LeakyRelu")
def _leaky_relu(node: Node, x: Tensor) -> Tensor:
    return tf.nn.leaky_relu(x, node.get("alpha", 0.01))


@translates("PRelu")
def _prelu(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    return tf.where_v2(x < scalar(0, x), x * slope, x)


@translates("Elu")
def _elu(node: Node, x: Tensor) -> Tensor:
    alpha = node.get("alpha", 1.0)
    if alpha == 1.0:
        return tf.nn.elu(x)
    return tf.where_v2(x < scalar(0, x), scalar(alpha, x) * tf.math.expm1(x), x)


@translates("Selu")
def _selu(node: Node, x: Tensor) -> Tensor:
    alpha, gamma = node.get("alpha", 1.6732631921768188), node.get("gamma", 1.0507010221481323)
    negative = scalar(alpha, x) * tf.math.expm1(x)
    return scalar(gamma, x) * tf.where_v2(x > scalar(0, x), x, negative)


@translates("HardSigmoid")
def _hard_sigmoid(node: Node, x: Tensor) -> Tensor:
    line = scalar(node.get("alpha", 0.2), x) * x + scalar(node.get("beta", 0.5), x)
    return tf.minimum(tf.maximum(line, scalar(0, x)), scalar(1, x))


@translates("HardSwish")
def _hard_swish(node: Node, x: Tensor) -> Tensor:
    line = scalar(1 / 6, x) * x + scalar(0.5, x)
    return x * tf.minimum(tf.maximum(line, scalar(0, x)), scalar(1, x))


@translates("Softplus")
def _softplus(node: Node, x: Tensor) -> Tensor:
    return tf.nn.softplus(x)


@translates("Softsign")
def _softsign(node: Node, x: Tensor) -> Tensor:
    return tf.nn.softsign(x)


@translates("ThresholdedRelu")
def _thresholded_relu(node: Node, x: Tensor) -> Tensor:
    return tf.where_v2(x > scalar(node.get("alpha", 1.0), x), x, tf.zeros_like(x))


@translates("Gelu")
def _gelu(node: Node, x: Tensor) -> Tensor:
    if node.get("approximate", "none") == "tanh":
        inner = scalar(math.sqrt(2 / math.pi), x) * (x + scalar(0.044715, x) * x * x * x)
        return scalar(0.5, x) * x * (scalar(1, x) + tf.tanh(inner))
    return scalar(0.5, x) * x * (scalar(1, x) + tf.erf(x * scalar(math.sqrt(0.5), x)))


def _along_last(node: Node, x: Tensor, function: object) -> Tensor:
    """Applies a function of the last axis to the node's axis; before opset 13 to all axes from it on as one."""
    axis = node.get("axis", -1)
    rank = node.rank(x)
    if node.get("flattens"):
        parts = shape_parts(x)
        rows = tf.reshape(x, [math.prod(parts[: axis % max(rank, 1)]), -1]) if axis else tf.reshape(x, [1, -1])
        return tf.reshape(function(rows), tf.shape(x))  # type: ignore[operator] # a function of tensors
    return function(x, axis=axis)  # type: ignore[operator] # a function of tensors


@translates("Softmax")
def _softmax(node: Node, x: Tensor) -> Tensor:
    return _along_last(node, x, tf.nn.softmax)


@translates("LogSoftmax")
def _log_softmax(node: Node, x: Tensor) -> Tensor:
    return _along_last(node, x, tf.nn.log_softmax)


@translates("Hardmax")
def _hardmax(node: Node, x: Tensor) -> Tensor:
    def ones(x: Tensor, axis: int = -1) -> Tensor:
        size = shape_parts(x)[axis]
        return tf.one_hot(tf.argmax(x, axis), size, axis=axis, dtype=x.dtype)

    return _along_last(node, x, ones)
