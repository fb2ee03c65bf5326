"""Values of `tf.contrib.framework` for variables, from checkpoints and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys, get_collection, group, placeholder
from timberframe.api.partitioned_variables import parts_of
from timberframe.api.variables import Variable
from timberframe.saving.restoring import check_fit, values_of_parts
from timberframe.train.checkpoint_utils import NewCheckpointReader
from timberframe.train.saver import Saver, by_name
from timberframe_core import logging
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import format_shape

Assignment = tuple[Operation, dict[Tensor, Any]]
"""An operation that assigns variables, and what its run is fed."""


def assign_from_checkpoint(model_path: str, var_list: Any, ignore_missing_vars: bool = False) -> Assignment:
    """Returns an operation that gives variables their values of a checkpoint, and the feed_dict of its run.

    var_list: variables, or a map from names in the checkpoint to variables, each whole or the list of its parts.
    ignore_missing_vars: those that the checkpoint lacks are left out. The values are read now.
    Raises InvalidArgumentError where it lacks a variable, or has it in another dtype or shape.
    """
    reader = NewCheckpointReader(model_path)
    chosen = by_name(var_list or {})
    missing = sorted(name for name in chosen if not reader.has_tensor(name))
    if missing and not ignore_missing_vars:
        raise InvalidArgumentError(
            f"assign_from_checkpoint: checkpoint '{model_path}' lacks {', '.join(map(repr, missing))}; it must have "
            "all variables, or ignore_missing_vars be set"
        )
    for name in missing:
        logging.warning("Checkpoint is missing variable [%s]", name)
        del chosen[name]
    check_fit(reader, chosen)
    values = [x for name, v in chosen.items() for x in values_of_parts(reader.read(name), v)]
    return _assignment(zip(parts_of(chosen.values()), values, strict=True))


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """Returns a function of a session that gives variables their values of a checkpoint.

    var_list: variables, or a map from names in the checkpoint to variables. ignore_missing_vars: those that it lacks
    are left out; None is returned where none is left. reshape_variables: shapes may differ.
    """
    if not var_list:
        raise InvalidArgumentError("assign_from_checkpoint_fn: var_list is empty; one variable at least is required")
    chosen = by_name(var_list)
    if ignore_missing_vars:
        held = NewCheckpointReader(model_path).get_variable_to_shape_map()
        for name in sorted(chosen.keys() - held.keys()):
            logging.warning("Variable %s missing in checkpoint %s", name, model_path)
        chosen = {name: v for name, v in chosen.items() if name in held}
    if not chosen:
        logging.warning("No Variables to restore")
        return None
    saver = Saver(chosen, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> Assignment:
    """Returns an operation that gives variables these values, by their names, and the feed_dict of its run.

    A value is reshaped to its variable. Raises InvalidArgumentError for a name that no variable has, and for a value
    with another number of elements.
    """
    held: dict[str, Variable] = {v.op.name: v for v in get_collection(GraphKeys.GLOBAL_VARIABLES)}
    missing = sorted(var_names_to_values.keys() - held.keys())
    if missing:
        raise InvalidArgumentError(f"assign_from_values: there is no variable {missing[0]!r}; one is required")
    return _assignment((held[name], _reshaped(value, held[name])) for name, value in var_names_to_values.items())


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], None]:
    """Returns a function of a session that runs what `assign_from_values` returns."""
    assign_op, feed_dict = assign_from_values(var_names_to_values)

    def assign(session: Any) -> None:
        session.run(assign_op, feed_dict)

    return assign


def _reshaped(value: Any, variable: Variable) -> np.ndarray:
    array = np.asarray(value)
    shape = variable.shape
    if not shape.is_fully_defined():
        return array
    if array.size != shape.num_elements():
        raise InvalidArgumentError(
            f"assign_from_values: the value of '{variable.op.name}' has shape {format_shape(array.shape)}; it must "
            f"have as many elements as the variable, whose shape is {shape}"
        )
    return array.reshape([size or 0 for size in shape])


def _assignment(pairs: Iterable[tuple[Any, Any]]) -> Assignment:
    """Returns the assignment of values to variables, fed so that they do not become a part of the graph."""
    assigned: list[Operation] = []
    feed_dict: dict[Tensor, Any] = {}
    for variable, value in pairs:
        given = placeholder(variable.dtype.base_dtype, variable.shape, f"placeholder/{variable.op.name}")
        assigned.append(variable.assign(given, read_value=False))
        feed_dict[given] = value
    return group(*assigned), feed_dict
