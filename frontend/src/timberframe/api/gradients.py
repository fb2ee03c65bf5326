"""Derivatives of graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from timberframe.api.hessians import hessians
from timberframe_core.gradients.custom import custom_gradient
from timberframe_core.gradients.reverse import AggregationMethod, UnconnectedGradients, gradients
from timberframe_core.ops.definition.registered_gradients import RegisterGradient
from timberframe_core.ops.definition.registered_gradients import not_differentiable as NotDifferentiable  # noqa: N812 - TensorFlow's name

NoGradient = no_gradient = NotDifferentiable

__all__ = [
    "AggregationMethod", "NoGradient", "NotDifferentiable", "RegisterGradient", "UnconnectedGradients",
    "custom_gradient", "grad_pass_through", "gradients", "hessians", "no_gradient",
]  # fmt: skip


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function `f` of tensors with the gradient of the identity: what arrives at the
    result goes to each argument.

    f must return as many tensors as it takes, of the same shapes.
    """

    @custom_gradient
    @functools.wraps(f)
    def passing(*args: Any, **kwargs: Any) -> Any:
        def back(*grads: Any, variables: Any = None) -> Any:
            return (grads, [None] * len(variables)) if variables else grads

        return f(*args, **kwargs), back

    return passing
