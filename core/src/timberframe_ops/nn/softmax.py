"""Softmax and its logarithm over the last dimension."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, constant
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape


def _shape(c: InferenceContext) -> list[Shape]:
    if c.rank(0) == 0:
        raise c.error("logits has shape (); it must have at least one dimension, the last being that of the classes")
    return [c.shapes[0]]


def _shifted(logits: Any) -> Any:
    """Returns each row less its largest element, so that no exponential overflows."""
    return logits - np.max(logits, axis=-1, keepdims=True, initial=-np.inf)


def _softmax(attrs: Attrs, logits: Any) -> Any:
    with np.errstate(all="ignore"):
        exponentials = np.exp(_shifted(logits))
        return (exponentials / np.sum(exponentials, axis=-1, keepdims=True)).astype(logits.dtype)


def _log_softmax(attrs: Attrs, logits: Any) -> Any:
    with np.errstate(all="ignore"):
        shifted = _shifted(logits)
        return (shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))).astype(logits.dtype)


def _softmax_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    (logits,) = inputs
    smallest = 2.0**-149 if u > 1e-10 else 2.0**-1074
    # Relative: u |x - max| from the difference (damped in the sum), 2 u for each exponential, gamma_n for the sum,
    # u for the quotient. Absolute: results below the normal range.
    shifted = np.abs(_shifted(logits))
    return (np.where(np.isfinite(shifted), shifted, 0.0) + logits.shape[-1] + 8) * u * np.abs(expected) + 2 * smallest


def _log_softmax_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    (logits,) = inputs
    # u |x - max| from the difference, (n + 4) u for the sum of exponentials under the logarithm, u of the logarithm (at
    # most log n) and u of the result.
    n = logits.shape[-1]
    shifted = np.abs(_shifted(logits))
    return (np.where(np.isfinite(shifted), 2 * shifted, 0.0) + n + 8 + 3 * np.log(n + 1.0)) * u


_SHAPES = (
    (1,), (17,), (0,), (3, 0), (0, 3), (7, 13), (5, 1), (33, 16), (2, 3, 5, 7), (3, 1031), (2, 5003), (65_537,),
    (65_537, 2), (2, 65_537), (2, 1, 3, 1, 2, 1, 3, 1),
)  # fmt: skip


def _samples() -> Iterable[Sample]:
    for shape in _SHAPES:
        types = {"T": ("float32",)} if shape[-1] == 1 else {}  # what is always the same has no slope to look for
        yield Sample([Arg(shape)], types=types)
    for shape in ((7, 13), (3, 257)):
        yield Sample([Arg(shape, low=-100, high=100)])  # exponentials underflow, but no sum overflows
        yield Sample([Arg(shape, low=-1e4, high=-9e3)])
    late = np.zeros((2, 3001))
    late[0, 1400] = late[1, 3000] = 100.0  # finite rows whose maximum comes late
    yield Sample([Arg(values=late)])


def _errors() -> Iterable[ErrorSample]:
    yield ErrorSample([Arg(())], r"logits has shape \(\)")


def _row_sum(x: Any) -> Any:
    return apply_op("Sum", [x, constant([-1], int32)], {"keep_dims": True})


def _softmax_gradient(op: Any, grad: Any) -> list[Any]:
    softmax = op.outputs[0]
    return [(grad - _row_sum(grad * softmax)) * softmax]


def _log_softmax_gradient(op: Any, grad: Any) -> list[Any]:
    return [grad - _row_sum(grad) * apply_op("Exp", [op.outputs[0]])]


def _define_softmax(name: str, output: str, doc: str, reference: Any, gradient: Any, error: Any, source: str) -> None:
    define_op(
        name,
        inputs=["logits: T"],
        outputs=[f"{output}: T"],
        attrs=["T: {half, bfloat16, float, double}"],
        doc=doc,
        shape=_shape,
        reference=reference,
        gradient=gradient,
        accuracy=Bound(error, source),
        samples=_samples,
        errors=_errors,
    )


_SOURCE = "rounding errors of each step (Higham, Accuracy and Stability, 2nd ed., chapter 3); exp and log within 2 ULP"
_define_softmax(
    "Softmax",
    "softmax",
    "exp(x) over the sum of exp along the last dimension.",
    _softmax,
    _softmax_gradient,
    _softmax_error,
    _SOURCE,
)
_define_softmax(
    "LogSoftmax", "logsoftmax", "x less the logarithm of the sum of exp along the last dimension.", _log_softmax,
    _log_softmax_gradient, _log_softmax_error, _SOURCE,
)  # fmt: skip
