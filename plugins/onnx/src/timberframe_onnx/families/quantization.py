"""Numbers as integers with scale and zero point: quantize, dequantize, and products of quantized numbers."""

from __future__ import annotations

from onnx import TensorProto

from timberframe_onnx.elements import CODED, NATIVE, is_integer
from timberframe_onnx.families.casts import cast, decoded, encoded
from timberframe_onnx.families.elementwise import scalar
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Coded, Tensor, Value, element_type

RANGES = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.INT32: (-(2**31), 2**31 - 1),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT2: (0, 3),
    TensorProto.INT2: (-2, 1),
}


def spread(node: Node, parameter: Tensor, x: Tensor) -> Tensor:
    """Returns a scale or zero point in a shape that suits x: one for all, one along an axis, or one for each block."""
    rank = node.rank(parameter, "scale")
    if rank == 0 or (rank == 1 and parameter.shape.as_list() == [1] and not node.get("block_size", 0)):
        return tf.reshape(parameter, [])
    outer = node.rank(x)
    axis = node.get("axis", 1)
    node.require(-outer <= axis < outer, f"its axis is {axis}, and its input has rank {outer}")
    axis %= outer
    block = node.get("block_size", 0)
    if block:
        size = shape_parts(x)[axis]
        repeated = tf.repeat(parameter, block, axis=axis)
        return repeated[tuple(slice(0, size) if i == axis else slice(None) for i in range(outer))]
    return tf.reshape(parameter, [-1 if i == axis else 1 for i in range(outer)])


def numbers(value: Value, dtype: object = tf.float32) -> Tensor:
    """Returns quantized numbers in a dtype that computes with them."""
    return decoded(value, dtype) if isinstance(value, Coded) else tf.cast(value, dtype)


def quantized(scaled: Tensor, zero: Tensor | None, element: int, saturate: bool = True) -> Value:
    """Returns numbers that have been divided by their scale as elements of a type, rounded to even, within its range.

    zero: the zero point, in the dtype of `scaled`.
    """
    if element in CODED and not is_integer(element):
        return encoded(scaled if zero is None else scaled + zero, element, saturate)
    rounded = tf.round(scaled)
    rounded = rounded if zero is None else rounded + zero
    low, high = RANGES[element]
    inside = tf.minimum(tf.maximum(rounded, scalar(low, rounded)), scalar(high, rounded))
    return encoded(inside, element) if element in CODED else tf.cast(inside, NATIVE[element])


@translates("QuantizeLinear", takes_coded=True)
def quantize(node: Node, x: Tensor, scale: Tensor, zero: Value = None) -> Value:
    """Returns x divided by a scale, rounded, in the type of the zero point or of the node's output_dtype."""
    element = element_type(zero) if zero is not None else node.get("output_dtype", 0) or TensorProto.UINT8
    factor = spread(node, numbers(scale, x.dtype) if isinstance(scale, Coded) else scale, x)
    precision = node.get("precision", 0)
    if precision:
        x, factor = cast(x, precision), cast(factor, precision)
    elif x.dtype != factor.dtype:
        x, factor = tf.cast(x, tf.float32), tf.cast(factor, tf.float32)
    scaled = tf.cast(tf.divide(x, factor), tf.float64 if x.dtype == tf.float64 else tf.float32)
    point = None if zero is None else spread(node, numbers(zero, scaled.dtype), x)
    return quantized(scaled, point, element, bool(node.get("saturate", 1)))


@translates("DequantizeLinear", takes_coded=True)
def dequantize(node: Node, x: Value, scale: Value, zero: Value = None) -> Value:
    """Returns the numbers that quantized ones stand for."""
    out = node.get("output_dtype", 0) or element_type(scale)
    wide = tf.int32 if zero is not None and element_type(zero) == TensorProto.INT32 else tf.float32
    values = numbers(x, wide)
    if zero is not None:
        values = values - spread(node, numbers(zero, wide), values)
    factor = spread(node, numbers(scale, tf.float32), values)
    return cast(tf.cast(values, tf.float32) * factor, out)


@translates("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return dynamically_quantized(x)


def dynamically_quantized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns x as uint8 with the scale and zero point by which the range of its elements and 0 just fits."""
    zero = tf.constant(0.0)
    low, high = tf.minimum(tf.reduce_min(x), zero), tf.maximum(tf.reduce_max(x), zero)
    scale = (high - low) / tf.constant(255.0)
    scale = tf.where_v2(tf.equal(scale, zero), tf.constant(1.0), scale)
    point = tf.minimum(tf.maximum(tf.round((zero - low) / scale), zero), tf.constant(255.0))
    return quantized(x / scale, point, TensorProto.UINT8), scale, tf.cast(point, tf.uint8)


def _columns(parameter: Tensor, rank: int) -> Tensor:
    """Returns a zero point or scale for rows of the first factor, so that it suits a matrix."""
    return tf.expand_dims(parameter, -1) if rank == 1 and parameter.shape.as_list() != [1] else parameter


@translates("MatMulInteger", takes_coded=True)
def _matmul_integer(node: Node, a: Value, b: Value, a_zero: Value = None, b_zero: Value = None) -> Tensor:
    x, y = numbers(a, tf.int32), numbers(b, tf.int32)
    if a_zero is not None:
        point = numbers(a_zero, tf.int32)
        x = x - _columns(point, node.rank(point))
    if b_zero is not None:
        y = y - numbers(b_zero, tf.int32)
    return tf.matmul(x, y)


@translates("QLinearMatMul", takes_coded=True)
def _qlinear_matmul(
    node: Node,
    a: Value,
    a_scale: Tensor,
    a_zero: Value,
    b: Value,
    b_scale: Tensor,
    b_zero: Value,
    scale: Tensor,
    zero: Value,
) -> Value:
    a_point = numbers(a_zero, tf.int32)
    x = numbers(a, tf.int32) - _columns(a_point, node.rank(a_point))
    y = numbers(b, tf.int32) - numbers(b_zero, tf.int32)
    total = tf.cast(tf.matmul(x, y), tf.float32)
    factor = tf.cast(_columns(a_scale, node.rank(a_scale)), tf.float32) * tf.cast(b_scale, tf.float32)
    out_scale = tf.cast(_columns(scale, node.rank(scale)), tf.float32)
    point = numbers(zero, tf.float32)
    return quantized(total * factor / out_scale, _columns(point, node.rank(point)), element_type(zero))


def by_channel(parameter: Tensor, node: Node, rank: int) -> Tensor:
    """Returns a parameter of a filter's outputs in the shape of the filter: one for all, or one for each output."""
    if node.rank(parameter) == 0:
        return parameter
    return tf.reshape(parameter, [-1] + [1] * (rank - 1))
