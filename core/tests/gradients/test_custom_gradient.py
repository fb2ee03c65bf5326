"""tf.custom_gradient and tf.hessians."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


@tf.custom_gradient
def clipped(x: Any) -> Any:
    return x * x, lambda dy: dy * 100.0


def test_own_gradient_is_used(session: tf.Session) -> None:
    x = tf.constant(3.0)
    y = clipped(x)
    assert session.run([y, tf.gradients(y, x)[0]]) == [9, 100]


def test_own_gradient_is_used_inside_a_loop(session: tf.Session) -> None:
    x = tf.constant(3.0)
    y = tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, clipped(v)), (0, x))[1]
    assert session.run([y, tf.gradients(y, x)[0]]) == [81, 10000]


def test_own_gradients_may_be_nested(session: tf.Session) -> None:
    @tf.custom_gradient
    def outer(x: Any) -> Any:
        return tf.sin(x), lambda dy: dy * clipped(x)

    x = tf.constant(3.0)
    first = tf.gradients(outer(x), x)[0]
    assert session.run([first, tf.gradients(first, x)[0]]) == [9, 100]


def test_several_arguments_and_results(session: tf.Session) -> None:
    @tf.custom_gradient
    def both(a: Any, b: Any) -> Any:
        return (a + b, a * b), lambda d_sum, d_product: (d_sum * 10.0, d_product)

    a, b = tf.constant(2.0), tf.constant(3.0)
    total, product = both(a, b)
    assert session.run(tf.gradients([total, product], [a, b], grad_ys=[1.0, 7.0])) == [10, 7]


def test_variables_that_are_read_get_gradients(session: tf.Session) -> None:
    weight = tf.Variable(2.0)

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            assert [v.name for v in variables] == [weight.name]
            return dy * 5.0, [dy * 7.0]

        return x * weight, grad

    x = tf.constant(3.0)
    y = scaled(x)
    session.run(weight.initializer)
    assert session.run([y, *tf.gradients(y, [x, weight])]) == [6, 5, 7]


def test_gradient_function_must_take_the_variables(session: tf.Session) -> None:
    weight = tf.Variable(2.0, name="weight")
    scaled = tf.custom_gradient(lambda x: (x * weight, lambda dy: dy))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"reads 1 variables .weight.*keyword argument 'variables'"
    ):
        scaled(tf.constant(3.0))


def test_wrong_number_of_gradients_is_refused(session: tf.Session) -> None:
    x = tf.constant(3.0)
    y = tf.custom_gradient(lambda a: (a, lambda dy: (dy, dy)))(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="gives 2 gradients; it was called with 1 tensors"):
        tf.gradients(y, x)


@pytest.mark.parametrize("shape", [[3], [None]], ids=["static", "unknown"])
def test_hessian_of_a_vector(session: tf.Session, shape: list[int | None]) -> None:
    x = tf.placeholder(tf.float64, shape)
    (found,) = tf.hessians(tf.reduce_sum(x * x * x) + x[0] * x[1], x)
    want = np.diag([6.0, 12.0, 18.0])
    want[0, 1] = want[1, 0] = 1
    np.testing.assert_allclose(session.run(found, {x: [1.0, 2.0, 3.0]}), want, rtol=1e-14)  # a few roundings


def test_hessian_of_a_matrix_has_four_dimensions(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [2, 2])
    (found,) = tf.hessians(tf.reduce_sum(x * x), x)
    assert found.static_shape == (2, 2, 2, 2)
    want = 2 * np.eye(4).reshape(2, 2, 2, 2)
    assert session.run(found, {x: np.ones((2, 2))}).tolist() == want.tolist()


def test_hessian_of_a_linear_function_is_zero(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [2])
    assert session.run(tf.hessians(3.0 * x, x)[0], {x: [1.0, 2.0]}).tolist() == [[0, 0], [0, 0]]


def test_gradient_may_be_given_as_an_array() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.constant([1.0, 2.0])
        y = tf.custom_gradient(lambda a: (a * 2.0, lambda upstream: np.float32([5, 6])))(x)
        assert session.run(tf.gradients(y, [x])[0]).tolist() == [5, 6]


@tf.custom_gradient
def log_of_one_and_exp(x: Any) -> Any:
    """Takes the exponential of the forward pass for its gradient, as TensorFlow's own example does."""
    e = tf.exp(x)
    return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tf.custom_gradient
def scaled_in_a_branch(x: Any) -> Any:
    """Has a gradient with a branch of its own, in which it takes a tensor of the forward pass."""
    e = tf.exp(x)
    return tf.log(1 + e), lambda dy: tf.cond(tf.reduce_sum(x) < 1e9, lambda: dy * e / (1 + e), lambda: dy)


PLACES: dict[str, Any] = {
    "plain": lambda f, x: f(x),
    "cond": lambda f, x: tf.cond(tf.reduce_sum(x) > 0, lambda: f(x), lambda: x),
    "switch_case": lambda f, x: tf.switch_case(tf.constant(1), [lambda: x, lambda: f(x)]),
    "while_loop": lambda f, x: tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, f(v)), [0, x])[1],
    "map_fn": lambda f, x: tf.map_fn(f, x),
    "scan": lambda f, x: tf.scan(lambda a, b: f(b), x, tf.constant(0.0)),
    "cond in a loop": lambda f, x: tf.while_loop(
        lambda i, v: i < 1, lambda i, v: (i + 1, tf.cond(i < 1, lambda: f(v), lambda: v)), [0, x]
    )[1],
    "loop in cond": lambda f, x: tf.cond(
        tf.reduce_sum(x) > 0,
        lambda: tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, f(v)), [0, x])[1],
        lambda: x,
    ),
    "function": lambda f, x: tf.function(f)(x),
    "cond in a function": lambda f, x: tf.function(lambda v: tf.cond(v[0] > 0, lambda: f(v), lambda: v))(x),
}


@pytest.mark.parametrize("function", [log_of_one_and_exp, scaled_in_a_branch])
@pytest.mark.parametrize("place", PLACES)
def test_own_gradient_uses_tensors_of_the_forward_pass_anywhere(session: tf.Session, place: str, function: Any) -> None:
    x = tf.constant([0.5, 3.0])
    (first,) = tf.gradients(PLACES[place](function, x), x)
    sigmoid = 1 / (1 + np.exp([-0.5, -3.0]))
    np.testing.assert_allclose(session.run(first), sigmoid, rtol=1e-6)


def test_own_gradient_uses_tensors_of_a_body_further_out(session: tf.Session) -> None:
    def body(i: Any, v: Any) -> Any:
        e = tf.exp(v)

        @tf.custom_gradient
        def inner(x: Any) -> Any:
            return x + e, lambda dy: dy * e

        return i + 1, tf.cond(i < 5, lambda: inner(v), lambda: v)

    x = tf.constant([0.5, 1.0])
    y = tf.while_loop(lambda i, v: i < 1, body, [0, x])[1]
    np.testing.assert_allclose(session.run(tf.gradients(y, x)[0]), np.exp([0.5, 1.0]), rtol=1e-6)


def test_own_gradient_in_a_branch_is_differentiated_again(session: tf.Session) -> None:
    x = tf.constant([0.5, 3.0])
    y = tf.cond(x[0] > 0, lambda: log_of_one_and_exp(x), lambda: x)
    (second,) = tf.gradients(tf.gradients(y, x)[0], x)
    sigmoid = 1 / (1 + np.exp([-0.5, -3.0]))
    np.testing.assert_allclose(session.run(second), sigmoid * (1 - sigmoid), rtol=1e-5)
