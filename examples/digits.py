"""Classifies scikit-learn's handwritten digits with a small network in a Timberframe session.

The network's weights come from a scikit-learn model that is fitted on the spot; Timberframe runs it as a graph.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import timberframe as tf

LARGEST_PIXEL = 16.0  # the data set has 17 shades


def build_network(model: MLPClassifier, pixels: tf.Tensor) -> tf.Tensor:
    """The digit that each row of pixels shows: ReLU layers, then the class of the largest logit."""
    layer = pixels / LARGEST_PIXEL
    last = len(model.coefs_) - 1
    for i, (weights, biases) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        with tf.name_scope(f"layer{i}"):
            w = tf.Variable(weights.astype(np.float32), name="weights")
            b = tf.Variable(biases.astype(np.float32), name="biases")
            layer = tf.nn.bias_add(tf.matmul(layer, w), b)
            if i < last:
                layer = tf.nn.relu(layer)
    return tf.argmax(layer, axis=1)


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels, test_size=0.3, random_state=0)
    train_images, test_images, train_labels, test_labels = parts
    model = MLPClassifier((64, 32), max_iter=400, random_state=0).fit(train_images / LARGEST_PIXEL, train_labels)

    pixels = tf.placeholder(tf.float32, [None, 64], name="pixels")
    predicted = build_network(model, pixels)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        digits = session.run(predicted, {pixels: test_images})
        device = session.list_devices()[0]
    correct = int(np.sum(digits == test_labels))
    accuracy = correct / len(test_labels)
    agree = float(np.mean(digits == model.predict(test_images / LARGEST_PIXEL)))
    print(f"{device.spec} ({device.attributes.model}): {correct} of {len(test_labels)} digits, accuracy {accuracy:.3f}")
    print(f"agrees with scikit-learn's own prediction on {agree:.1%}")
    if accuracy < 0.95 or agree < 1.0:
        raise SystemExit("accuracy below 0.95, or another answer than scikit-learn's")


if __name__ == "__main__":
    main()
