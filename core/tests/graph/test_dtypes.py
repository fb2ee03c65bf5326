"""What equals a dtype, and arrays as constants of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.mark.parametrize("same", ["float32", 1, float, np.float32, np.dtype("float32")])
def test_a_dtype_equals_what_stands_for_it(same: Any) -> None:
    assert tf.float32 == same
    assert same == tf.float32
    assert tf.float64 != same


@pytest.mark.parametrize("other", [None, "no dtype", 3.5, [1], np.float64, "float64"])
def test_a_dtype_does_not_equal_what_stands_for_no_dtype_or_another_one(other: Any) -> None:
    assert tf.float32 != other


@pytest.mark.parametrize(
    ("value", "dtype", "held"),
    [
        (np.array([1.0, 2.0]), tf.int32, [1, 2]), (np.array([0.0, 1.0]), tf.bool, [False, True]),
        (np.array([True]), tf.int32, [1]), (np.float64(3.0), tf.int32, 3),
    ],
)  # fmt: skip
def test_an_array_becomes_a_constant_of_a_dtype_that_holds_its_values(value: Any, dtype: Any, held: Any) -> None:
    assert tf.constant(value, dtype).op.attrs["value"].tolist() == held


@pytest.mark.parametrize(
    ("value", "dtype"), [(np.array([1.5]), tf.int32), (np.array([300]), tf.uint8), (np.float32(0.5), tf.bool)]
)
def test_an_array_becomes_no_constant_of_a_dtype_that_loses_values(value: Any, dtype: Any) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=rf"{dtype.name} does not hold it: .*value\.astype\('{dtype.name}'\)"
    ):
        tf.constant(value, dtype)
