"""Graphs as TensorFlow 1 wrote them: loops and branches of single nodes, reference variables, their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


@pytest.fixture
def old(tensorflow: Any) -> Iterator[None]:
    """Has TensorFlow build loops and branches of Switch, Merge and their kin."""
    before = tensorflow.control_flow_v2_enabled()
    tensorflow.disable_control_flow_v2()
    yield
    if before:
        tensorflow.enable_control_flow_v2()


def power(tf: Any, f: Any) -> Any:
    factor = f(X)
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, tf.matmul(x, factor) * 0.5), [0, f(X)])


def nested(tf: Any, f: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + tf.cast(j, tf.float32)), [0, total])
        return i + 1, inner[1]

    return tf.while_loop(lambda i, t: i < 6, row, [0, f(np.float32(0.5))])


def collatz(tf: Any, f: Any) -> Any:
    def step(n: Any, count: Any) -> Any:
        return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), count + 1

    return tf.while_loop(lambda n, count: n > 1, step, [f(np.int32(27)), 0])


def cases(tf: Any, f: Any) -> Any:
    x = f(np.float32(3.0))
    pairs = [(x < 0, lambda: -x), (x < 2, lambda: x * 2)]
    return tf.case(pairs, default=lambda: tf.cond(x < 4, lambda: x * x, lambda: x - 1))


def branch_gradient(tf: Any, f: Any) -> Any:
    x = f(X)
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x) * x, lambda: x)
    return [y, *tf.gradients(y, x)]


def counter(tf: Any, f: Any) -> Any:
    v = tf.Variable(1.0, use_resource=False)
    with tf.control_dependencies([tf.global_variables_initializer()]):
        loop = tf.while_loop(lambda i: i < 3, lambda i: i + tf.cast(tf.assign_add(v, 2.0) * 0 + 1, tf.int32), [0])
    with tf.control_dependencies([loop]):
        return [loop, v + 0.0]


GRAPHS: dict[str, Callable[..., Any]] = {
    "power": power,
    "nested": nested,
    "collatz": collatz,
    "cases": cases,
    "branch_gradient": branch_gradient,
    "counter": counter,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS.keys())
def test_old_graph_gives_what_tensorflow_gives(build: Any, carry_over: Callable[[Any], None], old: None) -> None:
    carry_over(build)
