"""Updates of variables by gradients: new versions of a variable and its slots."""

from __future__ import annotations

from typing import Any

from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.launches import FLOATS, Function, torch_kernel

KERNELS: list[KernelDef] = []


@torch_kernel(KERNELS, "ResourceApplyGradientDescent", {"T": FLOATS})
def gradient_descent(node: KernelNode) -> Function:
    """The variable less the gradient times the rate."""
    return lambda variable, rate, gradient: variable - gradient * rate


@torch_kernel(KERNELS, "ResourceApplyMomentum", {"T": FLOATS})
def momentum(node: KernelNode) -> Function:
    """Sutskever, Martens, Dahl and Hinton 2013; see `timberframe_ops.training.rules`."""
    nesterov = node.attrs["use_nesterov"]

    def run(variable: Any, sums: Any, rate: Any, gradient: Any, factor: Any) -> list[Any]:
        sums = sums * factor + gradient
        step = gradient * rate + sums * factor * rate if nesterov else sums * rate
        return [variable - step, sums]

    return run


@torch_kernel(KERNELS, "ResourceApplyAdam", {"T": FLOATS})
def adam(node: KernelNode) -> Function:
    """Kingma and Ba 2015, in the form before section 2.1; see `timberframe_ops.training.rules`."""
    nesterov = node.attrs["use_nesterov"]

    def run(
        variable: Any, m: Any, v: Any, power_1: Any, power_2: Any, rate: Any, beta_1: Any, beta_2: Any, epsilon: Any,
        gradient: Any,
    ) -> list[Any]:  # fmt: skip
        rate = rate * torch.sqrt(1 - power_2) / (1 - power_1)
        m = m + (gradient - m) * (1 - beta_1)
        v = v + (gradient * gradient - v) * (1 - beta_2)
        mean = gradient * (1 - beta_1) + beta_1 * m if nesterov else m
        return [variable - mean * rate / (torch.sqrt(v) + epsilon), m, v]

    return run
