"""What a Saver takes out of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from timberframe.api.state import Variable
from timberframe.saving.checkpoint import Saved
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.runtime.session import BaseSession


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
    values = dict(zip(variables, session.read_variables(list(variables.values())), strict=True))
    absent = [v for name, v in variables.items() if values[name] is None]
    if absent:
        listed = ", ".join(f"'{v.op.name}'" + (f" ({v.op.where})" if v.op.where else "") for v in absent)
        raise FailedPreconditionError(
            f"Saver: {len(absent)} of {len(variables)} variables have no value: {listed}; "
            "run their initializers, or leave them out of var_list"
        )
    return {
        name: Saved(variables[name].dtype, value.shape, lambda value=value: np.asarray(value))
        for name, value in values.items()
        if value is not None
    }
