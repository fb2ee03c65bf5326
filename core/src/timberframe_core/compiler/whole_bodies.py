"""Which loops and branches one kernel node of a device may run whole, so that the executor need not drive them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from timberframe_core.compiler.ir import ARRAYS, VARIABLE_ACCESSES, Node
from timberframe_core.compiler.state import variable_name
from timberframe_core.compiler.support import kernel_node, refused, support
from timberframe_core.dtypes import variant
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.operation import Operation
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import Device

_MOST_NODES = 1 << 14
"""Of a loop or branch that becomes one node: functions that several others run count each time."""


class _Devices(Protocol):
    def matching(self, requested: str) -> list[Device]: ...


class _NotWholeError(Exception):
    """Why a body cannot be a part of one node."""


def why_driven(node: Node, device: Device, where: Mapping[str, Device], devices: _Devices) -> str:
    """Returns why the executor must drive a loop or branch that is placed on a device; "" where
    the device may run it whole.

    where: the devices of variables. The other half of the answer needs shapes: `Bodies.result_shapes`.
    """
    try:
        _check(node, device, where, devices)
    except _NotWholeError as e:
        return str(e)
    return ""


def _check(node: Node, device: Device, where: Mapping[str, Device], devices: _Devices) -> None:
    for x in node.inputs:
        if x.dtype.name == "resource":
            name = variable_name(x)
            if where.get(name) is not device:
                raise _NotWholeError(f"variable '{name}' does not live on {device.spec}")
        elif x.dtype.name in ("string", "variant"):
            raise _NotWholeError(
                f"it works on {'strings' if x.dtype.name == 'string' else 'lists'}, which the executor keeps"
            )
    _check_taken(node.op, node, device)
    counted: dict[str, int | None] = {}
    if sum(_count(f, device, devices, counted) for f in node.bodies) > _MOST_NODES:
        raise _NotWholeError(f"its bodies come to more than {_MOST_NODES} nodes")


def _check_taken(op: OpDef, node: Any, device: Device) -> None:
    """Raises where the device does not run loops or branches of this kind itself."""
    given = kernel_node(op, node.name, node.attrs, node, device)
    inputs, outputs = (
        [v for x, v in zip(tensors, values, strict=True) if x.dtype.name != "resource"]  # bodies read the variables
        for tensors, values in ((node.inputs, given.inputs), (node.outputs, given.outputs))
    )
    answer = device.supports(replace(given, inputs=inputs, outputs=outputs))
    if answer is not None:
        raise _NotWholeError(f"{device.spec} does not run {op.name} '{node.name}' itself: {answer}")


def _count(function: FuncGraph, device: Device, devices: _Devices, counted: dict[str, int | None]) -> int:
    """Returns how many nodes a function comes to with the bodies of all its loops and branches.

    counted: the numbers of functions seen before, None of one that is being counted.
    """
    if function.name in counted:
        found = counted[function.name]
        if found is None:
            raise _NotWholeError(f"function '{function.name}' calls itself")
        return found
    counted[function.name] = None
    count = len(function)
    for op in function.get_operations():
        count += _count_inside(op, function, device, devices, counted)
        if count > _MOST_NODES:
            raise _NotWholeError(f"its bodies come to more than {_MOST_NODES} nodes")
    counted[function.name] = count
    return count


def _count_inside(
    op: Operation, function: FuncGraph, device: Device, devices: _Devices, counted: dict[str, int | None]
) -> int:
    """Returns the nodes of the bodies of an operation; raises where the device cannot run the operation in a body."""
    definition, role = op.op_def, op.op_def.role
    what = f"{op.type} '{op.name}' in its body"
    tensors = (*op.inputs, *op.outputs)
    if definition.updates or (role in VARIABLE_ACCESSES and role != "read_variable"):
        raise _NotWholeError(f"{what} is for a variable's state, which the executor commits")
    if definition.on_host or role in ARRAYS or any(t.dtype is variant for t in tensors):
        raise _NotWholeError(f"{what} is carried out by the executor")
    if not device.host_memory and any(t.dtype.name == "string" for t in tensors):
        raise _NotWholeError(f"{what} works on strings, which {device.spec} does not hold")
    if role is not None and not definition.function_attrs:
        return 0
    if definition.bound is not None:
        raise _NotWholeError(f"{what} decides a size only when it runs")
    if definition.stateful and not definition.function_attrs and any(t.handle is not None for t in op.inputs):
        raise _NotWholeError(f"{what} has state")
    if op.device and device not in devices.matching(op.device):
        raise _NotWholeError(f"{what} is placed on {op.device}")
    bodies = [f for name in definition.functions(op.attrs) if (f := function.find_function(name)) is not None]
    if bodies:
        _check_taken(definition, op, device)
        return sum(_count(f, device, devices, counted) for f in bodies)
    why = refused(support(op, device))
    if why is not None:
        raise _NotWholeError(f"{what}: {why}")
    return 0
