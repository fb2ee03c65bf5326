"""Arrays of TensorFlow 1's graphs in loops: which are dense tensors in a device's program, and what stays an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

STEPS = 4
ROWS = np.arange(12, dtype=np.float32).reshape(STEPS, 3)
KNOWN = {"element_shape": (3,)}


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def array(size: Any = STEPS, **attrs: Any) -> tuple[Any, Any]:
    """Handle and flow of an array of float32."""
    handle, flow = apply_op("TensorArrayV3", [size], {"dtype": tf.float32, **attrs})
    return handle, flow


def unstacked(x: Any, indices: Any = None, **attrs: Any) -> tuple[Any, Any]:
    """Returns an array of the rows of x."""
    handle, flow = array(tf.shape(x)[0], **attrs)
    indices = tf.range(0, tf.shape(x)[0]) if indices is None else indices
    return handle, apply_op("TensorArrayScatterV3", [handle, indices, x, flow])


def read(array: tuple[Any, Any], index: Any, flow: Any = None) -> Any:
    found = apply_op("TensorArrayReadV3", [array[0], index, array[1] if flow is None else flow], {"dtype": tf.float32})
    found.set_shape([3])
    return found


def stacked(handle: Any, flow: Any, count: Any = STEPS, **attrs: Any) -> Any:
    return apply_op("TensorArrayGatherV3", [handle, tf.range(0, count), flow], {"dtype": tf.float32, **attrs})


def sums(
    rows: tuple[Any, Any],
    made: tuple[Any, Any],
    at: Callable[[Any], Any] = lambda t: t,
    to: Callable[[Any], Any] = lambda t: t,
    more: Callable[[Any, Any], Any] = lambda t, total: t < STEPS,
    times: int = 1,
) -> Any:
    """Returns the flow of an array to which a loop writes the sums of rows that it reads."""

    def body(t: Any, total: Any, flow: Any) -> Any:
        for _ in range(times):
            total = total + read(rows, at(t))
        return t + 1, total, apply_op("TensorArrayWriteV3", [made[0], to(t), total, flow])

    return tf.while_loop(lambda t, total, _: more(t, total), body, [0, tf.zeros([3]), made[1]])[2]


def is_dense(session: tf.Session, y: Any, feeds: Any) -> bool:
    """Returns whether the loop of a graph works on dense tensors, in a program."""
    return len(session.explain(y, feeds).rewritten("dense_lists")) == 1


def test_loop_over_an_array_is_dense(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    made = array(tf.shape(x)[0])
    y = stacked(made[0], sums(unstacked(x), made), tf.shape(x)[0])
    np.testing.assert_array_equal(session.run(y, {x: ROWS}), ROWS.cumsum(0))
    assert is_dense(session, y, {x: ROWS})


def test_rows_are_put_where_their_indices_say(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    order = [2, 0, 3, 1]
    y = stacked(made[0], sums(unstacked(x, order), made))
    np.testing.assert_array_equal(session.run(y, {x: ROWS}), ROWS[np.argsort(order)].cumsum(0))
    assert is_dense(session, y, {x: ROWS})


def test_size_of_an_array_is_known(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    flow = sums(unstacked(x), made)
    size = apply_op("TensorArraySizeV3", [made[0], flow])
    assert session.run([size, stacked(made[0], flow)], {x: ROWS})[0] == STEPS


def test_elements_that_a_loop_leaves_out_are_zeros_of_their_shape(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array(**KNOWN)
    y = stacked(made[0], sums(unstacked(x), made, more=lambda t, total: (t < STEPS) & (tf.reduce_sum(total) < 10.0)))
    np.testing.assert_array_equal(session.run(y, {x: ROWS}), ROWS.cumsum(0) * [[1], [1], [0], [0]])
    assert is_dense(session, y, {x: ROWS})


def up_to(fed: Any) -> Callable[[Any, Any], Any]:
    """Returns a condition that holds for one iteration at least, and for as many as are fed."""
    bound = tf.minimum(STEPS, tf.maximum(1, fed))
    return lambda t, _: t < bound


@pytest.mark.parametrize("count", [1, 3, 9])
def test_elements_of_one_shape_that_a_loop_leaves_out_are_zeros(session: tf.Session, count: int) -> None:
    x, fed = tf.placeholder(tf.float32, [STEPS, 3]), tf.placeholder(tf.int32, [])
    made = array(identical_element_shapes=True)
    y = stacked(made[0], sums(unstacked(x), made, more=up_to(fed)))
    kept = np.arange(STEPS)[:, None] < count
    np.testing.assert_array_equal(session.run(y, {x: ROWS, fed: count}), ROWS.cumsum(0) * kept)
    assert is_dense(session, y, {x: ROWS, fed: count})


def test_array_of_one_shape_is_an_error_where_nothing_may_be_written(session: tf.Session) -> None:
    x, fed = tf.placeholder(tf.float32, [STEPS, 3]), tf.placeholder(tf.int32, [])
    made = array(identical_element_shapes=True)
    bound = tf.minimum(STEPS, fed)
    y = stacked(made[0], sums(unstacked(x), made, more=lambda t, _: t < bound))
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0 was never written"):
        session.run(y, {x: ROWS, fed: 0})


def test_elements_that_a_loop_leaves_out_are_an_error_without_a_shape(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    y = stacked(made[0], sums(unstacked(x), made, more=lambda t, total: (t < STEPS) & (tf.reduce_sum(total) < 10.0)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 2 was never written"):
        session.run(y, {x: ROWS})


def test_element_that_is_read_twice_is_an_error(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0 was read before"):
        session.run(stacked(made[0], sums(unstacked(x), made, times=2)), {x: ROWS})


def test_element_that_is_not_cleared_may_be_read_twice(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    y = stacked(made[0], sums(unstacked(x, clear_after_read=False), made, times=2))
    np.testing.assert_array_equal(session.run(y, {x: ROWS}), 2 * ROWS.cumsum(0))
    assert is_dense(session, y, {x: ROWS})


def test_element_that_iterations_read_again_is_an_error(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0 was read before"):
        session.run(stacked(made[0], sums(unstacked(x), made, at=lambda t: t // 2)), {x: ROWS})


def test_element_that_iterations_write_again_is_an_error(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0 has been written already"):
        session.run(stacked(made[0], sums(unstacked(x), made, to=lambda t: t // 2)), {x: ROWS})


def test_element_that_is_written_after_a_loop_is_an_error(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array()
    flow = apply_op("TensorArrayWriteV3", [made[0], 1, [1.0, 2.0, 3.0], sums(unstacked(x), made)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 1 has been written already"):
        session.run(stacked(made[0], flow), {x: ROWS})


def test_iteration_past_the_end_of_an_array_is_an_error(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array(STEPS - 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 3 in an array of 3 elements"):
        session.run(stacked(made[0], sums(unstacked(x), made), STEPS - 1), {x: ROWS})


def test_array_that_grows_stays_with_the_executor(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    made = array(0, dynamic_size=True)
    y = stacked(made[0], sums(unstacked(x), made))
    np.testing.assert_array_equal(session.run(y, {x: ROWS}), ROWS.cumsum(0))
    assert not is_dense(session, y, {x: ROWS})


def test_gradients_of_arrays_stay_with_the_executor(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    rows = unstacked(x)
    y = tf.square(stacked(*rows))
    np.testing.assert_array_equal(session.run(tf.gradients(y, x)[0], {x: ROWS}), 2 * ROWS)


def test_loop_that_is_run_again_by_another_reads_an_array_again(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [STEPS, 3])
    rows = unstacked(x)

    def total(_: Any) -> Any:
        body = lambda t, total: (t + 1, total + read(rows, t))  # noqa: E731 - a loop's body
        return tf.while_loop(lambda t, _: t < STEPS, body, [0, tf.zeros([3])])[1]

    y = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v + total(i)), [0, tf.zeros([3])])[1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0 was read before"):
        session.run(y, {x: ROWS})


def test_two_sizes_are_fed_in_turn(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    made = array(tf.shape(x)[0])
    flow = sums(unstacked(x), made, more=lambda t, _: t < tf.shape(x)[0])
    y = stacked(made[0], flow, tf.shape(x)[0])
    for rows in (ROWS, ROWS[:2], ROWS):
        np.testing.assert_array_equal(session.run(y, {x: rows}), rows.cumsum(0))
