"""Gradients of loops, branches and calls against numeric differences, first and second order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph

X = np.array([0.3, -0.5, 0.8])
STEP = 1e-6  # with values around 1, central differences in float64 are good to about 1e-9
TOLERANCE = {"rtol": 1e-6, "atol": 1e-7}

Build = Callable[[Any], Any]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def numeric(session: tf.Session, y: Any, x: Any, at: np.ndarray) -> np.ndarray:
    found = np.zeros_like(at)
    for i in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[i] = STEP
        found[i] = (session.run(y, {x: at + change}) - session.run(y, {x: at - change})) / (2 * STEP)
    return found


def iterations(count: int) -> Callable[..., Any]:
    return lambda i, *_: i < count


def power(x: Any) -> Any:
    return tf.while_loop(iterations(3), lambda i, v: (i + 1, v * x + tf.sin(v)), (0, x))[1]


def no_turns(x: Any) -> Any:
    return tf.while_loop(iterations(0), lambda i, v: (i + 1, v * x), (0, tf.sin(x)))[1]


def turns_that_depend_on_values(x: Any) -> Any:
    return tf.while_loop(lambda _, v: tf.reduce_sum(v * v) < 50.0, lambda i, v: (i + 1, v * 1.7 + x * x), (0, x))[1]


def branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x) * x, lambda: tf.exp(x))


def other_branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 9.0, lambda: tf.sin(x) * x, lambda: tf.exp(x) * x)


def branch_in_a_loop(x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(v) * x, lambda: v * v)

    return tf.while_loop(iterations(4), body, (0, x))[1]


def loop_in_a_loop(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return tf.while_loop(iterations(2), lambda j, u: (j + 1, tf.sin(u) * x), (0, v))[1]

    return tf.while_loop(iterations(3), lambda i, v: (i + 1, inner(v)), (0, x))[1]


def loop_in_a_branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: power(x), lambda: x)


def swapped_variables(x: Any) -> Any:
    return tf.while_loop(iterations(3), lambda i, a, b: (i + 1, b, a * b), (0, x, tf.cos(x)))[2]


def arrays(x: Any) -> Any:
    rows = tf.TensorArray(tf.float64, 3).unstack(x)

    def body(i: Any, v: Any, out: Any) -> Any:
        v = tf.sin(rows.read(i)) * v + rows.read(2 - i) * rows.read(i)
        return i + 1, v, out.write(i, v)

    _, last, out = tf.while_loop(iterations(3), body, (0, tf.constant(0.5, tf.float64), tf.TensorArray(tf.float64, 3)))
    return out.stack() * last


def pieces(x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 2, infer_shape=False).split(x, [1, 2])
    return tf.sin(array.read(0)) * array.concat()


def picked(x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 3).unstack(x)
    return tf.exp(array.gather([2, 0])) * array.scatter([1], x[:1] * x[1:2]).read(1)


def mapped(x: Any) -> Any:
    return tf.map_fn(lambda v: tf.sin(v) * v, x)


def scanned(x: Any) -> Any:
    return tf.scan(lambda a, v: tf.sin(a) * v, x, reverse=True)


def called(x: Any) -> Any:
    function = FuncGraph("square_of_sine", tf.get_default_graph())
    with function.as_default():
        inner = function.add_input(tf.float64, x.static_shape)
        function.finish([tf.sin(inner) * inner])
    return apply_op("PartitionedCall", [[x]], {"f": function, "Tout": [tf.float64]})[0]


BUILDS = [
    power, no_turns, turns_that_depend_on_values, branch, other_branch, branch_in_a_loop, loop_in_a_loop,
    loop_in_a_branch, swapped_variables, arrays, pieces, picked, mapped, scanned, called,
]  # fmt: skip


@pytest.mark.parametrize("shape", [[3], [None]], ids=["static", "unknown"])
@pytest.mark.parametrize("build", BUILDS)
def test_gradient_agrees_with_differences(session: tf.Session, build: Build, shape: list[int | None]) -> None:
    x = tf.placeholder(tf.float64, shape)
    y = build(x)
    first = tf.gradients(y, x)[0]
    np.testing.assert_allclose(session.run(first, {x: X}), numeric(session, tf.reduce_sum(y), x, X), **TOLERANCE)
    total = tf.reduce_sum(first * first)
    second = tf.gradients(total, x)[0]
    np.testing.assert_allclose(session.run(second, {x: X}), numeric(session, total, x, X), **TOLERANCE)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_variable_read_in_a_loop_gets_the_sum_over_iterations(session: tf.Session, count: int) -> None:
    weights = tf.Variable(np.array([1.5, 2.0, 0.5]))
    x = tf.placeholder(tf.float64, [3])
    y = tf.reduce_sum(tf.while_loop(iterations(count), lambda i, v: (i + 1, v * weights + weights), (0, x))[1])
    session.run(weights.initializer)
    found = session.run(tf.gradients(y, weights)[0], {x: X})
    expected = np.zeros(3)
    for i in range(3):
        values = []
        for change in (STEP, -STEP):
            moved = np.array([1.5, 2.0, 0.5])
            moved[i] += change
            session.run(weights.assign(moved))
            values.append(session.run(y, {x: X}))
        expected[i] = (values[0] - values[1]) / (2 * STEP)
    np.testing.assert_allclose(found, expected, **TOLERANCE)


def test_rows_looked_up_in_a_loop_make_a_dense_gradient(session: tf.Session) -> None:
    table = tf.Variable(np.arange(8.0).reshape(4, 2))
    x = tf.placeholder(tf.float64, [2])
    y = tf.while_loop(iterations(3), lambda i, v: (i + 1, v * tf.gather(table, i)), (0, x))[1]
    session.run(table.initializer)
    found = session.run(tf.gradients(y, table)[0], {x: [1.0, 1.0]})
    assert found.tolist() == [[8, 15], [0, 5], [0, 3], [0, 0]]


def test_rows_looked_up_in_one_branch(session: tf.Session) -> None:
    table, flag = tf.Variable(np.arange(4.0).reshape(2, 2)), tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: tf.gather(table, [1, 1]), lambda: tf.zeros([2, 2], tf.float64))
    session.run(table.initializer)
    grad = tf.convert_to_tensor(tf.gradients(y, table)[0])
    assert session.run(grad, {flag: True}).tolist() == [[0, 0], [2, 2]]
    assert session.run(grad, {flag: False}).tolist() == [[0, 0], [0, 0]]


def test_backward_pass_uses_the_random_numbers_of_the_forward_pass(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [])

    def body(i: Any, v: Any, drawn: Any) -> Any:
        noise = tf.random_uniform([], dtype=tf.float64)
        return i + 1, v * noise, drawn.write(i, noise)

    _, y, drawn = tf.while_loop(iterations(3), body, (0, x, tf.TensorArray(tf.float64, 3, element_shape=[])))
    grad, numbers = session.run([tf.gradients(y, x)[0], drawn.stack()], {x: 2.0})
    np.testing.assert_allclose(grad, numbers.prod(), rtol=1e-15)  # three roundings


def test_outputs_keep_their_names_when_the_loop_grows(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [3], name="x")
    y = power(x)
    before = session.run(y, {x: X})
    name = y.name
    tf.gradients(y, x)
    assert session.run(name, {"x:0": X}).tolist() == before.tolist()
    assert session.run(y, {x: X}).tolist() == before.tolist()


def test_second_gradient_of_one_loop_keeps_no_value_twice(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [3])
    y = power(x)
    tf.gradients(y, x)
    outputs = len(y.op.outputs)
    tf.gradients(y, x)
    assert len(y.op.outputs) == outputs


def test_source_that_no_iteration_uses_has_no_gradient(session: tf.Session) -> None:
    x, unused = tf.placeholder(tf.float64, [3]), tf.placeholder(tf.float64, [3])
    y = tf.while_loop(iterations(3), lambda i, v: (i + 1, v * tf.stop_gradient(unused)), (0, x))[1]
    assert tf.gradients(y, [unused])[0] is None


def test_integer_loop_variables_have_no_gradient(session: tf.Session) -> None:
    count, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float64, [])
    last, y = tf.while_loop(lambda i, _: i < count, lambda i, v: (i + 1, v * tf.cast(i, tf.float64)), (1, x))
    assert tf.gradients(y, [count])[0] is None
    assert tf.gradients(last, [x])[0] is None
    assert session.run(tf.gradients(y, x)[0], {count: 5, x: 1.0}) == 24


def test_failed_gradient_leaves_the_loop_as_it_was(session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [3])

    def body(i: Any, v: Any) -> Any:
        following = tf.sin(v) * x
        following.op.gradient = None
        return i + 1, following

    y = tf.while_loop(iterations(3), body, (0, x))[1]
    inputs, outputs = y.op.inputs, y.op.outputs
    with pytest.raises(LookupError, match="no gradient is declared"):
        tf.gradients(y, x)
    assert (y.op.inputs, y.op.outputs) == (inputs, outputs)
    session.run(y, {x: X})


def test_condition_of_a_branch_within_a_branch() -> None:
    x = tf.placeholder(tf.float64, (2,))
    total = tf.reduce_sum(x)
    y = tf.cond(total > 0, lambda: tf.cond(total > 9, lambda: x, lambda: x * total), lambda: -x)
    (gradient,) = tf.gradients(y, [x])
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(gradient, {x: [1.0, 2.0]}), [6.0, 6.0])
        np.testing.assert_allclose(session.run(gradient, {x: [-1.0, -2.0]}), [-1.0, -1.0])


def test_branch_that_is_not_taken_may_read_a_variable_without_a_value(session: tf.Session) -> None:
    weights = tf.Variable(np.array([2.0, 3.0, 4.0]))
    x = tf.placeholder(tf.float64, [3])
    y = tf.cond(tf.is_variable_initialized(weights), lambda: x * weights * weights, lambda: x)
    grads = tf.gradients(y, [x, weights])
    assert session.run(grads[0], {x: X}).tolist() == [1, 1, 1]
    session.run(weights.initializer)
    assert session.run(grads[0], {x: X}).tolist() == [4, 9, 16]
    np.testing.assert_allclose(session.run(grads[1], {x: X}), 2 * X * [2, 3, 4], rtol=1e-15)  # two roundings


@pytest.mark.parametrize("build", [power, branch, arrays])
def test_hessian_through_control_flow(session: tf.Session, build: Build) -> None:
    x = tf.placeholder(tf.float64, [3])
    total = tf.reduce_sum(build(x))
    found = session.run(tf.hessians(total, x)[0], {x: X})
    (first,) = tf.gradients(total, x)
    expected = np.stack([numeric(session, first[i], x, X) for i in range(3)])
    np.testing.assert_allclose(found, expected, **TOLERANCE)


def test_branch_in_a_loop_keeps_what_its_gradient_needs_under_a_name_of_its_own() -> None:
    x = tf.placeholder(tf.float32, None)

    def body(i: Any, v: Any) -> Any:
        first = tf.cond(tf.constant(False), lambda: v, lambda: tf.slice(tf.reshape(v, [-1]), [0], [1]))
        return i + 1, tf.gradients(first, v)[0]

    result = tf.while_loop(lambda i, v: i < 2, body, [tf.constant(0), x])[1]
    with tf.Session() as session:
        assert session.run(result, {x: [[2.0, 3.0]]}).tolist() == [[1.0, 0.0]]
