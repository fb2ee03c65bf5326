"""Examples of ops: a call with the values of one of the op's samples, and what it printed while the site was built."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.case import Types
from timberframe_conformance.cases.trials import Trial, fits, samples_of
from timberframe_conformance.cases.types import combinations
from timberframe_conformance.repro import value_source
from timberframe_core.dtypes import resource
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
    """Python that calls the op, and its output; None where no sample of the op is small and runs by itself."""
    if not op.outputs or any(a.dtype is resource or a.is_ref for a in (*op.inputs, *op.outputs)):
        return None
    for trial in _trials(op):
        source = _source(trial)
        try:
            printed = run(source)
        except Exception:  # a sample may need exactly its own values
            continue
        if printed.strip("[]()\n") and len(printed) < LONG:
            return source, printed
    return None


def run(source: str) -> str:
    """What a program prints that has `np` and `tf`, on the CPU."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), tf.Graph().as_default(), tf.device("/device:CPU:0"):
        tf.set_random_seed(1)
        exec(source, {"np": np, "tf": tf})
    return printed.getvalue()


def _trials(op: OpDef) -> Iterator[Trial]:
    """The op's smallest samples that have elements, in the most common dtypes."""
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
    """What makes a sample a worse example: empty inputs, edge cases, many dimensions, few or many elements."""
    args = list(_args(sample.inputs))
    edges = sum(arg.values is not None and np.asarray(arg.values).dtype.kind == "f" for arg in args)
    deep = max((len(_shape(arg)) for arg in args), default=0) > 2
    return any(0 in _shape(arg) for arg in args), edges, deep, abs(np.log((_size(sample) or 1) / FEW))


def _shape(arg: Arg) -> tuple[int, ...]:
    return arg.shape if arg.values is None else np.shape(arg.values)


def _size(sample: Sample) -> int:
    return sum(int(np.prod(_shape(arg))) for arg in _args(sample.inputs))


def _args(inputs: Sequence[Any]) -> Iterator[Arg]:
    """All inputs, those in lists too."""
    for arg in inputs:
        yield from _args(arg) if isinstance(arg, Sequence) else [arg]


def _uncommon(types: Types) -> int:
    return sum(COMMON.index(d) if d in COMMON else len(COMMON) for _, d in types)


def _source(trial: Trial) -> str:
    """A session that runs the op through `tf.raw_ops`."""
    arrays = trial.arrays(trial.op.name)
    function = getattr(tf.raw_ops, trial.op.name.replace(">", "_"))
    names = list(function.__signature__.parameters)
    arguments = {n: _array(a) for n, a in zip(names, arrays, strict=False)}
    arguments.update(_attrs(trial, function.__signature__.parameters, trial.attrs(arrays)))
    call = ", ".join(f"{name}={text}" for name, text in arguments.items())
    line = f"    print(session.run(tf.raw_ops.{function.__name__}({call})))"
    if len(line) > 84:
        inner = "".join(f"        {name}={text},\n" for name, text in arguments.items())
        line = f"    y = tf.raw_ops.{function.__name__}(\n{inner}    )\n    print(session.run(y))"
    return f"with tf.Session() as session:\n{line}\n"


def _attrs(trial: Trial, parameters: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The attrs that the sample gives other values than their defaults."""
    for name, value in attrs.items():
        python = trial.op.python_names.get(name, name)
        attr = trial.op.attrs[name]
        if python in parameters and (attr.required or value != attr.default):
            yield python, _attr(value)


def _attr(value: Any) -> str:
    return f"[{', '.join(map(_attr, value))}]" if isinstance(value, tuple) else value_source(value)


def _array(value: Any) -> str:
    """An expression for an input; floating values are rounded, since an example is to be read."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_array, value)) + "]"
    if value.dtype in (object, bool, np.int32):
        return repr(value.tolist())
    rounded = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64).round(2) + 0
    elements = rounded if value.dtype.kind in "fc" else value
    return f"np.array({elements.tolist()!r}, np.{value.dtype.name})"
