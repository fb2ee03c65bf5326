"""Shape and value functions on partly known inputs: no Python exception, and nothing that a run contradicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import Types, generator
from timberframe_conformance.cases.trials import Trial, fits, own_samples
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.suites.forward import is_callable
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.inference import HOST_VALUE_ELEMENTS, arg_dtypes, run_shape_function, value_positions
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.host_values import infer_values
from timberframe_core.ops.definition.opdef import UNKNOWN, InferenceContext, OpDef
from timberframe_core.ops.definition.samples import Sample
from timberframe_core.shapes import compatible, is_static

CONTEXTS = 4  # versions of each sample with parts unknown
MOST_ELEMENTS = 3000
INTEGERS, FLOATS = ("int32", "int64"), ("float32", "float64")
OPS = [op for op in registry.all_ops() if is_callable(op) and not op.stateful and ">" not in op.name]

Inputs = list[np.ndarray]


def some_types(op: OpDef) -> Sequence[Types]:
    """Integers, whose values shape arithmetic follows, and floats."""
    found = [types for group in combinations(op).values() for types in group]
    numbers = [t for t in found if not any(d == "bool" for _, d in t)]
    integers, floats = ([t for t in numbers if any(d in names for _, d in t)] for names in (INTEGERS, FLOATS))
    return [*integers[:2], *floats[:1]] or found[:1] or [()]


def calls(op: OpDef, samples: Sequence[Sample]) -> Iterator[tuple[dict[str, Any], Inputs]]:
    """Attrs and the flat list of inputs of small calls."""
    for types in some_types(op):
        for number, sample in enumerate(samples):
            if sample.implementation_defined or not fits(op, sample, types):
                continue
            trial = Trial(op, types, sample, number)
            arrays = trial.arrays(f"{op.name}/{types}/{number}")
            flat = [x for given in arrays for x in (given if isinstance(given, list) else [given])]
            if sum(x.size for x in flat) <= MOST_ELEMENTS:
                yield trial.attrs(arrays), flat


def blurred(rng: np.random.Generator, x: np.ndarray, has_value: bool) -> tuple[Any, Any]:
    """A static shape of x in which sizes or the rank may be unknown, and perhaps a value in which elements may be."""
    kind = rng.integers(6)
    if kind == 0:
        return None, None
    if kind < 3:
        return tuple(None if rng.random() < 0.4 else d for d in x.shape), None
    if not has_value or rng.random() < 0.3:
        return x.shape, None
    hidden = rng.random(x.shape) < 0.4
    if x.dtype.kind in "iub" and hidden.any() and rng.random() < 0.5:
        return x.shape, np.where(hidden, UNKNOWN, x.astype(object))
    return x.shape, x


def contexts(op: OpDef, attrs: dict[str, Any], inputs: Inputs, label: str) -> Iterator[InferenceContext]:
    rng = generator(label)
    valued = range(len(inputs)) if op.value is not None else value_positions(op, attrs)
    for _ in range(CONTEXTS):
        known = [blurred(rng, x, i in valued) for i, x in enumerate(inputs)]
        shapes, values = ([pair[i] for pair in known] for i in range(2))
        dtypes = [as_dtype(x.dtype) for x in inputs]
        yield InferenceContext(op, "node", attrs, shapes, values, dtypes, [None] * len(inputs))


def infer(c: InferenceContext) -> tuple[Sequence[Any], Sequence[Any]]:
    """Shapes and host values of the outputs, as the graph finds them when the node is made."""
    dtypes = arg_dtypes(c.op.outputs, c.attrs)
    shapes = run_shape_function(c, len(dtypes))
    small = all(is_static(s) and math.prod(s) <= HOST_VALUE_ELEMENTS for s in shapes)  # type: ignore[arg-type]  # it is static
    return shapes, infer_values(c, dtypes) if c.op.value is not None and small else [None] * len(dtypes)


def agrees(value: np.ndarray, true: np.ndarray) -> bool:
    """Whether all known elements are those of the true output."""
    if value.shape != true.shape or value.dtype not in (true.dtype, np.dtype(object)):
        return False
    return all(a is UNKNOWN or a == b or a != a for a, b in zip(value.flat, true.flat, strict=True))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_inference_from_partly_known_inputs_is_correct(op: OpDef) -> None:
    for number, (attrs, inputs) in enumerate(calls(op, own_samples(op))):
        true = evaluate(op, attrs, inputs)
        for c in contexts(op, attrs, inputs, f"{op.name}/{number}"):
            known = f"{attrs} {c.shapes} {c.values}"
            shapes, values = infer(c)
            assert all(compatible(s, x.shape) for s, x in zip(shapes, true, strict=True)), known
            assert all(v is None or agrees(v, x) for v, x in zip(values, true, strict=True)), known


@pytest.mark.parametrize("op", [op for op in OPS if list(op.errors())], ids=lambda op: op.name)
def test_wrong_calls_that_are_known_in_part_are_refused_or_accepted(op: OpDef) -> None:
    samples = [Sample(e.inputs, e.attrs, e.types) for e in op.errors()]
    for number, (attrs, inputs) in enumerate(calls(op, samples)):
        for c in contexts(op, attrs, inputs, f"{op.name}/{number}"):
            try:
                shapes, values = infer(c)
            except (InvalidArgumentError, UnimplementedError):
                continue
            outputs = len(arg_dtypes(op.outputs, attrs))
            assert (len(shapes), len(values)) == (outputs, outputs), f"{attrs} {c.shapes} {c.values}"
