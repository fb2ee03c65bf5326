"""Ops that move elements, and compute none."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from timberframe_pjrt.translations.table import ALL, integer, integers, translation
from timberframe_sdk import KernelNode

_T = {"T": ALL}


@translation(("Reshape", "ExpandDims", "Squeeze"), _T)
def reshape(node: KernelNode, x: Any, *_: Any) -> Any:
    """Returns the same elements in another shape."""
    return jnp.reshape(x, node.outputs[0].shape)


@translation("Transpose", _T)
def transpose(node: KernelNode, x: Any, order: Any) -> Any:
    """Returns axes in another order."""
    return jnp.transpose(x, integers(node, 1))


@translation("BroadcastTo", _T)
def broadcast_to(node: KernelNode, x: Any, shape: Any) -> Any:
    """Returns the elements again and again along axes that grow."""
    return jnp.broadcast_to(x, node.outputs[0].shape)


@translation("Fill", _T)
def fill(node: KernelNode, dims: Any, value: Any) -> Any:
    """Returns one value everywhere."""
    return jnp.broadcast_to(value, node.outputs[0].shape)


@translation("Tile", _T)
def tile(node: KernelNode, x: Any, multiples: Any) -> Any:
    """Returns the whole several times along each axis."""
    return jnp.tile(x, integers(node, 1))


@translation("ReverseV2", _T)
def reverse(node: KernelNode, x: Any, axes: Any) -> Any:
    """Returns axes from their end to their beginning."""
    rank = len(x.shape)
    return lax.rev(jnp.asarray(x), [a % rank for a in integers(node, 1)])


@translation("ConcatV2", _T)
def concatenate(node: KernelNode, *inputs: Any) -> Any:
    """Returns tensors one after the other along an axis."""
    return jnp.concatenate(inputs[:-1], integer(node, len(inputs) - 1))


@translation("Pack", _T)
def pack(node: KernelNode, *inputs: Any) -> Any:
    """Returns tensors one after the other along a new axis."""
    return jnp.stack(inputs, node.attrs["axis"])


@translation("Unpack", _T)
def unpack(node: KernelNode, x: Any) -> list[Any]:
    """Returns a tensor for each place of an axis."""
    axis = node.attrs["axis"] % len(x.shape)
    return [lax.index_in_dim(jnp.asarray(x), i, axis, keepdims=False) for i in range(len(node.outputs))]


@translation(("Split", "SplitV"), _T)
def split(node: KernelNode, *inputs: Any) -> list[Any]:
    """Returns parts along an axis."""
    x, place = (inputs[1], 0) if node.op == "Split" else (inputs[0], 2)
    axis = integer(node, place) % len(x.shape)
    ends = np.cumsum([v.shape[axis] for v in node.outputs])
    return list(jnp.split(x, ends[:-1].tolist(), axis))


@translation(("Pad", "PadV2"), _T)
def pad(node: KernelNode, x: Any, paddings: Any, value: Any = None) -> Any:
    """Returns a tensor with elements of one value, zero by default, around it."""
    pairs = np.asarray(node.const(1)).reshape(-1, 2).tolist()
    filling = np.zeros((), x.dtype) if value is None else value
    return lax.pad(jnp.asarray(x), jnp.asarray(filling), [(before, after, 0) for before, after in pairs])


@translation("Roll", _T)
def roll(node: KernelNode, x: Any, shifts: Any, axes: Any) -> Any:
    """Returns elements moved along axes, those beyond the end to the beginning."""
    return jnp.roll(x, integers(node, 1), integers(node, 2))
