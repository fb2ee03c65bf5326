"""`x[...]` on tensors, compared with NumPy."""

from typing import Any

import numpy as np
import pytest

import timberframe as tf

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def run(fetch: Any, feeds: Any = None) -> Any:
    with tf.Session(graph=tf.get_default_graph()) as session:
        return session.run(fetch, feeds)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    "key",
    [
        1,
        -1,
        slice(None),
        slice(1, None),
        slice(None, -1),
        slice(None, None, -1),
        slice(10, 0, -2),
        ...,
        (1, 2),
        (1, 2, 3),
        (slice(None), 1),
        (..., 0),
        (0, ...),
        (1, ..., slice(None, None, 2)),
        None,
        (None, ..., None),
        (slice(1, 3), None, 2, slice(4, 1, -1)),
        np.int64(2),
    ],
    ids=str,
)
def test_getitem_selects_what_numpy_selects(key: Any) -> None:
    np.testing.assert_array_equal(run(tf.constant(X)[key]), X[key], strict=True)


def test_bounds_may_be_tensors() -> None:
    start, stop = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    y = tf.constant(X)[start:stop, start, ::-1]
    np.testing.assert_array_equal(run(y, {start: 1, stop: 3}), X[1:3, 1, ::-1])


@pytest.mark.parametrize("find", [lambda x, i: x[i, 1:3, None, ..., i], lambda x, i: x[..., ::-2, i]])
def test_index_tensors_with_ranges_select_what_numpy_selects(find: Any) -> None:
    i = tf.placeholder(tf.int32, [])
    np.testing.assert_array_equal(run(find(tf.constant(X), i), {i: 2}), find(X, 2))


def test_row_of_a_loop_needs_no_plan_for_each_iteration() -> None:
    x, i = tf.constant(X), tf.placeholder(tf.int32, [])
    assert x[i, 1:3].shape.as_list() == [2, 5]


def test_int64_index_is_accepted() -> None:
    i = tf.placeholder(tf.int64, [])
    np.testing.assert_array_equal(run(tf.constant(X)[i, 1:3], {i: -1}), X[-1, 1:3])


def test_static_shape_is_inferred() -> None:
    x = tf.placeholder(tf.float32, [None, 4, 5])
    assert x[1:, ..., tf.newaxis, -1].shape.as_list() == [None, 4, 1]


def test_index_out_of_range_names_the_limits() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 3 of dimension 0 is outside its size 3"):
        tf.constant(X)[3]


def test_float_index_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is indexed with 1\.5; an index must be an integer"):
        tf.constant(X)[1.5]


def test_iteration_gives_the_rows() -> None:
    assert [run(row).tolist() for row in tf.constant([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]


def test_slice_with_begin_fed_and_size_up_to_the_end() -> None:
    begin = tf.placeholder(tf.int32, [1])
    y = tf.slice(tf.constant([1, 2, 3, 4]), begin, [-1])
    assert run(y, {begin: [1]}).tolist() == [2, 3, 4]


def test_strided_slice_without_strides_takes_every_element() -> None:
    assert run(tf.strided_slice(tf.constant([1, 2, 3, 4]), [1], [3])).tolist() == [2, 3]


def test_mask_selects_rows() -> None:
    mask = tf.placeholder(tf.bool, [3])
    np.testing.assert_array_equal(run(tf.constant(X)[mask], {mask: [True, False, True]}), X[[0, 2]])


def test_a_mask_of_numbers_holds_where_they_are_not_zero() -> None:
    with tf.Session() as session:
        assert session.run(tf.boolean_mask([1, 2, 3], tf.constant([0.0, 0.5, -1.0]))).tolist() == [2, 3]
