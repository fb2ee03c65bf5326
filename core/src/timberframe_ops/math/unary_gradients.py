"""The ops by which TensorFlow differentiates functions of one operand.

Limits: products, sums and quotients of at most four correctly rounded steps, 0.5 ULP each, so 2 together; differences
from 1 are exact where they cancel. SoftplusGrad is a product with Sigmoid; SeluGrad's sum cancels against a constant,
which is added in two parts. Complex: the products' sqrt(5) u each (see `unary_arithmetic`) and a reciprocal's 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.unary import FLOATS, INEXACT_TYPES, Gradient
from timberframe_core.ops.base.math.unary_arithmetic import complex_reciprocal
from timberframe_core.ops.definition.accuracy import EXACT, Accuracy, Bound, Pointwise
from timberframe_core.ops.definition.gradients import apply_op, conjugate
from timberframe_core.ops.definition.opdef import Attrs, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import UNARY_SHAPES, all_equal, late_errors
from timberframe_ops.nn.activations import SELU_SCALE, SELU_SCALE_ALPHA, SELU_SCALE_ALPHA_REST, sigmoid

_REAL_NUMBERS = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_FLOATS = "{half, bfloat16, float, double}"
_BY_RESULT = ("y", "dy")
_STEPS = Pointwise(float32=2, float64=2, complex=14)
_THREE_STEPS = Pointwise(float32=3, float64=3, complex=14)
"""Of formulas with three products: each is off by half a unit of its own, which may be a whole one of the result."""


def _samples() -> Iterator[Sample]:
    for shape in UNARY_SHAPES:
        yield Sample((Arg(shape=shape), Arg(shape=shape)))


def _pole_samples() -> Iterator[Sample]:
    """Gradients of 0 and others where the slope has a pole."""
    yield from _samples()
    y, dy = (0.0, np.inf, -np.inf, np.nan, 0.0, 2.0, 0.0), (0.0, 0.0, -0.0, 0.0, 1.0, 0.0, np.nan)
    yield Sample((Arg(values=y), Arg(values=dy)), types={"T": FLOATS})


def _errors() -> Iterator[ErrorSample]:
    yield ErrorSample((Arg(shape=(2, 3)), Arg(shape=(3, 2))), match="must be equal")


def _gradient_op(
    name: str,
    doc: str,
    function: Callable[[Any, Any], Any],
    inputs: tuple[str, str],
    types: str,
    gradient: Gradient,
    accuracy: Accuracy = _STEPS,
) -> None:
    """Declares an op of two tensors of one shape; narrow floats are computed in float32."""
    of_result = inputs[1] == "dy"

    def reference(attrs: Attrs, a: Any, b: Any) -> Any:
        if a.dtype.name in ("float16", "bfloat16"):
            return np.asarray(function(a.astype(np.float32), b.astype(np.float32))).astype(a.dtype)
        return np.asarray(function(a, b)).astype(a.dtype)

    define_op(
        name,
        inputs=tuple(f"{i}: T" for i in inputs),
        outputs=("z: T" if of_result else "backprops: T",),
        attrs=(f"T: {types}",),
        doc=doc,
        shape=late_errors(all_equal) if of_result else all_equal,
        reference=reference,
        elementwise=True,
        accuracy=accuracy,
        samples=_pole_samples if inputs == _BY_RESULT else _samples,
        errors=_errors,
        gradient=gradient,
        gradient_notes=("nan_at_zero",) if name == "SqrtGrad" else (),
    )


def _scaled(factor: float, x: Any) -> Any:
    """factor x, part by part: NumPy's own product would make NaN of a complex infinity."""
    result = np.array(x)
    result.real *= factor
    if np.iscomplexobj(result):
        result.imag *= factor
    return result


def _zero_for_zero(dy: Any, result: Any) -> Any:
    """Returns the result, but 0 where dy is 0: also where the derivative is infinite, as in TensorFlow."""
    return np.where(dy == 0, np.zeros((), result.dtype), result)


def _sqrt_grad(y: Any, dy: Any) -> Any:
    quotient = dy * complex_reciprocal(np.conj(y)) if np.iscomplexobj(y) else dy / y
    return _zero_for_zero(dy, _scaled(0.5, quotient))


