"""What tests of saving share."""

from __future__ import annotations

from typing import Any

import timberframe as tf


def initialized(session: tf.Session, value: Any, name: str, **rest: Any) -> tf.Variable:
    """Returns a variable that has its value."""
    v = tf.Variable(value, name=name, **rest)
    session.run(v.initializer)
    return v
