"""A choice that is made while the graph is built where it is known then, and in each run otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.control_flow import cond
from timberframe.api.framework import get_static_value
from timberframe.api.variables import Variable
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Tensor


def known_bool(value: Any) -> bool | None:
    """Returns a bool, or the value of a tensor that is known before a run, else None."""
    if isinstance(value, Tensor | Variable):
        known = get_static_value(value) if isinstance(value, Tensor) else None
        return None if known is None else bool(known)
    return bool(value)


def smart_cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Returns what one of the functions returns: `tf.cond`, or one of them alone where the choice is known."""
    known = known_bool(pred)
    if known is None:
        return cond(convert_to_tensor(pred), true_fn, false_fn)
    return true_fn() if known else false_fn()