def _rsqrt_grad(y: Any, dy: Any) -> Any:
    c = np.conj(y)
    return _zero_for_zero(dy, _scaled(-0.5, dy * c * c * c))


def _reciprocal_grad(y: Any, dy: Any) -> Any:
    c = np.conj(y)
    return _zero_for_zero(dy, -(dy * c * c))


def _second_order(op_name: str, slope: Callable[[Any, Any], Any], conjugates: bool = True) -> Gradient:
    """Returns the gradient of ``op_name(y, dy)``, which is linear in dy: that with respect to dy is the op itself.

    slope: ``f(y, b)`` is what the gradient is times with respect to y. conjugates: the op conjugates y itself, so the
    derivative is with respect to the conjugate, for which the gradient takes the conjugate's place; else y and b do.
    """

    def gradient(op: Any, grad: Any) -> list[Any]:
        y, dy = op.inputs
        c = conjugate(y)
        first = conjugate(grad) * slope(c, dy) if conjugates else grad * slope(c, conjugate(dy))
        return [first, apply_op(op_name, [c, grad])]

    return gradient


def _sqrt_second_order(op: Any, grad: Any) -> list[Any]:
    scaled = grad / op.inputs[0]
    return [-conjugate(scaled) * op.outputs[0], 0.5 * scaled]


