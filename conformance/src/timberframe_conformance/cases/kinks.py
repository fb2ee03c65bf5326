"""Trials for derivatives at the points where formulas break: zeros, ties, limits of a range, segments of nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from timberframe_conformance.case import Types
from timberframe_conformance.cases.smooth import candidates, is_usable
from timberframe_conformance.cases.trials import Trial, fits, input_dtype
from timberframe_conformance.cases.values import make_array
from timberframe_core.ops.definition.formats import FORMATS
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample

MOST_ELEMENTS = 150
"""Floating elements of all inputs together."""
ENOUGH = 6
"""Elements of a sample in which several tie, or are zero."""
MOSTLY = 0.6
"""The fraction of the elements that are zero, or equal."""
KINDS = ("zeros", "ties")


def kink_samples(op: OpDef, types: Types, count: int) -> list[tuple[int, Sample]]:
    """Returns at most `count` small samples, each chosen for attrs and integers that the ones before it lack."""
    left = [c for c in candidates(op) if fits(op, c.sample, types) and is_usable(op, c.sample, types)]
    left = [c for c in left if 0 < _floating_elements(op, c.sample, types) <= MOST_ELEMENTS]
    left = [c for c in left if c.own] or left
    seen: frozenset[object] = frozenset()
    result: list[tuple[int, Sample]] = []
    while left and len(result) < count:
        best = max(left, key=lambda c: (len(c.features - seen), c.size >= ENOUGH, -c.size))
        left.remove(best)
        if result and not best.features - seen:
            break
        seen |= best.features
        result.append((best.number, best.sample))
    return result


def kink_arrays(
    trial: Trial, kind: str, all_equal: bool, rng: np.random.Generator
) -> list[np.ndarray | list[np.ndarray]]:
    """Returns inputs of a trial whose floating elements are mostly zeros, or mostly equal.

    kind: one of KINDS. all_equal: all are; else some are at a limit of their range. Stated values are kept, and
    so are inputs that say shapes.
    """
    arrays: list[np.ndarray | list[np.ndarray]] = []
    for arg_def, arg in zip(trial.op.inputs, trial.sample.inputs, strict=True):
        planned = arg_def.name in trial.op.shape_inputs
        made = [
            _values(a, input_dtype(arg_def, a, trial.types), kind, all_equal, rng, planned)
            for a in (arg if isinstance(arg, Sequence) else [arg])
        ]
        arrays.append(made if isinstance(arg, Sequence) else made[0])
    return arrays


def _values(arg: Arg, dtype: str, kind: str, all_equal: bool, rng: np.random.Generator, planned: bool) -> np.ndarray:
    if dtype not in FORMATS or planned or arg.whole or arg.values is not None:
        return make_array(arg, dtype, rng)
    limits = [v for v in (arg.low, arg.high) if v is not None]
    common = 0.0 if kind == "zeros" else 0.5
    others = [-1.0, 0.25, 1.0, 3.0, 6.0, *limits]
    chosen = np.where(all_equal | (rng.random(arg.shape) < MOSTLY), common, rng.choice(others, arg.shape))
    return chosen.astype(make_array(Arg(), dtype, rng).dtype)


def _floating_elements(op: OpDef, sample: Sample, types: Types) -> int:
    return sum(
        math.prod(a.shape) if a.values is None else int(np.size(a.values))
        for name, a in _args(op, sample)
        if input_dtype(next(d for d in op.inputs if d.name == name), a, types) in FORMATS
    )


def _args(op: OpDef, sample: Sample) -> Iterator[tuple[str, Arg]]:
    for arg_def, arg in zip(op.inputs, sample.inputs, strict=True):
        for a in arg if isinstance(arg, Sequence) else [arg]:
            yield arg_def.name, a
