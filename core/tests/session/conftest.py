"""A session with a variable, which every test of bad input leaves whole and working."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import timberframe as tf


@dataclass
class World:
    """A session, its graph, a placeholder of shape (?, 3), and what is computed from it and a variable."""

    session: tf.Session
    x: tf.Tensor
    y: tf.Tensor
    weights: tf.Variable

    def check(self) -> None:
        """The session runs, and the variable has its value."""
        np.testing.assert_array_equal(self.session.run(self.weights), [1, 2, 3])
        np.testing.assert_array_equal(self.session.run(self.y, {self.x: np.ones((2, 3))}), [[2, 3, 4]] * 2)


@pytest.fixture
def world() -> Iterator[World]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        weights = tf.Variable(np.array([1, 2, 3], np.float32), name="weights")
        y = tf.add(x, weights, name="y")
        session.run(weights.initializer)
        world = World(session, x, y, weights)
        yield world
        if not session.closed:
            world.check()
