"""Variables in a program: which one a handle means, and the order of accesses to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from timberframe_core.compiler.ir import (
    VARIABLE_ACCESSES,
    VARIABLE_READS,
    VARIABLE_WRITES,
    Node,
    Output,
    Program,
    written_inputs,
)
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.inference import arg_ranges

_HANDLE = "resource"
_ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # the shared_name by which TensorFlow marks a handle of its own


def variable_name(handle: Output) -> str:
    """Returns the variable that a resource value means; InvalidArgumentError where that is not known before running."""
    node = handle.node
    if node.op.role == "use_array":  # a resource that was put there; the node's own variable is the array or stack
        return f"{node.name}/{node.op.name}"
    if node.variable is not None:
        return node.variable
    if node.op.role == "loop":  # a handle is the same one in every iteration
        return variable_name(node.inputs[handle.index])
    raise InvalidArgumentError(
        f"{node.op.name} '{node.name}': makes a resource handle while running; it must come from the op that makes it"
        f"{_tail(node)}",
        node.name,
    )


def _tail(node: Node) -> str:
    """Returns where the node was made, at the end of an error."""
    return f"  [{node.where}]" if node.where else ""


def variable_key(name: str, attrs: Mapping[str, Any]) -> str:
    """Returns the name by which a session knows the variable of a VarHandleOp: ``container:name``
    where it has a container.
    """
    container, shared = attrs.get("container", ""), attrs.get("shared_name", "")
    own: str = name if shared in ("", _ANONYMOUS) else shared
    return f"{container}:{own}" if container else own


def uninitialized(node: Node, handle: Output) -> FailedPreconditionError:
    """Returns the error of a node that needs the value of a variable which has none."""
    made = handle.node.where if handle.node.op.role == "variable" else ""
    location = f" (the variable was made at {made})" if made else ""
    return FailedPreconditionError(
        f"{node.op.name} '{node.name}': variable '{handle.node.variable}' has no value; "
        f"run its initializer first{location}",
        node.name,
    )


def resolve_handles(program: Program) -> None:
    """Names the variable of every VarHandleOp and of every access."""
    for node in program.nodes:
        role = node.op.role
        if role == "variable":
            node.variable = variable_key(node.name, node.attrs)
        elif node.op.resource:
            node.variable = f"{node.op.resource} {variable_key(node.name, node.attrs)}"
        elif role == "make_array":
            node.variable = f"{node.name}/{node.op.name}"
        elif role == "make_gradient_array":
            node.variable = f"{variable_name(node.inputs[0])}/{node.attrs['source']}"
        elif (
            role == "use_array"
            or role in VARIABLE_ACCESSES
            or (node.op.name == "Identity" and node.inputs[0].dtype.name == _HANDLE)
        ):
            node.variable = variable_name(node.inputs[0])
        if node.op.on_host:
            _check_handles(node)


def _check_handles(node: Node) -> None:
    """InvalidArgumentError where it is not known what a handle among the inputs means, or it is of another kind."""
    handles = {i: variable_name(x) for i, x in enumerate(node.inputs) if x.dtype.name == _HANDLE}
    if not handles or not node.op.kinds:
        return
    ranges = arg_ranges(node.op.inputs, node.attrs)
    for name, kind in node.op.kinds.items():
        for i in ranges[name]:
            if not handles[i].startswith(f"{kind} "):
                raise InvalidArgumentError(
                    f"{node.op.name} '{node.name}': input {name} is a handle of {_described(node.inputs[i])}; one of a "
                    f"resource of kind {kind!r} is required{_tail(node)}",
                    node.name,
                )


def _described(handle: Output) -> str:
    """Returns what a handle means, for errors."""
    key = variable_name(handle)
    return f"variable '{key}'" if handle.node.op.role == "variable" else f"'{key}'"


def order_accesses(program: Program) -> None:
    """Makes accesses to one variable follow each other in program order, where a write is among them.

    Program order is a topological order, so these edges never close a cycle; no node is pulled in.
    """
    reads: dict[str, list[Node]] = {}
    write: dict[str, Node] = {}
    for node in program.nodes:
        for name, writes in accesses(node).items():
            last = write.get(name)
            if last is not None:
                node.after.append(last)
            if writes:
                node.after.extend(r for r in reads.get(name, ()) if r is not node)
                write[name], reads[name] = node, []
            else:
                reads.setdefault(name, []).append(node)


def accesses(node: Node) -> dict[str, bool]:
    """Variables that a node reads (False) or writes (True), those in the bodies of loops and branches included."""
    if node.op.role in VARIABLE_WRITES and node.variable is not None:
        return {node.variable: True}
    if node.op.role in VARIABLE_READS and node.variable is not None:
        return {node.variable: False}
    handles = [i for i, x in enumerate(node.inputs) if x.dtype.name == _HANDLE]
    if node.bodies:
        writes = bool(handles) and any(map(writes_state, node.bodies))
        return {variable_name(node.inputs[i]): writes for i in handles}
    if not (node.op.reads or node.op.updates):
        return {}
    written = written_inputs(node.op, node.attrs)
    found = {variable_name(node.inputs[i]): False for i in handles}
    return found | {variable_name(node.inputs[i]): True for i in written}


def writes_state(function: FuncGraph) -> bool:
    """Returns whether a function, or one that it calls, writes a variable."""
    seen: dict[FuncGraph, None] = {}
    if _finds_write(function, seen):
        return True
    for each in seen:  # nothing that any of these calls writes
        _writing[each] = len(each), False
    return False


def _finds_write(function: FuncGraph, seen: dict[FuncGraph, None]) -> bool:
    if function in seen:
        return False
    known = _writing.get(function)
    if known is not None and known[0] == len(function):
        return known[1]
    seen[function] = None
    writes, called = _summary(function)
    inner = () if writes else (function.find_function(name) for name in called)
    found = writes or any(f is not None and _finds_write(f, seen) for f in inner)
    if found:
        _writing[function] = len(function), True
    return found


_writing: WeakKeyDictionary[FuncGraph, tuple[int, bool]] = WeakKeyDictionary()
"""Lengths of functions that were asked for before, and whether they write: each level of nesting asks for all."""

_summaries: WeakKeyDictionary[FuncGraph, tuple[int, bool, tuple[str, ...]]] = WeakKeyDictionary()


def _summary(function: FuncGraph) -> tuple[bool, tuple[str, ...]]:
    """Returns whether a function itself writes a variable, and which functions it calls; looked up once until it grows.

    An operation may come to call another function, but only one that does the same and gives more.
    """
    known = _summaries.get(function)
    if known is None or known[0] != len(function):
        ops = function.get_operations()
        writes = any(op.op_def.role in VARIABLE_WRITES or op.op_def.updates for op in ops)
        called = dict.fromkeys(name for op in ops for name in op.op_def.functions(op.attrs))
        known = _summaries[function] = len(ops), writes, tuple(called)
    return known[1:]
