"""Reductions, and sums along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.launches import COMPLEX, FLOATS, NUMBERS, Function, torch_kernel

KERNELS: list[KernelDef] = []
Reduce = Callable[[Any, list[int], bool], Any]
"""Of a tensor, axes (at least one) and whether they stay as ones."""


def _axes(node: KernelNode) -> list[int]:
    rank = len(node.inputs[0].shape)
    return sorted({int(a) % rank for a in np.ravel(np.asarray(node.const(1)))}) if rank else []


def _reduced(node: KernelNode, reduce: Reduce) -> Function:
    """Returns a reduction over the node's axes; over none it gives its input."""
    axes, keep = _axes(node), bool(node.attrs["keep_dims"])
    return lambda x: reduce(x, axes, keep) if axes else x


@torch_kernel(KERNELS, "Sum", {"T": (*NUMBERS, *COMPLEX)})
def sum_(node: KernelNode) -> Function:
    """The sum, of integers modulo the dtype."""
    return _reduced(node, lambda x, axes, keep: torch.sum(x, axes, keep, dtype=x.dtype))


@torch_kernel(KERNELS, "Mean", {"T": (*FLOATS, *COMPLEX)})
def mean(node: KernelNode) -> Function:
    """The mean."""
    return _reduced(node, lambda x, axes, keep: torch.mean(x, axes, keep))


@torch_kernel(KERNELS, "Prod", {"T": NUMBERS})
def prod(node: KernelNode) -> Function:
    """The product, over one axis after the other."""

    def reduce(x: Any, axes: list[int], keep: bool) -> Any:
        for axis in reversed(axes):
            x = torch.prod(x, axis, keep, dtype=x.dtype)
        return x

    return _reduced(node, reduce)


def _extreme(node: KernelNode, name: str, empty: str) -> Function:
    """Returns a reduction that torch has for elements alone; empty: what it gives of no elements."""
    shape = node.outputs[0].shape

    def reduce(x: Any, axes: list[int], keep: bool) -> Any:
        if x.numel():
            return getattr(torch, name)(x, axes, keep)
        if x.dtype.is_floating_point:
            return torch.full(shape, float(empty), dtype=x.dtype, device=x.device)
        limits = torch.iinfo(x.dtype)
        return torch.full(shape, limits.max if empty == "inf" else limits.min, dtype=x.dtype, device=x.device)

    return _reduced(node, reduce)


@torch_kernel(KERNELS, "Max", {"T": NUMBERS})
def largest(node: KernelNode) -> Function:
    """The largest element."""
    return _extreme(node, "amax", "-inf")


@torch_kernel(KERNELS, "Min", {"T": NUMBERS})
def smallest(node: KernelNode) -> Function:
    """The smallest element."""
    return _extreme(node, "amin", "inf")


@torch_kernel(KERNELS, "All")
def all_(node: KernelNode) -> Function:
    """Whether all are true."""
    return _reduced(node, lambda x, axes, keep: torch.all(x, axes, keep))


@torch_kernel(KERNELS, "Any")
def any_(node: KernelNode) -> Function:
    """Whether any is true."""
    return _reduced(node, lambda x, axes, keep: torch.any(x, axes, keep))


@torch_kernel(KERNELS, "BiasAddGrad", {"T": (*NUMBERS, *COMPLEX)})
def bias_add_grad(node: KernelNode) -> Function:
    """The sum over all but channels."""
    rank = len(node.inputs[0].shape)
    channel = 1 if node.attrs["data_format"] == "NCHW" else rank - 1
    axes = [a for a in range(rank) if a != channel]
    return lambda x: torch.sum(x, axes, dtype=x.dtype)


@torch_kernel(KERNELS, "L2Loss", {"T": FLOATS})
def l2_loss(node: KernelNode) -> Function:
    """Half the sum of squares."""
    return lambda x: torch.sum(torch.square(x)) * 0.5


@torch_kernel(KERNELS, "Cumsum", {"T": NUMBERS})
def cumsum(node: KernelNode) -> Function:
    """Sums of all elements up to each, along an axis."""
    axis, exclusive, backwards = int(np.asarray(node.const(1))), node.attrs["exclusive"], node.attrs["reverse"]

    def run(x: Any) -> Any:
        ordered = x.flip(axis) if backwards else x
        sums = torch.cumsum(ordered, axis, dtype=x.dtype)
        if exclusive and x.numel():
            zeros = torch.zeros_like(sums.narrow(axis, 0, 1))
            sums = torch.cat([zeros, sums.narrow(axis, 0, x.shape[axis] - 1)], axis)
        return sums.flip(axis) if backwards else sums

    return run
