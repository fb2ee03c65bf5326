"""Inputs and states of cells, and what their results are computed with."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe as tf

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 6)).astype(np.float32)
C, H = (RANDOM.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
HALVES = tf.constant_initializer(0.5)
STEPS = np.outer([1, 2, 3], np.ones(4)).astype(np.float32)
"""The inputs for which TensorFlow's results are known, with variables of 0.5 and states of 0.1."""
GRID = {"feature_size": 2, "frequency_skip": 1, "num_frequency_blocks": [3]}


def variables(session: tf.Session) -> dict[str, np.ndarray]:
    """Returns the values of all variables by their names without the scope of the cell."""
    return {v.op.name.partition("/")[2]: session.run(v) for v in tf.global_variables()}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def tenths(size: int) -> np.ndarray:
    return np.full((3, size), 0.1, np.float32)


def assert_close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-6)
