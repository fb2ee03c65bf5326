"""Collections of variables, and the operations that initialise them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys, group
from timberframe.api.variables import Variable
from timberframe_core.arguments import instance, listed
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor

__all__ = [
    "all_variables", "assert_variables_initialized", "global_variables", "global_variables_initializer",
    "initialize_all_variables", "initialize_local_variables", "initialize_variables", "is_variable_initialized",
    "local_variables", "local_variables_initializer", "model_variables", "moving_average_variables",
    "report_uninitialized_variables", "trainable_variables", "variables_initializer",
]  # fmt: skip


def global_variables(scope: str | None = None) -> list[Any]:
    """Returns the variables of the current graph that all workers share; by default every variable."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """Returns the variables of the current graph that belong to one worker."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """Returns the variables of the current graph that are marked as the model's."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Returns the variables of the current graph that optimizers change."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Returns the variables of the current graph of which a moving average is kept."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """Returns an operation that gives these variables their initial values."""
    return group(*(v.initializer for v in _variables(var_list, "variables_initializer")), name=name)


def global_variables_initializer() -> Operation:
    """Returns an operation that gives all global variables their initial values."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Returns an operation that gives all local variables their initial values."""
    return variables_initializer(local_variables())


def is_variable_initialized(variable: Variable) -> Tensor:
    """Returns whether a variable has a value."""
    known: Tensor = instance(variable, Variable, "is_variable_initialized: variable", "a tf.Variable").is_initialized()
    return known


def _all_known(var_list: Sequence[Variable] | None) -> list[Any]:
    return global_variables() + local_variables() if var_list is None else _variables(var_list, "var_list")


def _variables(var_list: Any, what: str) -> list[Any]:
    return [instance(v, Variable, f"{what}: an item", "a tf.Variable") for v in listed(var_list, what, "variables")]


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """Returns the names of the variables without a value: a string vector.

    By default of all global and local variables.
    """
    variables, graph = _all_known(var_list), get_default_graph()
    with graph.name_scope(name), graph.device(None):  # strings are the host's, whatever device the variables are on
        if not variables:
            return convert_to_tensor(np.empty(0, object))
        states = apply_op("Pack", [[v.is_initialized() for v in variables]])
        absent = apply_op("Reshape", [apply_op("Where", [apply_op("LogicalNot", [states])]), [-1]])
        names = [v.op.name for v in variables]
        missing: Tensor = apply_op("GatherV2", [names, absent, 0])
        return missing


def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Operation | None:
    """Returns an operation that fails unless all variables have a value, and then names those
    without; None for no variables.

    By default of all global and local variables. Raises InvalidArgumentError when it runs.
    """
    variables = _all_known(var_list)
    if not variables:
        return None
    with get_default_graph().name_scope("assert_variables_initialized"):
        missing = report_uninitialized_variables(variables)
        complete = apply_op("Equal", [apply_op("Size", [missing]), 0])
        data = ["variables without a value:", missing]
        checked: Operation = apply_op("Assert", [complete, data], {"summarize": len(variables)})
        return checked


all_variables = global_variables
initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer
initialize_variables = variables_initializer
