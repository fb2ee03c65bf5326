"""Bugs in gradients: in the kernels of backward ops, and in the gradient functions of ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant
from timberframe_core.ops.base.math.reduction_gradients import sum_gradient
from timberframe_core.ops.definition.gradients import apply_op, broadcast_gradients

FLOATS = ("float32", "float64")
SUITE = ("gradient",)
Gradient = Callable[..., list[Any]]


# Kernels of backward ops.


@mutant("relu-grad-zero", "ReluGrad", "the gradient passes where the feature is zero", FLOATS, suites=SUITE,
        through=("Relu",))  # fmt: skip
def _(c: Call) -> Any:
    gradients, features = c.inputs
    return np.where(features >= 0, gradients, 0)


@mutant("tanh-grad-square", "TanhGrad", "1 - y in place of 1 - y^2", FLOATS, suites=SUITE, through=("Tanh",))
def _(c: Call) -> Any:
    y, dy = c.inputs
    return dy * (1 - y)


@mutant("rsqrt-grad-sign", "RsqrtGrad", "the sign is wrong", FLOATS, suites=SUITE, through=("Rsqrt",))
def _(c: Call) -> Any:
    return -c.true[0]


@mutant("sqrt-grad-pole", "SqrtGrad", "a gradient of zero gives NaN where the root is zero", FLOATS,
        suites=("forward",))  # fmt: skip
def _(c: Call) -> Any:
    y, dy = c.inputs
    return 0.5 * (dy / y)


@mutant("leaky-relu-grad-alpha", "LeakyReluGrad", "alpha is always its default", FLOATS, suites=SUITE,
        through=("LeakyRelu",))  # fmt: skip
def _(c: Call) -> Any:
    return c.reference(*c.inputs, alpha=0.2)


@mutant("bias-add-grad-last", "BiasAddGrad", "the last row is left out", FLOATS, suites=SUITE, through=("BiasAdd",))
def _(c: Call) -> Any:
    x = c.inputs[0].copy()
    x[-1:] = 0
    return c.reference(x)


@mutant("filter-grad-channel", "Conv2DBackpropFilter", "the first channel is left out", FLOATS,
        suites=SUITE, through=("Conv2D",))  # fmt: skip
def _(c: Call) -> Any:
    x = c.inputs[0].copy()
    x[..., :1] = 0
    return c.reference(x, *c.inputs[1:])


@mutant("scatter-overwrites", "ScatterNd", "a row that is written twice keeps the last in place of the sum",
        {"T": FLOATS}, suites=("forward",))  # fmt: skip
def _(c: Call) -> Any:
    indices, updates, shape = c.inputs
    out = np.zeros(tuple(shape), updates.dtype)
    out[tuple(np.moveaxis(indices, -1, 0))] = updates
    return out


# Gradient functions. The decorated function makes the wrong one of the right one.


def gradient_mutant(name: str, op: str, what: str, **rest: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declares a mutant of an op's gradient function."""
    return mutant(name, op, what, suites=SUITE, of_gradient=True, **rest)


@gradient_mutant("mul-gradient-operands", "Mul", "each operand gets what is the other's")
def _(right: Gradient) -> Gradient:
    return lambda op, grad: broadcast_gradients(op, grad * op.inputs[0], grad * op.inputs[1])


@gradient_mutant("mul-gradient-conjugate", "Mul", "operands are not conjugated", only=("complex",))
def _(right: Gradient) -> Gradient:
    return lambda op, grad: broadcast_gradients(op, grad * op.inputs[1], grad * op.inputs[0])


@gradient_mutant("add-gradient-broadcast", "AddV2", "what an operand was repeated along is averaged, not summed")
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        whole = _count(grad)
        return [g * (_count(x) / whole) for g, x in zip(right(op, grad), op.inputs, strict=True)]

    return wrong


def _count(x: Any) -> Any:
    return apply_op("Cast", [apply_op("Size", [x])], {"DstT": x.dtype})


@gradient_mutant("sub-gradient-sign", "Sub", "the subtrahend's sign is missing")
def _(right: Gradient) -> Gradient:
    return lambda op, grad: broadcast_gradients(op, grad, grad)


@gradient_mutant("mean-gradient-count", "Mean", "the number of elements is not divided by")
def _(right: Gradient) -> Gradient:
    return sum_gradient


@gradient_mutant("cumsum-gradient-exclusive", "Cumsum", "exclusive is ignored")
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        return [apply_op("Cumsum", [grad, op.inputs[1]], {"reverse": not op.attrs["reverse"]}), None]

    return wrong


@gradient_mutant("sigmoid-grad-gradient", "SigmoidGrad", "the factor 2 is missing from the second derivative",
                 through=("Sigmoid",))  # fmt: skip
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        y, dy = op.inputs
        return [grad * dy * (1 - y), right(op, grad)[1]]

    return wrong


@gradient_mutant("pow-gradient-exponent", "Pow", "the exponent is taken as a constant")
def _(right: Gradient) -> Gradient:
    return lambda op, grad: [right(op, grad)[0], None]


@gradient_mutant("maximum-gradient-both", "Maximum", "both operands get the gradient")
def _(right: Gradient) -> Gradient:
    return lambda op, grad: broadcast_gradients(op, grad, grad)


# Bugs that show at zeros, at ties and far out alone.


@gradient_mutant("cumprod-gradient-divides", "Cumprod", "divides by the element, also where it is zero")
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        attrs = {"exclusive": op.attrs["exclusive"], "reverse": not op.attrs["reverse"]}
        return [apply_op("Cumsum", [op.outputs[0] * grad, op.inputs[1]], attrs) / op.inputs[0], None]

    return wrong


@gradient_mutant("segment-product-second-zero", "SegmentProd", "takes the derivative by the second zero for constant")
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        gradient = right(op, grad)[0]
        zero = apply_op("Equal", [op.inputs[0], apply_op("ZerosLike", [op.inputs[0]])])
        return [apply_op("SelectV2", [zero, apply_op("StopGradient", [gradient]), gradient]), None]

    return wrong


@gradient_mutant("max-gradient-every-tie", "Max", "elements that tie each get the whole gradient")
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        share = right(op, grad)[0]
        return [share * _tied(op), None]

    def _tied(op: Any) -> Any:
        highest = apply_op("Max", list(op.inputs), {"keep_dims": True})
        chosen = apply_op("Cast", [apply_op("Equal", [op.inputs[0], highest])], {"DstT": highest.dtype})
        return apply_op("Sum", [chosen, op.inputs[1]], {"keep_dims": True})

    return wrong


@gradient_mutant("sigmoid-gradient-overflows", "Sigmoid", "is a quotient of exponentials, NaN far below zero")
def _(right: Gradient) -> Gradient:
    def wrong(op: Any, grad: Any) -> list[Any]:
        power = apply_op("Exp", [-op.inputs[0]])
        return [grad * power / apply_op("Square", [power + 1])]

    return wrong
