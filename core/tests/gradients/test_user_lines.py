"""The line of the user that nodes of nested gradients name, and how little is looked at to find it."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe_core.library import same_user_line, user_line


def nested(value: Any, depth: int) -> Any:
    if not depth:
        return tf.tanh(value)
    return tf.cond(value > -9.0, lambda: nested(value * 1.5, depth - 1), lambda: value)


def test_gradients_of_nested_branches_name_the_line_that_asked_for_them() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [])
        before = set(graph.functions)
        tf.gradients(nested(x, 3), x)
        made = [op for name in set(graph.functions) - before for op in graph.functions[name].get_operations()]
    lines = {op._where[1] for op in made if "_grad" in op.graph.name and op._where is not None}
    asked = test_gradients_of_nested_branches_name_the_line_that_asked_for_them.__code__.co_firstlineno + 4
    assert lines == {asked}


def test_the_known_line_is_for_what_the_block_calls_alone() -> None:
    here = user_line()

    def inside() -> Any:
        return user_line()

    with same_user_line():
        found = user_line()
        called = inside()
    assert here is not None
    assert found is not None
    assert found[0] == called[0] == here[0] == __file__
    after = user_line()
    assert after is not None
    assert after[1] > found[1]
