"""Writes a model with TensorFlow, and what it answers: ``python write_tensorflow.py FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf


class Network(tf.Module):  # type: ignore[misc]
    """Two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        self.first = tf.Variable(random.normal(size=(4, 8)).astype(np.float32))
        self.second = tf.Variable(random.normal(size=(8, 3)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])  # type: ignore[untyped-decorator]
    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the probabilities of three classes."""
        return {"y": tf.nn.softmax(tf.nn.relu(x @ self.first) @ self.second)}


def main() -> None:
    folder = Path(sys.argv[1])
    network = Network()
    x = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
    tf.saved_model.save(network, str(folder / "1"), {"serving_default": network.__call__})
    expected = {"x": x.tolist(), "y": network(x)["y"].numpy().tolist()}
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
