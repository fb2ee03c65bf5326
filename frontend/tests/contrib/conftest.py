"""Every test has a graph and a session of its own, with a seed."""

from __future__ import annotations

import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def session(session: tf.Session) -> tf.Session:
    tf.set_random_seed(1)
    return session
