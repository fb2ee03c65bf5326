"""Normalisation of batches and of channels."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from timberframe_pjrt.translations.table import FLOATS, in_float32, translation
from timberframe_sdk import KernelNode

_BATCH_NORM = {"T": ("float16", "bfloat16", "float32"), "U": ("float32",)}


def _by_channel(node: KernelNode, x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the axes of a tensor that are not channels, and the shape of channels beside it."""
    channel = 1 if node.attrs["data_format"].startswith("NC") else len(x.shape) - 1
    axes = tuple(a for a in range(len(x.shape)) if a != channel)
    return axes, tuple(-1 if a == channel else 1 for a in range(len(x.shape)))


def _reserved(node: KernelNode, made: list[Any]) -> list[Any]:
    """Returns the outputs of a node, the reserve space that holds nothing included."""
    return [*made, *(jnp.zeros(v.shape, v.dtype) for v in node.outputs[len(made) :])]


@translation(("FusedBatchNormV2", "FusedBatchNormV3"), _BATCH_NORM)
def batch_norm(node: KernelNode, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> list[Any]:
    """Returns each channel normalised, by the batch's own moments in training, and the moments."""
    attrs, (axes, beside) = node.attrs, _by_channel(node, x)
    epsilon, blend = np.float32(attrs["epsilon"]), np.float32(attrs["exponential_avg_factor"])
    wide = jnp.asarray(x, jnp.float32)
    if not wide.size:
        nan, zero = jnp.full_like(scale, math.nan), jnp.zeros_like(scale)
        return _reserved(node, [jnp.asarray(x), nan, nan, zero, zero])
    center, spread = mean, variance
    if attrs["is_training"]:
        center = jnp.mean(wide, axes)
        spread = jnp.mean(jnp.square(wide - center.reshape(beside)), axes)
    factor = lax.rsqrt(spread + epsilon) * scale
    y = (wide - jnp.reshape(center, beside)) * factor.reshape(beside) + jnp.reshape(offset, beside)
    y = y.astype(node.outputs[0].dtype)
    if not attrs["is_training"]:
        return _reserved(node, [y, mean, variance, mean, variance])
    count = wide.size // max(scale.shape[0], 1)
    unbiased = spread * np.float32(count / max(count - 1, 1))
    blended = [center, unbiased]
    if attrs["exponential_avg_factor"] != 1.0:
        blended = [(1 - blend) * mean + blend * center, (1 - blend) * variance + blend * unbiased]
    return _reserved(node, [y, *blended, center, spread])


@translation(("FusedBatchNormGradV2", "FusedBatchNormGradV3"), _BATCH_NORM)
def batch_norm_grad(node: KernelNode, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *_: Any) -> list[Any]:
    """Returns the gradients of a normalisation by its input, scale and offset."""
    axes, beside = _by_channel(node, x)
    wide, slope = jnp.asarray(x, jnp.float32), jnp.asarray(dy, jnp.float32)
    centered = wide - jnp.reshape(mean, beside)
    inverse = lax.rsqrt(variance + np.float32(node.attrs["epsilon"]))
    by_offset = jnp.sum(slope, axes)
    by_scale = jnp.sum(slope * centered, axes) * inverse
    factor = (scale * inverse).reshape(beside)
    by_x = slope * factor
    if node.attrs["is_training"] and wide.size:
        count = np.float32(wide.size // scale.shape[0])
        shared = centered * (by_scale * inverse / count).reshape(beside)
        by_x = (slope - (by_offset / count).reshape(beside) - shared) * factor
    return _reserved(node, [by_x.astype(node.outputs[0].dtype), by_scale, by_offset])


@translation("LRN", {"T": FLOATS})
@in_float32
def local_response(node: KernelNode, x: Any) -> Any:
    """Returns each value over a power of the sum of squares around its channel."""
    attrs, radius = node.attrs, node.attrs["depth_radius"]
    sums = lax.reduce_window(
        jnp.square(x), np.zeros((), x.dtype), lax.add, (1, 1, 1, 2 * radius + 1), (1,) * 4,
        [(0, 0), (0, 0), (0, 0), (radius, radius)],
    )  # fmt: skip
    bias, alpha, beta = (np.asarray(attrs[name], x.dtype) for name in ("bias", "alpha", "beta"))
    return x / jnp.power(bias + alpha * sums, beta)
