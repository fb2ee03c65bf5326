"""Gathering, scattering and sorting at sizes and in orders that the conformance suite does not try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

OPENCL = "/device:OPENCL:0"


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def test_floats_that_go_to_the_same_row_are_added_in_the_order_of_the_cpu(
    assert_same_bits: Callable[..., None],
) -> None:
    rows = np.random.default_rng(1).integers(0, 11, 5000).astype(np.int32)
    assert_same_bits(lambda x, i: [tf.unsorted_segment_sum(x, i, 11)], numbers(5000, 3), rows)


def test_a_row_of_a_variable_that_is_named_often_changes_in_the_order_of_the_cpu(
    assert_same_bits: Callable[..., None],
) -> None:
    def build(x: Any, i: Any) -> list[Any]:
        variable = tf.Variable(np.ones((11, 3), np.float32), use_resource=True)
        with tf.control_dependencies([variable.scatter_sub(tf.IndexedSlices(x, i))]):
            return [variable.read_value()]

    rows = np.random.default_rng(1).integers(0, 11, 3000).astype(np.int32)
    assert_same_bits(build, numbers(3000, 3), rows)


def test_an_update_with_a_row_out_of_range_changes_nothing(session: tf.Session) -> None:
    with tf.device(OPENCL):
        variable = tf.Variable(np.zeros((4, 2), np.float32), use_resource=True)
        rows = tf.placeholder(tf.int32, [None])
        update = variable.scatter_add(tf.IndexedSlices(tf.ones([2, 2]), rows))
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 9 at position 1 is outside \[0, 4\)"):
        session.run(update, {rows: [0, 9]})
    assert not session.run(variable).any()
    session.run(update, {rows: [0, 3]})
    assert session.run(variable)[:, 0].tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("k", [10, 200, 3000])
def test_the_largest_of_rows_of_several_blocks_are_those_of_the_cpu(
    assert_same_bits: Callable[..., None], k: int
) -> None:
    values = np.round(numbers(2, 9000), 2)  # with ties
    values[1, 77] = np.nan
    assert_same_bits(lambda x: tf.nn.top_k(x, k), values)


def test_distinct_rows_among_several_blocks_are_those_of_the_cpu(assert_same_bits: Callable[..., None]) -> None:
    rows = np.random.default_rng(3).integers(0, 60, (4000, 2)).astype(np.float32)
    rows[[5, 2500], 1] = np.nan
    assert_same_bits(lambda x: apply_op("UniqueWithCountsV2", [x, [0]]), rows)


def test_where_counts_on_across_many_groups(on_device: Callable[..., list[np.ndarray]]) -> None:
    x = np.random.default_rng(4).integers(0, 2, (1100, 1000)).astype(bool)
    found = on_device(lambda x: [tf.where(x)], x)
    np.testing.assert_array_equal(found[0], np.argwhere(x))
