"""Tensors of lists, and variables that hold them: the few ops that TensorFlow has for these, on the host."""

from __future__ import annotations

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.plugin.host_ops import HostCall, host_op


def list_variable(name: str) -> str:
    """Returns the key of a variable whose value is a list, which no device can hold."""
    return f"list variable {name}"


@host_op("Pack")
def _pack(call: HostCall) -> list[Located]:
    made = np.empty(len(call.inputs), object)
    made[:] = call.inputs
    return [(made, None)]


@host_op("AssignVariableOp")
def _assign(call: HostCall) -> list[Located]:
    call.resources.put(list_variable(call.handle()), call.inputs[0])
    return []


def _value(call: HostCall) -> np.ndarray:
    found: np.ndarray | None = call.resources.find(list_variable(call.handle()))
    if found is None:
        raise call.uninitialized()
    return found


@host_op("ReadVariableOp")
def _read(call: HostCall) -> list[Located]:
    return [(_value(call), None)]


def _taken(value: np.ndarray) -> list[Located]:
    """Returns a tensor of lists; a single list by itself."""
    return [(value[()] if value.ndim == 0 else value, None)]


@host_op("ResourceGather")
def _gather(call: HostCall) -> list[Located]:
    return _taken(np.asarray(_value(call)[call.inputs[0]], object))


@host_op("StridedSlice")
def _slice(call: HostCall) -> list[Located]:
    assert call.definition.reference is not None
    held = np.empty(call.inputs[0].shape, object)
    held[...] = call.inputs[0]
    return _taken(call.definition.reference(call.attrs, held, *call.inputs[1:]))
