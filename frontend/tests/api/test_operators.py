"""Python's operators on tensors and variables: which ops they build."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (operator.add, "AddV2"),
        (operator.sub, "Sub"),
        (operator.mul, "Mul"),
        (operator.truediv, "RealDiv"),
        (operator.floordiv, "FloorDiv"),
        (operator.mod, "FloorMod"),
        (operator.pow, "Pow"),
        (operator.lt, "Less"),
        (operator.le, "LessEqual"),
        (operator.gt, "Greater"),
        (operator.ge, "GreaterEqual"),
    ],
)
@pytest.mark.parametrize("make", [tf.constant, tf.Variable], ids=["tensor", "variable"])
def test_operator_builds_its_op(function: Callable[..., Any], op: str, make: Callable[..., Any]) -> None:
    x = make([1.0, 2.0])
    assert function(x, 3).op.type == op
    assert function(x, x).op.type == op
    assert function(x, np.float32(3)).dtype in (tf.float32, tf.bool)


@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_reflected_operator_keeps_the_order(function: Callable[..., Any]) -> None:
    x = tf.constant([1.0, 2.0])
    for left in (2, np.array([3.0, 4.0], np.float32)):
        result = function(left, x)
        assert result.op.inputs[1] is x


def test_integers_divide_as_floats() -> None:
    assert (tf.constant(3) / 2).dtype is tf.float64
    assert (tf.constant(3, tf.int8) / tf.constant(2, tf.int8)).dtype is tf.float32


def test_strings_concatenate() -> None:
    assert (tf.constant("a") + "b").op.type == "Add"


def test_logic_depends_on_the_dtype() -> None:
    assert (tf.constant(True) & False).op.type == "LogicalAnd"
    assert (tf.constant(6) & 3).op.type == "BitwiseAnd"
    assert (~tf.constant(True)).op.type == "LogicalNot"
    assert (~tf.constant(6)).op.type == "Invert"


def test_invert_refuses_floats() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="attr T is float32; it must be one of int8"):
        ~tf.constant(1.0)


def test_absolute_value_of_complex_numbers_is_real() -> None:
    assert abs(tf.constant(3 + 4j)).dtype is tf.float64


def test_matrix_product_of_batches() -> None:
    a = tf.placeholder(tf.float32, [5, 2, 3])
    assert (a @ tf.placeholder(tf.float32, [3, 4])).static_shape == (5, 2, 4)
    assert (tf.placeholder(tf.float32, [2, 3]) @ tf.placeholder(tf.float32, [3, 4])).op.type == "MatMul"


def test_dtypes_do_not_mix() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be float32"):
        tf.constant(1.0) + tf.constant(1)


def test_value_takes_the_tensors_dtype_or_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be int32"):
        tf.constant(1) + 1.5
