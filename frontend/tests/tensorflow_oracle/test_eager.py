"""Programs of eager execution give the numbers that TensorFlow gives, random ones included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe
from timberframe.eager.context import eager_mode

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], np.float32)


def operators(tf: Any) -> Any:
    x = tf.constant(X)
    return [x + 1, 2 - x, x * x, x / 3, x // 0.5, x % 0.4, x**2, -x, abs(x), x[1], x[:, ::2], x[0, 1:], x > 0.0]


def iteration(tf: Any) -> Any:
    return [row * 2 for row in tf.constant(X)]


def control_flow(tf: Any) -> Any:
    i, total = tf.while_loop(
        lambda i, _: i < 4, lambda i, t: (i + 1, t * 2.0 + 1.0), [tf.constant(0), tf.constant(0.0)]
    )
    return [i, total, tf.cond(total > 3.0, lambda: total, lambda: -total), tf.map_fn(lambda r: r * r, tf.constant(X))]


def first_derivatives(tf: Any) -> Any:
    x, v = tf.constant(X), tf.Variable(X.T)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.nn.softmax(tf.matmul(x, v))
        z = tf.reduce_sum(tf.tanh(y) * y[0])
    return [tape.gradient(z, [x, v, y]), tape.gradient(y, x), tape.gradient(z, x, output_gradients=tf.constant(3.0))]


def higher_derivatives(tf: Any) -> Any:
    x = tf.constant([0.3, 1.2])
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = tf.sin(x) * tf.exp(x)
            a = first.gradient(y, x)
        b = second.gradient(a, x)
    return [a, b, third.gradient(b, x)]


def jacobians(tf: Any) -> Any:
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.nn.softmax(x) * x
    return [tape.jacobian(y, x), tape.batch_jacobian(y, x)]


def unconnected(tf: Any) -> Any:
    x, y = tf.Variable(1.0), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        z = x * 2.0
    return tape.gradient(z, [x, y], unconnected_gradients=tf.UnconnectedGradients.ZERO)


def variables(tf: Any) -> Any:
    v = tf.Variable(X)
    before = v.read_value()
    v.assign_add(X)
    v.assign_sub(0.5 * X)
    v.scatter_add(tf.IndexedSlices(tf.constant([[1.0, 2.0, 3.0]]), tf.constant([1])))
    return [before, v.read_value(), v[0] + v]


def random_numbers(tf: Any) -> Any:
    tf.set_random_seed(42)
    return [
        tf.random_uniform([3]), tf.random_normal([3]), tf.random_uniform([3], seed=7), tf.random_uniform([3], seed=7),
        tf.truncated_normal([4]), tf.random_uniform([2, 2], 0, 100, tf.int32), tf.random_shuffle(tf.range(8)),
        tf.nn.dropout(tf.ones([6]), rate=0.5, seed=3),
    ]  # fmt: skip


def functions(tf: Any) -> Any:
    v = tf.Variable(2.0)

    @tf.function
    def f(x: Any, n: int = 2) -> Any:
        v.assign_add(1.0)
        return {"power": tf.reduce_sum(x) ** n * v, "loop": tf.while_loop(lambda a: a < 50.0, lambda a: a * v, [v])}

    x = tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, n=3)["power"]
        first = tape.gradient(y, [x, v])
    return [y, first, outer.gradient(first[0], x), f(x), f(x[0])["power"], v.read_value()]


def custom_gradients(tf: Any) -> Any:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.identity(x), lambda g: tf.clip_by_value(g, -0.1, 0.1)

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(clipped(x) * tf.constant([5.0, 0.01, -3.0]))
    return tape.gradient(y, x)


def training(tf: Any) -> Any:
    found = []
    for optimizer in (
        tf.train.GradientDescentOptimizer(0.1), tf.train.AdamOptimizer(0.1), tf.train.MomentumOptimizer(0.1, 0.9),
        tf.train.AdagradOptimizer(0.1), tf.train.RMSPropOptimizer(0.1),
    ):  # fmt: skip
        v = tf.Variable(X)
        for _ in range(4):
            optimizer.minimize(lambda v=v: tf.reduce_sum(v**2 * tf.constant(X)), var_list=[v])
        found.append(v.read_value())
    return found


PROGRAMS = (
    operators, iteration, control_flow, first_derivatives, higher_derivatives, jacobians, unconnected, variables,
    random_numbers, functions, custom_gradients, training,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_gives_the_same_numbers(program: Callable[[Any], Any], tensorflow: Any) -> None:
    from tensorflow.python.eager import context

    with context.eager_mode():
        expected = tensorflow.nest.map_structure(np.asarray, program(tensorflow))
    with eager_mode():
        found = timberframe.nest.map_structure(np.asarray, program(timberframe))
    timberframe.nest.assert_same_structure(found, expected)
    for a, b in zip(timberframe.nest.flatten(found), timberframe.nest.flatten(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
