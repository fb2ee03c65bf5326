"""Layers that are called again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from timberframe.api.variable_scope import variable_scope
from timberframe_core.errors import InvalidArgumentError


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns a layer called so many times on its own output, with the same arguments; scopes are numbered from 1."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        outputs = inputs
        name = scope or _name(layer)
        for i in range(1, repetitions + 1):
            outputs = layer(outputs, *args, **{**kwargs, "scope": f"{name}_{i}"})
        return outputs


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """Returns a layer function called again and again on its own output, each time with the next of stack_args."""
    scope, reuse = kwargs.pop("scope", None), kwargs.pop("reuse", None)
    if not stack_args:
        raise InvalidArgumentError("tf.contrib.layers.stack: stack_args is empty; one at least is required")
    with variable_scope(scope, "Stack", [inputs], reuse=reuse):
        outputs = inputs
        name = scope or _name(layer)
        for i, given in enumerate(stack_args, 1):
            arguments = given if isinstance(given, list | tuple) else [given]
            outputs = layer(outputs, *arguments, scope=f"{name}_{i}", **kwargs)
        return outputs


def _name(layer: Any) -> str:
    """Returns the name of a function, or of the one that a partial of it calls."""
    function = layer if hasattr(layer, "__name__") else getattr(layer, "func", None)
    return str(getattr(function, "__name__", "layer"))
