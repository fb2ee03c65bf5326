"""MatrixDeterminant and LogMatrixDeterminant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Bound, Residual
from timberframe_core.ops.definition.gradients import apply_op, conjugate
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape
from timberframe_ops.linalg.matrices import (
    REALS,
    SOURCE,
    SQUARES,
    TEST_RATIO,
    by_type,
    norm,
    square_shape,
    well_conditioned,
)
from timberframe_ops.linalg.matrix_gradients import scalars

_TYPES = "T: {half, float, double, complex64, complex128}"


def _shape(c: InferenceContext) -> list[Shape]:
    shape = square_shape(c)
    return [None if shape is None else shape[:-2]] * len(c.op.outputs)


def _error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns the bound: the determinant is that of a matrix A + E, and changes by the sum of E's
    elements times their cofactors.

    E is bounded as LAPACK bounds factors; the norm of the cofactors comes from the singular values, all but one of
    which are multiplied at a time.
    """
    (a,) = inputs
    rows = a.shape[-1]
    if 0 in a.shape:
        return np.zeros(a.shape[:-2])
    values = np.linalg.svd(a, compute_uv=False)
    others = [np.prod(np.delete(values, i, axis=-1), axis=-1) for i in range(rows)]
    cofactors = np.sqrt(sum(x**2 for x in others))
    error: np.ndarray = TEST_RATIO * rows * u * norm(a) * cofactors + 4 * rows * u * np.abs(np.linalg.det(a))
    return error


def _samples() -> Iterator[Sample]:
    yield from by_type(well_conditioned, SQUARES)
    yield Sample([Arg(values=[[1.0, 2.0], [2.0, 4.0]])], types={"T": REALS})
    yield Sample([Arg(values=np.diag([-1e30, 1e30, 1e30, 1e-30, 1e-30, 1e-30]))], types={"T": REALS[-2:]})


def _errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 3))], r"input 0 has shape \(2, 3\); its matrices must be square")
    yield ErrorSample([Arg((3,))], "must have rank 2 or more")


def _inverse_adjoint(op: Any) -> Any:
    return apply_op("MatrixInverse", [op.inputs[0]], {"adjoint": True})


define_op(
    "MatrixDeterminant",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=[_TYPES],
    doc="The determinants of the matrices.",
    shape=_shape,
    reference=lambda attrs, input: np.linalg.det(input),
    accuracy=Bound(_error, SOURCE),
    gradient=lambda op, grad: [scalars(grad * conjugate(op.outputs[0])) * _inverse_adjoint(op)],
    samples=_samples,
    errors=_errors,
)


def _log_laws(attrs: Attrs, inputs: Any, outputs: Any, u: float) -> Any:
    """Returns the bound: the sign is a number of modulus one; sign and logarithm together give the determinant."""
    sign, logarithm = outputs[0], np.real(outputs[1])
    expected = np.linalg.det(inputs[0])
    none = np.isneginf(logarithm)
    relative = 4 * u * (1 + np.where(none, 0, np.abs(logarithm)))
    with np.errstate(all="ignore"):
        difference = np.abs(np.where(none, 0, sign * np.exp(logarithm)) - expected)
    modulus = np.abs(np.abs(sign) - np.where(none, 0, 1))
    return (
        (
            "sign exp(logarithm) - determinant",
            difference,
            _error(attrs, inputs, expected, u) + relative * abs(expected),
        ),
        ("modulus of the sign", modulus, 4 * u * inputs[0].shape[-1]),
    )


def _log_gradient(op: Any, sign_grad: Any, grad: Any) -> list[Any]:
    """Returns the gradient: the complex logarithm's real part is one output; its imaginary part turns the sign,
    which a real one has not.
    """
    if grad.dtype.is_complex:
        turned = apply_op("Imag", [sign_grad * conjugate(op.outputs[0])], {"Tout": grad.dtype.real_dtype})
        real = apply_op("Real", [grad], {"Tout": grad.dtype.real_dtype})
        grad = apply_op("Complex", [real, turned], {"Tout": grad.dtype})
    return [scalars(grad) * _inverse_adjoint(op)]


define_op(
    "LogMatrixDeterminant",
    inputs=["input: T"],
    outputs=["sign: T", "log_abs_determinant: T"],
    attrs=[_TYPES],
    doc="The determinants of the matrices as a sign (0, or of modulus 1) and the logarithm of their modulus.",
    shape=_shape,
    reference=lambda attrs, input: tuple(x.astype(input.dtype) for x in np.linalg.slogdet(input)),
    accuracy=Residual(_log_laws, SOURCE),
    gradient=_log_gradient,
    samples=_samples,
    errors=_errors,
)
