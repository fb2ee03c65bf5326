"""Functions that change a variable, in whole or in part.

They take a variable, its value as a graph gives it by name, or the value that another of them returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from timberframe.api.framework import control_dependencies
from timberframe.api.variable_slices import VariableSlice
from timberframe.api.variables import Variable
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.growth import allow_any_shape
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.variable_value import READ, changed_variable, handle_of
from timberframe_core.graphdef import messages

__all__ = [
    "assign", "assign_add", "assign_sub", "count_up_to", "scatter_add", "scatter_div", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "scatter_sub", "scatter_update",
]  # fmt: skip


def variable_of(given: Any) -> Any:
    """Returns the variable whose value a tensor is, as `Graph.get_tensor_by_name` gives it; all else as it is."""
    handle = handle_of(given) if isinstance(given, Tensor) else None
    return given if handle is None else _variable_with(handle)


def _variable_with(handle: Tensor) -> Variable:
    """Returns the variable that has a handle, which is that of a graph around where a body has captured it."""
    while isinstance(handle.graph, FuncGraph):
        outer = handle.graph.captured_tensor(handle)
        if outer is None:
            raise InvalidTypeError(f"'{handle.name}' is an argument of a function; a tf.Variable is required")
        handle = outer
    graph, name = handle.graph, handle.op.name
    for collection in graph.get_all_collection_keys():
        for item in graph.get_collection_ref(collection):
            if isinstance(item, Variable) and item.handle is handle:
                return item
    with graph.as_default():
        return Variable(
            variable_def=messages.VariableDef(
                variable_name=handle.name,
                initializer_name=f"{name}/Assign",
                snapshot_name=f"{name}/{READ}:0",
                trainable=True,
            )
        )


def _variable(ref: Any, function: str) -> Variable:
    found: Variable = instance(variable_of(ref), Variable, f"{function}: ref", "a tf.Variable")
    return found


@contextmanager
def _changed(ref: Any, function: str) -> Iterator[Variable]:
    """The variable that `ref` is, or whose value it is after an assignment, which what is made inside waits for."""
    handle = changed_variable(ref) if isinstance(ref, Tensor) else None
    if handle is None:
        yield _variable(ref, function)
    else:
        with control_dependencies([ref]):
            yield _variable_with(handle)


def assign(
    ref: Variable, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None
) -> Any:
    """Makes `value` the variable's value; returns the value read thereafter.

    ref: a variable, or a slice of one. validate_shape: if False, the value, and thus the variable, may have any shape.
    """
    if isinstance(ref, VariableSlice):
        return ref.assign(value, name=name)
    with _changed(ref, "assign") as variable:
        return (
            _assign_any_shape(variable, value, name) if validate_shape is False else variable.assign(value, name=name)
        )


def _assign_any_shape(variable: Variable, value: Any, name: str | None) -> Any:
    """Makes `value` the variable's value whatever shape its handle declares; returns the value read thereafter."""
    tensor = convert_to_tensor(value, variable.dtype)
    if variable.op.type == "VarHandleOp" and tensor.static_shape != variable.op.attrs["shape"]:
        allow_any_shape(variable.handle)
    return variable.update("AssignVariableOp", [tensor], name, attrs={"validate_shape": False})


def assign_add(ref: Variable, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Adds `value` to the variable; returns the value read thereafter."""
    with _changed(ref, "assign_add") as variable:
        return variable.assign_add(value, name=name)


def assign_sub(ref: Variable, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Subtracts `value` from the variable; returns the value read thereafter."""
    with _changed(ref, "assign_sub") as variable:
        return variable.assign_sub(value, name=name)


def _scatter(op: str, ref: Variable, indices: Any, updates: Any, name: str | None) -> Tensor:
    with _changed(ref, op) as variable:
        changed: Tensor = variable.scatter(op, indices, updates, name)
    return changed


def scatter_update(ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
    """Replaces the rows of the variable at `indices`; returns its value thereafter.

    updates: a scalar, or shape `indices.shape + ref.shape[1:]`. Of a row named twice one of the updates stays.
    """
    return _scatter("ResourceScatterUpdate", ref, indices, updates, name)


def scatter_add(ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Adds to the rows of the variable at `indices`, every update of a row named twice; see scatter_update."""
    return _scatter("ResourceScatterAdd", ref, indices, updates, name)


def scatter_sub(ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Subtracts from the rows of the variable at `indices`; see scatter_add."""
    return _scatter("ResourceScatterSub", ref, indices, updates, name)


def scatter_mul(ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Multiplies the rows of the variable at `indices`; see scatter_add."""
    return _scatter("ResourceScatterMul", ref, indices, updates, name)


def scatter_div(ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Divides the rows of the variable at `indices`; see scatter_add."""
    return _scatter("ResourceScatterDiv", ref, indices, updates, name)


def scatter_min(ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Takes the smaller of the rows of the variable at `indices` and the updates; see scatter_add."""
    return _scatter("ResourceScatterMin", ref, indices, updates, name)


def scatter_max(ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Takes the larger of the rows of the variable at `indices` and the updates; see scatter_add."""
    return _scatter("ResourceScatterMax", ref, indices, updates, name)


def scatter_nd_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Replaces the slices of the variable at the index tuples in the last dimension of `indices`; returns its value."""
    return _scatter("ResourceScatterNdUpdate", ref, indices, updates, name)


def scatter_nd_add(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds to the slices of the variable at the index tuples; see scatter_nd_update."""
    return _scatter("ResourceScatterNdAdd", ref, indices, updates, name)


def scatter_nd_sub(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts from the slices of the variable at the index tuples; see scatter_nd_update."""
    return _scatter("ResourceScatterNdSub", ref, indices, updates, name)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """Returns the value of an integer scalar variable, which then grows by one; OutOfRangeError
    once it has reached `limit`.
    """
    with _changed(ref, "count_up_to") as variable:
        return variable.count_up_to(limit, name)
