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

    ops: names, each with conditions after it: `T=int32`, of an attr that is a dtype; `empty`, where the first input has
    no elements; `gaps`, where strides are longer than windows; `nan`, where the first input has a NaN; `reused`, where
    the output may be written into the memory of the last input, as their shapes are equal. outputs: only these are not
    compared, and what depends on them. copied: inputs of which TensorFlow is given a copy. error: a pattern of
    TensorFlow's message if it raises; errors: the same by op, in place of ops and error.
    """

    reason: str
    source: str
    ops: tuple[str, ...] = ()
    outputs: tuple[int, ...] = ()
    copied: tuple[int, ...] = ()
    error: str = ""
    errors: dict[str, str] = field(default_factory=dict)

    def explains(self, node: Any, error: str, value: Value = _unknown) -> bool:
        """Whether a node makes this difference. error: TensorFlow's message if it raised, else empty.

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
    if condition == "empty":
        return 0 in (node.inputs[0].static_shape or ())
    if condition == "gaps":
        return any(stride > size for stride, size in zip(node.attrs["strides"], node.attrs["ksize"], strict=True))
    if condition == "nan":
        x = value(node.inputs[0])
        return x is None or bool(np.isnan(x).any())
    if condition == "reused":
        return (
            None in (shapes := (node.inputs[-1].static_shape, node.outputs[0].static_shape)) or shapes[0] == shapes[1]
        )
    attr, dtype = condition.split("=")
    return bool(node.attrs[attr].name == dtype)


def _names(error: str, node: Any) -> bool:
    return re.search(rf"\b{re.escape(node.name)}\b", error) is not None


@functools.cache
def differences() -> tuple[Difference, ...]:
    """The known differences."""
    text = (files("timberframe_conformance") / "data" / "tensorflow_differences.toml").read_text()
    listed = tomllib.loads(text)["difference"]
    return tuple(_difference(d) for d in listed)


def _difference(data: dict[str, Any]) -> Difference:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Difference(**fields)


def is_explained(graph: Any, error: str) -> bool:
    """Whether a node of a graph makes a difference for which no result can be compared; error: as in `explains`."""
    nodes = [op for g in (graph, *graph.functions.values()) for op in g.get_operations()]
    whole = [d for d in differences() if not (d.outputs or d.copied)]
    return any(d.explains(node, error) for d in whole for node in nodes)


def incomparable(graph: Any, value: Value = _unknown) -> set[Any]:
    """Tensors that depend on outputs which are known to differ and are not compared; value: as in `explains`."""
    found: set[Any] = set()
    bodies = {name for name, body in graph.functions.items() if any(map(_differing_outputs, body.get_operations()))}
    for op in graph.get_operations():
        depends = any(t in found for t in op.inputs) or not bodies.isdisjoint(functions_of(op))
        differing = _differing_outputs(op, value)
        found.update(t for i, t in enumerate(op.outputs) if depends or i in differing)
    return found


def _differing_outputs(op: Any, value: Value = _unknown) -> set[int]:
    return {i for d in differences() if d.outputs and d.explains(op, "", value) for i in d.outputs}


def copy_inputs(message: Any) -> None:
    """Inserts copies between nodes of a GraphDef and those of their inputs that TensorFlow changes."""
    bodies = [(f.node_def, ":y:0") for f in message.library.function]
    for nodes, output in ((message.node, ""), *bodies):
        for node in list(nodes):
            for i in {i for d in differences() if node.op in d.ops for i in d.copied}:
                copy = nodes.add(name=f"{node.name}/copy_{i}", op="DeepCopy", input=[node.input[i]], device=node.device)
                copy.attr["T"].CopyFrom(node.attr["T"])
                node.input[i] = copy.name + output
