"""Operators of tensors, and the tf.* functions of binary ops: which nodes they add."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def nodes(build: Callable[..., Any], *dtypes: Any) -> list[str]:
    """Op types, with the dtype of the last, that `build` adds to placeholders of these dtypes."""
    with tf.Graph().as_default() as graph:
        build(*(tf.placeholder(d, [2]) for d in dtypes))
        made = [op for op in graph.get_operations() if op.type not in ("Placeholder", "Const")]
        return [op.type for op in made] + ([made[-1].outputs[0].dtype.name] if made else [])


@pytest.mark.parametrize(
    ("build", "dtype", "expected"),
    [
        (lambda x: x + 1, "float32", ["AddV2", "float32"]),
        (lambda x: x + "a", "string", ["Add", "string"]),
        (lambda x: 1 - x, "int32", ["Sub", "int32"]),
        (lambda x: x / 2, "int32", ["Cast", "Cast", "RealDiv", "float64"]),
        (lambda x: x / x, "int8", ["Cast", "Cast", "RealDiv", "float32"]),
        (lambda x: 7 / x, "float64", ["RealDiv", "float64"]),
        (lambda x: x // 2, "int64", ["FloorDiv", "int64"]),
        (lambda x: x % 3, "int32", ["FloorMod", "int32"]),
        (lambda x: 2.0**x, "float32", ["Pow", "float32"]),
        (lambda x: x <= 3, "uint8", ["LessEqual", "bool"]),
        (lambda x: x & True, "bool", ["LogicalAnd", "bool"]),
        (lambda x: x & 3, "uint8", ["BitwiseAnd", "uint8"]),
        (lambda x: x ^ True, "bool", ["LogicalOr", "LogicalAnd", "LogicalNot", "LogicalAnd", "bool"]),
        (lambda x: -x, "int32", ["Neg", "int32"]),
        (lambda x: tf.div(x, 2), "int32", ["FloorDiv", "int32"]),
        (lambda x: tf.divide(x, 2), "int32", ["Cast", "Cast", "RealDiv", "float64"]),
        (lambda x: tf.where(x, [1, 2], [3, 4]), "bool", ["Select", "int32"]),
        (lambda x: tf.where_v2(x, 1, [3, 4]), "bool", ["SelectV2", "int32"]),
        (lambda x: tf.cast(x, tf.float32), "float32", []),
        (lambda x: tf.to_float(x), "int32", ["Cast", "float32"]),
        (lambda x: tf.clip_by_value(x, 0, 1), "float32", ["Minimum", "Maximum", "float32"]),
        (lambda x: tf.saturate_cast(x, tf.uint8), "int32", ["Minimum", "Maximum", "Cast", "uint8"]),
        (lambda x: tf.complex(x, 1.0), "float32", ["Complex", "complex64"]),
        (lambda x: tf.add_n([x]), "float32", []),
        (lambda x: tf.bitwise.left_shift(x, 1), "int32", ["LeftShift", "int32"]),
        (lambda x: np.ones(2, np.float32) * x, "float32", ["Mul", "float32"]),
    ],
)
def test_expression_adds_tensorflows_nodes(build: Callable[..., Any], dtype: str, expected: list[str]) -> None:
    assert nodes(build, dtype) == expected


def test_equality_of_tensors_is_identity() -> None:
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
        assert (x == x) is True
        assert (x != y) is True


def test_left_operand_becomes_a_constant_of_the_tensors_dtype() -> None:
    with tf.Graph().as_default():
        difference: Any = tf.subtract(3, tf.placeholder(tf.int8))
        assert difference.op.inputs[0].dtype is tf.int8


def test_operand_that_would_lose_its_fraction_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match=r"1\.5"):
        tf.add(tf.placeholder(tf.int32), 1.5)


def test_division_of_different_dtypes_names_both() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="int32 and float32"):
        tf.truediv(tf.placeholder(tf.int32), tf.placeholder(tf.float32))


def test_where_takes_both_values_or_neither() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="both or neither"):
        tf.where(tf.placeholder(tf.bool), x=1)


def test_clip_bounds_may_not_add_to_the_shape() -> None:
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="must not add"):
        tf.clip_by_value(tf.placeholder(tf.float32, [2]), np.zeros((3, 2), np.float32), 1.0)


def test_saturate_cast_keeps_large_floats_inside_int32() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([1e20, -1e20, 3.5])
        assert session.run(tf.saturate_cast(x, tf.int32)).tolist() == [2147483520, -2147483648, 3]


@pytest.mark.parametrize(
    ("given", "wanted", "nearest"),
    [
        (np.float64, tf.int64, 2**63 - 2**10),
        (np.float32, tf.int64, 2**63 - 2**39),
        (np.float64, tf.uint64, 2**64 - 2**11),
        (np.float32, tf.uint64, 2**64 - 2**40),
        (np.float16, tf.int64, 65504),
    ],
)
def test_saturate_cast_gives_the_largest_number_that_fits(given: Any, wanted: Any, nearest: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = np.array([np.inf, min(2.0**70, float(np.finfo(given).max)), -np.inf, 7], given)
        found = session.run(tf.saturate_cast(x, wanted)).tolist()
    least = max(int(wanted.min), int(np.finfo(given).min))
    assert found == [nearest, nearest, least, 7]
