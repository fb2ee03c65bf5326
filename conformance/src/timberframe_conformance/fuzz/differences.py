"""Known differences from TensorFlow (`data/tensorflow_differences.toml`), and which results of a graph they affect."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from timberframe_conformance.fuzz.expected import functions_of

UNDEFINED = "undefined"
"""In place of TensorFlow's message: it ends the process or reads undefined memory, so it is not run."""


Value = Callable[[Any], Any]


def _unknown(tensor: Any) -> None:
    del tensor


@dataclass(frozen=True)
class Difference:
    """A known difference: nodes of these ops make it.

    ops: names, each with conditions after it: `T=int32`, an attr's value; `gaps`, where strides are longer than
    windows; `channels`, where windows span channels; and of an input, here 1, `1:empty`, where it has no elements;
    `1:nan`, where it has a NaN; `1:-2..0.5,9..inf`, where it has a number of these intervals, or a complex one of such
    a modulus; `1:reused`, where the output may be written into its memory, as their shapes are equal.

    outputs: only these are not compared, and what depends on them; nor are errors of what depends on them. copied:
    inputs of which TensorFlow is given a copy. error: a pattern of TensorFlow's message if it raises; with outputs,
    these are compared, and only such errors of what depends on them are not. errors: the same by op, in place of ops
    and error.
    """

    reason: str
    source: str
    ops: tuple[str, ...] = ()
    outputs: tuple[int, ...] = ()
    copied: tuple[int, ...] = ()
    error: str = ""
    errors: dict[str, str] = field(default_factory=dict)

    def explains(self, node: Any, error: str, value: Value = _unknown) -> bool:
        """Returns whether a node makes this difference. error: TensorFlow's message if it raised, else empty.

        value: what a tensor holds, None where that is not known.
        """
        listed = any(_matches(op, node, value) for op in self.ops)
        message = self.errors.get(node.type, self.error if listed else None)
        if message is None:
            return False
        if not message or message == UNDEFINED:
            return message == error
        return re.search(message, error) is not None and _names(error, node)


def _matches(selector: str, node: Any, value: Value) -> bool:
    op, *conditions = selector.split()
    return node.type == op and all(_holds(c, node, value) for c in conditions)


def _holds(condition: str, node: Any, value: Value) -> bool:
    attr, is_attr, wanted = condition.partition("=")
    if is_attr:
        found = node.attrs[attr]
        return bool(getattr(found, "name", str(found).lower()) == wanted)
    if condition == "gaps":
        return any(stride > size for stride, size in zip(node.attrs["strides"], node.attrs["ksize"], strict=True))
    if condition == "channels":
        window = node.attrs["ksize"] if "ksize" in node.attrs else value(node.inputs[1])
        return window is None or window[-1] > 1
    number, _, what = condition.partition(":")
    return _holds_of(what, node.inputs[int(number)], node, value)


def _holds_of(what: str, tensor: Any, node: Any, value: Value) -> bool:
    """Returns whether a condition holds of an input, or may hold where that is not known."""
    shape = tensor.static_shape
    if what == "reused":
        shapes = (shape, node.outputs[0].static_shape)
        return not all(map(_is_known, shapes)) or shapes[0] == shapes[1]
    if what == "empty" and _is_known(shape):
        return 0 in shape
    x = value(tensor)
    if x is None:
        return True
    if what == "empty":
        return np.size(x) == 0
    if what == "nan":
        return bool(np.isnan(x).any())
    size = np.abs(x) if np.iscomplexobj(x) else x
    ends = [tuple(map(float, interval.split(".."))) for interval in what.split(",")]
    return any(bool(((low <= size) & (size <= high)).any()) for low, high in ends)


def _is_known(shape: Any) -> bool:
    return shape is not None and None not in shape


def _names(error: str, node: Any) -> bool:
    return re.search(rf"\b{re.escape(node.name)}\b", error) is not None


@functools.cache
def differences() -> tuple[Difference, ...]:
    """Returns the known differences."""
    text = (files("timberframe_conformance") / "data" / "tensorflow_differences.toml").read_text()
    listed = tomllib.loads(text)["difference"]
    return tuple(_difference(d) for d in listed)


def _difference(data: dict[str, Any]) -> Difference:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Difference(**fields)


def is_explained(graph: Any, error: str, value: Value = _unknown) -> bool:
    """Returns whether no result of a graph can be compared; error, value: as in `explains`.

    That is so where a node makes such a difference, and where the error is of a node that depends on outputs which
    differ.
    """
    whole = [d for d in differences() if not (d.outputs or d.copied)]
    known = [(graph, value), *((body, _unknown) for body in graph.functions.values())]
    return any(
        any(d.explains(op, error, of) for d in whole for op in g.get_operations())
        or any(_names(error, op) for op in _dependent(g, of, error)[0])
        for g, of in known
    )


def incomparable(graph: Any, value: Value = _unknown) -> set[Any]:
    """Returns tensors that depend on outputs which are known to differ and are not
    compared; value: as in `explains`.
    """
    return _dependent(graph, value)[1]


def _dependent(graph: Any, value: Value, error: str = "") -> tuple[set[Any], set[Any]]:
    """Returns the nodes that depend on outputs which differ, and the tensors: those outputs
    and what depends on them.
    """
    nodes: set[Any] = set()
    tensors: set[Any] = set()
    bodies = {name for name, body in graph.functions.items() if _dependent(body, _unknown, error)[1]}
    for op in graph.get_operations():
        depends = any(t in tensors for t in op.inputs) or not bodies.isdisjoint(functions_of(op))
        nodes.update([op] if depends else [])
        differing = _differing(op, value, error)
        tensors.update(t for i, t in enumerate(op.outputs) if depends or i in differing)
    return nodes, tensors


def _differing(op: Any, value: Value, error: str) -> set[int]:
    """Returns the outputs of a node that differ, or that make other nodes raise this error."""
    found = [d for d in differences() if d.outputs and any(_matches(s, op, value) for s in d.ops)]
    return {i for d in found if not d.error or (error and re.search(d.error, error)) for i in d.outputs}


def copy_inputs(message: Any) -> None:
    """Inserts copies between nodes of a GraphDef and those of their inputs that TensorFlow changes."""
    bodies = [(f.node_def, ":y:0") for f in message.library.function]
    for nodes, output in ((message.node, ""), *bodies):
        for node in list(nodes):
            for i in {i for d in differences() if node.op in d.ops for i in d.copied}:
                copy = nodes.add(name=f"{node.name}/copy_{i}", op="DeepCopy", input=[node.input[i]], device=node.device)
                copy.attr["T"].CopyFrom(node.attr["T"])
                node.input[i] = copy.name + output
