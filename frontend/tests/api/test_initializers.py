"""Initializers that need no random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

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
