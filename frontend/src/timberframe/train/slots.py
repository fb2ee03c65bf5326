"""Slots: the variables that an optimizer or an average keeps for another variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from timberframe.api.constants import zeros_like
from timberframe.api.initializers import zeros_initializer
from timberframe.api.variable_scope import get_variable, variable_scope
from timberframe_core.dtypes import DType
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.shapes import is_static


def create_slot(primary: Any, value: Any, name: str) -> Any:
    """Returns a variable with this initial value that is not trained, on the device of `primary`.

    It is called ``<primary>/<name>`` (with a number after the scope if that is in use), inside the current variable
    scope, as in TensorFlow, so that names in checkpoints agree.
    """
    tensor = convert_to_tensor(value)
    return _create(primary, name, initializer=tensor, validate_shape=is_static(tensor.static_shape))


def create_slot_with_initializer(
    primary: Any, initializer: Callable[..., Any], shape: Any, dtype: DType, name: str
) -> Any:
    """Like `create_slot`, with the value of an initializer for this shape and dtype."""
    return _create(primary, name, initializer=initializer, shape=shape, dtype=dtype)


def create_zeros_slot(primary: Any, name: str, dtype: DType | None = None) -> Any:
    """Like `create_slot`, with zeros in the shape of `primary`."""
    kind = dtype or primary.dtype.base_dtype
    if is_static(primary.shape.as_tuple()):
        return create_slot_with_initializer(primary, zeros_initializer(), primary.shape, kind, name)
    with primary.graph.as_default(), primary.graph.control_dependencies(None):  # not in a branch that uses it
        value = primary.initialized_value() if hasattr(primary, "initialized_value") else primary
        return create_slot(primary, zeros_like(value, kind), name)


def _create(primary: Any, name: str, **how: Any) -> Any:
    with variable_scope(None, f"{primary.op.name}/{name}"), primary.graph.colocate_with(primary.op):
        made = get_variable("", trainable=False, use_resource=True, **how)
    info = getattr(primary, "save_slice_info", None)
    if info is not None:  # the slot is a part, too, of the slot of the whole
        own = made.op.name.removeprefix(f"{primary.op.name}/")
        made.save_slice_info = replace(info, full_name=f"{info.full_name}/{own}")
    return made
