"""Ops whose input says which elements to take."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from timberframe_core.ops.base.array.gather import INDEX_OUTSIDE
from timberframe_pjrt.checks import Check, outside_row
from timberframe_pjrt.translations.table import ALL, integer, translation
from timberframe_sdk import KernelNode

_INDICES = ("int32", "int64")


def _axis(node: KernelNode) -> int:
    return integer(node, 2) % len(node.inputs[0].shape) if node.op == "GatherV2" else 0


def _index_row(node: KernelNode, data: Any, indices: Any, *_: Any) -> Any:
    return outside_row(indices, data.shape[_axis(node)])


def _index_message(node: KernelNode, index: int, at: int) -> str:
    return INDEX_OUTSIDE.format(index, at, node.inputs[0].shape[_axis(node)])


@translation(
    ("Gather", "GatherV2"), {"Tparams": ALL, "Tindices": ("int16", *_INDICES)}, check=Check(_index_row, _index_message)
)  # fmt: skip
def gather(node: KernelNode, data: Any, indices: Any, *_: Any) -> Any:
    """Returns slices of a tensor, in the order of the indices; of each batch by its own indices."""
    axis, batch = _axis(node), int(node.attrs.get("batch_dims", 0))
    batch += len(indices.shape) if batch < 0 else 0
    data, indices, shape = jnp.asarray(data), jnp.asarray(indices), node.outputs[0].shape
    if not data.size or not indices.size:
        return jnp.zeros(shape, data.dtype)
    if not batch:
        return jnp.take(data, indices, axis, mode="clip")
    places = indices.reshape((*indices.shape[:batch], *(1,) * (axis - batch), -1, *(1,) * (data.ndim - axis - 1)))
    return jnp.take_along_axis(data, places, axis, mode="clip").reshape(shape)


@translation("OneHot", {"T": ALL, "TI": ("int8", "uint8", *_INDICES)})
def one_hot(node: KernelNode, indices: Any, depth: Any, on: Any, off: Any) -> Any:
    """Returns on_value where the index says so, else off_value; for an index outside everywhere."""
    shape = node.outputs[0].shape
    axis = node.attrs["axis"] % len(shape)
    classes = jnp.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return jnp.where(jnp.expand_dims(indices, axis).astype(jnp.int64) == classes, on, off)


@translation("ArgMax", {"T": ALL, "output_type": ("int16", "uint16", *_INDICES)})
def arg_max(node: KernelNode, x: Any, axis: Any) -> Any:
    """Returns where the first largest element is; NaN is passed over."""
    return jnp.argmax(_without_nan(x, -np.inf), integer(node, 1)).astype(node.outputs[0].dtype)


@translation("ArgMin", {"T": ALL, "output_type": ("int16", "uint16", *_INDICES)})
def arg_min(node: KernelNode, x: Any, axis: Any) -> Any:
    """Returns where the first smallest element is; NaN is passed over."""
    return jnp.argmin(_without_nan(x, np.inf), integer(node, 1)).astype(node.outputs[0].dtype)


def _without_nan(x: Any, worst: float) -> Any:
    """Returns a tensor with another number in the place of NaN."""
    return jnp.where(jnp.isnan(x), worst, x) if jnp.issubdtype(x.dtype, jnp.floating) else x
