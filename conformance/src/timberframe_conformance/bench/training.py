"""A training step of a network: one program for the device and for TensorFlow, whose names it shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from timberframe_conformance.bench.workload import Call

BATCH = 128
SIZES = (784, 512, 512, 10)
NAME = "MLP training step"

FLOPS = 6.0 * BATCH * sum(a * b for a, b in pairwise(SIZES)) - 2.0 * BATCH * SIZES[0] * SIZES[1]
"""Products forwards, and twice as many backwards, but for the gradient of the images."""
PARAMETERS = sum(a * b + b for a, b in pairwise(SIZES))
NBYTES = 4.0 * 7 * PARAMETERS
"""What Adam reads (variable, two slots, gradient) and writes."""


@dataclass(frozen=True)
class Training:
    """A session and what a run of it needs."""

    session: Any
    step: Any
    loss: Any
    feeds: dict[Any, np.ndarray]

    def call(self) -> Call:
        """Returns one training step, through Session.run."""
        run, step, feeds = self.session.run, self.step, self.feeds
        return lambda: run(step, feeds)


def network(tf: Any, images: Any, sizes: Sequence[int]) -> Any:
    """Logits of a network with ReLU layers; its weights are the same on every side."""
    rng = np.random.default_rng(3)
    layer = images
    for i, (before, after) in enumerate(pairwise(sizes)):
        start = rng.normal(scale=math.sqrt(2 / before), size=(before, after)).astype(np.float32)
        weights = tf.Variable(start, name=f"weights{i}", use_resource=True)
        biases = tf.Variable(np.zeros(after, np.float32), name=f"biases{i}", use_resource=True)
        layer = tf.nn.bias_add(tf.matmul(layer, weights), biases)
        if i < len(sizes) - 2:
            layer = tf.nn.relu(layer)
    return layer


def mlp(
    tf: Any,
    session: Callable[[Any], Any],
    device: str | None = None,
    sizes: Sequence[int] = SIZES,
    batch: int = BATCH,
) -> Training:
    """Returns a network, its loss and Adam, with variables initialised. tf: timberframe, or tensorflow.compat.v1."""
    rng = np.random.default_rng(4)
    with tf.Graph().as_default() as graph, tf.device(device):
        images, labels = tf.placeholder(tf.float32, [batch, sizes[0]]), tf.placeholder(tf.int32, [batch])
        logits = network(tf, images, sizes)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        step = tf.train.AdamOptimizer(1e-3).minimize(loss)
        made = session(graph)
        made.run(tf.global_variables_initializer())
    pixels = rng.uniform(size=(batch, sizes[0])).astype(np.float32)
    digits = rng.integers(0, sizes[-1], batch).astype(np.int32)
    return Training(made, step, loss, {images: pixels, labels: digits})


def tensorflow_call() -> Call:
    """Returns the step in TensorFlow's own Session."""
    import tensorflow.compat.v1 as tf  # type: ignore[import-untyped]  # a peer that need not be there

    return mlp(tf, lambda graph: tf.Session(graph=graph)).call()
