"""Gradient functions that programs register by a name: of an op, or one that `Graph.gradient_override_map` uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidTypeError, NameTakenError, NotFoundError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import MissingGradient, NotDifferentiable

Gradient = Callable[..., Any]

ATTR = "_gradient_op_type"
"""The attr of a node that names the gradient to use in place of its op's own, as in TensorFlow's graphs."""

_gradients: dict[str, Gradient | NotDifferentiable] = {}


class RegisterGradient:
    """A decorator that registers a gradient function under a name: that of an op which has none, or one of its own.

    The function takes the operation and a gradient for each of its outputs, and returns one for each input, or None.
    Raises NameTakenError, an AlreadyExistsError and KeyError, where the name has a gradient.
    """

    def __init__(self, op_type: str) -> None:
        self._name: str = instance(op_type, str, "RegisterGradient: op_type", "a str")

    def __call__(self, f: Any) -> Any:
        if not callable(f):
            raise InvalidTypeError(f"RegisterGradient '{self._name}': {f!r} is given; a function is required")
        _register(self._name, f)
        return f


def not_differentiable(op_type: str) -> None:
    """Registers that no gradient passes an op of this name."""
    name: str = instance(op_type, str, "NotDifferentiable: op_type", "a str")
    _register(name, NotDifferentiable("the program says so"))


def _register(name: str, gradient: Gradient | NotDifferentiable) -> None:
    if find(name) is not None:
        raise NameTakenError(
            f"RegisterGradient '{name}': has a gradient already; register it under a new name, which "
            "Graph.gradient_override_map can name for an op"
        )
    _gradients[name] = gradient


def is_registered(name: str) -> bool:
    """Returns whether a program has registered a gradient under this name."""
    return name in _gradients


def find(name: str) -> Gradient | NotDifferentiable | None:
    """Returns the gradient function of this name, registered or an op's own; None where there is none."""
    found = _gradients.get(name)
    if found is None:
        op = registry.find(name)
        found = None if op is None or isinstance(op.gradient, MissingGradient) else op.gradient
    return found


def gradient_named(name: str) -> Gradient:
    """Returns the gradient function of this name, which is looked up when it is called."""

    def gradient(op: Any, *grads: Any) -> list[Any]:
        function = find(name)
        if function is None:
            raise NotFoundError(
                f"{op.type} '{op.name}': its gradient is to be '{name}', and no gradient has that name; "
                f"tf.RegisterGradient('{name}') registers one",
                op.name,
            )
        if isinstance(function, NotDifferentiable):
            return [None] * len(op.inputs)
        made = function(op, *grads)
        return list(made) if isinstance(made, list | tuple) else [made]

    return gradient
