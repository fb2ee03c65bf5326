"""The op that tells how gamma numbers move with their shape parameters, and the gradients that it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.binary import binary_op, value_sample
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, MissingGradient
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_ops.math.incomplete_gamma import SHAPES, UNIT, gamma_sample_slope


def _error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Any, u: float) -> Any:
    alpha, sample = inputs
    size = gamma_sample_slope(alpha, sample, magnitude=True)
    terms = 16 + 9 * np.sqrt(np.abs(np.where(np.isfinite(alpha), alpha, 0.0)))
    return u * np.abs(expected) + np.where(np.isfinite(size), 8 * terms * UNIT * size, 0.0)


def _samples() -> Iterator[Sample]:
    for shapes in SHAPES:
        yield Sample([Arg(shape, low=0.1, high=20, special=False) for shape in shapes])
    alpha = (1.0, 0.5, 0.5, 2.0, 100.0, 100.0, 400.0, 400.0, 0.0, -1.0, 1.0, np.nan, 1.0, np.inf)
    sample = (1.0, 1e-20, 30.0, 0.0, 80.0, 130.0, 400.0, 450.0, 1.0, 1.0, -1.0, 1.0, np.nan, 1.0)
    yield value_sample(("float32", "float64"), alpha, sample)


def alpha_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient of an op that draws gamma numbers with respect to its last input, the shape parameters."""
    alpha = op.inputs[-1]
    slope = apply_op("RandomGammaGrad", [alpha, op.outputs[0]])
    return [None] * (len(op.inputs) - 1) + [sum_to_shape(grad * slope, alpha)]


binary_op(
    "RandomGammaGrad",
    "How gamma numbers move with their shape parameters alpha when the probability below them stays, by element.",
    lambda attrs, alpha, sample: gamma_sample_slope(alpha, sample).astype(sample.dtype),
    "{float, double}",
    inputs=("alpha: T", "sample: T"),
    outputs=("output: T",),
    accuracy=Bound(
        _error, "8 roundings in float64 for each term of the series or fraction, of which 9 sqrt(alpha) count"
    ),
    samples=_samples,
    gradient=MissingGradient("TensorFlow has no second derivative either"),
)
