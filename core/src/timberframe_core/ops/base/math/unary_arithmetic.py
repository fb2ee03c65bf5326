"""Signs, powers and reciprocals of one operand, truth values, bits, and the parts of complex numbers.

Limits: a real power or reciprocal is one correctly rounded operation (IEEE 754), the reciprocal root two of them: 0.5
ULP of the root and as much of the quotient, below 1.5 together (OpenCL C 3.0, section 7.4, allows 2).
Complex: a product has a relative error below sqrt(5) u (Brent, Percival and Zimmermann, Error bounds on complex
floating-point multiplication, 2007). Smith's division makes at most 6 rounded steps a part, the moduli of whose errors
add up to below 5 ULP; the complex root of the C library errs by at most 2 ULP (its manual, "Known Maximum Errors").
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import complex64, complex128, float32
from timberframe_core.ops.base.math.unary import (
    INEXACT_TYPES,
    INTEGER_TYPES,
    SIGNED_AND_COMPLEX_TYPES,
    SIGNED_TYPES,
    Gradient,
    by_input,
    computed_in_float32,
    unary_op,
    unary_samples,
)
from timberframe_core.ops.definition.accuracy import Pointwise
from timberframe_core.ops.definition.gradients import apply_op, conjugate, of_values
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.definition.shape_functions import UNARY_SHAPES, unchanged
from timberframe_core.shapes import Shape

_ALL_NUMBERS = (
    "{bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}"
)
_CORRECTLY_ROUNDED = Pointwise(float32=0.5, float64=0.5, float16=1, complex=5)


def _result_gradient(op_name: str) -> Gradient:
    """Returns the gradient by an op that takes the function's result and the gradient, and
    conjugates the result itself.
    """
    return lambda op, grad: [apply_op(op_name, [op.outputs[0], grad])]


unary_op(
    "Abs",
    "|x| by element. The lowest integer stays itself.",
    np.abs,
    SIGNED_TYPES,
    values=(-0.0, 0.0),
    gradient=by_input(lambda grad, x: grad * apply_op("Sign", [x])),
)

unary_op(
    "Neg",
    "-x by element. The lowest integer stays itself.",
    np.negative,
    SIGNED_AND_COMPLEX_TYPES,
    gradient=lambda op, grad: [of_values(operator.neg, grad)],
    gradient_takes_slices=True,
)


def _sign(x: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(x):
        modulus = np.hypot(x.real, x.imag)
        with np.errstate(all="ignore"):
            return np.where(x == 0, 0, x.real / modulus + 1j * (x.imag / modulus))
    return np.where(x == 0, np.zeros((), x.dtype), np.sign(x))


unary_op(
    "Sign",
    "-1, 0 or 1 as x is negative, zero or positive, by element; NaN stays. Of complex x: x / |x|, and 0 of 0.",
    _sign,
    SIGNED_AND_COMPLEX_TYPES,
    values=(0.0, -0.0, 1e-30, -1e-30),
    accuracy=Pointwise(float32=0, float64=0, float16=0, complex=3),
    gradient=lambda op, grad: [apply_op("ZerosLike", [op.inputs[0]])],
    constant_inputs=("x",),  # of complex numbers, whose angle does vary
)


def complex_reciprocal(x: np.ndarray) -> np.ndarray:
    """1 / x with 0 for whatever is infinite, and NaN at 0."""
    infinite = np.isinf(x.real) | np.isinf(x.imag)
    with np.errstate(all="ignore"):
        return np.where(infinite, 0, np.reciprocal(np.where(infinite, 1, x)))


def _reciprocal(x: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(x):
        return complex_reciprocal(x)
    return np.asarray(np.divide(np.ones((), x.dtype), x))


for _name in ("Reciprocal", "Inv"):
    unary_op(
        _name,
        "1 / x by element." + (" The older name of Reciprocal." if _name == "Inv" else ""),
        computed_in_float32(_reciprocal),
        SIGNED_AND_COMPLEX_TYPES,
        values=(0.0, -0.0, 3.0, 1e-40, 2.0**-126, 2.0**127),
        accuracy=_CORRECTLY_ROUNDED,
        gradient=_result_gradient(f"{_name}Grad"),
    )

unary_op(
    "Square",
    "x * x by element. Integers wrap around.",
    computed_in_float32(np.square),
    _ALL_NUMBERS,
    accuracy=Pointwise(float32=0.5, float64=0.5, float16=0.5, complex=2.24),
    gradient=by_input(lambda grad, x: 2 * (grad * x)),  # twice the largest numbers are infinite
)

unary_op(
    "Sqrt",
    "The square root by element; NaN of negative x, -0 of -0. Of complex x: the root with non-negative real part.",
    computed_in_float32(np.sqrt),
    INEXACT_TYPES,
    values=(0.0, -0.0, 1e-40, 2.0, -1e-40),
    accuracy=Pointwise(float32=0.5, float64=0.5, float16=1, complex=3),
    gradient=_result_gradient("SqrtGrad"),
)


def _rsqrt(x: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(x):
        return np.where(x == 0, complex(np.inf, np.nan), complex_reciprocal(np.sqrt(np.where(x == 0, 1, x))))
    with np.errstate(all="ignore"):
        return np.asarray(1 / np.sqrt(x))


unary_op(
    "Rsqrt",
    "1 / sqrt(x) by element; NaN of negative x, infinity with the sign of a zero.",
    computed_in_float32(_rsqrt),
    INEXACT_TYPES,
    values=(0.0, -0.0, 1e-40, 2.0, 4.0),
    accuracy=Pointwise(float32=2, float64=2, float16=1, complex=8),
    gradient=_result_gradient("RsqrtGrad"),
)

define_op(
    "LogicalNot",
    inputs=("x: bool",),
    outputs=("y: bool",),
    doc="True where x is False, by element.",
    shape=unchanged,
    reference=lambda attrs, x: np.logical_not(x),
    elementwise=True,
    gradient=NotDifferentiable("the operand is a truth value"),
    samples=unary_samples,
)

unary_op(
    "Invert",
    "Every bit of x turned over, by element.",
    np.invert,
    INTEGER_TYPES,
    gradient=NotDifferentiable("the operand is an integer"),
)

unary_op(
    "PopulationCount",
    "How many bits of x are set, by element; those of a negative number in two's complement.",
    lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")),
    INTEGER_TYPES,
    outputs=("y: uint8",),
    gradient=NotDifferentiable("the operand is an integer"),
)

unary_op(
    "Conj",
    "The complex conjugate by element.",
    np.conj,
    "{complex64, complex128, variant} = DT_COMPLEX64",
    inputs=("input: T",),
    outputs=("output: T",),
    gradient=lambda op, grad: [of_values(conjugate, grad)],
    gradient_takes_slices=True,
)

_PAIRS = (("complex64", "float32"), ("complex128", "float64"))


def _real_result(c: InferenceContext) -> list[Shape]:
    """Returns the shape of the input, whose parts must have the dtype of the output."""
    t, result = c.attrs["T"], c.attrs["Tout"]
    if t.real_dtype is not result:
        raise c.error(f"T is {t} and Tout is {result}; Tout must be {t.real_dtype}, the type of T's parts")
    return unchanged(c)


def _part_samples() -> Iterator[Sample]:
    for t, result in _PAIRS:
        for shape in UNARY_SHAPES:
            yield Sample((Arg(shape=shape),), types={"T": (t,), "Tout": (result,)})


def _part(
    name: str, doc: str, function: Callable[[Any], Any], argument: str = "input", result: str = "output", **rest: Any
) -> None:
    """Declares an op that takes a complex number to a real one."""
    define_op(
        name,
        inputs=(f"{argument}: T",),
        outputs=(f"{result}: Tout",),
        attrs=("T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT"),
        doc=doc,
        shape=_real_result,
        reference=_reference(function),
        elementwise=True,
        samples=_part_samples,
        **rest,
    )


def _reference(function: Callable[[Any], Any]) -> Callable[[Attrs, Any], Any]:
    return lambda attrs, x: function(x)


def complex_of(real: Any, imaginary: Any) -> Any:
    """Returns the complex numbers with these parts, one of which may be the number 0."""
    dtype = (imaginary if isinstance(real, int) else real).dtype
    return apply_op("Complex", [real, imaginary], {"Tout": complex64 if dtype is float32 else complex128})


def _angle_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the slopes of the angle, -y / |z|^2 along x and x / |z|^2 along y, are those of -1 / (y + ix)."""
    z = op.inputs[0]
    real, imaginary = (apply_op(part, [z], {"Tout": grad.dtype}) for part in ("Real", "Imag"))
    return [-(complex_of(grad, 0) / complex_of(imaginary, real))]


_part("Real", "The real part by element.", np.real, gradient=lambda op, grad: [complex_of(grad, 0)])
_part("Imag", "The imaginary part by element.", np.imag, gradient=lambda op, grad: [complex_of(0, grad)])
_part(
    "ComplexAbs",
    "The modulus by element; infinite where a part is, even if the other is NaN.",
    lambda x: np.hypot(x.real, x.imag),
    argument="x",
    result="y",
    accuracy=Pointwise(float32=4, float64=4),  # hypot of OpenCL C 3.0, section 7.4
    gradient=lambda op, grad: [
        apply_op("DivNoNan", [complex_of(grad, 0) * op.inputs[0], complex_of(op.outputs[0], 0)])
    ],
)
_part(
    "Angle",
    "The argument in (-pi, pi] by element.",
    lambda x: np.arctan2(x.imag, x.real),
    accuracy=Pointwise(float32=6, float64=6),  # atan2 of OpenCL C 3.0, section 7.4
    gradient=_angle_gradient,
)
