"""Activation functions of neural networks.

Limits are added up from those of the functions that they are made of (see `unary_math`), each step of arithmetic giving
0.5 ULP: Sigmoid exp (3), whose error counts at most once, and two operations on numbers of at most 2; Softplus exp (3),
log1p (2) and a sum; Elu expm1; Selu that, a product and a rounded constant; Softsign a sum and a quotient; LeakyRelu a
product with alpha in the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.unary import (
    FLOAT_TYPES,
    FLOATS,
    INEXACT_TYPES,
    Gradient,
    by_input,
    by_output,
    computed_in_float32,
    unary_op,
    unary_samples,
)
from timberframe_core.ops.definition.accuracy import ANY_ZERO, EXACT, Accuracy, Pointwise
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, define_op
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.definition.shape_functions import UNARY_SHAPES, unchanged

_REAL_NUMBERS = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
SELU_SCALE = 1.0507009873554804934  # Klambauer et al., Self-Normalizing Neural Networks (2017), equation 14
SELU_SCALE_ALPHA = 1.7580993408473768599  # the scale times alpha, rounded once
SELU_SCALE_ALPHA_REST = 1.4153519380084477e-17  # what the rounding took


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), keeping the digits of tiny results."""
    if np.iscomplexobj(x):
        return _complex_sigmoid(x)
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, 1) / (1 + e))


def _complex_sigmoid(x: np.ndarray) -> np.ndarray:
    """By tanh in the strip that holds the poles; outside, exp cannot cancel against 1."""
    outside = np.abs(x.real) > 1
    e = np.exp(np.where(x.real > 0, -x, x))
    return np.asarray(np.where(outside, np.where(x.real > 0, 1, e) / (1 + e), 0.5 + 0.5 * np.tanh(x / 2))).astype(
        x.dtype
    )


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(x > 0, x, 0) + np.log1p(np.exp(-np.abs(x))))


def _elu(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.expm1(x), x)


def _selu(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, SELU_SCALE_ALPHA * np.expm1(x), SELU_SCALE * x)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.where(x <= 0, np.zeros((), x.dtype), x)


def _relu6(x: np.ndarray) -> np.ndarray:
    return np.where(x > 6, np.full((), 6, x.dtype), _relu(x))


def _gradient_op(name: str) -> Callable[[Any, Any], Any]:
    """Returns the formula that is an op of the gradient and the input or output."""
    return lambda grad, value: apply_op(name, [grad, value])


def _activation(
    name: str,
    doc: str,
    function: Callable[[Any], Any],
    gradient: Gradient,
    types: str = FLOAT_TYPES,
    accuracy: Accuracy = EXACT,
    values: Sequence[float] = (0.0, -0.0, -1e-40, 1e-40),
) -> None:
    def samples() -> Iterator[Sample]:
        yield from unary_samples(values)
        yield Sample((Arg(shape=(997,), low=-110, high=110),), types={"T": FLOATS})

    unary_op(
        name,
        doc,
        computed_in_float32(function),
        types,
        accuracy=accuracy,
        samples=samples,
        inputs=("features: T",),
        outputs=("activations: T",),
        gradient=gradient,
    )


unary_op(
    "Sigmoid",
    "1 / (1 + exp(-x)) by element.",
    computed_in_float32(sigmoid),
    INEXACT_TYPES,
    values=(0.0, -0.0, -87.5, -88.8, -103.0, 16.6, 17.4, -745.0, 37.0),
    accuracy=Pointwise(float32=5, float64=5, complex=12),
    gradient=by_output(lambda grad, y: apply_op("SigmoidGrad", [y, grad])),
)

_activation(
    "Relu",
    "max(x, 0) by element; NaN stays.",
    _relu,
    by_output(_gradient_op("ReluGrad")),
    _REAL_NUMBERS.replace("}", ", qint8}"),
    ANY_ZERO,
)
_activation(
    "Relu6",
    "min(max(x, 0), 6) by element; NaN stays.",
    _relu6,
    by_output(_gradient_op("Relu6Grad")),
    _REAL_NUMBERS,
    ANY_ZERO,
    values=(5.99, 6.0, 6.01, -0.0),
)
_activation(
    "Softplus",
    "log(1 + exp(x)) by element.",
    _softplus,
    by_input(lambda grad, x: grad * apply_op("Sigmoid", [x])),
    accuracy=Pointwise(float32=6, float64=6),
    values=(0.0, -0.0, 13.9, -13.9, 15.3, -103.0, 88.8, 1e30),
)
_activation(
    "Softsign",
    "x / (1 + |x|) by element; NaN of an infinity.",
    lambda x: x / (1 + np.abs(x)),
    by_input(_gradient_op("SoftsignGrad")),
    accuracy=Pointwise(float32=1.5, float64=1.5),
)
_activation(
    "Elu",
    "x where it is not negative, exp(x) - 1 elsewhere, by element.",
    _elu,
    by_output(_gradient_op("EluGrad")),
    accuracy=Pointwise(float32=3, float64=3),
)
_activation(
    "Selu",
    "s x where x is not negative, s a (exp(x) - 1) elsewhere, with s = 1.0507009873554805, a = 1.6732632423543772.",
    _selu,
    by_output(_gradient_op("SeluGrad")),
    accuracy=Pointwise(float32=5, float64=5),
)


def _leaky_relu(attrs: Attrs, x: Any) -> Any:
    alpha = np.float32(attrs["alpha"])  # attrs of kind float are float32 in a GraphDef

    def function(v: np.ndarray) -> np.ndarray:
        return np.where(v < 0, v * v.dtype.type(alpha), v)

    return computed_in_float32(function)(x)


def _leaky_relu_samples() -> Iterator[Sample]:
    for i, shape in enumerate(UNARY_SHAPES):
        yield Sample((Arg(shape=shape),), {"alpha": (0.2, 0.0, 1.5, -0.5, 0.01)[i % 5]})


define_op(
    "LeakyRelu",
    inputs=("features: T",),
    outputs=("activations: T",),
    attrs=("alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT"),
    doc="x where it is not negative, alpha x elsewhere, by element; NaN stays.",
    shape=unchanged,
    reference=_leaky_relu,
    elementwise=True,
    samples=_leaky_relu_samples,
    gradient=lambda op, grad: [apply_op("LeakyReluGrad", [grad, op.inputs[0]], {"alpha": op.attrs["alpha"]})],
    accuracy=Pointwise(float32=0.5, float64=0.5),
)
