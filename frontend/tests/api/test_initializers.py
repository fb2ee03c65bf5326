"""Initializers that need no random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

from ..conftest import reports_memory, resident_bytes

pytestmark = pytest.mark.usefixtures("graph")


def value(tensor: tf.Tensor) -> Any:
    return np.asarray(tf.get_static_value(tensor)).tolist()


def test_zeros_and_ones_take_the_dtype_asked_for() -> None:
    assert tf.zeros_initializer()([2], tf.int32).dtype is tf.int32
    assert value(tf.ones_initializer()([2], tf.bool)) == [True, True]
    assert value(tf.zeros_initializer()([2], tf.string)) == [b"", b""]


def test_constant_fills_or_lists() -> None:
    assert value(tf.constant_initializer(3)([2, 2])) == [[3, 3], [3, 3]]
    assert value(tf.constant_initializer([1, 2, 3, 4])([2, 2])) == [[1, 2], [3, 4]]


def test_constant_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has shape \(3,\); it must suit \(2, 2\)"):
        tf.constant_initializer([1, 2, 3])([2, 2])


def test_constant_with_verified_shape_must_have_it() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has shape \(4,\); it must suit \(2, 2\)"):
        tf.constant_initializer([1, 2, 3, 4], verify_shape=True)([2, 2])


def test_identity_is_a_matrix() -> None:
    assert value(tf.initializers.identity(2.0)([2, 3])) == [[2, 0, 0], [0, 2, 0]]


def test_unknown_size_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape is \(\?,\); every size must be known"):
        tf.zeros_initializer()([None])


def test_initializer_serves_a_variable() -> None:
    assert tf.Variable(lambda: tf.initializers.zeros()([3, 2])).shape.as_list() == [3, 2]


LARGE = [1 << 17]


@pytest.mark.parametrize(
    ("initializer", "name", "value"),
    [
        (tf.zeros_initializer(), "zeros", 0),
        (tf.ones_initializer(), "ones", 1),
        (tf.constant_initializer(0.5), "Const", 0.5),
    ],
)
def test_a_large_first_value_is_filled_by_the_run(
    initializer: Any, name: str, value: float, session: tf.Session
) -> None:
    made = tf.get_variable("v", LARGE, initializer=initializer).initial_value
    assert (made.op.type, made.op.name) == ("Fill", f"v/Initializer/{name}")
    np.testing.assert_array_equal(session.run(made), np.full(LARGE, value, np.float32))


@reports_memory
def test_graphs_hold_no_first_values_of_large_variables() -> None:
    before = resident_bytes()
    embedding = tf.get_variable("embedding", [1 << 20, 64], initializer=tf.zeros_initializer())  # 256 MiB
    rows = tf.nn.embedding_lookup(embedding, [1, 2])
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(rows))
    assert resident_bytes() - before < 1 << 25
