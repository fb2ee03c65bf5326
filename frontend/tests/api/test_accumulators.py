"""Accumulators of gradients: sums, steps, what is dropped, waiting, and errors."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import timberframe as tf

BRIEF = tf.RunOptions(timeout_in_ms=100)


def dense(dtype: Any = tf.float32, shape: Any = (2,), **settings: Any) -> tf.ConditionalAccumulator:
    return tf.ConditionalAccumulator(dtype, shape, **settings)


def rows(indices: list[int], values: Any, shape: Any = None) -> tf.IndexedSlices:
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(indices, tf.int64), shape)


def test_the_mean_of_all_gradients_is_taken(session: tf.Session) -> None:
    a = dense()
    for gradient in ([1.0, 2.0], [2.0, 2.0], [3.0, 5.0]):
        session.run(a.apply_grad(gradient))
    assert session.run(a.num_accumulated()) == 3
    np.testing.assert_array_equal(session.run(a.take_grad(2)), [2, 3])
    assert session.run(a.num_accumulated()) == 0


def test_a_sum_is_taken(session: tf.Session) -> None:
    a = dense(shape=(), reduction_type="SUM")
    session.run(a.apply_grad(1.0))
    session.run(a.apply_grad(2.0))
    assert session.run(a.take_grad(2)) == 3


def test_integers_are_divided_towards_zero(session: tf.Session) -> None:
    a = dense(tf.int32, ())
    session.run(a.apply_grad(-3))
    session.run(a.apply_grad(-4))
    assert session.run(a.take_grad(2)) == -3


def test_gradients_of_earlier_steps_are_dropped(session: tf.Session) -> None:
    a = dense()
    session.run(a.set_global_step(7))
    session.run(a.apply_grad([1.0, 1.0], local_step=6))
    assert session.run(a.num_accumulated()) == 0
    session.run(a.apply_grad([1.0, 1.0], local_step=7))
    session.run(a.apply_grad([1.0, 1.0], local_step=9))
    assert session.run(a.num_accumulated()) == 2


def test_taking_makes_the_step_one_more(session: tf.Session) -> None:
    a = dense()
    session.run(a.apply_grad([1.0, 1.0]))
    session.run(a.take_grad(1))
    session.run(a.apply_grad([1.0, 1.0], local_step=0))
    assert session.run(a.num_accumulated()) == 0


def test_taking_waits_until_there_are_enough(session: tf.Session) -> None:
    a = dense()
    apply, take = a.apply_grad([1.0, 2.0]), a.take_grad(2)
    session.run(apply)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session.run(take)), daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    session.run(apply)
    thread.join(20)
    np.testing.assert_array_equal(found, [[1, 2]])


SMALL_AND_LARGE = [[1e8, 1.0], [-1e8, 1e-8], [1.0, -1.0], [3e-8, 0.3]]
"""Gradients whose sums depend on the order in which they are added."""


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.half])
def test_sums_have_the_same_bits_in_whatever_order_gradients_come(session: tf.Session, dtype: Any) -> None:
    a, x = dense(dtype), tf.placeholder(dtype, [2])
    add, take, scale = a.apply_grad(x, local_step=100), a.take_grad(4), 1e-4 if dtype is tf.half else 1.0
    found = set()
    for order in itertools.permutations(SMALL_AND_LARGE):
        for gradient in order:
            session.run(add, {x: np.multiply(gradient, scale)})
        found.add(session.run(take).tobytes())
    assert len(found) == 1


def test_sums_of_rows_have_the_same_bits_in_whatever_order_gradients_come(session: tf.Session) -> None:
    a = tf.SparseConditionalAccumulator(tf.float32)
    gradients = [rows([3, i], [[value], [other]]) for i, (value, other) in enumerate(SMALL_AND_LARGE)]
    adds, take = [a.apply_indexed_slices_grad(g, local_step=100) for g in gradients], a.take_indexed_slices_grad(4)
    found = set()
    for order in itertools.permutations(adds):
        for add in order:
            session.run(add)
        found.add(session.run(take).values.tobytes())
    assert len(found) == 1


def test_a_gradient_of_another_shape_than_the_first_is_refused(session: tf.Session) -> None:
    a, x = dense(shape=None), tf.placeholder(tf.float32)
    add = a.apply_grad(x)
    session.run(add, {x: [1.0, 2.0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the gradient has shape \(3,\); .* takes \(2,\)"):
        session.run(add, {x: [1.0, 2.0, 3.0]})


def test_a_time_limit_ends_the_waiting_and_nothing_is_taken(session: tf.Session) -> None:
    a = dense()
    session.run(a.apply_grad([1.0, 2.0]))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(a.take_grad(2), options=BRIEF)
    assert session.run(a.num_accumulated()) == 1


def test_a_run_may_take_what_it_adds(session: tf.Session) -> None:
    a = dense()
    np.testing.assert_array_equal(session.run([a.take_grad(1), a.apply_grad([4.0, 2.0])])[0], [4, 2])


def test_a_feed_that_changes_later_does_not_change_the_sum(session: tf.Session) -> None:
    a, x = dense(), tf.placeholder(tf.float32, [2])
    value = np.ones(2, np.float32)
    session.run(a.apply_grad(x), {x: value})
    value[:] = 9
    np.testing.assert_array_equal(session.run(a.take_grad(1)), [1, 1])


def test_a_gradient_of_another_shape_is_refused(session: tf.Session) -> None:
    a, x = dense(), tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the gradient has shape \(3,\).* takes \(2,\)"):
        session.run(a.apply_grad(x), {x: [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="the gradient has shape"):
        a.apply_grad([1.0, 2.0, 3.0])


def test_the_first_gradient_decides_a_shape_that_is_open(session: tf.Session) -> None:
    a = dense(shape=None)
    session.run(a.apply_grad([1.0, 2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="the gradient has shape"):
        session.run(a.apply_grad([1.0, 2.0, 3.0]))
    session.run(a.take_grad(1))
    session.run(a.apply_grad([1.0, 2.0, 3.0], local_step=1))
    assert session.run(a.num_accumulated()) == 1


def test_no_gradients_cannot_be_required(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_required is 0; at least 1 is required"):
        session.run(dense().take_grad(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": (3,)}, r"has shape \(2,\); \(3,\) is asked for"),
        ({"dtype": tf.float64}, "has dtype float32; float64 is asked for"),
        ({"reduction_type": "SUM"}, "has reduction MEAN; SUM is asked for"),
    ],
)
def test_a_name_means_one_kind_of_accumulator(session: tf.Session, settings: Any, message: str) -> None:
    session.run(dense(shared_name="a").num_accumulated())
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(dense(**{"shared_name": "a", **settings}).num_accumulated())


def test_rows_have_the_mean_of_the_gradients_with_them(session: tf.Session) -> None:
    a = tf.SparseConditionalAccumulator(tf.float32, [4, 2])
    session.run(a.apply_indexed_slices_grad(rows([0, 2], [[1, 1], [2, 2]], [4, 2])))
    session.run(a.apply_indexed_slices_grad(rows([1, 2], [[1, 1], [4, 4]])))
    found = session.run(a.take_indexed_slices_grad(2))
    assert found.indices.tolist() == [0, 1, 2]
    assert found.values.tolist() == [[1, 1], [1, 1], [3, 3]]
    assert found.dense_shape.tolist() == [4, 2]


def test_a_row_that_a_gradient_has_several_times_is_added_up(session: tf.Session) -> None:
    a = tf.SparseConditionalAccumulator(tf.float32, ())
    session.run(a.apply_indexed_slices_grad(rows([3, 1, 1], [[1, 1], [2, 2], [3, 3]])))
    session.run(a.apply_indexed_slices_grad(rows([1], [[1, 1]])))
    indices, values, shape = session.run(a.take_grad(2))
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([1, 3], [[3, 3], [1, 1]], [-1, 2])


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (([1], [[1.0, 1.0]], [5, 2]), r"the gradient has shape \(5, 2\)"),
        (([9], [[1.0, 1.0]], None), "the gradient has row 9; .* has 4 rows"),
        (([1, 2], [[1.0, 1.0]], None), "as many rows of values, are required"),
        (([1], [[1.0, 1.0, 1.0]], None), r"rows of shape \(3,\)"),
    ],
)
def test_rows_that_do_not_suit_are_refused(session: tf.Session, gradient: Any, message: str) -> None:
    a = tf.SparseConditionalAccumulator(tf.float32, [4, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(a.apply_grad(*gradient))
    assert session.run(a.num_accumulated()) == 0


def test_a_dense_gradient_does_not_go_into_an_accumulator_of_rows(session: tf.Session) -> None:
    session.run(tf.SparseConditionalAccumulator(tf.float32, shared_name="a").num_accumulated())
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a SparseConditionalAccumulator"):
        session.run(tf.ConditionalAccumulator(tf.float32, shared_name="a").num_accumulated())
