"""Ops of com.microsoft on quantized numbers: products, sums, an LSTM with weights of 8 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto

from timberframe_onnx.families import recurrent
from timberframe_onnx.families.quantization import dequantize, dynamically_quantized, numbers, quantize, quantized
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import MICROSOFT, translates
from timberframe_onnx.translation.values import Tensor, Value, element_type


@translates("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT, takes_coded=True)
def _linear(node: Node, x: Value, scale: Tensor, zero: Value = None) -> Value:
    """They are those of ONNX, which come with more element types here."""
    return (quantize if node.op == "QuantizeLinear" else dequantize)(node, x, scale, zero)


@translates("DynamicQuantizeMatMul", domain=MICROSOFT)
def _dynamic_matmul(
    node: Node, a: Tensor, b: Tensor, scale: Tensor, zero: Tensor = None, bias: Tensor = None
) -> Tensor:
    codes, a_scale, a_zero = dynamically_quantized(a)
    return _to_float(codes, b, a_scale, scale, a_zero, zero, bias)


@translates("MatMulIntegerToFloat", domain=MICROSOFT)
def _integer_to_float(
    node: Node,
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero: Any = None,
    b_zero: Any = None,
    bias: Any = None,
) -> Tensor:
    return _to_float(a, b, a_scale, b_scale, a_zero, b_zero, bias)


def _to_float(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, a_zero: Any, b_zero: Any, bias: Any) -> Tensor:
    x, y = numbers(a, tf.int32), numbers(b, tf.int32)
    x = x if a_zero is None else x - numbers(a_zero, tf.int32)
    y = y if b_zero is None else y - numbers(b_zero, tf.int32)
    made = tf.cast(tf.matmul(x, y), a_scale.dtype) * a_scale * b_scale
    return made if bias is None else made + bias


def _enter_binary(op: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    @translates(op, domain=MICROSOFT)
    def _binary(
        node: Node,
        a: Value,
        a_scale: Tensor,
        a_zero: Any,
        b: Value,
        b_scale: Tensor,
        b_zero: Any,
        scale: Tensor,
        zero: Any = None,
    ) -> Value:
        made = function(_real(a, a_scale, a_zero), _real(b, b_scale, b_zero))
        return _requantized(made, scale, zero, element_type(a))


def _real(x: Value, scale: Tensor, zero: Value) -> Tensor:
    values = numbers(x)
    return (values if zero is None else values - numbers(zero)) * scale


def _requantized(x: Tensor, scale: Tensor, zero: Value, otherwise: int) -> Value:
    element = otherwise if zero is None else element_type(zero)
    return quantized(x / scale, None if zero is None else numbers(zero), element)


_enter_binary("QLinearAdd", tf.add)
_enter_binary("QLinearMul", tf.multiply)


@translates("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def _activation(node: Node, x: Value, x_scale: Tensor, x_zero: Any, scale: Tensor, zero: Any = None) -> Value:
    real = _real(x, x_scale, x_zero)
    made = tf.sigmoid(real) if node.op == "QLinearSigmoid" else tf.nn.leaky_relu(real, node.get("alpha", 0.01))
    return _requantized(made, scale, zero, element_type(x))


@translates("QLinearGlobalAveragePool", domain=MICROSOFT)
def _global_average(node: Node, x: Value, x_scale: Tensor, x_zero: Any, scale: Tensor, zero: Any) -> Value:
    real = _real(x, x_scale, x_zero)
    rank = node.rank(real)
    axes = list(range(1, rank - 1)) if node.get("channels_last", 0) else list(range(2, rank))
    return _requantized(tf.reduce_mean(real, axes, keepdims=True), scale, zero, element_type(x))


@translates("QLinearConcat", domain=MICROSOFT)
def _concat(node: Node, scale: Tensor, zero: Tensor, *inputs: Tensor) -> Value:
    parts = [_real(inputs[i], inputs[i + 1], inputs[i + 2]) for i in range(0, len(inputs), 3)]
    return _requantized(tf.concat(parts, node.get("axis")), scale, zero, TensorProto.UINT8)


@translates("DynamicQuantizeLSTM", domain=MICROSOFT)
def _dynamic_lstm(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Any,
    lengths: Any,
    h: Any,
    c: Any,
    peephole: Any,
    w_scale: Tensor,
    w_zero: Tensor,
    r_scale: Tensor,
    r_zero: Tensor,
) -> Any:
    """Weights [directions, inputs, gates] of 8 bits; what they are multiplied by is quantized at each step, too."""

    def real(weights: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
        by_gate = [scale.shape.as_list()[0], 1, -1]
        values = numbers(weights, tf.float32) - tf.reshape(numbers(zero, tf.float32), by_gate)
        return tf.transpose(values * tf.reshape(scale, by_gate), [0, 2, 1])

    def rounded(values: Tensor) -> Tensor:
        codes, scale, zero = dynamically_quantized(values)
        return (numbers(codes) - numbers(zero)) * scale

    return recurrent.lstm(
        node, x, real(w, w_scale, w_zero), real(r, r_scale, r_zero), bias, lengths, h, c, peephole, rounded
    )
