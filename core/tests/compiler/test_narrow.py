"""Products in loops of which columns are left out: what results are, and which products stay whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

from .loop_passes import assert_rewritten, whole_numbers

STEPS, ROWS, COLUMNS, DEPTH = 8, 2, 7, 3


@pytest.fixture(autouse=True)
def _own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def weights(variable: bool = False) -> Any:
    """Transposed weights [columns, depth]."""
    value = whole_numbers(COLUMNS, DEPTH)
    return tf.get_variable("w", initializer=value) if variable else tf.constant(value)


def loop(step: Callable[[Any], Any]) -> Any:
    """Returns what a loop makes of a state of small whole numbers [rows, depth], which step takes to the next one."""
    x = tf.constant(whole_numbers(ROWS, DEPTH))
    return tf.while_loop(lambda t, _: t < STEPS, lambda t, h: (t + 1, tf.floormod(step(h), 8.0)), [0, x])[1]


@pytest.mark.parametrize("first", [0, 2, COLUMNS - DEPTH])
def test_columns_that_nothing_reads_are_left_out(first: int) -> None:
    def step(h: Any) -> Any:
        return tf.slice(tf.matmul(h, weights(), transpose_b=True), [0, first], [ROWS, DEPTH])

    assert_rewritten("narrow", 1, loop(step))


def test_columns_of_products_by_variables_are_left_out() -> None:
    w = weights(variable=True)
    y = loop(lambda h: tf.slice(tf.matmul(h, w, transpose_b=True), [0, 1], [-1, DEPTH]))
    assert_rewritten("narrow", 1, y)


def test_rows_of_variables_are_not_copied_for_a_few_iterations() -> None:
    w = weights(variable=True)
    x = tf.constant(whole_numbers(1, DEPTH))

    def body(t: Any, h: Any) -> Any:
        return t + 1, tf.slice(tf.matmul(h, w, transpose_b=True), [0, 1], [1, DEPTH])

    assert_rewritten("narrow", 0, tf.while_loop(lambda t, _: t < 2, body, [0, x])[1])


def test_product_that_others_read_stays_whole() -> None:
    def step(h: Any) -> Any:
        product = tf.matmul(h, weights(), transpose_b=True)
        return tf.slice(product, [0, 1], [ROWS, DEPTH]) + tf.reduce_sum(product)

    assert_rewritten("narrow", 0, loop(step))


def test_product_of_which_rows_are_read_stays_whole() -> None:
    def step(h: Any) -> Any:
        row = tf.slice(tf.matmul(h, weights(), transpose_b=True), [1, 1], [1, DEPTH])
        return tf.concat([row, row], 0)

    assert_rewritten("narrow", 0, loop(step))


def test_product_that_is_read_whole_stays() -> None:
    def step(h: Any) -> Any:
        product = tf.slice(tf.matmul(h, weights(), transpose_b=True), [0, 0], [ROWS, COLUMNS])
        return product[:, :DEPTH] + product[:, -DEPTH:]

    assert_rewritten("narrow", 0, loop(step))


def test_weights_that_iterations_change_stay_whole() -> None:
    def body(t: Any, h: Any, w: Any) -> Any:
        product = tf.slice(tf.matmul(h, w, transpose_b=True), [0, 1], [ROWS, DEPTH])
        return t + 1, tf.floormod(product, 8.0), tf.floormod(w + 1.0, 3.0)

    start = [0, tf.constant(whole_numbers(ROWS, DEPTH)), weights()]
    assert_rewritten("narrow", 0, tf.while_loop(lambda t, *_: t < STEPS, body, start)[1])


def test_gradients_of_a_cell_whose_inputs_need_none_are_narrower() -> None:
    steps = 2 * STEPS
    x = tf.placeholder(tf.float32, [ROWS, steps, DEPTH])
    with tf.variable_scope("cells", initializer=tf.random_uniform_initializer(-1, 1, seed=3)):
        y, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), x, dtype=tf.float32)
    feeds = {x: np.random.default_rng(1).normal(size=(ROWS, steps, DEPTH))}
    of_weights = tf.gradients(tf.reduce_sum(y), tf.trainable_variables())
    of_inputs = tf.gradients(tf.reduce_sum(y), [x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert len(session.explain(of_weights, feeds).rewritten("narrow")) == 1
        assert session.explain(of_inputs, feeds).rewritten("narrow") == ()
        found = session.run(of_weights, feeds)
    with tf.Session(config=tf.SessionConfig(optimizations={"narrow": False})) as session:
        session.run(tf.global_variables_initializer())
        for a, b in zip(found, session.run(of_weights, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=np.abs(b).max() * steps * 16 * np.finfo(np.float32).eps)
