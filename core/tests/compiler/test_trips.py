"""How often loops and branches run bodies, as far as the graph shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.compiler.trips import runs_of_bodies


def _counting(limit: Any, step: Callable[[Any], Any] = lambda x: x * 2.0) -> Any:
    return tf.while_loop(lambda i, _: i < limit, lambda i, x: (i + 1, step(x)), [0, 1.0])[1]


def _branch(of: Callable[[Any], Any]) -> Any:
    return tf.cond(tf.placeholder(tf.bool, []), lambda: of(1.0), lambda: 0.0)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: _counting(100), 100),
        (lambda: _counting(10, lambda x: _counting(20) + x), 10 * (1 + 20)),
        (lambda: _branch(lambda _: 2.0), 2),
        (lambda: _branch(lambda _: _counting(7)), 2 + 7),
        (lambda: _counting(10, lambda x: tf.cond(x > 3.0, lambda: x, lambda: 0.0)), 10 * (1 + 2)),
        (lambda: _counting(tf.placeholder(tf.int32, [])), math.inf),
        (lambda: tf.while_loop(lambda x: x < 9.0, lambda x: x * 2.0, [1.0]), math.inf),
        (lambda: _branch(lambda _: _counting(tf.placeholder(tf.int32, []))), math.inf),
    ],
    ids=["loop", "nested", "branch", "loop in a branch", "branch in a loop", "fed", "by value", "fed in a branch"],
)
def test_runs_of_bodies_are_counted(build: Callable[[], Any], expected: float) -> None:
    with tf.Graph().as_default() as graph:
        build()
        (op,) = (op for op in graph.get_operations() if op.op_def.role in ("loop", "branch"))
        assert runs_of_bodies(op, graph) == expected
