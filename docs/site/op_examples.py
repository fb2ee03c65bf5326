"""Examples of ops, and what they printed while the site was built.

An example is one that is written by hand, in the folder examples, or a call with the values of one of the op's samples.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import timberframe as tf
from op_sources import program
from op_written import written
from timberframe_conformance.case import Types
from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.types import combinations
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg, Sample

COMMON = ("float32", "int32", "bool", "string", "complex64", "float64", "")
"""Dtypes that examples have, the first that the op allows."""
FEW = 8
"""Elements that all inputs of an example have together, where there is a sample so small; at most FEW**2."""
TRIES = 16
LONG = 1500
"""Characters that an example does not print."""


def example(op: OpDef) -> tuple[str, str] | None:
    """Python that calls the op, and its output; None where nobody wrote one and no small sample runs by itself."""
    if op.name in written().programs:
        source = written().programs[op.name]
        return source, run(source)
    for trial in _trials(op):
        try:
            source = program(op, trial)
            printed = run(source)
        except Exception:  # a sample may need exactly its own values
            continue
        if printed.strip("[]()\n") and len(printed) < LONG:
            return source, printed
    return None


def run(source: str) -> str:
    """Returns what a program prints that has `np` and `tf`, on the CPU, in an empty folder."""
    printed = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        tf.Graph().as_default(),
        tf.device("/device:CPU:0"),
    ):
        tf.set_random_seed(1)
        exec(source, {"np": np, "tf": tf})
    return printed.getvalue()


def _trials(op: OpDef) -> Iterator[Trial]:
    """Yields the op's smallest samples that have elements, in the most common dtypes.

    An op on variables of TensorFlow's older kind has no samples: those are used that its form for resources has.
    """
    op = (registry.find(f"Resource{op.name}") if any(a.is_ref for a in op.inputs) else None) or op
    samples = [(n, s) for n, s in enumerate(samples_of(op)) if not s.implementation_defined]
    groups = combinations(op)
    found: list[Trial] = []
    for key in (k for k in COMMON if k in groups):
        for types in sorted(groups[key], key=_uncommon)[:8]:
            found += [Trial(op, types, s, n) for n, s in samples if fits(op, s, types) and _size(s) <= FEW**2]
        if found:
            break
    yield from sorted(found, key=lambda t: _strangeness(t.sample))[:TRIES]


def _strangeness(sample: Sample) -> tuple[Any, ...]:
    """Returns what makes a sample a worse example: empty inputs, edge cases, many dimensions, few or many elements."""
    args = list(_args(sample.inputs))
    edges = sum(arg.values is not None and np.asarray(arg.values).dtype.kind == "f" for arg in args)
    deep = max((len(_shape(arg)) for arg in args), default=0) > 2
    return any(0 in _shape(arg) for arg in args), edges, deep, abs(np.log((_size(sample) or 1) / FEW))


def _shape(arg: Arg) -> tuple[int, ...]:
    return arg.shape if arg.values is None else np.shape(arg.values)


def _size(sample: Sample) -> int:
    return sum(int(np.prod(_shape(arg))) for arg in _args(sample.inputs))


def _args(inputs: Sequence[Any]) -> Iterator[Arg]:
    """Yields all inputs, those in lists too."""
    for arg in inputs:
        yield from _args(arg) if isinstance(arg, Sequence) else [arg]


def _uncommon(types: Types) -> int:
    return sum(COMMON.index(d) if d in COMMON else len(COMMON) for _, d in types)
