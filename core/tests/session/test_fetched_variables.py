"""A variable that is fetched beside its updates has the value that they leave, as references of TensorFlow 1 do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    """With the variable v, which is 1."""
    with tf.Graph().as_default(), tf.Session() as opened:
        tf.get_variable("v", initializer=1.0)
        opened.run(tf.global_variables_initializer())
        yield opened


def variable() -> tf.Variable:
    (found,) = tf.global_variables()
    return found


def test_whichever_is_fetched_first(session: tf.Session) -> None:
    v = variable()
    add = tf.assign_add(v, 1.0)
    assert session.run([v, add]) == [2.0, 2.0]
    assert session.run({"add": add.op, "v": "v:0"}) == {"add": None, "v": 3.0}
    call = session.make_callable([v, add])
    assert call() == [4.0, 4.0]
    assert call() == [5.0, 5.0]


def test_after_all_updates_also_those_built_later(session: tf.Session) -> None:
    v = variable()
    doubled = tf.assign(v, v * 2.0)
    with tf.control_dependencies([doubled]):
        more = tf.assign_add(v, 0.5)
    assert session.run([v, more]) == [2.5, 2.5]


def test_after_a_step_of_training(session: tf.Session) -> None:
    v = variable()
    step = tf.train.GradientDescentOptimizer(0.25).minimize(v * v)
    assert session.run([v, step]) == [0.5, None]


def test_after_updates_in_branches_and_loops(session: tf.Session) -> None:
    v, x = variable(), tf.placeholder(tf.bool, [])
    chosen = tf.cond(x, lambda: tf.assign_add(v, 1.0), lambda: tf.assign_sub(v, 1.0))

    def body(i: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.assign_add(v, 10.0)]):
            return i + 1

    times = tf.while_loop(lambda i: i < 3, body, [0])
    assert session.run([v, chosen], {x: True})[0] == 2.0
    assert session.run([v, chosen], {x: False})[0] == 1.0
    assert session.run([v, times]) == [31.0, 3]


def test_what_computes_with_that_read_keeps_its_place(session: tf.Session) -> None:
    v = variable()
    before = session.graph.get_tensor_by_name("v:0") + 0.0  # of the very read that a fetch of v is
    add = tf.assign_add(v, 1.0)
    assert session.run([v, before, add]) == [1.0, 1.0, 2.0]


def test_a_value_that_is_fed_is_given_back(session: tf.Session) -> None:
    v = variable()
    assert session.run([v, v + 1.0], {v: np.float32(7)}) == [7.0, 8.0]
    assert session.run(v) == 1.0
