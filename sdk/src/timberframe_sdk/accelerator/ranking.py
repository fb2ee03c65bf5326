"""Accelerator kernels for the first elements of sorted rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe.plugin.contracts import KernelDef, KernelNode, Launcher
from timberframe_sdk.accelerator.device import Source, spread
from timberframe_sdk.accelerator.indexing import NUMBERS, bits_name
from timberframe_sdk.accelerator.sorting import BLOCK, SORTING, Sort, key_of, order_arguments
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_SMALL_BLOCK = 64
"""Entries of a block where no row is longer."""


def _levels(size: int, k: int, block: int) -> list[tuple[int, int]]:
    """Row sizes and following row sizes of the rounds that leave the first k of each block, until one block is left.

    None where blocks would not get much shorter: then rows are sorted whole.
    """
    levels = []
    while size > block and 2 * k <= block:
        following = size // block * k + min(size % block, k)
        levels.append((size, following))
        size = following
    return [*levels, (size, size)]


def _top(node: KernelNode, k: int, descending: bool, one: bool) -> Launcher:
    """A launcher that puts the first k elements of each row and their positions into the outputs; with `one`, the last
    of these elements."""
    device: Any = node.device
    x, width = node.inputs[0], node.inputs[0].shape[-1]
    rows, block = math.prod(x.shape[:-1]), _SMALL_BLOCK if width <= _SMALL_BLOCK else BLOCK
    levels = _levels(width, k, block)
    whole = levels[-1][0] > block
    kept = width if whole else levels[0][1]
    sort = Sort(device, rows, kept if width > block else 0, key_of(x.dtype), reach=x.size)
    node.workspace(max(sort.nbytes, 1))
    index, total = sort.index, sort.index(rows * kept)
    position = "int32" if one else node.outputs[1].dtype.name
    macros = {**sort.macros, "BITS": bits_name(x.dtype), "POSITION": position}
    macros |= {"ONE": 1} if one else {}
    macros |= {"TF_BLOCK": block, "TF_CHUNK": 2} if block == _SMALL_BLOCK else {}
    source = Source.file("top.h", **macros)
    blocks = device.function(source, "tf_top_blocks")
    take = device.function(source, "tf_top_take") if whole else None
    group = min(SORTING, block // 2)
    keep, first = index(block if whole else k), index(k)
    key = np.dtype(key_of(x.dtype)).type
    order = ~key(0) if descending else key(0), *order_arguments(x.dtype)

    def launch(x: Any, values: Any, *rest: Any) -> None:
        positions, workspace = rest[0], rest[-1]
        if not rows or not k:
            return
        for i, (size, following) in enumerate(levels):
            sizes = index(width), index(size), index(following), keep, first, np.int32(i), np.int32((i - 1) % 2)
            items = rows * -(-size // block) * group
            blocks((items,), (group,), x, values, positions, workspace, total, *sizes, *order)
        if take is not None:
            sort.merge(workspace)
            count, side = index(rows * k), np.int32(sort.side)
            take(*spread(rows * k), x, values, positions, workspace, total, index(width), count, first, side)

    return launch


@kernel(KERNELS, ["TopK", "TopKV2"], "", types={"T": NUMBERS})
def top_k(node: KernelNode) -> Launcher:
    """The k largest elements of each row, descending, and their positions."""
    return _top(node, node.outputs[0].shape[-1], descending=True, one=False)


@kernel(KERNELS, "NthElement", "", types={"T": NUMBERS})
def nth_element(node: KernelNode) -> Launcher:
    """The n-th smallest element of each row: the last of n + 1 from below, or of size - n from above."""
    size, n = node.inputs[0].shape[-1], node.const(1)
    assert n is not None
    below = size - int(n) if node.attrs["reverse"] else int(n) + 1
    above = size + 1 - below
    return _top(node, min(below, above), descending=above < below, one=True)