def _tanh_grad_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Of dy (1 - y y), as textbooks have it: the product's rounding stays where y is nearly 1, and all but cancels it.

    The other roundings are as for the ops beside it; a complex product is off by up to 3 u (Higham, lemma 3.5).
    """
    y, dy = inputs
    product, rest = (3, 28) if np.iscomplexobj(y) else (1, 4)
    return u * (product * np.abs(dy) * np.abs(y) ** 2 + rest * np.abs(expected))


_TANH_GRAD = Bound(_tanh_grad_error, "Higham, sections 2.2 and 3.6, of the formula dy (1 - y y)")

for _name, _doc, _function, _gradient, _accuracy in (
    ("TanhGrad", "dy (1 - y^2) by element, y being tanh's result (complex: its conjugate).",
     lambda y, dy: dy * ((1 - y) * (1 + y)), _second_order("TanhGrad", lambda y, dy: -2 * dy * y, conjugates=False),
     _TANH_GRAD),
    ("SigmoidGrad", "dy y (1 - y) by element, y being Sigmoid's result (complex: its conjugate).",
     lambda y, dy: dy * (y * (1 - y)),
     _second_order("SigmoidGrad", lambda y, dy: dy * (1 - 2 * y), conjugates=False), _THREE_STEPS),
    ("SqrtGrad", "dy / (2 y) by element, 0 where dy is 0; y being Sqrt's result (complex: its conjugate).",
     _sqrt_grad, _sqrt_second_order, _STEPS),
    ("RsqrtGrad", "-dy y^3 / 2 by element, 0 where dy is 0; y being Rsqrt's result (complex: its conjugate).",
     _rsqrt_grad, _second_order("RsqrtGrad", lambda y, dy: -1.5 * dy * apply_op("Square", [y])), _THREE_STEPS),
    ("ReciprocalGrad", "-dy y^2 by element, 0 where dy is 0; y being Reciprocal's result (complex: its conjugate).",
     _reciprocal_grad, _second_order("ReciprocalGrad", lambda y, dy: -2 * dy * y), _STEPS),
    ("InvGrad", "-dy y^2 by element, 0 where dy is 0; y being Inv's result (complex: its conjugate).",
     _reciprocal_grad, _second_order("InvGrad", lambda y, dy: -2 * dy * y), _STEPS),
):  # fmt: skip
    _gradient_op(_name, _doc, _function, _BY_RESULT, INEXACT_TYPES, _gradient, _accuracy)


def _piecewise(op_name: str) -> Gradient:
    """Returns the gradient of ``op_name(gradients, features)`` where the slope is constant but for steps."""
    return lambda op, grad: [
        apply_op(op_name, [grad, op.inputs[1]], _alpha(op)),
        apply_op("ZerosLike", [op.inputs[1]]),
    ]


def _alpha(op: Any) -> dict[str, Any]:
    return {"alpha": op.attrs["alpha"]} if "alpha" in op.attrs else {}


def _exponential(op_name: str) -> Gradient:
    """Returns the gradient of ``op_name(gradients, outputs)`` whose slope grows by the
    output where that is negative.
    """

    def gradient(op: Any, grad: Any) -> list[Any]:
        before, y = op.inputs
        slope = apply_op("Select", [y < 0, grad * before, apply_op("ZerosLike", [y])])
        return [apply_op(op_name, [grad, y]), slope]

    return gradient


def _softplus_second_order(op: Any, grad: Any) -> list[Any]:
    before, x = op.inputs
    return [
        apply_op("SoftplusGrad", [grad, x]),
        apply_op("SigmoidGrad", [apply_op("Sigmoid", [x]), grad * before]),
    ]


def _softsign_second_order(op: Any, grad: Any) -> list[Any]:
    before, x = op.inputs
    first = apply_op("SoftsignGrad", [grad, x])
    return [first, -2 * first * before * apply_op("Sign", [x]) / (1 + abs(x))]


_BY_FEATURES = ("gradients", "features")
_BY_OUTPUTS = ("gradients", "outputs")

_gradient_op(
    "ReluGrad",
    "The gradient times 1 where the feature (or Relu's result) is positive, times 0 elsewhere, by element.",
    lambda g, x: g * (x > 0).astype(g.dtype),
    _BY_FEATURES,
    _REAL_NUMBERS,
    _piecewise("ReluGrad"),
    EXACT,
)
_gradient_op(
    "Relu6Grad",
    "The gradient times 1 where the feature (or Relu6's result) lies between 0 and 6, times 0 elsewhere, by element.",
    lambda g, x: g * ((x > 0) & (x < 6)).astype(g.dtype),
    _BY_FEATURES,
    _REAL_NUMBERS,
    _piecewise("Relu6Grad"),
    EXACT,
)
_gradient_op(
    "EluGrad",
    "The gradient where Elu's output is not negative, times the output plus 1 elsewhere, by element.",
    lambda g, y: np.where(y < 0, (y + 1) * g, g),
    _BY_OUTPUTS,
    _FLOATS,
    _exponential("EluGrad"),
)
_gradient_op(
    "SeluGrad",
    "The gradient times the slope of Selu, computed from its output, by element.",
    lambda g, y: g * np.where(y < 0, (y + SELU_SCALE_ALPHA) + SELU_SCALE_ALPHA_REST, SELU_SCALE),
    _BY_OUTPUTS,
    _FLOATS,
    _exponential("SeluGrad"),
)
_gradient_op(
    "SoftplusGrad",
    "The gradient times sigmoid(x), by element.",
    lambda g, x: g * sigmoid(x),
    _BY_FEATURES,
    _FLOATS,
    _softplus_second_order,
    Pointwise(float32=6, float64=6),
)
_gradient_op(
    "SoftsignGrad",
    "The gradient over (1 + |x|)^2, by element.",
    lambda g, x: g / (1 + np.abs(x)) / (1 + np.abs(x)),
    _BY_FEATURES,
    _FLOATS,
    _softsign_second_order,
)


def _leaky_relu_grad(attrs: Attrs, g: Any, x: Any) -> Any:
    alpha = np.float32(attrs["alpha"])  # attrs of kind float are float32 in a GraphDef
    wide = g.astype(np.float32) if g.dtype.name in ("float16", "bfloat16") else g
    return np.where(x > 0, wide, wide * wide.dtype.type(alpha)).astype(g.dtype)


def _leaky_relu_samples() -> Iterator[Sample]:
    for i, shape in enumerate(UNARY_SHAPES):
        yield Sample((Arg(shape=shape), Arg(shape=shape)), {"alpha": (0.2, 0.0, 1.5, -0.5)[i % 4]})


define_op(
    "LeakyReluGrad",
    inputs=("gradients: T", "features: T"),
    outputs=("backprops: T",),
    attrs=("alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT"),
    doc="The gradient where the feature is positive, alpha times it elsewhere, by element.",
    shape=all_equal,
    reference=_leaky_relu_grad,
    elementwise=True,
    accuracy=Pointwise(float32=0.5, float64=0.5),
    samples=_leaky_relu_samples,
    errors=_errors,
    gradient=_piecewise("LeakyReluGrad"),
)
