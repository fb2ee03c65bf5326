"""Accelerator kernels for sorted segments, and for dealing slices out and putting them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.indexing import FIXED_SIZE, INDICES, NUMBERS, widest
from timberframe_accelerator.kernels.scatter import combining
from timberframe_accelerator.launches import GROUP, Source, failing, index_name, index_type, spread
from timberframe_accelerator.sorting import REFUSE, SortedRows
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher, OutOfRangeError
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.indexing import MODES, in_tuple_order, sorted_segment_ids, stitch_table

KERNELS: list[KernelDef] = []


@kernel(
    KERNELS, [f"Segment{kind}" for kind in ("Sum", "Mean", "Prod", "Min", "Max")], "",
    types={"T": NUMBERS, "Tindices": INDICES},
)  # fmt: skip
def sorted_segments(node: KernelNode) -> Launcher:
    """Reductions of the rows that have the same id, which rises from row to row."""
    from timberframe_ops.math.segments import sorted_start

    device: Any = node.device
    data, out, ids = node.inputs[0], node.outputs[0], sorted_segment_ids(node)
    kind, inner = node.op.removeprefix("Segment"), math.prod(out.shape[1:])
    index = index_type(data.size, out.size)
    macros, mode = combining(out.dtype, MODES[kind])
    source = Source.file("segments.h", **macros, INDEX=index_name(data.size, out.size))
    function, (items, group) = device.function(source, "tf_segments"), spread(out.size)
    begins = device.table(np.searchsorted(ids, np.arange(out.shape[0] + 1)).astype(index))
    wide = np.dtype(np.float32) if "HALF" in macros else out.dtype
    ends = sorted_start(kind, out.dtype), int(kind == "Prod")
    values = [np.array(v).astype(out.dtype).astype(wide)[()] for v in ends]
    arguments = begins, index(out.size), index(inner), mode, np.int32(kind == "Mean"), *values
    return lambda *arrays: function(items, group, *arrays, *arguments) if out.size else None


@kernel(KERNELS, "DynamicPartition", "", types={"T": FIXED_SIZE}, status=True)
def dynamic_partition(node: KernelNode) -> Launcher:
    """Deals the slices of data out to as many outputs as there are partitions, in order."""
    from timberframe_ops.array.partition import PARTITION_OUTSIDE

    device: Any = node.device
    data, partitions, parts = node.inputs[0], node.inputs[1], len(node.outputs)
    count, slice_shape = partitions.size, data.shape[len(partitions.shape) :]
    bits, inner = widest(data.dtype, math.prod(slice_shape))
    find = SortedRows(node, partitions.dtype, count, (parts,), REFUSE, reach=max(data.size, parts))
    sort = find.sort
    bounds = device.function(Source.file("bounds.h", **sort.macros), "tf_find_bounds")
    take = device.function(Source.file("deal.h", T=bits, **sort.macros), "tf_take_slices")
    index, side = sort.index, find.side

    def launch(data: Any, partitions: Any, *rest: Any) -> list[Sequence[int]]:
        *outputs, workspace, status = rest
        begins = np.zeros(parts + 1, np.int64)
        if count:
            find(partitions, workspace, status)
            found = device.empty(np.dtype(np.int64), (parts + 1,))
            bounds(*spread(parts + 1), workspace, found, index(parts + 1), index(count), side)
            begins = device.copy_out(found)
        for i, out in enumerate(outputs):
            size = int(begins[i + 1] - begins[i]) * inner
            if size:
                numbers = [index(n) for n in (size, inner, count, side, begins[i])]
                take(*spread(size), data, out, workspace, *numbers)
        return [(int(n), *slice_shape) for n in np.diff(begins)]

    return failing(launch, (InvalidArgumentError, in_tuple_order(PARTITION_OUTSIDE)))


@kernel(KERNELS, ["DynamicStitch", "ParallelDynamicStitch"], "", types={"T": FIXED_SIZE})
def dynamic_stitch(node: KernelNode) -> Launcher:
    """Puts slices of all data inputs at the rows that constant indices name; rows that none names are zeros."""
    device: Any = node.device
    out, table, count = node.outputs[0], stitch_table(node), node.attrs["N"]
    bits, inner = widest(out.dtype, math.prod(out.shape[1:]))
    reach = max([out.size, *(v.size for v in node.inputs[count:])])
    index, moves = index_type(reach), []
    function = device.function(Source.file("deal.h", T=bits, KEY="uint32", INDEX=index_name(reach)), "tf_put_slices")
    table[table[:, 0] < 0, 0] = 0  # the first launch writes the zeros, too
    for i in range(count):
        rows = np.flatnonzero(table[:, 0] == i)
        moves.append((rows.size * inner, device.table(np.stack([rows, table[rows, 1]], axis=1).astype(index))))

    def launch(*arrays: Any) -> None:
        for data, (size, pairs) in zip(arrays, moves, strict=False):
            if size:
                function(*spread(size), data, arrays[-1], pairs, index(size), index(inner))

    return launch


@kernel(KERNELS, "ResourceCountUpTo", "", types={"T": INDICES}, status=True)
def count_up_to(node: KernelNode) -> Launcher:
    """The variable's value, to which one is added; an error where it has reached its limit."""
    from timberframe_core.ops.base.state.resource_gather import LIMIT_REACHED

    device: Any = node.device
    function = device.function(Source.file("count.h", T=node.outputs[0].dtype.name), "tf_count_up")
    numbers = node.number, np.int64(node.attrs["limit"])
    return failing(lambda *arrays: function((GROUP,), (GROUP,), *arrays, *numbers), (OutOfRangeError, LIMIT_REACHED))
