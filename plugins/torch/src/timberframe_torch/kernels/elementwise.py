"""Ops that compute each element by itself, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.launches import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Function,
    named,
    torch_kernel,
)

KERNELS: list[KernelDef] = []

named(
    {
        "Exp": "exp", "Expm1": "expm1", "Log": "log", "Log1p": "log1p", "Sqrt": "sqrt", "Rsqrt": "rsqrt",
        "Reciprocal": "reciprocal", "Inv": "reciprocal", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin",
        "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh",
        "Acosh": "acosh", "Atanh": "atanh", "Sigmoid": "sigmoid", "Erf": "erf", "Erfc": "erfc", "Ceil": "ceil",
        "Floor": "floor", "Rint": "round", "Atan2": "atan2", "RealDiv": "true_divide", "Pow": "pow",
        "Elu": "nn.functional.elu", "Selu": "nn.functional.selu", "Softsign": "nn.functional.softsign",
        "IsNan": "isnan", "IsInf": "isinf", "IsFinite": "isfinite",
    },
    KERNELS,
    {"T": FLOATS},
)  # fmt: skip
named(
    {
        "Relu": "relu", "Relu6": "nn.functional.relu6", "Maximum": "maximum", "Minimum": "minimum", "Abs": "abs",
        "Sign": "sign", "Less": "lt", "LessEqual": "le", "Greater": "gt", "GreaterEqual": "ge",
    },
    KERNELS,
    {"T": NUMBERS},
)  # fmt: skip
named(
    {
        "Add": "add", "AddV2": "add", "Sub": "sub", "Mul": "mul", "Neg": "neg", "Square": "square", "Equal": "eq",
        "NotEqual": "ne",
    },
    KERNELS,
    {"T": (*NUMBERS, *COMPLEX)},
)  # fmt: skip
named({"LogicalAnd": "logical_and", "LogicalOr": "logical_or", "LogicalNot": "logical_not"}, KERNELS, {})
named({"SelectV2": "where"}, KERNELS, {"T": ALL})
named({"ZerosLike": "zeros_like", "OnesLike": "ones_like"}, KERNELS, {"T": ALL})
named({"ClipByValue": "clamp"}, KERNELS, {"T": NUMBERS})
named(
    {"BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor", "Invert": "bitwise_not"},
    KERNELS,
    {"T": INTEGERS},
)


def _function(op: str, types: tuple[str, ...] = FLOATS) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares the function below it, which takes the node and its tensors, as a kernel."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        def build(node: KernelNode) -> Function:
            return lambda *xs: function(node, *xs)

        build.__qualname__ = build.__name__ = function.__name__
        torch_kernel(KERNELS, op, {"T": types})(build)
        return function

    return declare


@_function("SquaredDifference", NUMBERS)
def squared_difference(node: KernelNode, x: Any, y: Any) -> Any:
    """(x - y) ^ 2."""
    return torch.square(x - y)


@_function("Select", ALL)
def select(node: KernelNode, condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; one of a vector holds for whole rows."""
    return torch.where(condition.reshape(condition.shape + (1,) * (x.dim() - condition.dim())), x, y)


@_function("AddN", (*NUMBERS, *COMPLEX))
def add_n(node: KernelNode, first: Any, *others: Any) -> Any:
    """The sum, from the first input on."""
    total = first
    for x in others:
        total = torch.add(total, x)
    return total


@_function("Softplus")
def softplus(node: KernelNode, x: Any) -> Any:
    """log(1 + exp(x)); above 40 it is x in every dtype."""
    return torch.nn.functional.softplus(x, threshold=40.0)


@_function("LeakyRelu")
def leaky_relu(node: KernelNode, x: Any) -> Any:
    """x, below zero times alpha."""
    return torch.nn.functional.leaky_relu(x, node.attrs["alpha"])


@_function("ReluGrad", NUMBERS)
def relu_grad(node: KernelNode, gradient: Any, x: Any) -> Any:
    """The gradient where x is above zero, elsewhere times zero, which may be NaN."""
    return gradient * (x > 0)


@_function("Relu6Grad", NUMBERS)
def relu6_grad(node: KernelNode, gradient: Any, x: Any) -> Any:
    """The gradient where x is between 0 and 6."""
    return torch.ops.aten.hardtanh_backward(gradient, x, 0, 6)


@_function("SigmoidGrad")
def sigmoid_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """dy y (1 - y)."""
    return torch.ops.aten.sigmoid_backward(dy, y)


@_function("TanhGrad")
def tanh_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """dy (1 - y ^ 2)."""
    return torch.ops.aten.tanh_backward(dy, y)


@_function("EluGrad")
def elu_grad(node: KernelNode, gradient: Any, y: Any) -> Any:
    """The gradient, where y is below zero times y + 1."""
    return torch.ops.aten.elu_backward(gradient, 1.0, 1.0, 1.0, True, y)


@_function("RsqrtGrad")
def rsqrt_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """-dy y ^ 3 / 2, and 0 where dy is."""
    return torch.where(dy == 0, torch.zeros_like(dy), dy * -0.5 * y * y * y)


@_function("SqrtGrad")
def sqrt_grad(node: KernelNode, y: Any, dy: Any) -> Any:
    """dy / 2 / y, and 0 where dy is."""
    return torch.where(dy == 0, torch.zeros_like(dy), dy * 0.5 / y)


@_function("BiasAdd", (*NUMBERS, *COMPLEX))
def bias_add(node: KernelNode, x: Any, bias: Any) -> Any:
    """A number of its own added to each channel."""
    if node.attrs["data_format"] == "NCHW":
        bias = bias.reshape(-1, *[1] * (x.dim() - 2))
    return torch.add(x, bias)


@torch_kernel(KERNELS, "Cast", {"SrcT": ALL, "DstT": ALL})
def cast(node: KernelNode) -> Function:
    """The same numbers in another dtype."""
    dtype = getattr(torch, node.outputs[0].dtype.name)
    return lambda x: x.to(dtype)
