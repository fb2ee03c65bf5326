"""A graph and a session for every test of saving."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timberframe as tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session
