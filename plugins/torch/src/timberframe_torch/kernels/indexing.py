"""Ops whose input says which elements to take."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from timberframe_core.errors import InvalidArgumentError, OpError
from timberframe_core.ops.base.array.gather import INDEX_OUTSIDE
from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.launches import ALL, Function, torch_kernel

KERNELS: list[KernelDef] = []
_INDICES = ("int32", "int64")


def refusing(
    node: KernelNode, run: Function, input: int, size: int, message: str, kind: type[OpError] = InvalidArgumentError
) -> Function:
    """Returns a function that says which index is outside, where torch refuses one.

    input: which of its tensors has the indices. message: with places for index, position and size. What the session
    asks for, or a backend whose kernels cannot raise, has them looked at before.
    """
    device: Any = node.device

    def check(indices: Any) -> None:
        values = indices.cpu().numpy().ravel()
        outside = (values < 0) | (values >= size)
        if outside.any():
            at = int(np.argmax(outside))
            raise kind(message.format(values[at], at, size))

    def checked(*xs: Any) -> Any:
        if device.settings.checks_indices:
            check(xs[input])
        try:
            return run(*xs)
        except (IndexError, RuntimeError):
            check(xs[input])
            raise

    return checked


@torch_kernel(KERNELS, ("Gather", "GatherV2"), {"Tparams": ALL, "Tindices": _INDICES})
def gather(node: KernelNode) -> Function:
    """Slices of a tensor, in the order of the indices; of each batch by its own indices."""
    data, where = node.inputs[0].shape, node.inputs[1].shape
    axis = int(np.asarray(node.const(2))) % len(data) if node.op == "GatherV2" else 0
    batch_dims = int(node.attrs.get("batch_dims", 0))
    batch_dims += len(where) if batch_dims < 0 else 0
    shape, size = node.outputs[0].shape, data[axis]
    batch, outer, inner = (math.prod(d) for d in (data[:batch_dims], data[batch_dims:axis], data[axis + 1 :]))

    def run(x: Any, indices: Any) -> Any:
        if not batch_dims:
            return torch.index_select(x, axis, indices.reshape(-1)).reshape(shape)
        if not math.prod(shape):
            return x.new_empty(shape)
        each = indices.reshape(batch, 1, -1, 1).to(torch.int64).expand(-1, outer, -1, inner)
        return torch.gather(x.reshape(batch, outer, size, inner), 2, each).reshape(shape)

    return refusing(node, run, 1, size, INDEX_OUTSIDE)


@torch_kernel(KERNELS, "OneHot", {"T": ALL, "TI": ("uint8", *_INDICES)})
def one_hot(node: KernelNode) -> Function:
    """on_value where the index says so, else off_value; for an index outside everywhere."""
    rank, axis = len(node.outputs[0].shape), int(node.attrs["axis"])
    axis = rank - 1 if axis < 0 else axis
    depth = node.outputs[0].shape[axis]
    wanted = [1] * rank
    wanted[axis] = depth

    def run(indices: Any, on: Any, off: Any) -> Any:
        classes = torch.arange(depth, dtype=torch.int64, device=indices.device).reshape(wanted)
        return torch.where(indices.unsqueeze(axis) == classes, on, off)

    return run


def _extreme_at(node: KernelNode, name: str) -> Function:
    axis, dtype = int(np.asarray(node.const(1))), getattr(torch, node.outputs[0].dtype.name)
    return cast(Function, lambda x: getattr(torch, name)(x, axis).to(dtype))


@torch_kernel(KERNELS, "ArgMax", {"T": ("float32", "float64", "int32", "int64"), "output_type": _INDICES})
def arg_max(node: KernelNode) -> Function:
    """Where the first largest element is."""
    return _extreme_at(node, "argmax")


@torch_kernel(KERNELS, "ArgMin", {"T": ("float32", "float64", "int32", "int64"), "output_type": _INDICES})
def arg_min(node: KernelNode) -> Function:
    """Where the first smallest element is."""
    return _extreme_at(node, "argmin")
