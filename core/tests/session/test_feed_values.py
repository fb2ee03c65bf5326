"""Feeds of another dtype than the placeholder's are taken where the dtype holds their values, else refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf


def fed(dtype: Any, value: Any) -> Any:
    with tf.Graph().as_default():
        x = tf.placeholder(dtype, name="x")
        with tf.Session() as session:
            return session.run(tf.identity(x), {x: value})


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (tf.int32, np.array([1.0, -2.0])),
        (tf.int32, [3.0]),
        (tf.int32, np.float32(3)),
        (tf.int32, True),
        (tf.uint8, np.array([0, 255])),
        (tf.int64, np.uint64(2**63 - 1)),
        (tf.uint64, [2**64 - 1]),
        (tf.bool, 1),
        (tf.bool, [1, 0]),
        (tf.bool, np.array([0.0, 1.0])),
        (tf.float32, True),
        (tf.float32, [True, False]),
        (tf.float32, np.array([1, 2.5], object)),
        (tf.int32, np.empty(0)),
        (tf.complex64, 1.5),
        (tf.int32, np.array([2, 3], tf.bfloat16.numpy)),
        (tf.bfloat16, np.array([2, 3])),
    ],
)
def test_values_that_the_dtype_holds_are_taken(dtype: Any, value: Any) -> None:
    found = fed(dtype, value)
    assert found.dtype == dtype.numpy
    assert np.array_equal(found, np.asarray(value, dtype.numpy))


@pytest.mark.parametrize(
    ("dtype", "value", "lost"),
    [
        (tf.uint8, np.array([1, 300]), "300"),
        (tf.uint8, np.array([-1]), "-1"),
        (tf.int32, np.array([2**40]), str(2**40)),
        (tf.int64, np.uint64(2**63), str(2**63)),
        (tf.int32, np.array([1.0, 1.5]), "1.5"),
        (tf.int32, 1.5, "1.5"),
        (tf.int32, np.nan, "nan"),
        (tf.bool, np.array([0.5]), "0.5"),
        (tf.bool, 2, "2"),
        (tf.int32, np.array([2.5], tf.bfloat16.numpy), "2.5"),
    ],
)
def test_a_value_that_the_dtype_does_not_hold_is_refused(dtype: Any, value: Any, lost: str) -> None:
    message = rf"^Placeholder 'x': fed value {lost} of dtype \w+ given; {dtype.name} does not hold it: .*astype"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        fed(dtype, value)


@pytest.mark.parametrize("value", ["1.5", ["a"], None, [None], 1 + 2j, np.array([1j])])
def test_what_is_no_real_number_is_refused(value: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^Placeholder 'x': fed value .*must be float32"):
        fed(tf.float32, value)


@pytest.mark.filterwarnings("error")
def test_a_number_beyond_the_range_of_a_floating_dtype_is_infinite() -> None:
    assert fed(tf.float16, 1e6) == np.inf
    assert fed(tf.float32, np.array([-1e300])) == -np.inf


def test_a_tuple_of_tensors_is_fed_by_a_tuple_of_values() -> None:
    """As the state of a recurrent network is, from one run to the next."""
    with tf.Graph().as_default(), tf.Session() as session:
        state = tf.nn.rnn_cell.LSTMStateTuple(tf.zeros([2]), tf.zeros([2]))
        further = (tf.placeholder(tf.int32, []), tf.sparse_placeholder(tf.float32))
        read = (state.c + 1.0, state.h - 1.0, further[0], tf.sparse_tensor_to_dense(further[1]))
        sparse = tf.SparseTensorValue([[0]], [4.0], [2])
        found = session.run(read, {state: session.run(state), further: (7, sparse)})
        for _ in range(2):
            found = session.run(read, {(state, further): [tuple(found[:2]), (found[2], sparse)]})
        assert [np.asarray(value).tolist() for value in found] == [[3, 3], [-3, -3], 7, [4, 0]]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"fed with shape \(3,\); it must be compatible"):
            session.run(read, {state: (np.ones(3), np.ones(2)), further: (7, sparse)})
