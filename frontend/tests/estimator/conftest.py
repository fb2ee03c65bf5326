"""Examples of two numbers and a kind each, and how estimators are trained on them."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe as tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 2)).astype(np.float32)
KINDS = np.array(["a", "b"], object)[RNG.integers(0, 2, 64)]
FEATURES = {"x": X, "kind": KINDS, "weight": np.linspace(0.5, 1.5, 64).astype(np.float32)}
NUMBERS = (X @ [1.0, -2.0] + np.where(KINDS == "a", 1.0, -1.0)).astype(np.float32)
BINARY = (NUMBERS > 0).astype(np.int64)

x = tf.feature_column.numeric_column("x", shape=2)
kind = tf.feature_column.categorical_column_with_vocabulary_list("kind", ["a", "b"])


def rows(labels: Any, shuffle: bool = False) -> Any:
    epochs = None if shuffle else 1
    return tf.estimator.inputs.numpy_input_fn(FEATURES, labels, batch_size=16, num_epochs=epochs, shuffle=shuffle)


def config() -> Any:
    return tf.estimator.RunConfig(tf_random_seed=1)


def trained(made: Any, labels: Any, steps: int = 150) -> dict[str, Any]:
    made.train(rows(labels, shuffle=True), steps=steps)
    found: dict[str, Any] = made.evaluate(rows(labels))
    return found
