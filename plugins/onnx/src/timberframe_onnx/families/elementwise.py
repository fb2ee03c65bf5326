"""Ops on each element by itself: arithmetic, comparison, logic, bits, rounding, functions of one number."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": tf.abs,
    "Acos": tf.acos,
    "Acosh": tf.acosh,
    "Asin": tf.asin,
    "Asinh": tf.asinh,
    "Atan": tf.atan,
    "Atanh": tf.atanh,
    "Ceil": tf.ceil,
    "Cos": tf.cos,
    "Cosh": tf.cosh,
    "Erf": tf.erf,
    "Exp": tf.exp,
    "Floor": tf.floor,
    "IsNaN": tf.is_nan,
    "Log": tf.log,
    "Neg": tf.negative,
    "Not": tf.logical_not,
    "Reciprocal": tf.reciprocal,
    "Round": tf.round,
    "Sigmoid": tf.sigmoid,
    "Sin": tf.sin,
    "Sinh": tf.sinh,
    "Sqrt": tf.sqrt,
    "Tan": tf.tan,
    "Tanh": tf.tanh,
    "BitwiseNot": tf.bitwise.invert,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": tf.add,
    "Sub": tf.subtract,
    "Mul": tf.multiply,
    "And": tf.logical_and,
    "Or": tf.logical_or,
    "Xor": tf.math.logical_xor,
    "Equal": tf.equal,
    "Greater": tf.greater,
    "GreaterOrEqual": tf.greater_equal,
    "Less": tf.less,
    "LessOrEqual": tf.less_equal,
    "BitwiseAnd": tf.bitwise.bitwise_and,
    "BitwiseOr": tf.bitwise.bitwise_or,
    "BitwiseXor": tf.bitwise.bitwise_xor,
}


def scalar(value: Any, like: Tensor) -> Tensor:
    """Returns a constant in the dtype of another tensor."""
    return tf.constant(np.array(value).astype(like.dtype.numpy), like.dtype)


def _enter(table: dict[str, Callable[..., Tensor]]) -> None:
    for op, function in table.items():
        translates(op)(lambda node, *inputs, function=function: function(*inputs))


_enter(UNARY)
_enter(BINARY)


@translates("Div")
def _div(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return tf.truncatediv(a, b) if a.dtype.is_integer else tf.divide(a, b)


_WITH_TRUNCATED_MOD = (tf.int32, tf.int64, tf.float32, tf.float64)
"""Dtypes of TruncateMod; others, uint64 beyond 2^63 apart, are computed in a wider one exactly."""


@translates("Mod")
def _mod(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if not node.get("fmod", 0):
        return tf.floormod(a, b)
    if a.dtype in _WITH_TRUNCATED_MOD:
        return tf.truncatemod(a, b)
    wide = tf.float32 if a.dtype.is_floating else tf.int64
    return tf.cast(tf.truncatemod(tf.cast(a, wide), tf.cast(b, wide)), a.dtype)


@translates("Pow")
def _pow(node: Node, base: Tensor, exponent: Tensor) -> Tensor:
    """The result has the type of the base; integers to the power of fractions are computed in float64."""
    if base.dtype.is_integer and exponent.dtype.is_floating:
        return tf.cast(tf.pow(tf.cast(base, tf.float64), tf.cast(exponent, tf.float64)), base.dtype)
    if base.dtype.is_unsigned:
        wide = tf.int64
        return tf.cast(tf.pow(tf.cast(base, wide), tf.cast(exponent, wide)), base.dtype)
    return tf.pow(base, tf.cast(exponent, base.dtype))


@translates("Sign")
def _sign(node: Node, x: Tensor) -> Tensor:
    if x.dtype.is_unsigned:
        return tf.cast(tf.not_equal(x, scalar(0, x)), x.dtype)
    return tf.sign(x)


@translates("Max")
def _max(node: Node, *inputs: Tensor) -> Tensor:
    return reduce(tf.maximum, inputs)


@translates("Min")
def _min(node: Node, *inputs: Tensor) -> Tensor:
    return reduce(tf.minimum, inputs)


@translates("Sum")
def _sum(node: Node, *inputs: Tensor) -> Tensor:
    return reduce(tf.add, inputs)


@translates("Mean")
def _mean(node: Node, *inputs: Tensor) -> Tensor:
    return tf.divide(reduce(tf.add, inputs), scalar(len(inputs), inputs[0]))


@translates("IsInf")
def _is_inf(node: Node, x: Tensor) -> Tensor:
    infinite = tf.is_inf(x)
    if not node.get("detect_negative", 1):
        infinite = tf.logical_and(infinite, tf.greater(x, scalar(0, x)))
    if not node.get("detect_positive", 1):
        infinite = tf.logical_and(infinite, tf.less(x, scalar(0, x)))
    return infinite


@translates("Clip")
def _clip(node: Node, x: Tensor, low: Tensor = None, high: Tensor = None) -> Tensor:
    if low is not None:
        x = tf.maximum(x, tf.reshape(low, []))
    if high is not None:
        x = tf.minimum(x, tf.reshape(high, []))
    return tf.identity(x)


@translates("BitShift")
def _bit_shift(node: Node, x: Tensor, by: Tensor) -> Tensor:
    """Shifts by less than 0 or by all bits and more leave nothing but the sign of what is shifted right."""
    bits = 8 * x.dtype.size
    inside = tf.logical_and(by >= scalar(0, by), by < scalar(bits, by))
    shifted = tf.where_v2(inside, by, scalar(0, by))
    if node.get("direction") == "LEFT":
        return tf.where_v2(inside, tf.bitwise.left_shift(x, shifted), tf.zeros_like(x))
    sign = tf.zeros_like(x) if x.dtype.is_unsigned else tf.where_v2(x < scalar(0, x), scalar(-1, x), scalar(0, x))
    return tf.where_v2(inside, tf.bitwise.right_shift(x, shifted), sign)


@translates("Where", moves=True)
def _where(node: Node, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return tf.where_v2(condition, x, y)


@translates("CumSum")
def _cumsum(node: Node, x: Tensor, axis: Tensor) -> Tensor:
    return tf.cumsum(x, tf.reshape(axis, []), bool(node.get("exclusive", 0)), bool(node.get("reverse", 0)))


@translates("CumProd")
def _cumprod(node: Node, x: Tensor, axis: Tensor) -> Tensor:
    return tf.cumprod(x, tf.reshape(axis, []), bool(node.get("exclusive", 0)), bool(node.get("reverse", 0)))
