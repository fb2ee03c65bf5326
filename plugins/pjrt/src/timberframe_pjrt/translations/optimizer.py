"""Updates of variables by gradients: new versions of a variable and its slots."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from timberframe_pjrt.translations.table import FLOATS, translation
from timberframe_sdk import KernelNode

_TYPES = {"T": FLOATS}


@translation("ResourceApplyGradientDescent", _TYPES)
def gradient_descent(node: KernelNode, variable: Any, rate: Any, gradient: Any) -> Any:
    """Returns the variable less the gradient times the rate."""
    return variable - gradient * rate


@translation("ResourceApplyMomentum", _TYPES)
def momentum(node: KernelNode, variable: Any, sums: Any, rate: Any, gradient: Any, factor: Any) -> list[Any]:
    """Sutskever, Martens, Dahl and Hinton 2013; see `timberframe_ops.training.rules`."""
    sums = sums * factor + gradient
    step = gradient * rate + sums * factor * rate if node.attrs["use_nesterov"] else sums * rate
    return [variable - step, sums]


@translation("ResourceApplyAdam", _TYPES)
def adam(
    node: KernelNode, variable: Any, m: Any, v: Any, power_1: Any, power_2: Any, rate: Any, beta_1: Any, beta_2: Any,
    epsilon: Any, gradient: Any,
) -> list[Any]:  # fmt: skip
    """Kingma and Ba 2015, in the form before section 2.1; see `timberframe_ops.training.rules`."""
    rate = rate * jnp.sqrt(1 - power_2) / (1 - power_1)
    m = m + (gradient - m) * (1 - beta_1)
    v = v + (gradient * gradient - v) * (1 - beta_2)
    mean = gradient * (1 - beta_1) + beta_1 * m if node.attrs["use_nesterov"] else m
    return [variable - mean * rate / (jnp.sqrt(v) + epsilon), m, v]
