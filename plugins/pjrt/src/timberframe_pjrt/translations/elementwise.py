"""Ops that compute each element by itself, and their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from timberframe_pjrt.translations.table import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    in_float32,
    named,
    of_inputs,
    translation,
)
from timberframe_sdk import KernelNode

named({"Identity": jnp.asarray, "ZerosLike": jnp.zeros_like, "OnesLike": jnp.ones_like}, {"T": ALL})
named({"SelectV2": jnp.where}, {"T": ALL})
named(
    {
        "Add": jnp.add, "AddV2": jnp.add, "Sub": jnp.subtract, "Mul": jnp.multiply, "Neg": jnp.negative,
        "Square": jnp.square, "Maximum": jnp.maximum, "Minimum": jnp.minimum, "Abs": jnp.abs, "Sign": jnp.sign,
        "Less": jnp.less, "LessEqual": jnp.less_equal, "Greater": jnp.greater, "GreaterEqual": jnp.greater_equal,
    },
    {"T": NUMBERS},
)  # fmt: skip
named(
    {
        "Exp": jnp.exp, "Expm1": jnp.expm1, "Log": jnp.log, "Log1p": jnp.log1p,
        "Sqrt": jnp.sqrt, "Rsqrt": lax.rsqrt, "Reciprocal": jnp.reciprocal, "Inv": jnp.reciprocal, "Sin": jnp.sin,
        "Cos": jnp.cos, "Tan": jnp.tan, "Asin": jnp.arcsin, "Acos": jnp.arccos, "Atan": jnp.arctan,
        "Sinh": jnp.sinh, "Cosh": jnp.cosh, "Tanh": jnp.tanh, "Asinh": jnp.arcsinh, "Acosh": jnp.arccosh,
        "Atanh": jnp.arctanh, "Atan2": jnp.arctan2, "Sigmoid": jax.nn.sigmoid, "Erf": lax.erf,
        "Erfc": lax.erfc, "Ceil": jnp.ceil, "Floor": jnp.floor, "Rint": jnp.rint, "IsNan": jnp.isnan,
        "IsInf": jnp.isinf, "IsFinite": jnp.isfinite,
    },
    {"T": FLOATS},
)  # fmt: skip
for op, function in {"Softplus": jax.nn.softplus, "Softsign": jax.nn.soft_sign, "Selu": jax.nn.selu}.items():
    translation(op, {"T": FLOATS})(in_float32(of_inputs(function)))
named({"LogicalAnd": jnp.logical_and, "LogicalOr": jnp.logical_or, "LogicalNot": jnp.logical_not}, {})
named(
    {
        "BitwiseAnd": jnp.bitwise_and, "BitwiseOr": jnp.bitwise_or, "BitwiseXor": jnp.bitwise_xor,
        "Invert": jnp.invert,
    },
    {"T": INTEGERS},
)  # fmt: skip


@translation("Pow", {"T": FLOATS})
def power(node: KernelNode, x: Any, y: Any) -> Any:
    """Returns x ^ y.

    XLA's CPU takes subnormal numbers for zero, but for those of a power, which is then neither right nor that of zero.
    float16 is computed in float32, which has them all.
    """
    if node.device.is_cpu and x.dtype.name != "float16":
        x, y = _without_subnormals(x), _without_subnormals(y)
    return jnp.power(x, y)


def _without_subnormals(x: Any) -> Any:
    """Returns x with zeros, of the same sign, for subnormal numbers."""
    return jnp.where(jnp.abs(x) < jnp.finfo(x.dtype).tiny, jnp.copysign(jnp.zeros((), x.dtype), x), x)


@translation("Equal", {"T": ALL})
def equal(node: KernelNode, x: Any, y: Any) -> Any:
    """Returns which elements are equal; of shapes that do not broadcast, which an attr allows, that they are not."""
    differ = not node.outputs[0].shape and bool(x.shape or y.shape)
    return jnp.zeros((), bool) if differ else jnp.equal(x, y)


@translation("NotEqual", {"T": ALL})
def not_equal(node: KernelNode, x: Any, y: Any) -> Any:
    """Returns which elements differ; see `equal`."""
    return jnp.logical_not(equal(node, x, y))


@translation("RealDiv", {"T": FLOATS})
def real_div(node: KernelNode, x: Any, y: Any) -> Any:
    """Returns x / y; XLA would multiply by the reciprocal of a divisor that it sees being broadcast."""
    divisor = lax.optimization_barrier(jnp.broadcast_to(y, node.outputs[0].shape))
    return jnp.divide(x, divisor)


@translation("Select", {"T": ALL})
def select(node: KernelNode, condition: Any, x: Any, y: Any) -> Any:
    """Returns x where the condition holds, else y; one of a vector holds for whole rows."""
    shape = condition.shape + (1,) * (len(x.shape) - len(condition.shape))
    return jnp.where(jnp.reshape(condition, shape), x, y)


@translation("AddN", {"T": NUMBERS})
def add_n(node: KernelNode, *inputs: Any) -> Any:
    """Returns the sum, from the first input on."""
    total = jnp.asarray(inputs[0])
    for x in inputs[1:]:
        total = jnp.add(total, x)
    return total


@translation("SquaredDifference", {"T": NUMBERS})
@in_float32
def squared_difference(node: KernelNode, x: Any, y: Any) -> Any:
    """Returns (x - y) ^ 2."""
    return jnp.square(jnp.subtract(x, y))


@translation("ClipByValue", {"T": NUMBERS})
def clip_by_value(node: KernelNode, x: Any, low: Any, high: Any) -> Any:
    """Returns the nearest numbers between two bounds, of which the lower one counts where they cross."""
    below = jnp.where(x > high, high, x)
    return jnp.where(below < low, low, below)


@translation("Relu", {"T": NUMBERS})
def relu(node: KernelNode, x: Any) -> Any:
    """Returns x where it is above zero, else zero."""
    return jnp.maximum(x, np.zeros((), x.dtype))


@translation("Relu6", {"T": NUMBERS})
def relu6(node: KernelNode, x: Any) -> Any:
    """Returns the nearest numbers between 0 and 6."""
    return jnp.minimum(jnp.maximum(x, np.zeros((), x.dtype)), np.asarray(6, x.dtype))


@translation("Elu", {"T": FLOATS})
def elu(node: KernelNode, x: Any) -> Any:
    """Returns x, below zero exp(x) - 1."""
    return jnp.where(x < 0, jnp.expm1(x), x)


@translation("LeakyRelu", {"T": FLOATS})
def leaky_relu(node: KernelNode, x: Any) -> Any:
    """Returns x, below zero times alpha."""
    return jnp.where(x > 0, x, x * np.asarray(node.attrs["alpha"], x.dtype))


@translation("ReluGrad", {"T": NUMBERS})
def relu_grad(node: KernelNode, gradient: Any, x: Any) -> Any:
    """Returns the gradient where x is above zero, elsewhere times zero, which may be NaN."""
    return jnp.where(x > 0, gradient, gradient * np.zeros((), gradient.dtype))


@translation("Relu6Grad", {"T": NUMBERS})
def relu6_grad(node: KernelNode, gradient: Any, x: Any) -> Any:
    """Returns the gradient where x is between 0 and 6."""
    return jnp.where((x > 0) & (x < 6), gradient, gradient * np.zeros((), gradient.dtype))


@translation("SigmoidGrad", {"T": FLOATS})
@in_float32
def sigmoid_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """Returns dy y (1 - y), in an order in which no product of float32 overflows unless the result does."""
    slope = dy * (y * (1 - y))
    return slope if y.dtype == np.float64 else jnp.where(jnp.abs(dy) > 1, slope, dy * y * (1 - y))


@translation("TanhGrad", {"T": FLOATS})
@in_float32
def tanh_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """Returns dy (1 - y ^ 2)."""
    return dy * (1 - y * y)


@translation("EluGrad", {"T": FLOATS})
@in_float32
def elu_grad(node: KernelNode, gradient: Any, y: Any) -> Any:
    """Returns the gradient, where y is below zero times y + 1."""
    return jnp.where(y < 0, (y + 1) * gradient, gradient)


@translation("RsqrtGrad", {"T": FLOATS})
@in_float32
def rsqrt_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """Returns -dy y ^ 3 / 2, and 0 where dy is."""
    half = y * np.asarray(-0.5, y.dtype)
    first = jnp.abs(dy) > 1  # in this order no product overflows, or is subnormal, unless the result does or is
    slope = dy * jnp.where(first, half, y) * y * jnp.where(first, y, half)
    return jnp.where(dy == 0, jnp.zeros_like(dy), slope)


@translation("SqrtGrad", {"T": FLOATS})
@in_float32
def sqrt_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """Returns dy / 2 / y, and 0 where dy is."""
    return jnp.where(dy == 0, jnp.zeros_like(dy), dy * np.asarray(0.5, y.dtype) / y)


@translation("BiasAdd", {"T": NUMBERS})
def bias_add(node: KernelNode, x: Any, bias: Any) -> Any:
    """Returns x with a number of its own added to each channel."""
    if node.attrs["data_format"] == "NCHW":
        bias = jnp.reshape(bias, (-1,) + (1,) * (len(x.shape) - 2))
    return jnp.add(x, bias)


@translation("Cast", {"SrcT": ALL, "DstT": ALL})
def cast(node: KernelNode, x: Any) -> Any:
    """Returns the same numbers in another dtype."""
    return lax.convert_element_type(x, node.outputs[0].dtype)
