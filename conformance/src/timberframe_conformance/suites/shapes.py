"""Shapes: what the shape and value functions of an op say of partly known inputs, held against its reference."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError, Types, generator, id_of
from timberframe_conformance.cases.trials import Trial, fits, own_samples
from timberframe_conformance.drive import flatten
from timberframe_conformance.levels.requirement import BREADTH, level_of
from timberframe_conformance.suites.forward import is_callable, supported
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.dtypes import as_dtype, resource
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graph.inference import (
    HOST_VALUE_ELEMENTS,
    arg_dtypes,
    arg_ranges,
    run_shape_function,
    value_positions,
)
from timberframe_core.ops.definition.host_values import HostValue, infer_values
from timberframe_core.ops.definition.opdef import UNKNOWN, Attrs, InferenceContext, OpDef
from timberframe_core.ops.definition.samples import Sample
from timberframe_core.shapes import Shape, compatible, format_shape, is_static

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "shapes"
RANDOM_CONTEXTS = 4
"""Versions of each sample in which other parts are unknown by chance."""
MOST_ELEMENTS = 3000
"""Elements of all inputs of a sample together, so that one case takes milliseconds."""
INTEGERS, FLOATS = ("int32", "int64"), ("float32", "float64")

Inputs = list[np.ndarray]
Known = tuple[Shape, HostValue]
"""What is known of an input: its static shape, and perhaps its value."""
Check = Callable[[OpDef, Attrs, Inputs, np.random.Generator], None]
"""Raises CaseFailedError where the op with these attrs and inputs is not as it must be."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields the samples and wrong calls of each op, in up to three combinations of its dtypes;
    nothing runs on the device.
    """
    for op in filter(is_callable, ops):
        right = [s for s in own_samples(op) if not s.implementation_defined]
        wrong = [Sample(e.inputs, e.attrs, e.types) for e in op.errors()]
        checks = [("inference", _infers_what_is_true, right), ("wrong-calls", _refuses_or_accepts, wrong)]
        if op.elementwise:
            checks.append(("broadcast", _broadcasts, right))
        groups, _ = supported(op, target)
        for detail, check, samples in checks:
            for types in _some_types(op, groups, samples):
                run = functools.partial(_judge, op, types, samples, check, id_of(SUITE, op.name, types, detail))
                yield Case(SUITE, op.name, types, detail, run, level_of(op, types))


def _some_types(op: OpDef, groups: Mapping[str, Sequence[Types]], samples: Sequence[Sample]) -> Sequence[Types]:
    """Returns integers, whose values shape arithmetic follows, and floats; such that a sample fits."""
    found = [t for group in groups.values() for t in group if any(fits(op, s, t) for s in samples)]
    found.sort(key=lambda types: level_of(op, types) == BREADTH)
    numbers = [t for t in found if not any(d == "bool" for _, d in t)]
    integers, floats = ([t for t in numbers if any(d in names for _, d in t)] for names in (INTEGERS, FLOATS))
    return [*integers[:2], *floats[:1]] or found[:1]


def _judge(
    op: OpDef, types: Types, samples: Sequence[Sample], check: Check, case_id: str, target: Target
) -> Measured | None:
    """Checks the small samples that fit. NotApplicableError where there are none."""
    rng, judged = generator(case_id), 0
    for number, sample in enumerate(samples):
        if not fits(op, sample, types):
            continue
        trial = Trial(op, types, sample, number)
        arrays = trial.arrays(f"{case_id}#{number}")
        inputs = flatten(arrays)
        if sum(x.size for x in inputs) <= MOST_ELEMENTS:
            check(op, trial.attrs(arrays), inputs, rng)
            judged += 1
    if not judged:
        raise NotApplicableError(f"no sample of these dtypes has at most {MOST_ELEMENTS} elements")
    return None


def _contexts(op: OpDef, attrs: Attrs, inputs: Inputs, rng: np.random.Generator) -> Iterator[InferenceContext]:
    """Yields the call with all ranks unknown, with all sizes unknown, and with parts unknown
    that are chosen by chance.
    """
    valued = range(len(inputs)) if op.value is not None else value_positions(op, attrs)
    yield _context(op, attrs, inputs, [(None, None) for _ in inputs])
    yield _context(op, attrs, inputs, [((None,) * x.ndim, None) for x in inputs])
    for _ in range(RANDOM_CONTEXTS):
        yield _context(op, attrs, inputs, [_blurred(rng, x, i in valued) for i, x in enumerate(inputs)])


def _context(op: OpDef, attrs: Attrs, inputs: Inputs, known: Sequence[Known]) -> InferenceContext:
    """Returns the call, with this known of each input; where an input is a handle, it is known of the variable."""
    ranges = arg_ranges(op.inputs, attrs)
    handles = {i for arg in op.inputs if arg.dtype is resource for i in ranges[arg.name]}
    dtypes = [as_dtype(x.dtype) for x in inputs]
    every = range(len(inputs))
    return InferenceContext(
        op, "case", attrs,
        [() if i in handles else known[i][0] for i in every],
        [None if i in handles else known[i][1] for i in every],
        [resource if i in handles else dtypes[i] for i in every],
        [(dtypes[i], known[i][0]) if i in handles else None for i in every],
    )  # fmt: skip


def _blurred(rng: np.random.Generator, x: np.ndarray, has_value: bool) -> Known:
    """Returns a static shape of x in which sizes or the rank may be unknown, and perhaps a value
    in which elements may be.
    """
    kind = rng.integers(6)
    if kind == 0:
        return None, None
    if kind < 3:
        return tuple(None if rng.random() < 0.4 else d for d in x.shape), None
    if not has_value or rng.random() < 0.3:
        return x.shape, None
    hidden = rng.random(x.shape) < 0.4
    if x.dtype.kind in "iub" and hidden.any() and rng.random() < 0.5:
        value = x.astype(object)
        value[hidden] = UNKNOWN
        return x.shape, value
    return x.shape, x


def _infer(c: InferenceContext) -> tuple[Sequence[Shape], Sequence[HostValue]]:
    """Returns shapes and host values of the outputs, as the graph finds them when the node is made.

    CaseFailedError where a function of the op raises what is no error of its inputs.
    """
    dtypes = arg_dtypes(c.op.outputs, c.attrs)
    try:
        shapes = run_shape_function(c, len(dtypes))
        small = all(s is not None and is_static(s) and math.prod(map(int, s)) <= HOST_VALUE_ELEMENTS for s in shapes)  # type: ignore[arg-type]  # it is static
        return shapes, infer_values(c, dtypes) if c.op.value is not None and small else [None] * len(dtypes)
    except (InvalidArgumentError, UnimplementedError):
        raise
    except Exception as e:
        raise CaseFailedError(
            f"its shape or value function raised {type(e).__name__}: {e} for {_described(c)}; it must give None in "
            "place of what is not known yet"
        ) from e


def _infers_what_is_true(op: OpDef, attrs: Attrs, inputs: Inputs, rng: np.random.Generator) -> None:
    """Checks that shapes and values that follow from a part of the inputs are those that the
    reference gives for all of them.
    """
    made = evaluate(op, attrs, inputs)
    true = made[len(made) - len(arg_dtypes(op.outputs, attrs)) :]  # the new values of variables are before
    for c in _contexts(op, attrs, inputs, rng):
        try:
            shapes, values = _infer(c)
        except (InvalidArgumentError, UnimplementedError) as e:
            raise CaseFailedError(f"{type(e).__name__}: {e}, for {_described(c)}; the call is right") from e
        for i, (shape, value, x) in enumerate(zip(shapes, values, true, strict=True)):
            if not compatible(shape, x.shape):
                raise CaseFailedError(
                    f"for {_described(c)} output {i} is said to have shape {format_shape(shape)}; for inputs of shapes "
                    f"{_listed(x.shape for x in inputs)} it has {format_shape(x.shape)}"
                )
            if value is not None and not _agrees(value, x):
                raise CaseFailedError(
                    f"for {_described(c)} output {i} is said to be {value.tolist()!r:.200}; it is {x.tolist()!r:.200}"
                )


def _broadcasts(op: OpDef, attrs: Attrs, inputs: Inputs, rng: np.random.Generator) -> None:
    """Checks that the output of an elementwise op has the shape that its inputs broadcast to, where they do."""
    try:
        wanted = np.broadcast_shapes(*(x.shape for x in inputs))
    except ValueError:
        return  # such as a condition that chooses rows
    (found,) = evaluate(op, attrs, inputs)
    if found.shape != wanted:
        raise CaseFailedError(
            f"the op is declared as elementwise, and makes {format_shape(found.shape)} of inputs of shapes "
            f"{_listed(x.shape for x in inputs)}; it must make {format_shape(wanted)}, to which they broadcast"
        )


def _refuses_or_accepts(op: OpDef, attrs: Attrs, inputs: Inputs, rng: np.random.Generator) -> None:
    """Checks that a wrong call of which a part is known is an error of its inputs, or none yet."""
    for c in _contexts(op, attrs, inputs, rng):
        with suppress(InvalidArgumentError, UnimplementedError):
            _infer(c)


def _agrees(value: np.ndarray, true: np.ndarray) -> bool:
    """Returns whether all known elements are those of the true output."""
    if value.shape != true.shape or value.dtype not in (true.dtype, np.dtype(object)):
        return False
    return all(a is UNKNOWN or a == b or a != a for a, b in zip(value.flat, true.flat, strict=True))


def _described(c: InferenceContext) -> str:
    known = [f"input {i} {v.tolist()!r:.100}" for i, v in enumerate(c.values) if v is not None]
    return f"inputs of shapes {_listed(c.shapes)}{', of which is known: ' if known else ''}{', '.join(known)}"


def _listed(shapes: Any) -> str:
    return ", ".join(map(format_shape, shapes)) or "none"
