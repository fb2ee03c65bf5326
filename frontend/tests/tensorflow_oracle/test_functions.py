"""Control flow, calls and variables that TensorFlow built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

X = np.array([1.5, -2.0, 0.25], np.float32)


def loop(tf: Any, f: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5), [0, f(X)])


def loop_with_captures(tf: Any, f: Any) -> Any:
    limit, step = f(np.int32(7)), f(X)
    return tf.while_loop(lambda i, x: i < limit, lambda i, x: (i + 2, x + step), [0, tf.zeros([3])])


def loop_until_small(tf: Any, f: Any) -> Any:
    return tf.while_loop(lambda x: tf.reduce_max(tf.abs(x)) > 0.1, lambda x: x / 3, [f(X)])


def loop_that_swaps(tf: Any, f: Any) -> Any:
    return tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), [0, f(X), f(X) * 2])


def loop_with_maximum(tf: Any, f: Any) -> Any:
    return tf.while_loop(lambda x: True, lambda x: x + 1, [f(X)], maximum_iterations=4)


def loop_that_grows(tf: Any, f: Any) -> Any:
    return tf.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, tf.concat([x, x[:1]], 0)),
        [0, f(X)],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )


def loop_without_iterations(tf: Any, f: Any) -> Any:
    return tf.while_loop(lambda i, x: i > 5, lambda i, x: (i + 1, x * 0), [0, f(X)])


def nested_loops(tf: Any, f: Any) -> Any:
    def outer(i: Any, total: Any) -> Any:
        inner = tf.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + tf.cast(j, tf.float32)), [0, total])
        return i + 1, inner[1]

    return tf.while_loop(lambda i, total: i < 4, outer, [0, f(X)])


def branch(tf: Any, f: Any) -> Any:
    x = f(X)
    return [
        tf.cond(tf.reduce_sum(x) > 100, lambda: x, lambda: -x),
        tf.cond(f(np.bool_(True)), lambda: x * 2, lambda: tf.zeros([3])),
    ]


def branches_of_different_shapes(tf: Any, f: Any) -> Any:
    x = f(X)
    return tf.cond(x[0] > 0, lambda: x[:1], lambda: x)


def nested_branches(tf: Any, f: Any) -> Any:
    x = f(X)
    return tf.cond(x[0] > 0, lambda: tf.cond(x[1] > 0, lambda: x, lambda: x * 10), lambda: x * 100)


def numbered_branches(tf: Any, f: Any) -> Any:
    x = f(X)
    branches = [lambda: x + 1, lambda: x * 2, lambda: tf.reverse(x, [0])]
    chosen = [tf.switch_case(f(np.int32(i)), branches) for i in (0, 1, 2, 3, -1)]
    return [*chosen, tf.switch_case(f(np.int32(2)), branches[:2], default=lambda: -x)]


def gradients_of_numbered_branches(tf: Any, f: Any) -> Any:
    x = f(X)
    branches = [lambda: x * x * x, lambda: tf.sin(x), lambda: tf.ones([3])]
    chosen = [tf.switch_case(f(np.int32(i)), branches) for i in range(3)]
    return [tf.gradients(y, x)[0] for y in chosen]


def branch_in_loop(tf: Any, f: Any) -> Any:
    return tf.while_loop(
        lambda i, x: i < 6,
        lambda i, x: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: x * 2, lambda: x - 1)),
        [0, f(X)],
    )


def collatz(tf: Any, f: Any) -> Any:
    def body(n: Any, steps: Any) -> Any:
        return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), steps + 1

    return tf.while_loop(lambda n, steps: n > 1, body, [f(np.int32(27)), 0])


def newton_square_root(tf: Any, f: Any) -> Any:
    a = tf.abs(f(X))
    return tf.while_loop(lambda i, x: i < 8, lambda i, x: (i + 1, 0.5 * (x + a / x)), [0, tf.ones([3])])[1]


def recurrent_network(tf: Any, f: Any) -> Any:
    sequence, w = f(np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 2, 2)), tf.constant([[0.5, -0.2], [0.1, 0.3]])
    return tf.while_loop(
        lambda t, h: t < 6, lambda t, h: (t + 1, tf.tanh(tf.matmul(h, w) + sequence[t])), [0, tf.zeros([2, 2])]
    )[1]


def called_function(tf: Any, f: Any) -> Any:
    import tensorflow

    @tensorflow.function
    def scaled(x: Any, y: Any) -> Any:
        return x * y, x - y

    return scaled(f(X), f(X) + 1)


def function_that_calls(tf: Any, f: Any) -> Any:
    import tensorflow

    @tensorflow.function
    def twice(x: Any) -> Any:
        return x * 2

    @tensorflow.function
    def outer(x: Any) -> Any:
        return twice(twice(x)) + 1

    return outer(f(X))


def autograph(tf: Any, f: Any) -> Any:
    import tensorflow

    @tensorflow.function
    def count(x: Any) -> Any:
        i = tensorflow.constant(0)
        while tensorflow.reduce_sum(x) < 100.0:
            x = x * 2.0 + 1.0
            i += 1
        return x, i

    return count(tf.abs(f(X)))


def variables(tf: Any, f: Any) -> Any:
    v = tf.Variable(X, name="v", use_resource=True)
    with tf.control_dependencies([v.assign_add(f(X)).op]):
        return v.read_value() * 2


def variable_chain(tf: Any, f: Any) -> Any:
    v, half = tf.Variable(1.0, use_resource=True), f(np.float32(0.5))
    with tf.control_dependencies([v.assign(v * 3).op]), tf.control_dependencies([v.assign_sub(half).op]):
        return [v.read_value(), tf.is_variable_initialized(v)]


def variable_in_loop(tf: Any, f: Any) -> Any:
    v = tf.Variable(X, use_resource=True)
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + v), [0, f(X)])


def gradient_descent(tf: Any, f: Any) -> Any:
    w = tf.Variable([[0.0], [0.0]], use_resource=True)
    x, y = f(np.array([[1, 2], [3, 4], [5, 6]], np.float32)), f(np.array([[1], [0], [1]], np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    with tf.control_dependencies([w.assign_sub(0.01 * tf.gradients(loss, [w])[0]).op]):
        return w.read_value()


BUILDS = (
    loop, loop_with_captures, loop_until_small, loop_that_swaps, loop_with_maximum, loop_that_grows,
    loop_without_iterations, nested_loops, branch, branches_of_different_shapes, nested_branches, numbered_branches,
    gradients_of_numbered_branches, branch_in_loop, collatz,
    newton_square_root, recurrent_network, called_function, function_that_calls, autograph, variables, variable_chain,
    variable_in_loop, gradient_descent,
)  # fmt: skip


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_functions_give_tensorflows_result(build: Callable[..., Any], carry_over: Callable[[Any], int]) -> None:
    assert carry_over(build) > 0


def test_version_1_loops_run(tensorflow: Any) -> None:
    tf = tensorflow
    tf.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            tf.identity(tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]), name="end")
    finally:
        tf.enable_control_flow_v2()
    with timberframe.Graph().as_default(), timberframe.Session() as session:
        timberframe.import_graph_def(graph.as_graph_def(), name="")
        assert session.run("end:0") == 3
