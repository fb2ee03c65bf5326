"""Gradients against central differences in float64, first and second order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import timberframe as tf

STEP = 1e-5
TOLERANCE = 1e-6  # for values around 1, central differences with this step are good to about 1e-9

Check = Callable[..., None]


def differences(session: tf.Session, y: Any, x: Any, at: np.ndarray) -> np.ndarray:
    """Returns the derivatives of the scalar y with respect to each element of x."""
    found = np.zeros_like(at)
    for i in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[i] = STEP
        found[i] = (session.run(y, {x: at + change}) - session.run(y, {x: at - change})) / (2 * STEP)
    return found


@pytest.fixture
def check_gradients() -> Check:
    """Checks the gradients of ``build(x)``, each of two runs, up to an order."""

    def check(
        build: Callable[[Any], Any], at: np.ndarray, shape: Sequence[int | None] | None = None, orders: int = 2
    ) -> None:
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            x = tf.placeholder(tf.float64, at.shape if shape is None else shape)
            total = tf.reduce_sum(build(x))
            for _ in range(orders):
                (gradient,) = tf.gradients(total, x)
                expected = differences(session, total, x, at)
                scale = max(1.0, np.abs(expected).max(initial=0))
                for _ in range(2):
                    found = session.run(gradient, {x: at})
                    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * scale)
                total = tf.reduce_sum(tf.sin(gradient))

    return check
