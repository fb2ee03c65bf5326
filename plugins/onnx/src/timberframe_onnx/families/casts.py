"""Conversions between element types, those that are held as codes included."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from timberframe_onnx.elements import CODED, NATIVE, code_values, is_integer, name_of
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Coded, Tensor, Value, contents, element_type

_NUMBERS = (tf.float32, tf.float64, tf.int32, tf.int64)
"""Dtypes that texts are read as."""


def cast(value: Value, element: int, saturate: bool = True, round_mode: str = "up") -> Value:
    """Returns a tensor with its elements converted to another element type.

    saturate: what is beyond a float8 type becomes its greatest number, else infinity, or NaN where it has none.
    round_mode: "up", "down" or "nearest", for powers of two (FLOAT8E8M0).
    """
    if element_type(value) == element:
        return value
    if isinstance(value, Coded):
        value = decoded(value)
    if element in CODED:
        return encoded(value, element, saturate, round_mode)
    dtype = NATIVE[element]
    if dtype == tf.string:
        return tf.as_string(value)
    if value.dtype == tf.string:
        wide = dtype if dtype in _NUMBERS else tf.int64 if dtype.is_integer else tf.float64
        return tf.cast(tf.string_to_number(value, wide), dtype)
    return tf.cast(value, dtype)


def decoded(value: Coded, dtype: object = tf.float32) -> Tensor:
    """Returns the values that codes stand for, in float32 (which holds them all) or another dtype."""
    table = code_values(value.element)
    return tf.cast(tf.gather(tf.constant(table), tf.cast(value.codes, tf.int32)), dtype)


def encoded(x: Tensor, element: int, saturate: bool = True, round_mode: str = "up") -> Coded:
    """Returns the codes of numbers in an element type: rounded to the nearest, ties to even, for floats."""
    if is_integer(element):
        mask = tf.constant((1 << CODED[element][1]) - 1)
        return Coded(tf.cast(tf.bitwise.bitwise_and(tf.cast(x, tf.int32), mask), tf.uint8), element)
    x = tf.cast(x, tf.float32)
    bits = tf.bitcast(x, tf.int32)
    if element == TensorProto.FLOAT8E8M0:
        return Coded(_powers_of_two(bits, saturate, round_mode), element)
    return Coded(_small_floats(x, bits, element, saturate), element)


def _powers_of_two(bits: Tensor, saturate: bool, round_mode: str) -> Tensor:
    """Returns the exponent of each number, rounded; signs are dropped."""
    exponent = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, tf.constant(23)), tf.constant(255))
    fraction = tf.bitwise.bitwise_and(bits, tf.constant(0x7FFFFF))
    if round_mode == "up":
        exponent_up = tf.cast(fraction > 0, tf.int32)
    elif round_mode == "nearest":
        exponent_up = tf.cast(fraction >= tf.where_v2(exponent > 0, 0x400000, 0x400001), tf.int32)
    else:
        exponent_up = tf.zeros_like(exponent)
    greatest = tf.constant(254 if saturate else 255)
    rounded = tf.minimum(exponent + exponent_up, greatest)
    return tf.cast(tf.where_v2(tf.equal(exponent, 255), 255, rounded), tf.uint8)


def _small_floats(x: Tensor, bits: Tensor, element: int, saturate: bool) -> Tensor:
    """Returns the codes of floats with few bits.

    A code without its sign is (exponent - least exponent) * 2^p + m, where p bits of fraction are held and m is the
    number in units of its last bit; so a fraction that is rounded up to the next power of two carries by itself.
    """
    info: Any = ml_dtypes.finfo(CODED[element][0])  # type: ignore[no-untyped-call] # it has no types
    half = 1 << (CODED[element][1] - 1)
    values = code_values(element)
    finite = np.flatnonzero(np.isfinite(values[:half]))
    greatest = int(finite.max())
    nan = np.flatnonzero(np.isnan(values))
    infinity = np.flatnonzero(np.isposinf(values))
    size = tf.minimum(tf.abs(x), scalar(2 * values[greatest], x))
    exponent = tf.bitwise.bitwise_and(
        tf.bitwise.right_shift(tf.bitcast(size, tf.int32), tf.constant(23)), tf.constant(255)
    )
    exponent = tf.minimum(tf.maximum(exponent - 127, int(info.minexp)), 127)
    unit = tf.bitcast(tf.bitwise.left_shift(exponent - info.nmant + 127, tf.constant(23)), tf.float32)
    steps = tf.cast(tf.round(size / unit), tf.int32)
    code = (exponent - int(info.minexp)) * (1 << info.nmant) + steps
    unsigned_zero = bool(nan.size) and int(nan[0]) == half
    if saturate or not (nan.size or infinity.size):
        code = tf.minimum(code, greatest)
    beyond = code > greatest
    negative = tf.less(bits, 0)
    signed = code + half * tf.cast(tf.logical_and(negative, code > 0) if unsigned_zero else negative, tf.int32)
    if not saturate and (nan.size or infinity.size):
        over = int(infinity[0]) + half * tf.cast(negative, tf.int32) if infinity.size else int(nan[0])
        signed = tf.where_v2(beyond, over, signed)
    if nan.size:
        last = nan[nan < half][-1] if np.any(nan < half) else nan[0]
        quiet = int(last) if element != TensorProto.FLOAT8E5M2 else 0x7E
        signed = tf.where_v2(tf.is_nan(x), quiet, signed)
    else:
        signed = tf.where_v2(tf.is_nan(x), half, signed)
    return tf.cast(signed, tf.uint8)


def _options(node: Node) -> dict[str, object]:
    return {"saturate": bool(node.get("saturate", 1)), "round_mode": node.get("round_mode", "up")}


def _target(node: Node, element: int) -> int:
    node.require(element in NATIVE or element in CODED, f"it converts to {name_of(element)}, which is no element type")
    return element


@translates("Cast", takes_coded=True)
def _cast(node: Node, x: Value) -> Value:
    return cast(x, _target(node, node.get("to")), **_options(node))  # type: ignore[arg-type] # by the keys' types


@translates("CastLike", takes_coded=True)
def _cast_like(node: Node, x: Value, like: Value) -> Value:
    return cast(x, element_type(like), **_options(node))  # type: ignore[arg-type] # by the keys' types


@translates("BitCast", takes_coded=True)
def _bit_cast(node: Node, x: Value) -> Value:
    element = _target(node, node.get("to"))
    tensor = contents(x)
    if tensor.dtype == tf.bool:
        tensor = tf.cast(tensor, tf.uint8)
    if element == TensorProto.BOOL:
        return tf.cast(tf.bitcast(tensor, tf.uint8), tf.bool)
    if element in CODED:
        return Coded(tf.bitcast(tensor, tf.uint8), element)
    return tf.bitcast(tensor, NATIVE[element])
