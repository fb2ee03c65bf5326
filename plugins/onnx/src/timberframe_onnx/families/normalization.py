"""Normalization by statistics: of a batch, an image, a group of channels, a layer."""

from __future__ import annotations

from typing import Any

from timberframe_onnx.elements import NATIVE
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.families.shapes import product, stacked
from timberframe_onnx.families.windows import Windows
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


def _of_channels(parameter: Tensor, rank: int) -> Tensor:
    return tf.reshape(parameter, [-1] + [1] * (rank - 2))


@translates("BatchNormalization")
def _batch_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Any:
    rank = node.rank(x)
    epsilon = node.get("epsilon", 1e-5)
    training = node.get("training_mode", 0) or (node.opset < 14 and node.wants(1))
    if not training:
        factor = scale * tf.rsqrt(tf.cast(variance, scale.dtype) + scalar(epsilon, scale))
        offset = bias - tf.cast(mean, scale.dtype) * factor
        if rank == 1:
            return x * tf.cast(factor, x.dtype) + tf.cast(offset, x.dtype)
        return x * tf.cast(_of_channels(factor, rank), x.dtype) + tf.cast(_of_channels(offset, rank), x.dtype)
    axes = [0, *range(2, rank)]
    momentum = scalar(node.get("momentum", 0.9), mean)
    now, spread = tf.nn.moments(tf.cast(x, mean.dtype), axes)
    factor = tf.cast(scale, mean.dtype) * tf.rsqrt(spread + scalar(epsilon, mean))
    offset = tf.cast(bias, mean.dtype) - now * factor
    made = x * tf.cast(_of_channels(factor, rank), x.dtype) + tf.cast(_of_channels(offset, rank), x.dtype)
    keep = scalar(1, mean) - momentum
    return made, mean * momentum + now * keep, variance * momentum + spread * keep


def _normalized(x: Tensor, axes: list[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the normalized tensor, its mean and the reciprocal of its standard deviation along axes."""
    mean = tf.reduce_mean(x, axes, keepdims=True)
    centred = x - mean
    inverse = tf.rsqrt(tf.reduce_mean(tf.square(centred), axes, keepdims=True) + scalar(epsilon, x))
    return centred * inverse, mean, inverse


@translates("InstanceNormalization")
def _instance_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    rank = node.rank(x)
    made, _, _ = _normalized(x, list(range(2, rank)), node.get("epsilon", 1e-5))
    return made * _of_channels(scale, rank) + _of_channels(bias, rank)


@translates("LayerNormalization")
def layer_normalized(node: Node, x: Tensor, scale: Tensor, bias: Tensor = None) -> Any:
    """Returns x normalized from the node's axis on, scaled and shifted, the mean, and 1 / standard deviation."""
    rank = node.rank(x)
    stash = NATIVE[node.get("stash_type", 1)]
    axes = list(range(node.get("axis", -1) % rank, rank))
    made, mean, inverse = _normalized(tf.cast(x, stash), axes, node.get("epsilon", 1e-5))
    made = tf.cast(made, x.dtype) * scale
    return (made if bias is None else made + bias), mean, inverse


@translates("RMSNormalization")
def rms_normalized(node: Node, x: Tensor, scale: Tensor) -> Tensor:
    """Returns x divided by the root of the mean of its squares from the node's axis on, scaled."""
    rank = node.rank(x)
    wide = tf.cast(x, NATIVE[node.get("stash_type", 1)])
    axes = list(range(node.get("axis", -1) % rank, rank))
    mean = tf.reduce_mean(tf.square(wide), axes, keepdims=True)
    made = wide * tf.rsqrt(mean + scalar(node.get("epsilon", 1e-5), wide))
    return tf.cast(made, x.dtype) * scale


@translates("GroupNormalization")
def _group_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = node.get("num_groups")
    parts: list[Any] = shape_parts(x)
    wide = tf.cast(x, NATIVE[node.get("stash_type", 1)])
    rows = tf.reshape(wide, stacked([parts[0], groups, -1]))
    made, _, _ = _normalized(rows, [2], node.get("epsilon", 1e-5))
    if node.get("by_group"):
        made = made * tf.cast(scale, wide.dtype)[:, None] + tf.cast(bias, wide.dtype)[:, None]
        return tf.cast(tf.reshape(made, tf.shape(x)), x.dtype)
    made = tf.cast(tf.reshape(made, tf.shape(x)), x.dtype)
    return made * _of_channels(scale, len(parts)) + _of_channels(bias, len(parts))


@translates("MeanVarianceNormalization")
def _mean_variance_normalization(node: Node, x: Tensor) -> Tensor:
    axes = node.get("axes", [0, 2, 3])
    centred = x - tf.reduce_mean(x, axes, keepdims=True)
    deviation = tf.sqrt(tf.reduce_mean(tf.square(centred), axes, keepdims=True))
    return centred / (deviation + scalar(1e-9, x))


@translates("LpNormalization")
def _lp_normalization(node: Node, x: Tensor) -> Tensor:
    axis, p = node.get("axis", -1), node.get("p", 2)
    if p == 1:
        norm = tf.reduce_sum(tf.abs(x), axis, keepdims=True)
    else:
        norm = tf.sqrt(tf.reduce_sum(tf.square(x), axis, keepdims=True))
    return tf.where_v2(tf.equal(norm, scalar(0, x)), tf.zeros_like(x), x / norm)


@translates("LRN")
def _lrn(node: Node, x: Tensor) -> Tensor:
    """Returns the sum of squares of `size` channels around each, by a pool along the axis of channels."""
    size = node.get("size")
    parts: list[Any] = shape_parts(x)
    rows = tf.reshape(tf.square(x), stacked([parts[0], 1, parts[1], product(parts[2:])]))
    window = Windows((1, 1), (1, 1), (size, 1), "NOTSET", [])
    padded = window.padded(rows, [(size - 1) // 2, 0], [size - 1 - (size - 1) // 2, 0], 0)
    total = tf.reshape(tf.reduce_sum(window.patches(padded), -1), tf.shape(x))
    factor = node.get("alpha", 1e-4) / size
    return x / tf.pow(scalar(node.get("bias", 1.0), x) + scalar(factor, x) * total, scalar(node.get("beta", 0.75), x))


@translates("Dropout")
def _dropout(node: Node, x: Tensor, ratio: Tensor = None, training: Tensor = None) -> Any:
    if training is None:
        return tf.identity(x), tf.fill(tf.shape(x), True)
    share = tf.constant(0.5) if ratio is None else tf.cast(tf.reshape(ratio, []), tf.float32)
    drawn = tf.random_uniform(tf.shape(x), seed=node.get("seed"))
    kept = tf.logical_or(tf.logical_not(tf.reshape(training, [])), drawn >= share)
    factor = tf.where_v2(tf.reshape(training, []), 1 / (1 - share), 1.0)
    scaled = tf.where_v2(kept, x * tf.cast(factor, x.dtype), tf.zeros_like(x))
    return scaled, kept
