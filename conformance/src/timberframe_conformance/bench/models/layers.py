"""Layers with seeded weights, from which the networks are made; images are [batch, height, width, channels]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import timberframe as tf

Activation = Callable[[Any], Any]

CLASSES = 1000
"""Number of classes, as in ImageNet."""
STATISTICS_SPREAD = 0.1
"""Standard deviation of moving statistics, scales and offsets around 0 and 1."""
LEAST_CHANNELS = 4


class Layers:
    """Makes layers in the default graph.

    variables: weights are variables instead of constants. width: factor for all numbers of channels and units; below 1
    the network is small but keeps its structure.
    """

    def __init__(self, seed: int, variables: bool = False, width: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self._variables = variables
        self._width = width

    def channels(self, count: int) -> int:
        """Returns the number of channels that replaces the published one."""
        return max(min(count, LEAST_CHANNELS), round(count * self._width))

    def weight(self, value: Any, trainable: bool = True) -> Any:
        """Returns a tensor of the network's state with this initial value."""
        array = np.asarray(value, np.float32)
        if self._variables:
            return tf.Variable(array, trainable=trainable, use_resource=True)
        return tf.constant(array)

    def normal(self, shape: Sequence[int], deviation: float, mean: float = 0.0) -> np.ndarray:
        """Returns numbers around a mean."""
        return mean + deviation * self.rng.standard_normal(shape, np.float32)

    def filters(self, shape: Sequence[int], inputs: int) -> Any:
        """Returns weights of He's scale for this number of inputs per output, which keeps the variance through ReLU."""
        return self.weight(self.normal(shape, math.sqrt(2 / inputs)))

    def bias(self, width: int) -> Any:
        """Returns small offsets."""
        return self.weight(self.normal([width], STATISTICS_SPREAD))

    def conv(
        self,
        x: Any,
        filters: int,
        size: int | tuple[int, int] = 1,
        stride: int = 1,
        padding: str = "SAME",
        bias: bool = False,
    ) -> Any:
        """Returns a convolution to the published number of channels."""
        return self.conv_to(x, self.channels(filters), size, stride, padding, bias)

    def conv_to(
        self,
        x: Any,
        after: int,
        size: int | tuple[int, int] = 1,
        stride: int = 1,
        padding: str = "SAME",
        bias: bool = False,
    ) -> Any:
        """Returns a convolution to exactly this number of channels, whatever the network's width."""
        height, width = (size, size) if isinstance(size, int) else size
        before = int(x.shape[3])
        weights = self.filters([height, width, before, after], height * width * before)
        y = tf.nn.conv2d(x, weights, [1, stride, stride, 1], padding)
        return tf.nn.bias_add(y, self.bias(after)) if bias else y

    def depthwise(self, x: Any, size: int, stride: int = 1, padding: str = "SAME") -> Any:
        """Returns a convolution of each channel by itself."""
        weights = self.filters([size, size, int(x.shape[3]), 1], size * size)
        return tf.nn.depthwise_conv2d_native(x, weights, [1, stride, stride, 1], padding)

    def separable(self, x: Any, filters: int, size: int = 3, stride: int = 1, padding: str = "SAME") -> Any:
        """Returns a depthwise convolution and one of size 1 after it, as Keras' SeparableConv2D has them."""
        return self.conv(self.depthwise(x, size, stride, padding), filters)

    def batch_norm(self, x: Any, epsilon: float = 1e-3, scale: bool = True, gain: float = 1.0) -> Any:
        """Batch normalisation by moving statistics, as a node of its own. gain: the mean of its factors.

        Without scale the factors are ones, which is how Keras writes such layers into frozen graphs.
        """
        width, spread = int(x.shape[3]), STATISTICS_SPREAD
        gamma = self.weight(self.normal([width], spread * gain, gain)) if scale else tf.ones([width])
        beta = self.weight(self.normal([width], spread))
        mean = self.weight(self.normal([width], spread), trainable=False)
        variance = self.weight(np.exp(self.normal([width], spread)), trainable=False)
        y, _, _ = tf.nn.fused_batch_norm(x, gamma, beta, mean, variance, epsilon, is_training=False)
        return y

    def dense(self, x: Any, units: int, activation: Activation | None = None, gain: float = 2.0) -> Any:
        """Returns a matrix product with bias to the published number of units. gain: 2 is He's for ReLU."""
        before, after = int(x.shape[1]), self.channels(units)
        weights = self.weight(self.normal([before, after], math.sqrt(gain / before)))
        y = tf.nn.bias_add(tf.matmul(x, weights), self.bias(after))
        return activation(y) if activation else y

    def classify(self, x: Any, classes: int = CLASSES) -> Any:
        """Returns probabilities of the classes, from an image's mean."""
        return tf.nn.softmax(self.dense(mean(x), classes, gain=1.0))


def mean(x: Any, keep: bool = False) -> Any:
    """Returns the mean of each channel over the image (global average pooling)."""
    return tf.reduce_mean(x, [1, 2], keepdims=keep)


def max_pool(x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
    """Returns the largest value of each window."""
    return tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)


def avg_pool(x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
    """Returns the mean of each window."""
    return tf.nn.avg_pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)


def pad(x: Any, before: int, after: int) -> Any:
    """Returns zeros around the images."""
    return tf.pad(x, [[0, 0], [before, after], [before, after], [0, 0]])


def pad_for_stride(x: Any, size: int) -> Any:
    """Returns zeros around images that a convolution of this odd size halves next, laid out as
    Keras' `correct_pad` does.
    """
    before = [size // 2 - (1 - int(x.shape[axis]) % 2) for axis in (1, 2)]
    return tf.pad(x, [[0, 0], [before[0], size // 2], [before[1], size // 2], [0, 0]])


def join(*parts: Any) -> Any:
    """Returns images with the channels of all parts."""
    return tf.concat(parts, 3)


def swish(x: Any) -> Any:
    """x * sigmoid(x) as the two nodes that frozen Keras graphs have."""
    return x * tf.sigmoid(x)


def hard_sigmoid(x: Any) -> Any:
    """MobileNetV3's piecewise linear sigmoid."""
    return tf.nn.relu6(x + 3.0) * (1.0 / 6.0)


def hard_swish(x: Any) -> Any:
    """x * hard_sigmoid(x)."""
    return x * hard_sigmoid(x)
