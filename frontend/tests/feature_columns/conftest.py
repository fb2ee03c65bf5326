"""A graph and a session of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.set_random_seed(1)
        yield session
