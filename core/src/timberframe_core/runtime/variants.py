"""Tensors of lists, and variables that hold them: the few ops that TensorFlow has for these, on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.compiler.ir import Node
from timberframe_core.compiler.plan import Located, host_array
from timberframe_core.compiler.state import uninitialized, variable_name
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime.lists import Driver

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run


def _pack(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    made = np.empty(len(inputs), object)
    made[:] = [value for value, _ in inputs]
    return [(made, None)]


def _assign(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    run.runtime.host_variables[node.variable] = inputs[0][0]
    return []


def _value(node: Node, run: Run) -> np.ndarray:
    name = variable_name(node.inputs[0])
    if name not in run.runtime.host_variables:
        raise uninitialized(node, node.inputs[0])
    found: np.ndarray = run.runtime.host_variables[name]
    return found


def _read(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [(_value(node, run), None)]


def _taken(value: np.ndarray) -> list[Located]:
    """A tensor of lists; a single list by itself."""
    return [(value[()] if value.ndim == 0 else value, None)]


def _gather(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return _taken(np.asarray(_value(node, run)[host_array(inputs[0])], object))


def _slice(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    assert node.op.reference is not None
    held = np.empty(inputs[0][0].shape, object)
    held[...] = inputs[0][0]
    return _taken(node.op.reference(node.attrs, held, *(host_array(x) for x in inputs[1:])))


VARIANTS: dict[str, Driver] = {
    "AssignVariableOp": _assign,
    "Pack": _pack,
    "ReadVariableOp": _read,
    "ResourceGather": _gather,
    "StridedSlice": _slice,
}
"""How each op runs on tensors of lists."""
