"""Collectives in graphs: shapes, values, gradients, and what a run raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
import timberframe_ray as tfr
from timberframe_sdk import apply_op


@pytest.fixture
def alone() -> Iterator[tfr.Group]:
    """A group of this process alone."""
    yield tfr.join(0, 1)
    tfr.leave()


@pytest.mark.slow
def test_values_and_gradients_in_two_processes(programs: Any) -> None:
    found = programs.in_processes(2, programs.collectives)
    for rank in (0, 1):
        first, second, gathered, scattered, copied, *gradients = found[rank]
        np.testing.assert_array_equal(first, [3, 4])
        np.testing.assert_array_equal(second, [[3]])
        np.testing.assert_array_equal(gathered, [[0], [3]])
        np.testing.assert_array_equal(scattered, [0, 2] if rank == 0 else [4, 6])
        np.testing.assert_array_equal(copied, [2, 2])
        np.testing.assert_array_equal(gradients[0], [3, 3])  # of 1 * total + 2 * total by each x
        np.testing.assert_array_equal(gradients[1], [[3]])
        np.testing.assert_array_equal(gradients[2], [3, 3] if rank == 1 else [0, 0])


@pytest.mark.slow
def test_products_split_by_columns_and_rows_have_the_loss_and_gradients_of_whole_ones(programs: Any) -> None:
    for parts, whole in programs.in_processes(2, programs.split_products).values():
        for x, y in zip(parts, whole, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_process_that_is_killed_is_named_with_the_op_in_two_seconds(programs: Any) -> None:
    found = programs.in_processes(3, programs.killed, 1, expected=2)
    assert sorted(found) == [0, 2]
    for message, seconds in found.values():
        assert message.startswith("Ray>AllReduceEnd 'Ray>AllReduceEnd': rank 1 ")
        assert seconds < 2.5  # it lives for half a second of these


def test_shapes_are_known_when_the_graph_is_built(alone: tfr.Group) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert tfr.all_reduce([x])[0].shape.as_list() == [None, 3]
    assert tfr.all_gather(tf.zeros([4, 3])).shape.as_list() == [4, 3]
    assert tfr.broadcast(x).shape.as_list() == [None, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="first dimension must be a multiple of 3"):
        apply_op("Ray>ReduceScatter", [tf.zeros([4, 3])], {"size": 3})


def test_a_graph_for_another_number_of_processes_is_an_error(alone: tfr.Group) -> None:
    y = apply_op("Ray>AllGather", [tf.zeros([2])], {"size": 2}, name="all")
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="'all': attr size is 2; the group has"):
        s.run(y)


def test_a_group_is_required() -> None:
    (y,) = tfr.all_reduce([tf.zeros([2])])
    with tf.Session() as s, pytest.raises(tf.errors.UnavailableError, match=r"timberframe_ray\.join makes it part"):
        s.run(y)


def test_errors_name_the_line_of_the_user() -> None:
    (y,) = tfr.all_reduce([tf.zeros([2])])
    with tf.Session() as s, pytest.raises(tf.errors.UnavailableError, match=r"test_ops\.py:\d+"):
        s.run(y)


def test_a_collective_in_a_loop_and_of_fed_shapes(alone: tfr.Group) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, tfr.all_reduce([v])[0] * 2.0), (0, x))[1]
    with tf.Session() as s:
        np.testing.assert_array_equal(s.run(y, {x: [1.0, 2.0]}), [8, 16])
        np.testing.assert_array_equal(s.run(y, {x: [1.0, 2.0, 3.0]}), [8, 16, 24])


def test_what_is_summed_is_not_the_memory_of_a_feed(alone: tfr.Group) -> None:
    x = tf.placeholder(tf.float32, [2])
    given = np.array([1, 2], np.float32)
    with tf.Session() as s:
        (found,) = s.run(tfr.all_reduce([x]), {x: given})
    found += 1
    np.testing.assert_array_equal(given, [1, 2])
