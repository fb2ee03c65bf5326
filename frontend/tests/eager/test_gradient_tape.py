"""tf.GradientTape: what it watches, what it gives, and how it may be used."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def numbers(values: Any) -> Any:
    return tf.nest.map_structure(lambda x: None if x is None else x.numpy().tolist(), values)


def test_a_variable_is_watched_when_it_is_read() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    assert numbers(tape.gradient(y, v)) == [2, 4]


def test_a_watched_tensor_has_a_gradient() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    assert float(tape.gradient(y, x)) == 27


def test_an_unwatched_tensor_has_none() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_a_source_that_the_target_does_not_depend_on_has_none_or_zeros() -> None:
    x, v = tf.Variable(3.0), tf.Variable([1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
        _ = v + 1.0
    assert tape.gradient(y, v) is None
    assert numbers(tape.gradient(y, v, unconnected_gradients=tf.UnconnectedGradients.ZERO)) == [0, 0]


def test_gradients_come_in_the_structure_of_the_sources() -> None:
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = a * b
    assert numbers(tape.gradient(y, {"a": a, "rest": [b]})) == {"a": 3, "rest": [2]}


def test_several_targets_add_up() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        targets = [v * v, 3.0 * v]
    assert float(tape.gradient(targets, v)) == 7


def test_output_gradients_are_what_to_begin_with() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    assert numbers(tape.gradient(y, v, output_gradients=[10.0, 100.0])) == [20, 400]


def test_a_source_in_between_has_the_gradient_there() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert (float(tape.gradient(z, y)), float(tape.gradient(z, x))) == (8, 32)


def test_nested_tapes_give_second_derivatives() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (27, 18)


def test_a_persistent_tape_gives_its_own_second_derivative() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        first = tape.gradient(y, x)
    assert float(tape.gradient(first, x)) == 18


def test_a_tape_that_is_not_persistent_is_used_once() -> None:
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.gradient(y, v)


def test_a_persistent_tape_is_used_again() -> None:
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        z = y * v
    assert (float(tape.gradient(y, v)), float(tape.gradient(z, v))) == (2, 3)


def test_stop_recording_leaves_a_block_out() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y = v * v
        z = v * y
    assert float(tape.gradient(z, v)) == 4


def test_reset_forgets() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        tape.reset()
        z = v * 3.0
    assert float(tape.gradient([y, z], v)) == 3


def test_variables_are_not_watched_on_request() -> None:
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y = a * b
    assert numbers(tape.gradient(y, [a, b])) == [3, None]


def test_untrainable_variables_are_not_watched() -> None:
    a, b = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = a * b
    assert tape.watched_variables() == (a,)
    assert numbers(tape.gradient(y, [a, b])) == [3, None]


def test_stop_gradient_cuts_the_path() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * tf.stop_gradient(v)
    assert float(tape.gradient(y, v)) == 2


def test_lookups_give_indexed_slices() -> None:
    rows = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.embedding_lookup(rows, [1, 1, 3]))
    found = tape.gradient(y, rows)
    assert isinstance(found, tf.IndexedSlices)
    assert found.indices.numpy().tolist() == [1, 1, 3]


def test_pythons_control_flow_is_differentiated() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v
        while y < 50.0:
            y = y * v
    assert (float(y), float(tape.gradient(y, v))) == (64, 6 * 2**5)


def test_custom_gradients_count() -> None:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 2.0, lambda g: g * 100.0

    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = clipped(v) * 3.0
    assert (float(y), float(tape.gradient(y, v))) == (6, 300)


def test_custom_gradients_of_variables_count() -> None:
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        def gradient(g: Any, variables: Any = None) -> Any:
            return g * 10.0, [g * 20.0 for _ in variables]

        return x * w, gradient

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    assert numbers(tape.gradient(y, [x, w])) == [10, 20]


def test_jacobian_has_each_elements_gradient() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack([x[0] * x[1], x[0], x[1] * x[1]])
    assert numbers(tape.jacobian(y, x)) == [[2, 1], [1, 0], [0, 4]]


def test_batch_jacobian_has_each_rows() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert numbers(tape.batch_jacobian(y, x)) == [[[2, 0], [0, 4]], [[6, 0], [0, 8]]]


def test_jacobians_of_variables_are_theirs() -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
    assert tape.jacobian(y, v).shape.as_list() == [2, 2, 2, 2]
    assert numbers(tape.batch_jacobian(y, v)) == [[[2, 0], [0, 4]], [[6, 0], [0, 8]]]


def test_a_source_of_a_wrong_type_is_the_users_error() -> None:
    with tf.GradientTape() as tape:
        y = tf.constant(1.0)
    with pytest.raises(TypeError, match="tensor or variable is required"):
        tape.gradient(y, 3.0)


def test_a_tape_cannot_be_entered_twice() -> None:
    tape = tf.GradientTape()
    with tape, pytest.raises(RuntimeError, match="recording already"):
        tape.__enter__()


def test_what_a_tape_recorded_goes_with_it() -> None:
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        gone = weakref.ref(y)
        z = y * 3.0
        del y
    assert float(tape.gradient(z, x)) == 6
    del tape, z
    gc.collect()
    assert gone() is None


def test_state_that_is_carried_from_tape_to_tape_keeps_no_history() -> None:
    v, state = tf.Variable(0.5), tf.constant(1.0)
    first = None
    for _ in range(3):
        with tf.GradientTape() as tape:
            state = tf.tanh(state * v)
        tape.gradient(state, v)
        first = first or weakref.ref(state)
    del tape
    gc.collect()
    assert first is not None
    assert first() is None


def test_a_tape_in_a_graph_differentiates_the_graph() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert session.run(tape.gradient(y, x)) == 6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.nn.softmax(x), lambda x: tf.nn.l2_normalize(x, 1), lambda x: tf.linalg.inv(x),
        lambda x: tf.reduce_logsumexp(x, axis=1), lambda x: tf.concat([x, x * x], 0), lambda x: tf.split(x, 2, 1)[0],
        lambda x: tf.nn.conv2d(tf.reshape(x, [1, 2, 2, 1]), tf.reshape(x, [2, 2, 1, 1]), [1, 1, 1, 1], "SAME"),
        lambda x: tf.gather(x, [1, 0, 1]), lambda x: tf.pad(x, [[1, 0], [0, 2]]), lambda x: tf.transpose(x) ** 2,
        lambda x: tf.where(x > 2.0, x, x * x), lambda x: tf.cumsum(x), lambda x: tf.nn.top_k(x, 1)[0],
        lambda x: tf.reduce_max(x, axis=0), lambda x: tf.tile(x, [2, 1]), lambda x: x[:, 1] * x[0],
        lambda x: tf.cast(tf.cast(x, tf.float64) ** 2, tf.float32), lambda x: tf.einsum("ij,kj->ik", x, x),
    ],
)  # fmt: skip
def test_gradients_are_those_of_the_graph(function: Any) -> None:
    value = np.array([[1.0, 2.5], [0.5, 4.0]], np.float32)
    x = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    eager = tf.convert_to_tensor(tape.gradient(y, x)).numpy()
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, value.shape)
        graph = session.run(tf.convert_to_tensor(tf.gradients(function(fed), fed)[0]), {fed: value})
    np.testing.assert_allclose(eager, graph, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "second"),
    [
        (lambda x: tf.cond(tf.greater(x, 0), lambda: x * x * x, lambda: x), 12.0),
        (lambda x: tf.switch_case(tf.constant(0), [lambda: x * x * x, lambda: x]), 12.0),
        (lambda x: tf.sin(tf.cond(tf.greater(x, 0), lambda: tf.exp(x) * x, lambda: x)), None),
        (
            lambda x: tf.while_loop(
                lambda i, _: i < 2, lambda i, a: (i + 1, tf.cond(a > 0, lambda: a * x, lambda: a)), [0, x]
            )[1],
            12.0,
        ),
    ],
)
def test_second_derivative_through_a_function_with_branches(function: Any, second: float | None) -> None:
    def derivatives(called: Any, at: float) -> tuple[float, float]:
        x: Any = tf.constant(at, tf.float64)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = called(x)
            first: Any = inner.gradient(y, x)
        return float(first.numpy()), float(outer.gradient(first, x).numpy())

    traced, step = tf.function(function), 1e-6
    got = derivatives(traced, 2.0)[1]
    differences = (derivatives(function, 2.0 + step)[0] - derivatives(function, 2.0 - step)[0]) / (2 * step)
    assert got == pytest.approx(differences, rel=1e-6)
    assert second is None or got == pytest.approx(second)


def second_derivative(f: Any, at: Any) -> Any:
    x = tf.constant(at, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    second: Any = outer.gradient(first, x)
    return second.numpy()


def test_a_custom_gradient_may_use_what_its_function_computed() -> None:
    @tf.custom_gradient
    def f(x: Any) -> Any:
        e = tf.exp(0.4 * x)
        return 2.0 * e, lambda dy: dy * 0.8 * e

    np.testing.assert_allclose(second_derivative(f, [1.0, 2.0]), 0.32 * np.exp([0.4, 0.8]))


def test_second_derivative_through_rows_in_branches_of_a_function() -> None:
    def squares(x: Any) -> Any:
        return tf.reduce_sum(tf.map_fn(lambda row: row * row, tf.stack([x, 2.0 * x])), 0)

    @tf.function
    def f(x: Any) -> Any:
        return tf.switch_case(tf.constant(0), [lambda: squares(squares(x)), lambda: squares(x)])

    np.testing.assert_allclose(second_derivative(f, [1.0, 2.0]), 1500 * np.array([1.0, 4.0]))
