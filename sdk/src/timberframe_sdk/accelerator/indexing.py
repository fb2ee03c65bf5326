"""Accelerator kernels that gather and scatter slices by their numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe.errors import InvalidArgumentError
from timberframe.plugin.contracts import KernelDef, KernelNode, Launcher
from timberframe_sdk.accelerator.device import Source, failing, index_name, index_type, spread
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_INDEX = InvalidArgumentError, "index {0} at position {1} is outside [0, {2}); it must name a slice of params"


def bits_name(dtype: np.dtype[Any]) -> str:
    """The unsigned integer dtype that is as wide as an element: what kernels that only move elements work on."""
    return f"uint{8 * dtype.itemsize}"


@kernel(KERNELS, ("Gather", "GatherV2"), "", status=True)
def gather(node: KernelNode) -> Launcher:
    """Slices of params by their numbers along one axis, behind batch dimensions that both share."""
    device: Any = node.device
    params, indices, out = node.inputs[0], node.inputs[1], node.outputs[0]
    axis, batch = 0, 0
    if node.op == "GatherV2":
        value = node.const(2)
        assert value is not None
        axis = int(value) % len(params.shape)
        batch = node.attrs["batch_dims"] + (len(indices.shape) if node.attrs["batch_dims"] < 0 else 0)
    index = index_type(params.size, out.size)
    types = {"T": bits_name(params.dtype), "TINDEX": indices.dtype.name}
    function = device.function(Source.file("gather.h", INDEX=index_name(params.size, out.size), **types), "tf_gather")
    outer, inner = math.prod(params.shape[batch:axis]), math.prod(params.shape[axis + 1 :])
    count = math.prod(indices.shape[batch:])
    sizes = [index(n) for n in (out.size, outer, params.shape[axis], count, inner)]
    items, group = spread(out.size)

    def launch(*arrays: Any) -> None:
        if out.size:
            function(items, group, *arrays, np.int64(node.index + 1), *sizes)

    return failing(launch, _INDEX)
