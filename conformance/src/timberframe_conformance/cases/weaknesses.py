"""Why a trial shows little: on empty tensors, equal elements or zeros a kernel that does nothing is right."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.cases.trials import Trial, samples_of
from timberframe_conformance.cluster import output_shapes
from timberframe_conformance.drive import flatten
from timberframe_conformance.truth.reference import quiet, true_outputs
from timberframe_core.dtypes import BY_NAME
from timberframe_core.graph.inference import arg_dtypes
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg

EQUAL_OUTPUT = "all elements of an output are equal"
NO_SECOND = "all outputs are zero after their first entry"
COPIES = "the outputs are copies of the first input"
ZEROS = "all outputs are zero"
NOT_TRIED = "other values are not tried"
SAME_OUTPUTS = "other values give the same outputs"

MOST_COMPARED = 3
"""Number of further draws of values: of few elements that are true or false, two draws often have the same."""
MOST_EVALUATED = 2_000
"""Of trials with more input elements shapes alone are looked at: random values of that number differ."""

_known: dict[Any, tuple[Any, tuple[str, ...]]] = {}
"""By kinds of dtypes, which hold the same values, and by sample; with the sample, so that its id stays taken."""


def weaknesses(trial: Trial) -> tuple[str, ...]:
    """Returns the reasons why some wrong kernels give right results on a trial; none for one that shows all of them.

    Nothing is said against a trial that the op's reference does not take: its case says so.
    """
    kinds = tuple(_kind(dtype) for _, dtype in trial.types)
    between = trial.types if len(kinds) > 1 else ()  # what an op between dtypes gives depends on both
    key = trial.op.name, kinds, between, trial.special, id(trial.sample)
    if key not in _known:
        try:
            found = tuple(_found(trial, kinds))
        except Exception:
            found = ()
        _known[key] = trial.sample, found
    return _known[key][1]


def input_size(trial: Trial) -> int:
    """Returns the number of elements of all inputs."""
    return sum(map(_size, _flat(trial.sample.inputs)))


def input_shapes(trial: Trial) -> list[tuple[int, ...]]:
    """Returns the shape of each input, and of each tensor of one that is a list."""
    return list(map(_shape, _flat(trial.sample.inputs)))


def _shape(a: Arg) -> tuple[int, ...]:
    return tuple(np.shape(a.values)) if a.values is not None else tuple(a.shape)


def _size(a: Arg) -> int:
    return math.prod(_shape(a))


def _flat(inputs: Sequence[Arg | Sequence[Arg]]) -> list[Arg]:
    return [a for arg in inputs for a in (arg if isinstance(arg, Sequence) else [arg])]


def _kind(dtype: str) -> str:
    kind = BY_NAME[dtype].numpy.kind
    return {"O": "string", "V": "f"}.get(kind, kind)  # V: bfloat16


def _found(trial: Trial, kinds: Sequence[str]) -> Iterator[str]:
    op, large = trial.op, input_size(trial) > MOST_EVALUATED
    if large and "string" in kinds:  # it takes long to make so many strings, which differ
        return
    arrays = trial.arrays("")
    attrs = trial.attrs(arrays)
    data = [(i, x) for i, x in enumerate(arrays) if op.input_role(op.inputs[i]) == "data"]
    for i, x in data:
        if i not in _scalars(op) and not all(map(_varies, flatten([x]))):
            yield f"all elements of input {op.inputs[i].name} are equal"
    flags = any(t.name == "bool" for t in arg_dtypes(op.outputs, attrs))  # which may all be equal at any size
    if op.stream is not None or (large and not flags):
        yield from _of_shapes([shape for shape, _ in output_shapes(op, attrs, flatten(arrays))])
        if all(a.values is not None for i, _ in data for a in _flat([trial.sample.inputs[i]])):
            yield NOT_TRIED
        return
    outputs = list(map(np.asarray, true_outputs(op, attrs, flatten(arrays))))
    yield from _of_values(outputs, flatten([x for _, x in data]))
    others = [flatten(trial.arrays(f"other {n}")) for n in range(MOST_COMPARED)]
    if all(map(_same, flatten(arrays), others[0])):
        yield NOT_TRIED
        return
    found = [outputs]
    for other in others:
        found.append(list(map(np.asarray, true_outputs(op, attrs, other))))
        if any(all(map(_same, found[-1], before)) for before in found[:-1]):
            yield SAME_OUTPUTS
            return


@functools.cache
def _scalars(op: OpDef) -> frozenset[int]:
    """Returns the inputs that have one element in all samples, such as a rate."""
    samples = samples_of(op)
    return frozenset(
        i for i in range(len(op.inputs)) if all(_size(a) < 2 for s in samples for a in _flat([s.inputs[i]]))
    )


def _of_shapes(shapes: Sequence[tuple[int, ...]]) -> Iterator[str]:
    for shape in shapes:
        if math.prod(shape) < 2:
            yield EQUAL_OUTPUT
    if all(not shape or shape[0] < 2 for shape in shapes):
        yield NO_SECOND


def _of_values(outputs: Sequence[np.ndarray], data: Sequence[np.ndarray]) -> Iterator[str]:
    for y in outputs:
        if not _varies(y):
            yield EQUAL_OUTPUT
    if not any(y.ndim and y.shape[0] > 1 and _any(y[1:]) for y in outputs):
        yield NO_SECOND
    if not any(map(_any, outputs)):
        yield ZEROS
    if data and all(_same(y, copied(data[0], y)) for y in outputs):
        yield COPIES


def copied(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Returns the elements of x, as often as needed, in the shape and dtype of another array."""
    if not x.size or x.dtype.hasobject != like.dtype.hasobject:
        return np.full_like(like, b"" if like.dtype.hasobject else 0)
    with quiet():
        return np.resize(x, like.shape).astype(like.dtype)


def _varies(x: np.ndarray) -> bool:
    flat = x.reshape(-1)
    differs = flat[1:] != flat[:1]
    if x.dtype.kind in "fc":
        differs &= ~(np.isnan(flat[1:]) & np.isnan(flat[:1]))
    return flat.size > 1 and bool(differs.any())


def _any(x: np.ndarray) -> bool:
    return bool((x != (b"" if x.dtype.hasobject else 0)).any())


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc")
