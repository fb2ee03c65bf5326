"""Values of `tf.contrib.framework` for variables, from checkpoints and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timberframe.api.framework import GraphKeys, get_collection
from timberframe.api.state import Variable
from timberframe.train.checkpoint_utils import NewCheckpointReader
from timberframe.train.saver import Saver, by_name
from timberframe_core import logging
from timberframe_core.errors import InvalidArgumentError


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """A function of a session that gives variables their values of a checkpoint.

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


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], None]:
    """A function of a session that gives variables these values, by their names."""
    held: dict[str, Variable] = {v.op.name: v for v in get_collection(GraphKeys.GLOBAL_VARIABLES)}
    missing = sorted(var_names_to_values.keys() - held.keys())
    if missing:
        raise InvalidArgumentError(f"assign_from_values_fn: there is no variable {missing[0]!r}; one is required")

    def assign(session: Any) -> None:
        for name, value in var_names_to_values.items():
            held[name].load(value, session)

    return assign
