"""Trains a convolutional network on handwritten digits on one device, and tests its checkpoint on another.

    python examples/digits_cnn.py --device /device:OPENCL:0

The network has two convolutions, pooling and a dense layer; Adam makes its cross entropy small.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

SIDE, CLASSES, LARGEST_PIXEL = 8, 10, 16.0
FILTERS, UNITS = (16, 32), 64
BATCH, EPOCHS, RATE = 64, 20, 2e-3
LEAST_ACCURACY = 0.97


@dataclass
class Model:
    """The tensors that a session feeds and fetches."""

    images: tf.Tensor
    labels: tf.Tensor
    loss: tf.Tensor
    correct: tf.Tensor
    train: tf.Operation
    saver: tf.train.Saver


def variable(name: str, shape: tuple[int, ...], inputs: int) -> tf.Tensor:
    """Returns weights whose spread fits the number of inputs of a ReLU; the same at every start."""
    random = np.random.default_rng(sum(map(ord, name)))
    return tf.get_variable(name, initializer=random.normal(scale=np.sqrt(2.0 / inputs), size=shape).astype(np.float32))


def build(device: str | None) -> Model:
    """Returns the network with everything on a device; the session chooses for what the device cannot do."""
    with tf.device(device):
        images = tf.placeholder(tf.float32, [None, SIDE, SIDE, 1], name="images")
        labels = tf.placeholder(tf.int32, [None], name="labels")
        layer, channels = images / LARGEST_PIXEL, 1
        for i, filters in enumerate(FILTERS):
            weights = variable(f"filters{i}", (3, 3, channels, filters), 9 * channels)
            bias = tf.get_variable(f"biases{i}", [filters], initializer=tf.zeros_initializer())
            layer = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(layer, weights, strides=[1, 1, 1, 1], padding="SAME"), bias))
            channels = filters
        layer = tf.nn.max_pool(layer, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        size = (SIDE // 2) ** 2 * channels
        layer = tf.nn.relu(tf.matmul(tf.reshape(layer, [-1, size]), variable("dense", (size, UNITS), size)))
        logits = tf.matmul(layer, variable("output", (UNITS, CLASSES), UNITS))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        found = tf.argmax(logits, axis=1, output_type=tf.int32)
        correct = tf.reduce_sum(tf.cast(tf.equal(found, labels), tf.int32))
        train = tf.train.AdamOptimizer(RATE).minimize(loss)
    return Model(images, labels, loss, correct, train, tf.train.Saver())


def fit(model: Model, session: tf.Session, images: np.ndarray, labels: np.ndarray) -> None:
    """Trains for EPOCHS rounds over the images in a new order each."""
    session.run(tf.global_variables_initializer())
    shuffle = np.random.default_rng(1)
    for epoch in range(1, EPOCHS + 1):
        order = shuffle.permutation(len(labels))
        losses = []
        for first in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[first : first + BATCH]
            fed = {model.images: images[rows], model.labels: labels[rows]}
            losses.append(session.run([model.loss, model.train], fed)[0])
        print(f"epoch {epoch:2}: loss {np.mean(losses):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="where to train, such as /device:OPENCL:0; without it the best device")
    parser.add_argument("--test-device", default="/device:CPU:0", help="where the checkpoint is tested")
    given = parser.parse_args()
    pixels, digits = load_digits(return_X_y=True)
    images = pixels.astype(np.float32).reshape(-1, SIDE, SIDE, 1)
    split = train_test_split(images, digits.astype(np.int32), test_size=0.3, random_state=0)
    train_images, test_images, train_labels, test_labels = split

    config = tf.SessionConfig(allow_soft_placement=True)
    correct = []
    with tempfile.TemporaryDirectory() as folder:
        for device, training in ((given.device, True), (given.test_device, False)):
            with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
                model = build(device)
                if training:
                    start = time.perf_counter()
                    fit(model, session, train_images, train_labels)
                    print(f"trained on {device or 'the best device'} in {time.perf_counter() - start:.1f} s")
                    path = model.saver.save(session, f"{folder}/digits")
                else:
                    model.saver.restore(session, path)
                fed = {model.images: test_images, model.labels: test_labels}
                correct.append(int(session.run(model.correct, fed)))
                print(f"{device or 'best device'}: {correct[-1]} of {len(test_labels)} test digits")
    accuracy = min(correct) / len(test_labels)
    print(f"accuracy {accuracy:.3f}")
    if accuracy < LEAST_ACCURACY:
        raise SystemExit(f"accuracy below {LEAST_ACCURACY}")


if __name__ == "__main__":
    main()
