"""Small models of scikit-learn's digits, each one program for Timberframe and TensorFlow.

Initial weights come from NumPy and are equal on every side; so are the batches, which go through the images in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import timberframe

BATCH = 32
SIDE = 8
CLASSES = 10


@pytest.fixture
def step(graph: timberframe.Graph) -> Any:
    """The operation that raises a global step by one."""
    return timberframe.assign_add(timberframe.train.get_or_create_global_step(), 1)


@dataclass(frozen=True)
class Digits:
    """Images of 8x8 pixels between 0 and 1, and the digits that they show."""

    images: np.ndarray
    labels: np.ndarray

    def batches(self, steps: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for step in range(steps):
            at = np.arange(step * BATCH, (step + 1) * BATCH) % len(self.labels)
            yield self.images[at], self.labels[at]


@pytest.fixture(scope="session")
def digits() -> Digits:
    """scikit-learn's digits."""
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    images, labels = datasets.load_digits(return_X_y=True)
    return Digits(images.reshape(-1, SIDE, SIDE) / 16.0, labels.astype(np.int32))


class Weights:
    """Makes variables whose first values are the same for every library."""

    def __init__(self, tf: Any, dtype: str) -> None:
        self.tf = tf
        self.dtype = dtype
        self.random = np.random.default_rng(5)

    def __call__(self, *shape: int) -> Any:
        scale = 1.0 / np.sqrt(np.prod(shape[:-1]))
        start = self.random.normal(scale=scale, size=shape) if len(shape) > 1 else np.zeros(shape)
        return self.tf.Variable(start.astype(self.dtype), use_resource=True)


def cross_entropy(tf: Any, logits: Any, labels: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def mlp(tf: Any, weights: Weights, images: Any, labels: Any) -> Any:
    """Returns two layers."""
    x = tf.reshape(images, [BATCH, SIDE * SIDE])
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights(SIDE * SIDE, 32)), weights(32)))
    return cross_entropy(tf, tf.matmul(hidden, weights(32, CLASSES)) + weights(CLASSES), labels)


def cnn(tf: Any, weights: Weights, images: Any, labels: Any) -> Any:
    """Returns two convolutions with pooling, and a layer."""
    x = tf.reshape(images, [BATCH, SIDE, SIDE, 1])
    for before, after, pool in ((1, 4, tf.nn.max_pool), (4, 8, tf.nn.avg_pool)):
        x = tf.nn.conv2d(x, weights(3, 3, before, after), strides=[1, 1, 1, 1], padding="SAME")
        x = pool(tf.nn.relu(tf.nn.bias_add(x, weights(after))), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    x = tf.reshape(x, [BATCH, 4 * 8])
    return cross_entropy(tf, tf.matmul(x, weights(32, CLASSES)) + weights(CLASSES), labels)


def lstm(tf: Any, weights: Weights, images: Any, labels: Any) -> Any:
    """Returns a recurrent network that reads one row of the image after the other in a while loop."""
    units = 12
    rows = tf.transpose(images, [1, 0, 2])
    kernel, biases = weights(SIDE + units, 4 * units), weights(4 * units)

    def body(i: Any, memory: Any, output: Any) -> Any:
        joined = tf.concat([tf.gather(rows, i), output], 1)
        enter, new, forget, leave = tf.split(tf.nn.bias_add(tf.matmul(joined, kernel), biases), 4, axis=1)
        memory = memory * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
        return i + 1, memory, tf.tanh(memory) * tf.sigmoid(leave)

    start = tf.zeros([BATCH, units], images.dtype)
    _, _, last = tf.while_loop(lambda i, *_: i < SIDE, body, [tf.constant(0), start, start])
    return cross_entropy(tf, tf.matmul(last, weights(units, CLASSES)) + weights(CLASSES), labels)


def autoencoder(tf: Any, weights: Weights, images: Any, labels: Any) -> Any:
    """Encodes the pixels in a narrow layer and decodes them."""
    x = tf.reshape(images, [BATCH, SIDE * SIDE])
    code = tf.tanh(tf.nn.bias_add(tf.matmul(x, weights(SIDE * SIDE, 12)), weights(12)))
    decoded = tf.sigmoid(tf.nn.bias_add(tf.matmul(code, weights(12, SIDE * SIDE)), weights(SIDE * SIDE)))
    return tf.reduce_mean(tf.reduce_sum(tf.square(decoded - x), axis=1))


Model = Callable[[Any, Weights, Any, Any], Any]
MODELS: dict[str, Model] = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "autoencoder": autoencoder}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda train: train.GradientDescentOptimizer(0.05),
    "momentum": lambda train: train.MomentumOptimizer(0.02, 0.9),
    "rmsprop": lambda train: train.RMSPropOptimizer(1e-3),
    "adam": lambda train: train.AdamOptimizer(1e-3),
}


@dataclass(frozen=True)
class Curve:
    """Trains a model with an optimizer in a library; `losses` has the loss before each step."""

    digits: Digits

    def losses(self, tf: Any, model: str, optimizer: str, dtype: str, steps: int) -> np.ndarray:
        with tf.Graph().as_default() as graph:
            images = tf.placeholder(dtype, [BATCH, SIDE, SIDE])
            labels = tf.placeholder("int32", [BATCH])
            loss = MODELS[model](tf, Weights(tf, dtype), images, labels)
            step = OPTIMIZERS[optimizer](tf.train).minimize(loss)
            found = []
            with tf.Session(graph=graph) as session:
                session.run(tf.global_variables_initializer())
                for pixels, shown in self.digits.batches(steps):
                    found.append(session.run([loss, step], {images: pixels, labels: shown})[0])
        return np.array(found, np.float64)


@pytest.fixture(scope="session")
def curve(digits: Digits) -> Curve:
    """The loss curves of all models on the digits."""
    return Curve(digits)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that take a model or an optimizer run with each of them."""
    for name, values in (("model", MODELS), ("optimizer", OPTIMIZERS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values)
