"""Trials for derivatives: a few small, different samples, at points where functions are smooth."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_conformance.case import Types
from timberframe_conformance.cases.trials import Trial, fits, input_dtype, own_samples, samples_of
from timberframe_conformance.cases.values import fixed_array, make_array
from timberframe_conformance.truth.reference import evaluate
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_sdk.reference import widen

MOST_ELEMENTS = 600
"""Elements of all inputs together, so that one case takes milliseconds."""

RANGES: tuple[tuple[float, float] | None, ...] = (None, (-0.9, 0.9), (0.2, 0.9), (1.1, 3.9))
"""Where random values are tried, the sample's own range first, until the function is finite: the last three lie in the
domains of inverse sines, of logarithms and roots, and of the inverse hyperbolic cosine."""

AWAY = 0.125
"""Distance from zero of the real part of every random value: zero is the kink or pole of most functions with one."""


LARGEST = 1e4
"""The largest value that a function may take, so that gradients do not overflow float16 needlessly."""


HALF = 0.5
"""The fraction of the results that must be of ordinary size in the best range: some are infinite by definition, as the
logarithm of a sum of nothing."""


class NoSmoothPointError(Exception):
    """No range gives values of ordinary size."""


def smooth_arrays(trial: Trial, rng: np.random.Generator) -> list[np.ndarray | list[np.ndarray]]:
    """Inputs of a trial at which the function is finite, or half of it at least. Raises NoSmoothPointError.

    Floating ones are off zero and off the values that a sample states, unless the function exists there alone.
    """
    partly: list[np.ndarray | list[np.ndarray]] | None = None
    for limits, nudged in (*((limits, True) for limits in RANGES), (None, False)):
        arrays: list[Any] = []
        for arg_def, arg in zip(trial.op.inputs, trial.sample.inputs, strict=True):
            planned = arg_def.name in trial.op.shape_inputs
            made = [
                _values(
                    a,
                    input_dtype(arg_def, a, trial.types),
                    rng,
                    None if planned else limits,
                    nudged=nudged and not planned,
                )
                for a in (arg if isinstance(arg, Sequence) else [arg])
            ]
            arrays.append(made if isinstance(arg, Sequence) else made[0])
        flat = [x for a in arrays for x in (a if isinstance(a, list) else [a])]
        outputs = evaluate(trial.op, trial.attrs(arrays), [widen(x) for x in flat])
        shares = [float(np.mean(ordinary(y))) if y.size else 1.0 for y in outputs if y.dtype.name in FORMATS]
        if all(share == 1 for share in shares):
            return arrays
        if partly is None and (all(share >= HALF for share in shares) or any(x.size == 0 for x in flat)):
            partly = arrays
    if partly is None:
        raise NoSmoothPointError
    return partly


def ordinary(y: np.ndarray) -> np.ndarray:
    """Returns which elements are finite and not large."""
    return np.asarray(np.abs(y) <= LARGEST)


def _values(
    arg: Arg, dtype: str, rng: np.random.Generator, limits: tuple[float, float] | None, *, nudged: bool
) -> np.ndarray:
    if dtype not in FORMATS or arg.whole:
        return make_array(arg, dtype, rng)
    if arg.values is not None:
        x = fixed_array(arg.values, np.dtype(make_array(Arg(), dtype, rng).dtype))
        return np.asarray(x + rng.uniform(0.01, 0.03, x.shape)).astype(x.dtype) if nudged and not arg.fixed else x
    if limits is not None:
        arg = dataclasses.replace(arg, low=limits[0], high=limits[1])
    x = make_array(arg, dtype, rng)
    real = x.real.astype(np.float64)
    away = np.where(np.abs(real) < AWAY, np.copysign(AWAY, real), 0).astype(x.dtype)
    return np.asarray(x + away, x.dtype)


def floating(types: Types) -> frozenset[str]:
    """Returns the floating dtypes among those of a combination."""
    return frozenset(t for _, t in types if t in FORMATS)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A small sample with its index among the op's, its size, its features, and whether it is the op's own."""

    number: int
    sample: Sample
    size: int
    features: frozenset[Any]
    own: bool


@functools.lru_cache(8)
def candidates(op: OpDef) -> list[Candidate]:
    """Returns the op's small samples."""
    own = len(own_samples(op))
    return [
        Candidate(k, s, _size(s), frozenset(_features(s)), k < own)
        for k, s in enumerate(samples_of(op))
        if not s.implementation_defined and _size(s) <= MOST_ELEMENTS
    ]


def smooth_samples(op: OpDef, types: Types, count: int) -> list[tuple[int, Sample]]:
    """At most `count` small samples that fit, each chosen for what the ones before it lack."""
    fitting = [c for c in candidates(op) if fits(op, c.sample, types) and is_usable(op, c.sample, types)]
    left = [c for c in fitting if c.own] or fitting  # those that the suite adds have no ranges of their own
    seen: frozenset[Any] = frozenset()
    result: list[tuple[int, Sample]] = []
    while left and len(result) < count:
        best = max(left, key=lambda c: (len(c.features - seen), c.size))
        if result and not best.features - seen:
            break
        left.remove(best)
        seen |= best.features
        result.append((best.number, best.sample))
    return result


def empty_sample(op: OpDef, types: Types) -> list[tuple[int, Sample]]:
    """Returns a sample with an input that has no elements, if there is one."""
    fitting = (
        (c.number, c.sample)
        for c in candidates(op)
        if any(a.values is None and 0 in a.shape for a in _args(c.sample)) and fits(op, c.sample, types)
    )
    return list(itertools.islice(fitting, 1))


def _args(sample: Sample) -> Iterator[Arg]:
    for arg in sample.inputs:
        yield from arg if isinstance(arg, Sequence) else [arg]


def _size(sample: Sample) -> int:
    return sum(math.prod(a.shape) if a.values is None else int(np.size(a.values)) for a in _args(sample))


def is_usable(op: OpDef, sample: Sample, types: Types) -> bool:
    """Returns whether there is something to differentiate by, and stated values are of ordinary size."""
    smooth = False
    for arg_def, arg in zip(op.inputs, sample.inputs, strict=True):
        for a in arg if isinstance(arg, Sequence) else [arg]:
            if input_dtype(arg_def, a, types) in FORMATS:
                if 0 in (a.shape if a.values is None else np.shape(a.values)):
                    return False
                if a.values is not None and not np.all(np.abs(np.asarray(a.values)) < 100):
                    return False
                smooth = smooth or arg_def.name not in op.shape_inputs
    return smooth


def _features(sample: Sample) -> Iterator[Any]:
    """Yields what others may lack: values of attrs and sets of them, ranks, where sizes are
    one, signs of stated values.
    """
    attrs: Mapping[str, Any] = sample.attrs
    for name, value in attrs.items():
        yield name, repr(value)
    yield repr(sorted(attrs.items()))
    shapes = tuple(a.shape if a.values is None else np.shape(a.values) for a in _args(sample))
    yield tuple(map(len, shapes[:4]))
    yield tuple(tuple(min(d, 2) for d in s) for s in shapes[:4])
    for i, a in enumerate(sample.inputs):
        if isinstance(a, Arg) and a.values is not None and np.asarray(a.values).dtype.kind in "iu":
            yield i, np.size(a.values), bool(np.any(np.asarray(a.values) < 0))
