"""Values of variables, out of a session and into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from timberframe.api.state import Variable
from timberframe.saving.checkpoint import Saved
from timberframe_core.compiler.build import build_program
from timberframe_core.compiler.plan import Located, collection_paused
from timberframe_core.compiler.state import variable_key
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.graph import Graph
from timberframe_core.plugin.contracts import RunContext
from timberframe_core.runtime.executor import execute
from timberframe_core.runtime.session import BaseSession


def session_key(variable: Variable) -> str:
    """The name by which sessions know a variable."""
    return variable_key(variable.op.name, variable.op.attrs)


def check_session(session: object, variables: Sequence[Variable]) -> BaseSession:
    """The session, if it is one and runs the graph of these variables."""
    if not isinstance(session, BaseSession):
        raise InvalidArgumentError(f"Saver: sess is {type(session).__name__}; a tf.Session is required")
    if session.closed:
        raise FailedPreconditionError("Saver: the session is closed; an open one is required")
    foreign = [v.name for v in variables if v.graph is not session.graph]
    if foreign:
        raise InvalidArgumentError(
            f"Saver: variable '{foreign[0]}' is of another graph than the session's; use a session of its graph"
        )
    return session


def current_values(session: BaseSession, variables: Mapping[str, Variable]) -> dict[str, Saved]:
    """The values of all variables at one moment, without copies of those in host memory.

    Raises FailedPreconditionError that names every variable without a value.
    """
    keys = {name: session_key(v) for name, v in variables.items()}
    versions = session.runtime.variables.snapshot(list(keys.values()))
    absent = [v for name, v in variables.items() if keys[name] not in versions]
    if absent:
        listed = ", ".join(f"'{v.op.name}'" + (f" ({v.op.where})" if v.op.where else "") for v in absent)
        raise FailedPreconditionError(
            f"Saver: {len(absent)} of {len(variables)} variables have no value: {listed}; "
            "run their initializers, or leave them out of var_list"
        )
    result = {}
    for name, variable in variables.items():
        version = versions[keys[name]]
        result[name] = Saved(
            variable.dtype, tuple(version.shape), lambda v=version: np.asarray(v.device.copy_out(v.array))
        )
    return result


def assign_values(session: BaseSession, values: Sequence[tuple[Variable, np.ndarray]]) -> None:
    """Gives all variables their values, or after an error none.

    The assigns stand in a graph of their own, so that the session's stays as it is, finalized or not.
    """
    runtime, keys = session.runtime, [session_key(v) for v, _ in values]
    graph, feeds, assigns = Graph(), [], []
    with graph.as_default(), collection_paused():
        for i, (variable, array) in enumerate(values):
            attrs = {k: variable.op.attrs[k] for k in ("container", "dtype")}
            with graph.device(variable.op.device or None), graph.name_scope(f"variable{i}/"):
                shared = variable.op.attrs["shared_name"] or variable.op.name
                handle = apply_op("VarHandleOp", attrs={**attrs, "shape": array.shape, "shared_name": shared})
                feed = apply_op("Placeholder", attrs={"dtype": variable.dtype, "shape": array.shape})
                feeds.append(feed)
                assigns.append(apply_op("AssignVariableOp", [handle, feed]))
        plan = runtime.plan(lambda: build_program(graph, assigns, feeds))
    before = runtime.variables.snapshot(keys)
    inputs: list[Located] = [(array, None) for _, array in values]
    context = RunContext()
    session.begin(context.cancel)
    try:
        execute(plan, inputs, runtime, context)
    except BaseException:
        runtime.variables.put_back(keys, before)
        raise
    finally:
        session.end(context.cancel)
        plan.release()
