"""Pooling of images, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from timberframe_pjrt.translations.table import FLOATS, NUMBERS, in_float32, translation
from timberframe_sdk import KernelNode, Value
from timberframe_sdk.plans.pooling import padding_before, window_values


@dataclass(frozen=True)
class _Pool:
    """Windows over a tensor: numbers for each of its four axes."""

    window: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    is_empty: bool

    @classmethod
    def of(cls, node: KernelNode, x: Value, y: Value) -> _Pool:
        """Returns the windows with which a node pools x to y."""
        ksize, strides = (tuple(int(v) for v in values) for values in window_values(node))
        space = (2, 3) if node.attrs["data_format"].startswith("NC") else (1, 2)
        pads = [(0, 0)] * 4
        for axis, before in zip(space, padding_before(node, x.shape, y.shape), strict=True):
            covered = (y.shape[axis] - 1) * strides[axis] + ksize[axis]
            pads[axis] = (before, covered - x.shape[axis] - before)
        return cls(ksize, strides, tuple(pads), not math.prod(x.shape) or not math.prod(y.shape))

    def folded(self, x: Any, start: Any, operation: Any) -> Any:
        """Returns each window's elements put together; padding counts as `start`."""
        x = jnp.asarray(x)
        for axis, (_, after) in enumerate(self.pads):
            if after < 0:  # no window covers the end
                x = lax.slice_in_dim(x, 0, x.shape[axis] + after, axis=axis)
        pads = [(before, max(after, 0)) for before, after in self.pads]
        return lax.reduce_window(x, np.asarray(start, x.dtype), operation, self.window, self.stride, pads)


def _counts(pool: _Pool, size: Sequence[int], out: Sequence[int], dtype: Any) -> Any:
    """Returns how many elements of an image are in each window, as an array that broadcasts."""
    found = np.ones((1,) * len(size))
    for axis, (n, m) in enumerate(zip(size, out, strict=True)):
        begin = np.arange(m) * pool.stride[axis] - pool.pads[axis][0]
        inside = np.minimum(begin + pool.window[axis], n) - np.maximum(begin, 0)
        found = found * np.expand_dims(inside, [a for a in range(len(size)) if a != axis])
    return found.astype(dtype)


def _attrs_only(node: KernelNode) -> str | None:
    return None if "ksize" in node.attrs else "ksize is an input; an attr is required"


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _numbers(x: Any) -> Any:
    """Returns a tensor whose NaN are passed over, as the lowest number."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.asarray(x)
    lowest = np.asarray(jnp.finfo(x.dtype).min, x.dtype)
    return jnp.where(x > lowest, x, lowest)


@translation("MaxPool", {"T": NUMBERS}, suits=_attrs_only)
def max_pool(node: KernelNode, x: Any) -> Any:
    """Returns the largest element of each window."""
    pool = _Pool.of(node, node.inputs[0], node.outputs[0])
    if pool.is_empty:
        return jnp.zeros(node.outputs[0].shape, x.dtype)
    return pool.folded(_numbers(x), _lowest(x.dtype), lax.max)


@translation("AvgPool", {"T": FLOATS}, suits=_attrs_only)
@in_float32
def avg_pool(node: KernelNode, x: Any) -> Any:
    """Returns the mean of the elements of each window that are inside the image."""
    pool = _Pool.of(node, node.inputs[0], node.outputs[0])
    if pool.is_empty:
        return jnp.zeros(node.outputs[0].shape, x.dtype)
    return pool.folded(x, 0, lax.add) / _counts(pool, x.shape, node.outputs[0].shape, x.dtype)


@translation("MaxPoolGrad", {"T": FLOATS}, suits=_attrs_only)
@in_float32
def max_pool_grad(node: KernelNode, x: Any, y: Any, gradient: Any) -> Any:
    """Returns the gradient of each window at its first largest element."""
    pool = _Pool.of(node, node.inputs[0], node.inputs[1])
    if pool.is_empty:
        return jnp.zeros_like(x)
    _, back = jax.vjp(lambda images: pool.folded(images, -np.inf, lax.max), jnp.asarray(x))
    return back(jnp.asarray(gradient))[0]


@translation("AvgPoolGrad", {"T": FLOATS}, suits=_attrs_only)
@in_float32
def avg_pool_grad(node: KernelNode, sizes: Any, gradient: Any) -> Any:
    """Returns the gradient of each window to all of its elements that are inside the image."""
    shape = node.outputs[0].shape
    pool = _Pool.of(node, node.outputs[0], node.inputs[1])
    if pool.is_empty:
        return jnp.zeros(shape, gradient.dtype)
    shares = gradient / _counts(pool, shape, gradient.shape, gradient.dtype)
    edges = [
        (k - 1 - before, n + k - 1 - (k - 1 - before) - ((m - 1) * s + 1), s - 1)
        for n, m, k, s, (before, _) in zip(
            shape, shares.shape, pool.window, pool.stride, pool.pads, strict=True
        )
    ]  # fmt: skip
    spread = lax.pad(shares, np.zeros((), shares.dtype), edges)
    return lax.reduce_window(spread, np.zeros((), shares.dtype), lax.add, pool.window, (1,) * 4, "VALID")
