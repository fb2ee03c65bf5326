"""Accelerator kernels that gather slices by their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread
from timberframe_accelerator.moving import divisor_words
from timberframe_core.ops.definition.value_checks import TUPLE_OUTSIDE
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.indexing import gather_sizes, tuple_sizes

KERNELS: list[KernelDef] = []

FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FIXED_SIZE = (*NUMBERS, "bool")
INDICES = ("int32", "int64")


def bits_name(dtype: np.dtype[Any]) -> str:
    """Returns the unsigned integer dtype that is as wide as an element: what kernels that
    only move elements work on.
    """
    return f"uint{8 * dtype.itemsize}"


def widest(dtype: np.dtype[Any], inner: int) -> tuple[str, int]:
    """Returns the widest unsigned integer dtype that divides a slice of `inner` elements, and
    how many a slice then has.
    """
    nbytes = inner * dtype.itemsize
    width = next(w for w in (8, 4, 2, 1) if nbytes % w == 0)
    return f"uint{8 * width}", nbytes // width


@kernel(KERNELS, ("Gather", "GatherV2"), "", types={"Tparams": FIXED_SIZE}, status=True)
@kernel(KERNELS, "ResourceGather", "", types={"dtype": FIXED_SIZE}, status=True)
def gather(node: KernelNode) -> Launcher:
    """Slices of params by their numbers along one axis, after batch dimensions that both share."""
    from timberframe_core.ops.base.array.gather import INDEX_OUTSIDE

    device: Any = node.device
    params, indices, out = node.inputs[0], node.inputs[1], node.outputs[0]
    batch, outer, limit, count, inner = gather_sizes(node)
    bits, inner = widest(params.dtype, inner)
    reach = max(params.size, out.size, batch * outer * count * inner)
    macros = {"T": bits, "TINDEX": indices.dtype.name, "INDEX": index_name(reach)}
    name = "tf_gather_rows" if batch * outer == 1 else "tf_gather"
    function = device.function(Source.file("gather.h", **macros), name)
    size = batch * outer * count * inner
    sizes = [index_type(reach)(n) for n in (size, outer, limit, *divisor_words(count), *divisor_words(inner))]
    arguments, (items, group) = (node.number, *sizes), spread(size)

    def launch(*arrays: Any) -> None:
        if out.size:
            function(items, group, *arrays, *arguments)

    return failing(launch, (InvalidArgumentError, INDEX_OUTSIDE))


@kernel(KERNELS, "GatherNd", "", types={"Tparams": FIXED_SIZE}, status=True)
@kernel(KERNELS, "ResourceGatherNd", "", types={"dtype": FIXED_SIZE}, status=True)
def gather_nd(node: KernelNode) -> Launcher:
    """Slices of params that index tuples name."""
    device: Any = node.device
    params, indices, out = node.inputs[0], node.inputs[1], node.outputs[0]
    count, depth, inner, _ = tuple_sizes(indices.shape, params.shape)
    bits, inner = widest(params.dtype, inner)
    index = index_type(params.size, out.size)
    macros = {"T": bits, "TINDEX": indices.dtype.name, "INDEX": index_name(params.size, out.size), "KEY": "uint64"}
    function = device.function(Source.file("gather_nd.h", **macros), "tf_gather_nd")
    ignore = np.int32(node.attrs.get("bad_indices_policy") == "IGNORE")
    bounds, (items, group) = device.table(np.array(params.shape[:depth], np.int64)), spread(count * inner)
    arguments = node.number, bounds, index(count * inner), index(inner), np.int32(depth), ignore

    def launch(*arrays: Any) -> None:
        if out.size:
            function(items, group, *arrays, *arguments)

    return failing(launch, (InvalidArgumentError, TUPLE_OUTSIDE))
