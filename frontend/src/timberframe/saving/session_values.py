"""What a Saver takes out of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe.api.partitioned_variables import PartitionedVariable, parts_of
from timberframe.api.variables import Variable
from timberframe.saving.bundle_writer import Saved
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.runtime.session import BaseSession


def check_session(
    session: object, given: Sequence[Variable | PartitionedVariable], owner: str = "Saver"
) -> BaseSession:
    """Returns the session, if it is one and runs the graph of these variables; in eager
    execution the one that has them.
    """
    variables = parts_of(given)
    if variables and variables[0].handle.eager:
        session = variables[0].graph.session  # type: ignore[attr-defined]  # an EagerGraph has one
    if not isinstance(session, BaseSession):
        raise InvalidArgumentError(f"{owner}: sess is {type(session).__name__}; a tf.Session is required")
    if session.closed:
        raise FailedPreconditionError(f"{owner}: the session is closed; an open one is required")
    foreign = [v.name for v in variables if v.graph is not session.graph]
    if foreign:
        raise InvalidArgumentError(
            f"{owner}: variable '{foreign[0]}' is of another graph than the session's; use a session of its graph"
        )
    return session


Savable = Variable | PartitionedVariable


def current_values(session: BaseSession, variables: Mapping[str, Savable], owner: str = "Saver") -> dict[str, Saved]:
    """Returns the values of all variables at one moment, without copies of those in host memory;
    partitioned ones as a whole.

    Raises FailedPreconditionError that names every variable without a value.
    """
    parts = parts_of(variables.values())
    values = dict(zip(parts, session.read_variables(parts), strict=True))
    absent = [v for v in parts if values[v] is None]
    if absent:
        listed = ", ".join(f"'{v.op.name}'" + (f" ({v.op.where})" if v.op.where else "") for v in absent)
        raise FailedPreconditionError(
            f"{owner}: {len(absent)} of {len(parts)} variables have no value: {listed}; "
            "run their initializers, or leave them out of var_list"
        )
    return {name: _saved(variable, [values[v] for v in parts_of([variable])]) for name, variable in variables.items()}


def _saved(variable: Savable, values: Sequence[Any]) -> Saved:
    if isinstance(variable, PartitionedVariable):
        sizes = tuple(int(d) for d in variable.shape)
        return Saved(variable.dtype, sizes, lambda: np.concatenate([np.asarray(x) for x in values], variable.axis))
    return Saved(variable.dtype, values[0].shape, lambda: np.asarray(values[0]))
