"""tf.contrib.opt: minima that are known, under bounds and constraints; callbacks; variables after an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

ScipyOptimizerInterface = tf.contrib.opt.ScipyOptimizerInterface


def rosenbrock() -> tuple[Any, Any, Any]:
    """(x - 1)^2 + 10 (y - x^2)^2 with its variables, of which one is a matrix; the minimum is at ones."""
    x, y = tf.Variable(-1.0, name="x"), tf.get_variable("y", [2, 1], initializer=tf.zeros_initializer())
    return (x - 1) ** 2 + 10 * tf.reduce_sum((y - x**2) ** 2), x, y


def test_l_bfgs_finds_a_minimum_and_assigns_it(session: Any) -> None:
    loss, x, y = rosenbrock()
    session.run(tf.global_variables_initializer())
    ScipyOptimizerInterface(loss, options={"maxiter": 200}).minimize(session)
    at_x, at_y = session.run([x, y])
    assert at_x == pytest.approx(1, abs=1e-2)
    np.testing.assert_allclose(at_y, [[1], [1]], atol=2e-2)


def test_variables_without_a_gradient_and_out_of_the_list_stay(session: Any) -> None:
    loss, x, y = rosenbrock()
    other = tf.Variable(7.0)
    session.run(tf.global_variables_initializer())
    ScipyOptimizerInterface(loss, [x, other]).minimize(session)
    assert session.run(other) == 7
    assert not session.run(y).any()
    assert session.run(x) != -1


def test_bounds(session: Any) -> None:
    v = tf.Variable([2.0, 3.0, 4.0])
    session.run(tf.global_variables_initializer())
    ScipyOptimizerInterface(tf.reduce_sum(v * v), var_to_bounds={v: ([1, -np.inf, 0.5], np.inf)}).minimize(session)
    np.testing.assert_allclose(session.run(v), [1, 0, 0.5], atol=1e-5)


def test_constraints(session: Any) -> None:
    v = tf.Variable([3.0, 4.0])
    session.run(tf.global_variables_initializer())
    equal = [v[0] - 1.5]
    optimizer = ScipyOptimizerInterface(
        tf.reduce_sum(v * v), equalities=equal, inequalities=[v[1] - v[0]], method="SLSQP"
    )
    optimizer.minimize(session)
    np.testing.assert_allclose(session.run(v), [1.5, 1.5], atol=1e-4)


def test_feeds_fetches_and_callbacks(session: Any) -> None:
    goal, v = tf.placeholder(tf.float32, []), tf.Variable(0.0)
    loss = (v - goal) ** 2
    session.run(tf.global_variables_initializer())
    losses: list[float] = []
    steps: list[Any] = []
    with session.as_default():
        ScipyOptimizerInterface(loss).minimize(
            feed_dict={goal: 4.0}, fetches=[loss, goal], loss_callback=lambda a, b: losses.append(float(a + 0 * b)),
            step_callback=lambda vector: steps.append(vector.copy()),
        )  # fmt: skip
    assert session.run(v) == pytest.approx(4)
    assert losses[0] == 16
    assert min(losses) < 1e-6
    assert steps[-1] == pytest.approx([4])


def test_a_failure_leaves_the_variables(session: Any) -> None:
    loss, _, y = rosenbrock()
    session.run(tf.global_variables_initializer())

    def fail(*_: Any) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        ScipyOptimizerInterface(loss).minimize(session, loss_callback=fail)
    assert not session.run(y).any()


def test_wrong_arguments(session: Any) -> None:
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match=r"loss has shape \(2,\); a scalar is required"):
        ScipyOptimizerInterface(v)
    loss = tf.reduce_sum(v)
    with pytest.raises(ValueError, match=r"bounds of '.*' are .*; they must broadcast to its shape \(2,\)"):
        ScipyOptimizerInterface(loss, var_to_bounds={v: ([0, 0, 0], 1)})
    session.run(tf.global_variables_initializer())
    with pytest.raises(ValueError, match="jac cannot be given"):
        ScipyOptimizerInterface(loss, jac=False).minimize(session)
    with pytest.raises(ValueError, match="no variables"):
        ScipyOptimizerInterface(loss, [])
