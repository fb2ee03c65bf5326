"""What ops of one input, element by element, have in common: signature, shapes, samples, references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import EXACT, Accuracy
from timberframe_core.ops.definition.gradients import conjugate
from timberframe_core.ops.definition.opdef import Attrs, OpDef, Reference, define_op
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.ops.definition.shape_functions import UNARY_SHAPES, unchanged

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")

Gradient = Callable[..., list[Any]]

FLOAT_TYPES = "{bfloat16, half, float, double}"
INEXACT_TYPES = "{bfloat16, half, float, double, complex64, complex128}"
SIGNED_TYPES = "{bfloat16, half, float, double, int8, int16, int32, int64}"
SIGNED_AND_COMPLEX_TYPES = "{bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"
INTEGER_TYPES = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"


def unary_op(
    name: str,
    doc: str,
    reference: Callable[[Any], Any],
    types: str,
    *,
    accuracy: Accuracy = EXACT,
    values: Sequence[float] = (),
    samples: Callable[[], Iterable[Sample]] | None = None,
    **rest: Any,
) -> OpDef:
    """Declares ``y: T = op(x: T)``; `types` are T's allowed ones in TensorFlow's notation.

    reference: a function of the one array, with NumPy's own meaning.
    values: points that real dtypes are tried at in addition to random ones: edges of domains, roots, thresholds.
    samples: in place of the shapes that every such op is tried with.
    """
    return define_op(
        name,
        inputs=rest.pop("inputs", ("x: T",)),
        outputs=rest.pop("outputs", ("y: T",)),
        attrs=(*((f"T: {types}",) if types else ()), *rest.pop("attrs", ())),
        doc=doc,
        shape=unchanged,
        reference=_only_input(reference),
        accuracy=accuracy,
        samples=samples or (lambda: unary_samples(values)),
        elementwise=True,
        **rest,
    )


def by_input(formula: Callable[[Any, Any], Any]) -> Gradient:
    """Returns the gradient ``formula(grad, x)`` of y = f(x), x conjugated; of a holomorphic
    f it is grad times f'(x).
    """
    return lambda op, grad: [formula(grad, conjugate(op.inputs[0]))]


def by_output(formula: Callable[[Any, Any], Any]) -> Gradient:
    """Like `by_input` for a formula that needs y, conjugated, in place of x."""
    return lambda op, grad: [formula(grad, conjugate(op.outputs[0]))]


def _only_input(function: Callable[[Any], Any]) -> Reference:
    def reference(attrs: Attrs, x: Any) -> Any:
        return function(x)

    return reference


def unary_samples(values: Sequence[float] = (), arg: Arg = Arg()) -> Iterator[Sample]:
    """Yields a sample for each shape with the range that `arg` states, and one of these
    exact values for real dtypes.
    """
    for shape in UNARY_SHAPES:
        yield Sample((replace(arg, shape=shape),))
    if values:
        yield Sample((Arg(values=tuple(values)),), types={"T": FLOATS})


def computed_in_float32(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Evaluates a NumPy function of float16 or bfloat16 in float32 and rounds once, which is how kernels compute it."""

    def wrapped(x: np.ndarray) -> np.ndarray:
        if x.dtype.name not in ("float16", "bfloat16"):
            return np.asarray(function(x))
        return np.asarray(function(x.astype(np.float32))).astype(x.dtype)

    return wrapped
