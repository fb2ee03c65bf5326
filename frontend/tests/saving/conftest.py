"""A graph and a session for every test of saving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import timberframe as tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def initialized(session: tf.Session, value: Any, name: str, **rest: Any) -> tf.Variable:
    """A variable that has its value."""
    v = tf.Variable(value, name=name, **rest)
    session.run(v.initializer)
    return v
