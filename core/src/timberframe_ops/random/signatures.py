"""Shape functions, accuracies and samples that the stateful and stateless random ops share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Accuracy, Bound
from timberframe_core.ops.definition.host_values import checked
from timberframe_core.ops.definition.opdef import UNKNOWN, Attrs, InferenceContext, NotDifferentiable
from timberframe_core.ops.definition.samples import Arg, ErrorSample
from timberframe_core.shapes import Shape, StaticShape, format_shape

NO_GRADIENT = NotDifferentiable("its numbers are drawn, not computed from an input")

REALS = "{half, bfloat16, float, double}"
SHAPES: tuple[StaticShape, ...] = ((), (0,), (1,), (3,), (7, 13), (3, 0, 2), (2, 3, 5, 7), (1001,), (65_537,))
"""Sizes that end within a block, a group of blocks and a vector of them."""


def sizes_of(shape: np.ndarray) -> StaticShape:
    """Returns the value of a `shape` input."""
    return tuple(int(d) for d in shape.reshape(-1))


def shape_from_input(c: InferenceContext, i: int = 0) -> Shape:
    """Returns the shape that input i spells; it must be a vector of sizes that are zero or more."""
    name, given = c.op.inputs[i].name, c.shapes[i]
    if given is not None and len(given) != 1:
        raise c.error(f"{name} has shape {format_shape(given)}; it must be a vector of sizes")
    value = c.values[i]
    if value is None:
        return c.shape_value(i)
    sizes = tuple(None if d is UNKNOWN else int(d) for d in value.reshape(-1))
    if any(d is not None and d < 0 for d in sizes):
        raise c.error(f"{name} is {format_shape(sizes)}; sizes must be zero or more")
    return checked(c, sizes)


def require_shape(c: InferenceContext, i: int, wanted: StaticShape) -> None:
    """Raises unless input i has this shape, as far as that is known."""
    shape = c.shapes[i]
    if shape is not None and (
        len(shape) != len(wanted) or any(a not in (None, b) for a, b in zip(shape, wanted, strict=True))
    ):
        rule = "a scalar is required" if wanted == () else f"shape {format_shape(wanted)} is required"
        raise c.error(f"{c.op.inputs[i].name} has shape {format_shape(shape)}; {rule}")


def ends_with(c: InferenceContext, shape: Shape, tail: Shape, what: str) -> None:
    """Raises unless the last sizes of `shape` are those of `tail`."""
    if shape is None or tail is None:
        return
    end = shape[len(shape) - len(tail) :] if len(tail) <= len(shape) else None
    if end is None or any(None not in (a, b) and a != b for a, b in zip(end, tail, strict=True)):
        raise c.error(f"shape is {format_shape(shape)}; it must end with {format_shape(tail)}, the shape of {what}")


def matrix_shape(c: InferenceContext) -> list[Shape]:
    """Returns rows of logits and a count: [rows, count]."""
    logits = c.require_rank(0, 2)
    require_shape(c, 1, ())
    if logits[1] == 0:
        raise c.late_error(f"logits has shape {format_shape(logits)}; at least one class is required")
    count = c.value(1)
    if count is not None and int(count) < 0:
        raise c.error(f"num_samples is {int(count)}; it must be zero or more")
    return [checked(c, (logits[0], None if count is None else int(count)))]


def _normal_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    return 10 * u * np.abs(expected)


NORMAL: Accuracy = Bound(
    _normal_error,
    "sqrt(-2 log u) sin(v): a logarithm within 1 ULP gives u after the root, the root u, a sine within 1 ULP 2 u, the "
    "product u: 5 u, and as much again for the float64 reference where that is the precision",
)


def _gamma_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """d (1 + c x)^3 with c = 1 / (3 sqrt(d)) and a normal x below 8.6 that errs by 10 u: 3 d (1 + c x)^2 c |dx|."""
    alpha = inputs[-1]
    d = alpha + 1.0
    slope = np.sqrt(d) * np.square(1 + 8.6 / (3 * np.sqrt(np.maximum(alpha, 2 / 3))))
    return 2.0**-53 * (16 * np.abs(expected) + 86 * slope) + u * np.abs(expected)


GAMMA: Accuracy = Bound(_gamma_error, "the error of the normal, 10 u, through d (1 + x / (3 sqrt d))^3, in float64")

_UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}


def _bounded_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    mean, _, low, high = inputs[-4:]
    bounds = sum(float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0)) for b in (low, high, mean))
    return 32 * _UNITS[attrs["dtype"].name] * (np.abs(expected) + bounds)


BOUNDED: Accuracy = Bound(
    _bounded_error,
    "a dozen operations in the dtype itself on numbers no larger than the result, the mean and the bounds",
)


def shape_errors(*more: Arg) -> Iterable[ErrorSample]:
    """Wrong `shape` inputs, before the other inputs `more`."""
    yield ErrorSample([Arg(values=((2, 3),)), *more], r"shape has shape \(1, 2\); it must be a vector")
    yield ErrorSample([Arg(values=(2, -3)), *more], r"shape is \(2, -3\); sizes must be zero or more")


def numbers_drawn(attrs: Attrs, shapes: Any, output: StaticShape) -> int:
    """Returns the blocks that most ops reserve: 256 for each output, whatever they use."""
    return 256 * math.prod(output)
