"""What ops of two broadcasting operands have in common: signature, shapes, samples, host values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import EXACT, Accuracy
from timberframe_core.ops.definition.host_values import static_output
from timberframe_core.ops.definition.opdef import (
    UNKNOWN,
    Attrs,
    InferenceContext,
    NotDifferentiable,
    OpDef,
    Reference,
    define_op,
    is_known,
)
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import BROADCAST_PAIRS, ERROR_PAIRS, broadcast_all

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")

PIECEWISE_CONSTANT = NotDifferentiable("the gradient is zero almost everywhere")


def binary_op(
    name: str,
    doc: str,
    reference: Reference,
    types: str,
    *,
    accuracy: Accuracy = EXACT,
    samples: Callable[[], Iterable[Sample]] | None = None,
    errors: Callable[[], Iterable[ErrorSample]] | None = None,
    mismatch: str = "do not broadcast",
    **rest: Any,
) -> OpDef:
    """Declares ``z: T = op(x: T, y: T)`` with broadcasting; `types` are T's allowed ones in TensorFlow's notation.

    samples: in place of the pairs of shapes that every such op is tried with.
    errors: in addition to those for shapes that do not broadcast, whose message has the words `mismatch`.
    """
    return define_op(
        name,
        inputs=rest.pop("inputs", ("x: T", "y: T")),
        outputs=rest.pop("outputs", ("z: T",)),
        attrs=(*((f"T: {types}",) if types else ()), *rest.pop("attrs", ())),
        doc=doc,
        shape=rest.pop("shape", broadcast_all),
        reference=reference,
        accuracy=accuracy,
        samples=samples or broadcast_samples,
        elementwise=True,
        errors=lambda: (*broadcast_errors(mismatch), *(errors() if errors else ())),
        **rest,
    )


def broadcast_samples(x: Arg = Arg(), y: Arg = Arg(), types: Sequence[str] = ()) -> Iterator[Sample]:
    """Yields a sample for each pair of shapes, with the ranges that x and y state, for the
    dtypes named (all if none).
    """
    limits = {"T": tuple(types)} if types else {}
    for a, b in BROADCAST_PAIRS:
        yield Sample((replace(x, shape=a), replace(y, shape=b)), types=limits)


def value_sample(types: Sequence[str], *values: Sequence[Any]) -> Sample:
    """Returns a sample of exact values, one row for each input."""
    return Sample(tuple(Arg(values=row) for row in values), types={"T": tuple(types)})


def broadcast_errors(match: str = "do not broadcast") -> Iterator[ErrorSample]:
    """Yields a wrong call for each pair of shapes that does not broadcast."""
    for a, b in ERROR_PAIRS:
        yield ErrorSample((Arg(shape=a), Arg(shape=b)), match=match)


def limits(dtype: str) -> tuple[int, int]:
    """Least and greatest value of an integer dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def at_least_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Evaluates a NumPy function of float16 or bfloat16 in float32 and rounds once, which is how kernels compute it."""

    def wrapped(*inputs: np.ndarray) -> np.ndarray:
        dtype = inputs[0].dtype
        if dtype.name not in ("float16", "bfloat16"):
            return np.asarray(function(*inputs))
        return np.asarray(function(*(x.astype(np.float32) for x in inputs))).astype(dtype)

    return wrapped


def own_dtype(attrs: Attrs, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the inputs in the op's dtype T, float32 for narrower floats, for results that
    depend on the rounding itself.
    """
    dtype = attrs["T"].numpy if "T" in attrs else inputs[0].dtype
    return tuple(x.astype(np.float32 if dtype.name in ("float16", "bfloat16") else dtype) for x in inputs)


def host_value(function: Callable[[Any, Any], Any]) -> Callable[[InferenceContext], list[np.ndarray | None]]:
    """Returns a value function: the reference on known values, `function` on the known elements of partly known ones.

    A value that cannot be computed (a division by zero) is left to the kernel, which reports it.
    """

    def element(x: Any, y: Any) -> Any:
        return UNKNOWN if x is UNKNOWN or y is UNKNOWN else function(int(x), int(y))

    def value(c: InferenceContext) -> list[np.ndarray | None]:
        x, y = c.values
        if x is None or y is None:
            return [None]
        shape = static_output(c)
        if shape is None:
            return [None]
        if 0 in shape:
            return [np.empty(shape)]
        if is_known(x) and is_known(y):
            return [_known_value(c, x, y)]
        if not c.dtypes[0].is_integer:
            return [None]
        try:
            return [np.asarray(np.frompyfunc(element, 2, 1)(x, y), dtype=object)]
        except (ZeroDivisionError, ValueError):  # ValueError: Equal takes operands that do not broadcast
            return [None]

    return value


def _known_value(c: InferenceContext, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    assert c.op.reference is not None
    dtype = c.dtypes[0].numpy
    x, y = x.astype(dtype), y.astype(dtype)
    if c.op.refused is not None and c.op.refused.fault(y):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(c.op.reference(c.attrs, x, y))
