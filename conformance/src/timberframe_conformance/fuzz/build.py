"""Builds the graph of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import timberframe
from timberframe_conformance.fuzz.build_seams import SEAMS
from timberframe_conformance.fuzz.program import Program, Step, is_ref
from timberframe_core.graph.apply import apply_op

tf: Any = timberframe

HOST = "/device:CPU:0"


@dataclass
class Built:
    """A graph. steps: for each of the program's steps what it made; feeds: placeholder and value by step.

    variables, reads: by the number of the variable's step; the latest read.
    """

    graph: Any
    steps: list[list[Any]] = field(default_factory=list)
    fetches: list[Any] = field(default_factory=list)
    feeds: dict[Any, np.ndarray] = field(default_factory=dict)
    initializers: list[Any] = field(default_factory=list)
    variables: dict[int, Any] = field(default_factory=dict)
    reads: dict[int, Any] = field(default_factory=dict)


def build(program: Program, device: str = "", host: str = HOST) -> Built:
    """Returns the graph of a program. device, host: the device specs for the names that its steps use."""
    graph = tf.Graph()
    builder = Builder(graph, device, host)
    with graph.as_default():
        for step in program.steps:
            builder.add(step)
    builder.built.fetches = builder.pick(program.outputs)
    return builder.built


class Builder:
    """Adds one step after the other to a graph, which must be the default one."""

    def __init__(self, graph: Any, device: str = "", host: str = HOST) -> None:
        self.built = Built(graph)
        self.devices = {"device": device, "host": host}

    def pick(self, refs: Sequence[Any]) -> list[Any]:
        """Returns the tensors that refs mean."""
        return [self.built.steps[s][o] for s, o in refs]

    def add(self, step: Step, parameter: Any = None) -> list[Any]:
        """Returns what the step makes, which is also stored. parameter: the value of a step of kind `input`."""
        spec = self.devices.get(step.device, "")
        scope: AbstractContextManager[Any] = tf.device(spec) if spec else nullcontext()
        with scope:
            made = [parameter] if step.kind == "input" else MAKERS[step.kind](self, step)
        self.built.steps.append(made)
        return made

    def function(self, body: Program) -> Callable[..., Any]:
        """Returns a Python function that makes the body's steps for its arguments and returns a list."""

        def call(*arguments: Any) -> list[Any]:
            inner = Builder(self.built.graph)
            inner.devices = self.devices
            given = iter(arguments)
            for step in body.steps:
                inner.add(step, next(given) if step.kind == "input" else None)
            return [tf.convert_to_tensor(t) for t in inner.pick(body.outputs)]

        return call

    def inputs(self, step: Step) -> list[Any]:
        return [self.pick([x])[0] if is_ref(x) else self.pick(x) for x in step.inputs]


def _feed(b: Builder, step: Step) -> list[Any]:
    assert step.value is not None
    tensor = tf.placeholder(tf.as_dtype(step.value.dtype), step.known)
    b.built.feeds[tensor] = step.value
    return [tensor]


def _const(b: Builder, step: Step) -> list[Any]:
    assert step.value is not None
    return [apply_op("Const", (), {"value": step.value, "dtype": tf.as_dtype(step.value.dtype)})]


def _variable(b: Builder, step: Step) -> list[Any]:
    number = len(b.built.steps)
    variable = tf.Variable(step.value, name=f"variable{number}", use_resource=True)
    b.built.variables[number] = variable
    b.built.initializers.append(variable.initializer)
    return _read(b, number)


def _read(b: Builder, number: int) -> list[Any]:
    b.built.reads[number] = b.built.variables[number].read_value()
    return [b.built.reads[number]]


def _assign(b: Builder, step: Step) -> list[Any]:
    """Adds an update after the latest read, and a read after that: otherwise the order, and the value read, would be
    undefined."""
    ref, value = step.inputs
    number: int = ref[0]  # type: ignore[assignment]  # the first input is one ref
    with tf.control_dependencies([b.built.reads[number]]):
        update = getattr(b.built.variables[number], step.op)(b.pick([value])[0], read_value=False)
    with tf.control_dependencies([update]):
        return _read(b, number)


def _op(b: Builder, step: Step) -> list[Any]:
    made = apply_op(step.op, b.inputs(step), step.attrs)
    return made if isinstance(made, list) else [made]


def _call(b: Builder, step: Step) -> list[Any]:
    attrs = dict(step.attrs)
    names = attrs.pop("inputs", None)
    function = functools.reduce(getattr, step.op.split("."), tf)
    given = b.inputs(step)
    made = function(**dict(zip(names, given, strict=True)), **attrs) if names else function(*given, **attrs)
    return [tf.convert_to_tensor(t) for t in (made if isinstance(made, list | tuple) else [made])]


def _cond(b: Builder, step: Step) -> list[Any]:
    pred, *captured = b.inputs(step)
    then, other = (functools.partial(b.function(body), *captured) for body in step.bodies)
    return _list(tf.cond(pred, then, other))


def _case(b: Builder, step: Step) -> list[Any]:
    index, *captured = b.inputs(step)
    return _list(tf.switch_case(index, [functools.partial(b.function(body), *captured) for body in step.bodies]))


def _while(b: Builder, step: Step) -> list[Any]:
    limit, *start = b.inputs(step)
    body = b.function(step.bodies[0])

    def following(i: Any, *values: Any) -> list[Any]:
        return [i + 1, *(_keep_shape(t, v) for t, v in zip(body(i, *values), values, strict=True))]

    made = tf.while_loop(lambda i, *_: i < limit, following, [tf.constant(0), *start])
    return list(made[1:])


def _map(b: Builder, step: Step) -> list[Any]:
    x, *captured = b.inputs(step)
    body = b.function(step.bodies[0])
    return [tf.map_fn(lambda row: body(row, *captured)[0], x, dtype=step.attrs["dtype"])]


def _scan(b: Builder, step: Step) -> list[Any]:
    start, x, *captured = b.inputs(step)
    body = b.function(step.bodies[0])
    return [tf.scan(lambda a, row: _keep_shape(body(a, row, *captured)[0], a), x, start)]


def _keep_shape(tensor: Any, variable: Any) -> Any:
    """Returns a loop variable's next value with the static shape of the variable, as loops require."""
    same = tf.identity(tensor)
    same.set_shape(variable.shape)
    return same


def _array(b: Builder, step: Step) -> list[Any]:
    values = b.inputs(step)
    array = tf.TensorArray(values[0].dtype, size=len(values), infer_shape=step.attrs.get("infer_shape", True))
    for i, value in enumerate(values):
        array = array.write(i, value)
    read = step.attrs["read"]
    if read == "stack":
        return [array.stack()]
    if read == "concat":
        return [array.concat()]
    return [array.gather(list(step.attrs["indices"]))] if read == "gather" else [array.read(step.attrs["indices"][0])]


def _grad(b: Builder, step: Step) -> list[Any]:
    ys, xs = b.inputs(step)
    made = tf.gradients(ys, xs)
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(made, xs, strict=True)]


def _list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list | tuple) else [made]


MAKERS: dict[str, Callable[[Builder, Step], list[Any]]] = {
    "feed": _feed, "const": _const, "variable": _variable, "assign": _assign, "op": _op, "call": _call, "cond": _cond,
    "case": _case, "while": _while, "map": _map, "scan": _scan, "array": _array, "grad": _grad, **SEAMS,
}  # fmt: skip
