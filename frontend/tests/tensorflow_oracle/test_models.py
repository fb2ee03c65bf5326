"""Whole models from Keras, frozen, with random weights: our output is TensorFlow's to 1e-5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as ours


def freeze(model: Any, images: np.ndarray) -> tuple[Any, str, str, np.ndarray]:
    """GraphDef, names of input and output, and what TensorFlow computes."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    signature = tf.TensorSpec([None, *images.shape[1:]], tf.float32)
    concrete = tf.function(lambda x: model(x, training=False)).get_concrete_function(signature)
    frozen = convert_variables_to_constants_v2(concrete)
    (expected,) = frozen(tf.constant(images))
    return frozen.graph.as_graph_def(), frozen.inputs[0].name, frozen.outputs[0].name, expected.numpy()


def assert_same_output(model: Any, images: np.ndarray) -> None:
    graph_def, feed, fetch, expected = freeze(model, images)
    with ours.Graph().as_default() as graph:
        ours.import_graph_def(graph_def, name="")
        with ours.Session(graph=graph) as session:
            found = session.run(fetch, {feed: images})
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-5 * max(1.0, float(np.abs(expected).max()))


@pytest.fixture
def keras(tensorflow: Any) -> Any:
    import tensorflow as tf

    tf.keras.utils.set_random_seed(3)
    return tf.keras


def test_small_convolutional_network(keras: Any) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.SeparableConv2D(16, 3, activation="elu"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(32, activation="tanh"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    assert_same_output(model, np.random.default_rng(1).random((5, 28, 28, 1), np.float32))


def test_mobilenet_v2(keras: Any) -> None:
    model = keras.applications.MobileNetV2(
        input_shape=(96, 96, 3), weights=None, classes=100, classifier_activation=None
    )
    assert_same_output(model, np.random.default_rng(2).random((2, 96, 96, 3), np.float32) * 2 - 1)
