"""The network of two hidden layers that TensorFlow 1's tutorial of MNIST trains."""

from __future__ import annotations

import math
from typing import Any

from timberframe.api.constants import zeros
from timberframe.api.framework import name_scope
from timberframe.api.linalg import matmul
from timberframe.api.random import truncated_normal
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.api.variables import Variable
from timberframe.losses import sparse_softmax_cross_entropy
from timberframe.nn import in_top_k, relu
from timberframe.summary.functions import scalar
from timberframe.train.descent import GradientDescentOptimizer
from timberframe_core.dtypes import int32, int64

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """Returns logits, [batch, NUM_CLASSES], for images [batch, IMAGE_PIXELS]."""
    first = relu(_layer("hidden1", images, IMAGE_PIXELS, hidden1_units))
    second = relu(_layer("hidden2", first, hidden1_units, hidden2_units))
    return _layer("softmax_linear", second, hidden2_units, NUM_CLASSES)


def _layer(name: str, x: Any, width: int, units: int) -> Any:
    with name_scope(name):
        first = truncated_normal([width, units], stddev=1.0 / math.sqrt(width))
        weighted: Any = matmul(x, Variable(first, name="weights"))
        return weighted + Variable(zeros([units]), name="biases")


def loss(logits: Any, labels: Any) -> Any:
    """Returns the mean cross-entropy of logits and classes."""
    return sparse_softmax_cross_entropy(cast(labels, int64), logits)


def training(loss: Any, learning_rate: float) -> Any:
    """Returns the operation of a step of gradient descent, and adds a summary of the loss."""
    scalar("loss", loss)
    step = Variable(0, name="global_step", trainable=False)
    return GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)


def evaluation(logits: Any, labels: Any) -> Any:
    """Returns how many classes are those of the largest logits."""
    return reduce_sum(cast(in_top_k(logits, labels, 1), int32))
