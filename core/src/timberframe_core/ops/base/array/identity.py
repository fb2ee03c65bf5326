"""Ops whose output is their input, and those that have no output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import NotFoundError
from timberframe_core.ops.definition.gradients import apply_op, is_slices
from timberframe_core.ops.definition.host_values import first_value
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import unchanged
from timberframe_core.shapes import Shape, format_shape, merge

_SHAPES = ((), (1,), (0,), (3, 0, 2), (7, 13), (65_537,), (2, 1, 3, 1, 2, 1, 3, 1))


def _same_shapes(c: InferenceContext) -> list[Shape]:
    """Returns the shapes: each output has the shape of its input; handles of variables pass through."""
    for i, handle in enumerate(c.handles):
        if handle is not None:
            c.output_handles[i] = handle
    return list(c.shapes)


def _same(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    return x


def _one_input() -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample([Arg(shape)])


define_op(
    "Identity",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    doc="The input itself.",
    shape=_same_shapes,
    reference=_same,
    value=first_value,
    passes_through=True,
    gradient=lambda op, grad: [grad],
    gradient_takes_slices=True,
    alias=((0, 0),),
    samples=_one_input,
)

define_op(
    "Snapshot",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    doc="A copy of the input, which later writes to the input's memory do not reach.",
    shape=unchanged,
    reference=_same,
    value=first_value,
    passes_through=True,
    gradient=lambda op, grad: [grad],
    gradient_takes_slices=True,
    samples=_one_input,
)

define_op(
    "StopGradient",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    doc="The input itself; gradients take it for a constant.",
    shape=_same_shapes,
    reference=_same,
    value=first_value,
    passes_through=True,
    gradient=NotDifferentiable("it exists to stop gradients"),
    alias=((0, 0),),
    samples=_one_input,
)


def _prevented_gradient(op: Any, grad: Any) -> list[Any]:
    raise NotFoundError(
        f"PreventGradient '{op.name}': a gradient is requested through it; its message: {op.attrs['message']!r}",
        op.name,
    )


define_op(
    "PreventGradient",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type", "message: string = ''"],
    doc="The input itself; asking for a gradient through it is an error that shows `message`.",
    shape=_same_shapes,
    reference=_same,
    value=first_value,
    passes_through=True,
    gradient=_prevented_gradient,
    alias=((0, 0),),
    samples=lambda: (Sample([Arg(shape)], {"message": "no gradient here"}) for shape in _SHAPES),
)


def _identity_n(attrs: Attrs, *values: np.ndarray) -> Any:
    return tuple(values)


def _several_inputs() -> Iterator[Sample]:
    yield Sample([[Arg((2, 3), dtype="float32")]])
    yield Sample([[Arg((), dtype="int32"), Arg((65_537,), dtype="float64"), Arg((3, 0), dtype="bool")]])


define_op(
    "IdentityN",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: list(type) >= 1"],
    doc="Each output is the input at its place; all inputs are computed before any output is used.",
    shape=_same_shapes,
    reference=_identity_n,
    value=lambda c: list(c.values),
    passes_through=True,
    gradient=lambda op, *grads: list(grads),
    gradient_takes_slices=True,
    samples=_several_inputs,
)


def _ensured_shape(c: InferenceContext) -> list[Shape]:
    try:
        return [merge(c.shapes[0], c.attrs["shape"])]
    except ValueError:
        raise c.error(
            f"input has shape {format_shape(c.shapes[0])}; it must be compatible with {format_shape(c.attrs['shape'])}"
        ) from None


def _ensured_gradient(op: Any, grad: Any) -> list[Any]:
    return [grad if is_slices(grad) else apply_op("EnsureShape", [grad], {"shape": op.attrs["shape"]})]


def _ensured_samples() -> Iterator[Sample]:
    yield Sample([Arg((2, 3))], {"shape": (2, None)})
    yield Sample([Arg(())], {"shape": ()})
    yield Sample([Arg((0, 5))], {"shape": (None, 5)})


def _ensured_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg((2, 3))], r"has shape \(2, 3\); it must be compatible with \(2, 4\)", {"shape": (2, 4)})
    yield ErrorSample([Arg((2, 3))], r"it must be compatible with \(\?,\)", {"shape": (None,)})


define_op(
    "EnsureShape",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["shape: shape", "T: type"],
    doc="The input itself, after a check that its shape is compatible with the attr `shape`.",
    shape=_ensured_shape,
    reference=_same,
    value=first_value,
    gradient=_ensured_gradient,
    gradient_takes_slices=True,
    alias=((0, 0),),
    samples=_ensured_samples,
    errors=_ensured_errors,
)

define_op(
    "NoOp",
    doc="Does nothing; control edges meet in it.",
    shape=lambda c: [],
    role="no_op",
    gradient=NotDifferentiable("it has no output"),
)

define_op(
    "ControlTrigger",
    doc="Does nothing; control edges meet in it.",
    shape=lambda c: [],
    role="control_trigger",
    gradient=NotDifferentiable("it has no output"),
)
