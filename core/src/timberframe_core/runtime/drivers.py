"""Nodes that the executor drives itself: loops and branches over several devices or changing shapes, variable state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.compiler.ir import BRANCHES, Node, body_scope
from timberframe_core.compiler.plan import Located, Plan, host_array
from timberframe_core.compiler.state import uninitialized, variable_name
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, OpError, ResourceExhaustedError
from timberframe_core.ops.control_flow.functional import branch_number
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime.arrays import ARRAYS
from timberframe_core.runtime.lists import LISTS
from timberframe_core.runtime.optional import OPTIONAL
from timberframe_core.runtime.records import RecordReader
from timberframe_core.runtime.variant_sums import VARIANT_SUMS
from timberframe_core.runtime.variants import VARIANTS
from timberframe_core.shapes import format_shape

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

MAX_DEPTH = 100  # of bodies within bodies; each level takes half a dozen frames of Python's stack


def drive(node: Node, inputs: list[Located], device: Device, run: Run) -> Sequence[Located]:
    """Runs one driven node and returns its outputs. inputs: all but resource handles."""
    try:
        return _drive(node, inputs, device, run)
    except MemoryError as e:
        if isinstance(e, OpError):
            raise
        raise ResourceExhaustedError(
            f"{node.op.name} '{node.name}': the host's memory does not suffice ({e})", node.name
        ) from None


def _drive(node: Node, inputs: list[Located], device: Device, run: Run) -> Sequence[Located]:
    if node.on_lists:
        if node.op.passes_through:
            return inputs
        return _ON_LISTS[node.op.name](node, inputs, device, run)
    if node.op.on_host:
        return _WITH_STATE[node.op.name](node, run) if node.op.name in _WITH_STATE else _run_reference(node, inputs)
    if node.op.role == "loop":
        return _run_loop(node, inputs, run)
    if node.op.role in BRANCHES:
        return _run_branch(node, inputs, run)
    return _STATE[node.op.name](node, run)


def _run_reference(node: Node, inputs: list[Located]) -> list[Located]:
    assert node.op.reference is not None
    arrays = [host_array(x) for x in inputs]
    try:
        result = node.op.reference(node.attrs, *arrays)
    except OpError as e:
        raise type(e)(f"{node.op.name} '{node.name}': {e.message}", node.name) from None
    results = result if isinstance(result, tuple) else (result,)
    return [(np.asarray(x), None) for x in results[: len(node.outputs)]]


def _run_loop(node: Node, inputs: list[Located], run: Run) -> list[Located]:
    cond, body = (_body(node, i, run) for i in range(2))
    state = inputs
    while _truth(node, _call(node, cond, state, run)[0]):
        run.context.cancel.check()
        state = _call(node, body, state, run)
    return _with_handles(node, state)


def _run_branch(node: Node, inputs: list[Located], run: Run) -> list[Located]:
    return _call(node, _body(node, _chosen(node, inputs[0]), run), inputs[1:], run)


def _chosen(node: Node, located: Located) -> int:
    """The number of the branch that an If or Case runs."""
    if node.op.role == "branch":
        return 0 if _truth(node, located) else 1
    index = host_array(located)
    if index.shape != ():
        raise InvalidArgumentError(
            f"{node.op.name} '{node.name}': branch_index has shape {format_shape(index.shape)}; it must be a scalar",
            node.name,
        )
    return branch_number(int(index), len(node.bodies))


def _with_handles(node: Node, state: list[Located]) -> list[Located]:
    """Loop variables in the order of the node's outputs, where a resource has no array."""
    arrays = iter(state)
    nothing: Located = (np.empty((), object), None)
    return [nothing if x.dtype.name == "resource" else next(arrays) for x in node.outputs]


def _body(node: Node, which: int, run: Run) -> Plan:
    given = node.inputs if node.op.role == "loop" else node.inputs[1:]
    handles = {i: variable_name(x) for i, x in enumerate(given) if x.dtype.name == "resource"}
    function = node.bodies[which]
    return run.runtime.function_plan(function, handles, body_scope(run.plan.scope, node, function))


def _call(node: Node, plan: Plan, inputs: list[Located], run: Run) -> list[Located]:
    runtime = run.runtime
    depth = runtime.depth.value
    if depth >= MAX_DEPTH:
        raise ResourceExhaustedError(
            f"{node.op.name} '{node.name}': bodies are nested {depth} deep; at most {MAX_DEPTH} levels can run",
            node.name,
        )
    runtime.depth.value = depth + 1
    try:
        given = iter(inputs)
        nothing: Located = (np.empty((), object), None)
        feeds = [nothing if f.dtype.name == "resource" else next(given) for f in plan.feeds]
        results = run.call(plan, feeds)
        return [r for r, x in zip(results, plan.results, strict=True) if x.dtype.name != "resource"]
    finally:
        runtime.depth.value = depth


def _truth(node: Node, located: Located) -> bool:
    value = host_array(located)
    if value.shape != ():
        if node.op.role == "loop":
            raise InvalidArgumentError(
                f"{node.op.name} '{node.name}': condition of shape {format_shape(value.shape)}; it must be a scalar",
                node.name,
            )
        return bool(value.size)  # TensorFlow: a tensor that is not a scalar is true unless it is empty
    if value.dtype == object:
        return bool(value.item() != b"")
    return bool(value)


def _is_initialized(node: Node, run: Run) -> list[Located]:
    return [(np.array(run.plan.variables.shape(node.variable or "") is not None), None)]


def _variable_shape(node: Node, run: Run) -> list[Located]:
    shape = run.plan.variables.shape(node.variable or "")
    if shape is None:
        raise uninitialized(node, node.inputs[0])
    return [(np.array(shape, node.outputs[0].dtype.numpy), None)]


def _destroy(node: Node, run: Run) -> list[Located]:
    if not run.plan.variables.destroy(node.variable or "") and not node.attrs.get("ignore_lookup_error", True):
        raise FailedPreconditionError(
            f"{node.op.name} '{node.name}': variable '{node.variable}' does not exist; it must have been made",
            node.name,
        )
    return []


def _read_records(node: Node, run: Run) -> list[Located]:
    readers, name = run.runtime.readers, run.plan.scope + node.name
    reader = readers.get(name) or readers.setdefault(name, RecordReader(node.attrs))
    try:
        return [(reader.batch(run.context.cancel.check), None)]
    except OpError as e:
        raise type(e)(f"{node.op.name} '{node.name}': {e.message}", node.name) from None


_ON_LISTS = {**LISTS, **ARRAYS, **OPTIONAL, **VARIANTS, **VARIANT_SUMS}

_WITH_STATE: dict[str, Callable[[Node, Run], list[Located]]] = {"RecordInput": _read_records}
"""Ops on the host that the session keeps something for."""

_STATE: dict[str, Callable[[Node, Run], list[Located]]] = {
    "VarIsInitializedOp": _is_initialized,
    "VariableShape": _variable_shape,
    "DestroyResourceOp": _destroy,
}
