"""Trains a small network on scikit-learn's handwritten digits in a Timberframe session, and tests it.

The network has two ReLU layers; Adam makes its cross entropy small, at a learning rate that falls.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

LARGEST_PIXEL = 16.0  # the data set has 17 shades
PIXELS, UNITS, CLASSES = 64, (96, 48), 10
BATCH, EPOCHS = 64, 40


def build_network(pixels: tf.Tensor) -> tf.Tensor:
    """Returns a logit for each digit, for each row of pixels."""
    random = np.random.default_rng(0)
    layer, size = pixels / LARGEST_PIXEL, PIXELS
    for i, units in enumerate((*UNITS, CLASSES)):
        with tf.variable_scope(f"layer{i}"):
            start = random.normal(scale=np.sqrt(2.0 / size), size=(size, units)).astype(np.float32)
            weights = tf.get_variable("weights", initializer=start)
            biases = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
            layer = tf.nn.bias_add(tf.matmul(layer, weights), biases)
            size = units
        if i < len(UNITS):
            layer = tf.nn.relu(layer)
    return layer


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images.astype(np.float32), labels.astype(np.int32), test_size=0.3, random_state=0)
    train_images, test_images, train_labels, test_labels = parts

    pixels = tf.placeholder(tf.float32, [None, PIXELS], name="pixels")
    digits = tf.placeholder(tf.int32, [None], name="digits")
    logits = build_network(pixels)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=digits, logits=logits))
    right = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, axis=1, output_type=tf.int32), digits), tf.int32))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(3e-3, step, decay_steps=200, decay_rate=0.7)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)

    shuffle = np.random.default_rng(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        device = session.list_devices()[0]
        print(f"{device.spec} ({device.attributes.model})")
        start = time.perf_counter()
        for epoch in range(1, EPOCHS + 1):
            order = shuffle.permutation(len(train_labels))
            for first in range(0, len(order) - BATCH + 1, BATCH):
                rows = order[first : first + BATCH]
                session.run(train, {pixels: train_images[rows], digits: train_labels[rows]})
            if epoch in (1, 2, 5, 10, 20, EPOCHS):
                value = session.run(loss, {pixels: train_images, digits: train_labels})
                print(f"epoch {epoch:2}: {session.run(step)} steps, loss {value:.4f}")
        seconds = time.perf_counter() - start
        correct = int(session.run(right, {pixels: test_images, digits: test_labels}))
    accuracy = correct / len(test_labels)
    print(f"trained in {seconds:.1f} s; {correct} of {len(test_labels)} test digits, accuracy {accuracy:.3f}")
    if accuracy < 0.95:
        raise SystemExit("accuracy below 0.95")


if __name__ == "__main__":
    main()
