"""Values of variables, out of a session and into one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler.build import build_program, subgraph
from timberframe_core.compiler.plan import Located, collection_paused
from timberframe_core.compiler.state import variable_key
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, WrongStateError
from timberframe_core.graph.apply import apply_op, to_array
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation
from timberframe_core.plugin.contracts import RunContext
from timberframe_core.runtime.device_array import DeviceArray
from timberframe_core.runtime.executor import Run, run_to_end
from timberframe_core.shapes import compatible, format_shape

if TYPE_CHECKING:
    from timberframe_core.runtime.session import BaseSession


def read_variables(session: BaseSession, variables: Sequence[Any]) -> list[DeviceArray | None]:
    """See `BaseSession.read_variables`."""
    keys = [_key(op) for op in _operations(session, variables)]
    versions = session.runtime.variables.snapshot(keys)
    found = [versions.get(key) for key in keys]
    return [None if held is None else DeviceArray(held.version.array, held.device, held) for held in found]


def assign_variables(session: BaseSession, variables: Sequence[Any], values: Sequence[Any]) -> None:
    """See `BaseSession.assign_variables`. The assigns stand in a graph of their own: the session's may be finalized."""
    runtime, operations = session.runtime, _operations(session, variables)
    if len(values) != len(operations):
        raise InvalidArgumentError(
            f"assign_variables: {len(values)} values for {len(operations)} variables; each needs one"
        )
    keys = [_key(op) for op in operations]
    arrays = [_suited(op, value) for op, value in zip(operations, values, strict=True)]
    graph, feeds, assigns = Graph(), [], []
    with graph.as_default(), collection_paused():
        for i, (op, array) in enumerate(zip(operations, arrays, strict=True)):
            attrs = {k: op.attrs[k] for k in ("container", "dtype")}
            with graph.device(op.device or None), graph.name_scope(f"variable{i}/"):
                shared = op.attrs["shared_name"] or op.name
                handle = apply_op("VarHandleOp", attrs={**attrs, "shape": array.shape, "shared_name": shared})
                feed = apply_op("Placeholder", attrs={"dtype": op.attrs["dtype"], "shape": array.shape})
                feeds.append(feed)
                assigns.append(apply_op("AssignVariableOp", [handle, feed]))
        plan = runtime.plan(partial(build_program, subgraph(graph, assigns, feeds)))
    before = runtime.variables.snapshot(keys)
    inputs: list[Located] = [(array, None) for array in arrays]
    context = RunContext()
    session.begin(context.cancel)
    try:
        run_to_end(Run(plan, inputs, runtime, context))
    except BaseException:
        runtime.variables.put_back(keys, before)
        raise
    finally:
        session.end(context.cancel)
        plan.release()


def _operations(session: BaseSession, variables: Sequence[Any]) -> list[Operation]:
    """Returns the operations that make these variables, all of the session's graph."""
    if session.closed:
        raise WrongStateError("session is closed; its variables are gone")
    operations = [getattr(v, "op", v) for v in variables]
    for op, given in zip(operations, variables, strict=True):
        if not isinstance(op, Operation) or not {"shared_name", "dtype", "shape"} <= op.attrs.keys():
            raise InvalidTypeError(f"{given!r} is no variable; a tf.Variable or its VarHandleOp is required")
    own = session.graph  # handles of eager execution are made by graphs of their own
    foreign = next((op for op in operations if op.graph is not own and not own.eager), None)
    if foreign is not None:
        raise InvalidArgumentError(
            f"{foreign.type} '{foreign.name}': is of another graph; a variable of the session's is required",
            foreign.name,
        )
    return operations


def _suited(op: Operation, value: Any) -> np.ndarray:
    """Returns the value as an array of the variable's dtype; InvalidArgumentError where it
    or its shape does not suit.
    """
    try:
        array, _ = to_array(value, op.attrs["dtype"])
    except InvalidArgumentError as e:
        raise type(e)(f"{op.type} '{op.name}': {e}", op.name) from None
    if not compatible(op.attrs["shape"], array.shape):
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': the value has shape {format_shape(array.shape)}; "
            f"the variable's, {format_shape(op.attrs['shape'])}, is required",
            op.name,
        )
    return array


def _key(op: Operation) -> str:
    """Returns the name by which sessions know a variable."""
    return variable_key(op.name, op.attrs)
