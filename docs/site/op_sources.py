"""Programs that call an op with the values of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_conformance.cases.trials import Trial
from timberframe_conformance.repro import value_source
from timberframe_core.dtypes import resource
from timberframe_core.ops.definition.opdef import OpDef

LINE = 88
"""Characters that fit into the page."""


def program(op: OpDef, trial: Trial) -> str:
    """Returns a session that runs the op through `tf.raw_ops`.

    trial: of the op, or of one that differs in the kind of its variables only.
    """
    arrays = trial.arrays(trial.op.name)
    name = op.name.replace(">", "_")
    parameters = getattr(tf.raw_ops, name).__signature__.parameters
    given = dict(zip(parameters, arrays, strict=False))
    variables = [n for n, a in zip(given, op.inputs, strict=True) if a.is_ref or a.dtype is resource]
    arguments = {n: _array(value) for n, value in given.items() if n not in variables}
    arguments = {n: n if op.inputs[0].is_ref else f"{n}.handle" for n in variables} | arguments
    arguments.update(_attrs(trial, parameters, trial.attrs(arrays)))
    if variables:
        return _with_variables(op, {n: given[n] for n in variables}, _call("y", name, arguments, ""))
    call = ", ".join(f"{n}={text}" for n, text in arguments.items())
    line = f"    print(session.run(tf.raw_ops.{name}({call})))"
    if len(line) > LINE - 4:
        line = f"{_call('y', name, arguments, '    ')}\n    print(session.run(y))"
    return f"with tf.Session() as session:\n{line}\n"


def _call(result: str, name: str, arguments: Mapping[str, str], indent: str) -> str:
    """Returns an assignment of an op's result, in one line where it fits."""
    line = f"{indent}{result} = tf.raw_ops.{name}({', '.join(f'{n}={text}' for n, text in arguments.items())})"
    if len(line) <= LINE:
        return line
    inner = "".join(f"{indent}    {n}={text},\n" for n, text in arguments.items())
    return f"{indent}{result} = tf.raw_ops.{name}(\n{inner}{indent})"


def _with_variables(op: OpDef, values: Mapping[str, Any], call: str) -> str:
    """Returns a session that gives variables their values, runs the op, and shows its result or else the variables."""
    if op.inputs[0].is_ref:
        made = [
            f"{n} = tf.raw_ops.VariableV2(shape={list(np.shape(x))}, dtype=tf.{x.dtype.name})"
            for n, x in values.items()
        ]
        start = [f"session.run(tf.raw_ops.Assign(ref={n}, value={_array(x)}))" for n, x in values.items()]
    else:
        made = [f"{n} = tf.Variable({_array(x)})" for n, x in values.items()]
        start = ["session.run(tf.global_variables_initializer())"]
    shows = bool(op.outputs) and not op.outputs[0].is_ref
    shown = ["print(session.run(y))"] if shows else ["session.run(y)"]
    shown += [] if shows else [f"print({', '.join(f'session.run({n})' for n in values)})"]
    return "\n".join([*made, call, "with tf.Session() as session:", *(f"    {x}" for x in (*start, *shown))]) + "\n"


def _attrs(trial: Trial, parameters: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the attrs that the sample gives other values than their defaults."""
    for name, value in attrs.items():
        python = trial.op.python_names.get(name, name)
        attr = trial.op.attrs[name]
        if python in parameters and (attr.required or value != attr.default):
            yield python, _attr(value)


def _attr(value: Any) -> str:
    return f"[{', '.join(map(_attr, value))}]" if isinstance(value, tuple) else value_source(value)


def _array(value: Any) -> str:
    """Returns an expression for an input; floating values are rounded, since an example is to be read."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_array, value)) + "]"
    if value.dtype in (object, bool, np.int32):
        return repr(value.tolist())
    rounded = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64).round(2) + 0
    elements = rounded if value.dtype.kind in "fc" else value
    return f"np.array({elements.tolist()!r}, np.{value.dtype.name})"
