"""Patterns: kernels that run several nodes as one (`KernelDef.covers`), against the truth of their parts.

The first part has the inputs of its op's samples, also with all sizes doubled, for kernels that decline odd ones. What
the later parts read besides gets a shape that fits.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_conformance.case import LEVELS, Case, Measured, Types, UnsupportedError, generator, id_of
from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.cases.values import make_array
from timberframe_conformance.cases.weaknesses import input_size
from timberframe_conformance.levels.requirement import level_of
from timberframe_conformance.twin import Twin, Value
from timberframe_core.errors import OpError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample
from timberframe_core.plugin.contracts import KernelDef, Part

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "patterns"
MOST = 64
"""Samples of the first part's op that a kernel is tried with in a dtype."""
LARGEST = 20_000


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each of the device's kernels that cover nodes, listed with the op of its last
    part, in each of its dtypes.
    """
    by_op = target.device.kernels.covering(target.device.type)
    for op in ops:
        for kernel in by_op.get(op.name, ()):
            for types in _types(op, kernel):
                for trial in _trials(kernel.covers[0], types[0][1]):
                    detail = f"{kernel.op}-{trial.detail}"
                    run = functools.partial(_run, kernel, trial, id_of(SUITE, op.name, types, detail))
                    yield Case(SUITE, op.name, types, detail, run, _level(kernel, trial), expected=False)


def _level(kernel: KernelDef, trial: Trial) -> str:
    """Returns the level whose networks, with those below it, call the ops of all parts in such a way."""
    dtype = trial.types[0][1]
    levels = [trial.level]
    for part in kernel.covers[1:]:
        op = registry.get(part.op)
        levels += [level_of(op, types) for group in combinations(op).values() for types in group if _all(types, dtype)]
    return max(levels, key=LEVELS.index)


def _all(types: Types, dtype: str) -> bool:
    return {t for _, t in types} == {dtype}


def _types(op: OpDef, kernel: KernelDef) -> list[Types]:
    """Returns the dtypes of the last part that the kernel takes."""
    found = [types for group in combinations(op).values() for types in group if types]
    return [ts for ts in found if all(dtype in kernel.types.get(name, (dtype,)) for name, dtype in ts)]


def _trials(part: Part, dtype: str) -> list[Trial]:
    """Ways to call the first part's op in a dtype, spread over its samples."""
    op = registry.get(part.op)
    types = next((ts for group in combinations(op).values() for ts in group if _all(ts, dtype)), None)
    if types is None or any(a.is_list for a in op.inputs):
        return []
    samples = [s for sample in samples_of(op) for s in (sample, _doubled(sample))]
    found = [Trial(op, types, s, k) for k, s in enumerate(samples) if fits(op, s, types)]
    found = [t for t in found if not t.sample.implementation_defined and 0 < input_size(t) <= LARGEST]
    return found[:: max(1, -(-len(found) // MOST))]


def _doubled(sample: Sample) -> Sample:
    """Returns the sample with each size twice what it was; inputs that are values stay."""
    inputs = [
        dataclasses.replace(a, shape=tuple(2 * d for d in a.shape)) if isinstance(a, Arg) and a.values is None else a
        for a in sample.inputs
    ]
    return dataclasses.replace(sample, inputs=inputs)


def _run(kernel: KernelDef, trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Runs a case; every other one has constants in place of fed values, which kernels may prepare."""
    twin, constants = Twin(target), bool(trial.number % 2)
    arrays = trial.arrays(case_id)
    values: dict[str, Value] = {}
    for i, (name, arg, array) in enumerate(zip(kernel.covers[0].inputs, trial.op.inputs, arrays, strict=True)):
        known = arg.name in trial.op.shape_inputs or (constants and i > 0)
        values.setdefault(name, _given(twin, np.asarray(array), known))
    inputs = [values[name] for name in kernel.covers[0].inputs]
    try:
        outputs = twin.outputs(trial.op.name, inputs, trial.sample.attrs)
    except (OpError, ValueError) as e:
        raise UnsupportedError(f"{trial.op.name} does not take the sample with doubled sizes: {e}") from e
    rng = generator(case_id)
    for before, part in itertools.pairwise(kernel.covers):
        values[before.name] = outputs[0]  # what a part hands on
        outputs = _add(twin, part, values, constants, rng)
    with target.session(twin.graph) as session:
        ran = session.explain([v.tensor for v in outputs], twin.feeds).kernels
    if kernel.op not in [k.op for k in ran]:
        raise UnsupportedError("; ".join(why for k in ran for why in k.declined) or "another kernel runs these nodes")
    return twin.check(outputs, runs=2)


def _given(twin: Twin, array: np.ndarray, known: bool) -> Value:
    return twin.constant(array, array.dtype.name) if known else twin.feed(array)


def _add(twin: Twin, part: Part, values: dict[str, Value], constants: bool, rng: np.random.Generator) -> list[Value]:
    """Returns the outputs of a later part, with attrs of a sample and inputs of shapes that it takes."""
    op = registry.get(part.op)
    made = next(values[name] for name in part.inputs if name in values)
    missing = [name for name in dict.fromkeys(part.inputs) if name not in values]
    shape = made.narrow.shape
    shapes = list(dict.fromkeys([shape[-1:], shape[1:2], shape, ()]))
    known = made.tensor.op.attrs  # such as data_format, in which the parts of a layer agree
    attrs = [{n: known.get(n, v) for n, v in s.attrs.items()} for s in samples_of(op)]
    attrs = list({repr(a): a for a in attrs}.values())
    rng.shuffle(attrs)
    for chosen, sizes in itertools.product([*attrs[:4], {}], itertools.product(shapes, repeat=len(missing))):
        more = {
            name: _given(twin, make_array(Arg(size), made.narrow.dtype.name, rng), constants)
            for name, size in zip(missing, sizes, strict=True)
        }
        try:
            outputs = twin.outputs(part.op, [{**values, **more}[name] for name in part.inputs], chosen)
        except (OpError, ValueError):
            for value in more.values():
                twin.feeds.pop(value.tensor, None)
            continue
        values.update(more)
        return outputs
    raise UnsupportedError(f"no inputs of {part.op} were found that fit {list(shape)}; samples of the op may help")
