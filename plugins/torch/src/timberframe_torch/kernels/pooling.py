"""Pooling of images, and its gradients."""

from __future__ import annotations

from typing import Any

from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.kernels.geometry import (
    Pool,
    as_before,
    channels_first,
    is_empty,
    over_channels,
    pool_of,
    trimmed,
)
from timberframe_torch.launches import FLOATS, NUMBERS, Function, torch_kernel

KERNELS: list[KernelDef] = []


def _lowest(dtype: Any) -> float:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _with_padding(pool: Pool, x: Any, value: float) -> tuple[Any, list[int]]:
    """Returns images as torch is to get them, and the padding that it is to add."""
    x = channels_first(x, pool.first)
    if pool.is_even:
        return x, list(pool.frame.before)
    return pool.frame.pad(x, value), [0, 0]


@torch_kernel(KERNELS, "MaxPool", {"T": NUMBERS}, suits=over_channels)
def max_pool(node: KernelNode) -> Function:
    """The largest element of each window."""
    pool = pool_of(node, node.inputs[0].shape, node.outputs[0].shape)
    shape, empty = node.outputs[0].shape, is_empty(node.inputs[0].shape, node.outputs[0].shape)

    def run(x: Any) -> Any:
        if empty:
            return torch.zeros(shape, dtype=x.dtype, device=x.device)
        images, padding = _with_padding(pool, x, _lowest(x.dtype))
        y = torch.nn.functional.max_pool2d(images, pool.window, pool.stride, padding)
        return as_before(trimmed(y, pool.out), pool.first)

    return run


@torch_kernel(KERNELS, "AvgPool", {"T": FLOATS}, suits=over_channels)
def avg_pool(node: KernelNode) -> Function:
    """The mean of the elements of each window that are inside the image."""
    pool = pool_of(node, node.inputs[0].shape, node.outputs[0].shape)
    shape, empty = node.outputs[0].shape, is_empty(node.inputs[0].shape, node.outputs[0].shape)

    def run(x: Any) -> Any:
        if empty:
            return torch.zeros(shape, dtype=x.dtype, device=x.device)
        images, padding = _with_padding(pool, x, 0.0)
        if pool.is_even:
            y = torch.nn.functional.avg_pool2d(images, pool.window, pool.stride, padding, count_include_pad=False)
            return as_before(trimmed(y, pool.out), pool.first)
        sums = torch.nn.functional.avg_pool2d(images, pool.window, pool.stride, divisor_override=1)
        return as_before(trimmed(sums, pool.out) / pool.counts(x), pool.first)

    return run


@torch_kernel(KERNELS, "MaxPoolGrad", {"T": FLOATS}, suits=over_channels)
def max_pool_grad(node: KernelNode) -> Function:
    """The gradient of each window to its first largest element."""
    x_shape, y_shape = node.inputs[0].shape, node.inputs[1].shape
    pool, empty = pool_of(node, x_shape, y_shape), is_empty(x_shape, y_shape)

    def run(x: Any, _: Any, gradient: Any) -> Any:
        if empty:
            return torch.zeros_like(x)
        images, padding = _with_padding(pool, x, _lowest(x.dtype))
        _, at = torch.nn.functional.max_pool2d(images, pool.window, pool.stride, padding, return_indices=True)
        back = torch.ops.aten.max_pool2d_with_indices_backward(
            channels_first(gradient, pool.first), images, pool.window, pool.stride, padding, [1, 1], False,
            trimmed(at, pool.out),
        )  # fmt: skip
        return as_before(back if pool.is_even else pool.frame.cut(back), pool.first)

    return run


@torch_kernel(KERNELS, "AvgPoolGrad", {"T": FLOATS}, suits=over_channels)
def avg_pool_grad(node: KernelNode) -> Function:
    """The gradient of each window to all of its elements that are inside the image."""
    x_shape, y_shape = node.outputs[0].shape, node.inputs[1].shape
    pool, empty = pool_of(node, x_shape, y_shape), is_empty(x_shape, y_shape)

    def run(gradient: Any) -> Any:
        if empty:
            return torch.zeros(x_shape, dtype=gradient.dtype, device=gradient.device)
        shares = channels_first(gradient, pool.first) / pool.counts(gradient)
        images = shares.new_zeros((*shares.shape[:2], *pool.frame.padded))
        back = torch.ops.aten.avg_pool2d_backward(shares, images, pool.window, pool.stride, [0, 0], False, True, 1)
        return as_before(pool.frame.cut(back), pool.first)

    return run
