"""Sums of products that leave a loop to be one product after it: what results are, and which loops stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .loop_passes import assert_rewritten, runs, whole_numbers

STEPS, BATCH, DEPTH, UNITS = 5, 2, 3, 4


@pytest.fixture(autouse=True)
def _own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def sums(step: Callable[..., Any], start: Any = None, index: Callable[[Any], Any] = lambda t: t) -> tuple[Any, Any]:
    """Returns what a loop makes of a sum of products and of a state, step(row, state, sum)
    giving both; and what to feed.
    """
    x = tf.placeholder(tf.float32, [STEPS, BATCH, DEPTH])
    rows = tf.TensorArray(tf.float32, STEPS).unstack(x)
    total = tf.zeros([DEPTH, UNITS]) if start is None else start

    def body(t: Any, state: Any, total: Any) -> Any:
        return t + 1, *step(rows.read(index(t)), state, total)

    found = tf.while_loop(lambda t, *_: t < STEPS, body, [0, tf.ones([BATCH, UNITS]), total])
    return found[1:], {x: whole_numbers(STEPS, BATCH, DEPTH)}


def following(row: Any, state: Any) -> Any:
    """Returns a state of small whole numbers."""
    return tf.floormod(3.0 * state + row[:, :1], 8.0)


def adding(row: Any, state: Any, total: Any) -> tuple[Any, Any]:
    return following(row, state), total + tf.matmul(row, state, transpose_a=True)


def outputs_of(cell: Any) -> tuple[Any, dict[Any, np.ndarray]]:
    """Returns the outputs of a cell with weights that are the same in each session, and what to feed."""
    x = tf.placeholder(tf.float32, [BATCH, STEPS, DEPTH])
    with tf.variable_scope("cells", initializer=tf.random_uniform_initializer(-1, 1, seed=3)):
        y, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    return y, {x: np.random.default_rng(1).normal(size=(BATCH, STEPS, DEPTH))}


@pytest.mark.parametrize("name", ["BasicLSTMCell", "LSTMCell", "GRUCell", "BasicRNNCell"])
def test_gradients_of_cells_are_the_same_but_for_rounding(name: str) -> None:
    y, feeds = outputs_of(getattr(tf.nn.rnn_cell, name)(UNITS))
    gradients = tf.gradients(tf.reduce_sum(tf.square(y)), [*feeds, *tf.trainable_variables()])
    before, after, rewritten = runs("sink", gradients, feeds)
    assert len(rewritten) == 1
    for a, b in zip(after, before, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=STEPS * BATCH * np.abs(b).max() * np.finfo(np.float32).eps)


def test_sum_of_products_leaves_the_loop() -> None:
    assert_rewritten("sink", 1, *sums(adding))


def test_order_of_the_sum_does_not_matter() -> None:
    def step(row: Any, state: Any, total: Any) -> Any:
        return following(row, state), tf.add_n([tf.matmul(row, state, transpose_a=True), total])

    assert_rewritten("sink", 1, *sums(step))


def test_row_may_be_the_second_operand() -> None:
    def step(row: Any, state: Any, total: Any) -> Any:
        return following(row, state), total + tf.matmul(state, row, transpose_a=True)

    assert_rewritten("sink", 1, *sums(step, tf.zeros([UNITS, DEPTH])))


def test_rows_from_the_last_to_the_first_leave_the_loop() -> None:
    assert_rewritten("sink", 1, *sums(adding, index=lambda t: STEPS - 1 - t))


def test_sum_begins_with_what_it_began_with() -> None:
    assert_rewritten("sink", 1, *sums(adding, tf.constant(whole_numbers(DEPTH, UNITS))))


def test_sums_of_one_operand_keep_it_once() -> None:
    x = tf.placeholder(tf.float32, [STEPS, BATCH, DEPTH])
    y = tf.placeholder(tf.float32, [STEPS, BATCH, UNITS])
    rows, others = (tf.TensorArray(tf.float32, STEPS).unstack(v) for v in (x, y))

    def body(t: Any, state: Any, a: Any, b: Any) -> Any:
        after, a = adding(rows.read(t), state, a)
        return t + 1, after, a, b + tf.matmul(others.read(t), state, transpose_a=True)

    start = [0, tf.ones([BATCH, UNITS]), tf.zeros([DEPTH, UNITS]), tf.zeros([UNITS, UNITS])]
    found = tf.while_loop(lambda t, *_: t < STEPS, body, start)[1:]
    assert_rewritten("sink", 1, found, {x: whole_numbers(STEPS, BATCH, DEPTH), y: whole_numbers(STEPS, BATCH, UNITS)})


def test_training_gives_the_same_weights() -> None:
    y, feeds = outputs_of(tf.nn.rnn_cell.BasicLSTMCell(UNITS))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(y)))
    trained = []
    for sink in (False, True):
        with tf.Session(config=tf.SessionConfig(optimizations={"sink": sink})) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(step, feeds)
            trained.append(session.run(tf.trainable_variables()))
    for a, b in zip(*trained, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


def test_results_have_the_same_bits_in_every_run() -> None:
    y, feeds = outputs_of(tf.nn.rnn_cell.GRUCell(UNITS))
    gradients = tf.gradients(tf.reduce_sum(y), tf.trainable_variables())
    found = set()
    for _ in range(2):
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found.update(b"".join(g.tobytes() for g in session.run(gradients, feeds)) for _ in range(3))
    assert len(found) == 1


def test_sum_that_becomes_a_variable_stays() -> None:
    (_, total), feeds = sums(adding)
    v = tf.get_variable("v", initializer=np.zeros((DEPTH, UNITS), np.float32))
    with tf.control_dependencies([v.assign(total)]):
        fetches = [v.read_value()]
    assert_rewritten("sink", 0, fetches, feeds)


def test_sum_that_iterations_read_stays() -> None:
    def step(row: Any, state: Any, total: Any) -> Any:
        after, total = adding(row, state, total)
        return tf.floormod(after + total[:1], 8.0), total

    assert_rewritten("sink", 0, *sums(step))


def test_sum_of_before_that_iterations_read_stays() -> None:
    def step(row: Any, state: Any, total: Any) -> Any:
        after, added = adding(row, state, total)
        return tf.floormod(after + total[:1], 8.0), added

    assert_rewritten("sink", 0, *sums(step))


def test_product_that_iterations_read_stays() -> None:
    def step(row: Any, state: Any, total: Any) -> Any:
        product = tf.matmul(row, state, transpose_a=True)
        return tf.floormod(state + product[:1], 8.0), total + product

    assert_rewritten("sink", 0, *sums(step))


def test_sum_that_is_no_longer_than_its_operands_stays() -> None:
    x = tf.placeholder(tf.float32, [STEPS, 8, 2])
    rows = tf.TensorArray(tf.float32, STEPS).unstack(x)

    def body(t: Any, total: Any) -> Any:
        row = rows.read(t)
        return t + 1, total + tf.matmul(row, row + 1.0, transpose_a=True)

    total = tf.while_loop(lambda t, _: t < STEPS, body, [0, tf.zeros([2, 2])])[1]
    assert_rewritten("sink", 0, [total], {x: whole_numbers(STEPS, 8, 2)})


@pytest.mark.parametrize("index", [lambda t: t // 2, lambda t: tf.minimum(t, 3)])
def test_rows_that_are_read_again_stay(index: Callable[[Any], Any]) -> None:
    assert_rewritten("sink", 0, *sums(adding, index=index))


def test_loop_that_a_value_ends_stays() -> None:
    x = tf.placeholder(tf.float32, [STEPS, BATCH, DEPTH])
    rows = tf.TensorArray(tf.float32, STEPS).unstack(x)

    def body(t: Any, state: Any, total: Any) -> Any:
        return t + 1, *adding(rows.read(t), state, total)

    start = [0, tf.ones([BATCH, UNITS]), tf.zeros([DEPTH, UNITS])]
    found = tf.while_loop(lambda t, s, _: tf.logical_and(t < STEPS, tf.reduce_sum(s) < 30.0), body, start)
    value = whole_numbers(STEPS, BATCH, DEPTH)
    value[-1] = np.nan  # in a row that no iteration comes to
    assert_rewritten("sink", 0, found, {x: value})


def test_gradients_of_lengths_of_rows_are_right() -> None:
    x = tf.placeholder(tf.float32, [BATCH, STEPS, DEPTH])
    y, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(UNITS), x, [1, 3], dtype=tf.float32)
    gradients = tf.gradients(tf.reduce_sum(y), [x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (found,) = session.run(gradients, {x: np.ones((BATCH, STEPS, DEPTH))})
    assert found.any(2).tolist() == [[True, False, False, False, False], [True, True, True, False, False]]
