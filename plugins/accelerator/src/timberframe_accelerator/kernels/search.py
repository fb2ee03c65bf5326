"""Accelerator kernels for what depends on values: where elements are, which are distinct, which are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.indexing import FIXED_SIZE, NUMBERS, bits_name
from timberframe_accelerator.launches import Source, index_name, index_type, spread
from timberframe_accelerator.sorting import Sort, key_of, order_arguments
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.indexing import unique_sizes

KERNELS: list[KernelDef] = []

_COMPACTING = 256
"""Work-items of a group that compacts: TF_COMPACTING of compact.h."""
_COMPACTED = 16 * _COMPACTING
"""Positions of such a group: TF_COMPACTED of compact.h."""


class Compaction:
    """Keeping some of `count` positions in order, by the kernels of compact.h in `source`."""

    def __init__(self, device: Any, source: Source, count: int, index: type[np.int32] | type[np.int64]) -> None:
        groups = -(-count // _COMPACTED)
        self.device, self.groups, self.index, self.count = device, groups, index, index(count)
        self.spread = (groups * _COMPACTING,), (_COMPACTING,)
        self.counting = device.function(source, "tf_count_kept") if groups > 1 else None
        self.compact = device.function(source, "tf_compact")

    def __call__(self, *arguments: Any) -> int:
        """Launches with the arguments that the source's COMPACT_PARAMETERS name, and waits for how many are kept."""
        if not self.groups:
            return 0
        counts = self.device.empty(np.dtype(self.index), (self.groups,))
        total = self.device.empty(np.dtype(np.int64), (1,))
        if self.counting is not None:
            self.counting(*self.spread, *arguments, counts, self.count)
        self.compact(*self.spread, *arguments, counts, total, self.count)
        return int(self.device.copy_out(total)[0])


def _dynamic(node: KernelNode, *shapes: Sequence[int]) -> list[Sequence[int]]:
    """Returns those of the outputs' true shapes that the executor wants to know."""
    return [shape for value, shape in zip(node.outputs, shapes, strict=True) if value.dynamic]


@kernel(KERNELS, "Where", "", types={"T": FIXED_SIZE})
def where(node: KernelNode) -> Launcher:
    """Coordinates of the elements that are not zero."""
    device: Any = node.device
    x, rank = node.inputs[0], len(node.inputs[0].shape)
    index = index_type(x.size * rank)
    source = Source.file("where.h", BITS=bits_name(x.dtype), INDEX=index_name(x.size * rank))
    compact, sizes = Compaction(device, source, x.size, index), device.table(np.array(x.shape, index))
    sign, infinity = order_arguments(x.dtype)
    arguments = sizes, np.int32(rank), ~sign if infinity else ~(sign ^ sign)
    return lambda x, out: _dynamic(node, (compact(x, out, *arguments), rank))


class SortedItems:
    """Sorting the items of a tensor [outer, count, inner]; they have ties where an item is not one element."""

    def __init__(self, device: Any, dtype: np.dtype[Any], outer: int, count: int, inner: int) -> None:
        types: dict[str, str | int] = {"BITS": bits_name(dtype)}
        types |= {"ITEMS": 1} if outer * inner != 1 else {}
        reach, several = outer * count * inner, outer * inner != 1
        self.sort = sort = Sort(device, 1, count, key_of(dtype), reach, **(types if several else {}))
        self.macros = {**types, **sort.macros}
        self.order = order_arguments(dtype)
        self.sizes = [*(sort.index(n) for n in (count, inner, outer * inner)), *self.order]
        self.find = device.function(Source.file("sort_items.h", **self.macros), "tf_sort_items")
        self.ties = self.sizes if several else []

    def __call__(self, items: Any, workspace: Any) -> None:
        self.find(*self.sort.groups, items, workspace, *self.sizes)
        self.sort.merge(workspace, *([items, *self.ties] if self.ties else ()))


@kernel(
    KERNELS, ["Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"], "", types={"T": FIXED_SIZE}
)  # fmt: skip
def unique(node: KernelNode) -> Launcher:
    """Distinct items in the order of their first occurrence, and the number among them of each item."""
    device: Any = node.device
    x, axis, (outer, count, inner) = node.inputs[0], *unique_sizes(node)
    items = SortedItems(device, x.dtype, outer, count, inner)
    index, side = items.sort.index, items.sort.side
    node.workspace(max(items.sort.nbytes + count * np.dtype(index).itemsize, 1))
    counts = {"COUNTS": 1} if len(node.outputs) > 2 else {}
    source = Source.file("unique.h", **items.macros, OUT_INDEX=node.outputs[1].dtype.name, **counts)
    mark, number = (device.function(source, name) for name in ("tf_mark_first", "tf_number"))
    compact = Compaction(device, source, count, index)
    take = device.function(source, "tf_take_items") if outer * inner > 1 else None

    def launch(x: Any, *rest: Any) -> list[Sequence[int]]:
        *outputs, workspace = rest
        found = 0
        if count:
            items(x, workspace)
            mark(*spread(count), x, workspace, side, *items.sizes)
            found = compact(x, workspace, outputs[0], side, index(outer * inner))
            number(*spread(count), x, workspace, outputs[1], outputs[-1], side, *items.sizes)
        size = outer * found * inner
        if take is not None and size:
            take(*spread(size), x, workspace, outputs[0], index(size), index(found), *items.sizes[:2])
        y = (*x.shape[:axis], found, *x.shape[axis + 1 :])
        return _dynamic(node, y, (count,), *[(found,)] * (len(outputs) - 2))

    return launch


@kernel(KERNELS, "ListDiff", "", types={"T": NUMBERS})
def list_diff(node: KernelNode) -> Launcher:
    """The elements of a vector that another does not hold, and their positions."""
    device: Any = node.device
    x, others = node.inputs
    items = SortedItems(device, x.dtype, 1, others.size, 1)
    node.workspace(max(items.sort.nbytes, 1))
    index = index_type(x.size, 2 * others.size)
    macros = {**items.macros, "INDEX": np.dtype(index).name, "OUT_INDEX": node.outputs[1].dtype.name}
    compact = Compaction(device, Source.file("list_diff.h", **macros), x.size, index)

    def launch(x: Any, y: Any, out: Any, positions: Any, workspace: Any) -> list[Sequence[int]]:
        if others.size:
            items(y, workspace)
        kept = compact(x, out, positions, workspace, index(items.sort.side), index(others.size), *items.order)
        return _dynamic(node, (kept,), (kept,))

    return launch
