"""Reductions, and sums along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from timberframe_pjrt.translations.table import FLOATS, NUMBERS, in_float32, integer, integers, translation
from timberframe_sdk import KernelNode


def _reduced(node: KernelNode, reduce: Callable[..., Any], x: Any, **arguments: Any) -> Any:
    """Returns a reduction over the node's axes."""
    rank = len(node.inputs[0].shape)
    axes = tuple(sorted({a % rank for a in integers(node, 1)})) if rank else ()
    return reduce(x, axis=axes, keepdims=bool(node.attrs["keep_dims"]), **arguments)


@translation("Sum", {"T": NUMBERS})
def sum_(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns the sum, of integers modulo the dtype."""
    return _reduced(node, jnp.sum, x, dtype=x.dtype)


@translation("Mean", {"T": FLOATS})
def mean(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns the mean."""
    return _reduced(node, jnp.mean, x, dtype=x.dtype)


@translation("Prod", {"T": NUMBERS})
@in_float32
def prod(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns the product."""
    return _reduced(node, jnp.prod, x, dtype=x.dtype)


def _start(dtype: np.dtype[Any], least: bool) -> Any:
    """Returns what the largest, or the smallest, of no elements is."""
    if jnp.issubdtype(dtype, jnp.floating):
        return -np.inf if least else np.inf
    return jnp.iinfo(dtype).min if least else jnp.iinfo(dtype).max


@translation("Max", {"T": NUMBERS})
def largest(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns the largest element."""
    return _reduced(node, jnp.max, x, initial=_start(x.dtype, least=True))


@translation("Min", {"T": NUMBERS})
def smallest(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns the smallest element."""
    return _reduced(node, jnp.min, x, initial=_start(x.dtype, least=False))


@translation("All")
def all_(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns whether all are true."""
    return _reduced(node, jnp.all, x)


@translation("Any")
def any_(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns whether any is true."""
    return _reduced(node, jnp.any, x)


@translation("BiasAddGrad", {"T": NUMBERS})
def bias_add_grad(node: KernelNode, x: Any) -> Any:
    """Returns the sum over all but channels."""
    rank = len(x.shape)
    channel = 1 if node.attrs["data_format"] == "NCHW" else rank - 1
    return jnp.sum(x, tuple(a for a in range(rank) if a != channel), dtype=x.dtype)


@translation("L2Loss", {"T": FLOATS})
@in_float32
def l2_loss(node: KernelNode, x: Any) -> Any:
    """Returns half the sum of squares."""
    return jnp.sum(jnp.square(x), dtype=x.dtype) * np.asarray(0.5, x.dtype)


@translation("Cumsum", {"T": NUMBERS})
@in_float32
def cumsum(node: KernelNode, x: Any, axis: Any) -> Any:
    """Returns sums of all elements up to each, along an axis."""
    at = integer(node, 1) % len(x.shape)
    ordered = jnp.flip(x, at) if node.attrs["reverse"] else x
    sums = jnp.cumsum(ordered, at, dtype=x.dtype)
    if node.attrs["exclusive"]:
        before = [(1, 0) if i == at else (0, 0) for i in range(len(x.shape))]
        sums = jnp.pad(sums, before)[(slice(None),) * at + (slice(0, x.shape[at]),)]
    return jnp.flip(sums, at) if node.attrs["reverse"] else sums
