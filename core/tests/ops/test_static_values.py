"""Host values: what ops know about outputs from values that are known in part, against what a run gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import UNKNOWN


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def partly_known(*values: int | None) -> Any:
    """Returns a vector of int32 whose elements the graph knows but for those given as None."""
    rows = [tf.placeholder(tf.int32, []) if v is None else tf.constant(v) for v in values]
    return tf.stack(rows)


def known(tensor: Any) -> list[Any] | None:
    """Returns the tensor's host value, with None for what is unknown."""
    value = tensor.host_value
    return None if value is None else [None if x is UNKNOWN else x for x in value.flat]


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
@pytest.mark.parametrize(("op", "first"), [("ConcatV2", 0), ("Concat", 1)])
def test_join_of_integers_takes_an_inner_size_from_the_other_input(dtype: Any, op: str, first: int) -> None:
    a, b = tf.placeholder(dtype, [2, None]), tf.constant([[1, 2]], dtype)
    joined = apply_op(op, [[a, b], 0] if first == 0 else [0, [a, b]])
    assert known(joined) == [None, None, None, None, 1, 2]
    with tf.Session() as session:
        assert session.run(joined, {a: [[5, 6], [7, 8]]}).tolist() == [[5, 6], [7, 8], [1, 2]]


def test_join_along_an_axis_counted_from_the_end() -> None:
    a = tf.placeholder(tf.int32, [None, 1])
    assert known(tf.concat([a, [[1], [2]]], -1)) == [None, 1, None, 2]


def test_offsets_after_an_unknown_size_are_unknown() -> None:
    offsets = apply_op("ConcatOffset", [0, [partly_known(2, 3), partly_known(None, 3), partly_known(1, 3)]])
    assert [known(o) for o in offsets] == [[0, 0], [2, 0], [None, 0]]


def test_offsets_refuse_an_axis_outside_the_rank_while_sizes_are_unknown() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="concat_dim 2 is outside the input's rank 2"):
        apply_op("ConcatOffset", [2, [partly_known(2, 3), partly_known(None, 3)]])


def test_known_elements_next_to_unknown_ones_wrap_around() -> None:
    lowest = -(2**31)
    assert known(partly_known(lowest, None) // -1) == [lowest, None]


def test_comparison_of_nothing_is_boolean() -> None:
    value = tf.equal(tf.zeros([0], tf.int32), [1]).host_value
    assert value is not None
    assert value.dtype == bool


def test_equality_of_partly_known_operands_that_do_not_broadcast_is_left_to_the_run() -> None:
    equal = apply_op("Equal", [partly_known(1, None), [1, 2, 3]], {"incompatible_shape_error": False})
    assert known(equal) is None


def test_stitch_leaves_rows_that_none_names_zero_next_to_unknown_ones() -> None:
    assert known(tf.dynamic_stitch([[0, 2]], [partly_known(5, None)])) == [5, 0, None]


@pytest.mark.parametrize("sizes", [(1, None), (None, 1)])
def test_einsum_knows_no_size_of_an_ellipsis_where_one_is_1_and_the_other_unknown(sizes: Any) -> None:
    a, b = (tf.placeholder(tf.float32, [n, 2]) for n in sizes)
    assert tf.einsum("...i,...i->...", a, b).shape.as_list() == [None]


def test_einsum_of_an_unknown_ellipsis_size_runs() -> None:
    a, b = np.ones((1, 2), np.float32), tf.placeholder(tf.float32, [None, 2])
    with tf.Session() as session:
        assert session.run(tf.einsum("...i,...i->...", a, b), {b: np.ones((3, 2))}).tolist() == [2, 2, 2]
