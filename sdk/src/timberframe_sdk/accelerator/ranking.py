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

_FEW, _MANY_ROWS, _FEW_OF_MANY = 512, 256, 8192
"""Elements times entries wanted up to which one work-item takes a row; it may be more where there are many rows."""


def _levels(size: int, k: int) -> list[tuple[int, int]]:
    """Row sizes and following row sizes of the rounds that leave the first k of each block.

    They end with one block, or where blocks would not get much shorter: then rows are sorted whole.
    """
    levels = []
    while size > BLOCK and 2 * k <= BLOCK:
        following = size // BLOCK * k + min(size % BLOCK, k)
        levels.append((size, following))
        size = following
    return [*levels, (size, size)]


class _Top:
    """Puts the first k elements of each row and their positions into the outputs; with `one`, only the last of them."""

    def __init__(self, node: KernelNode, k: int, descending: bool, one: bool) -> None:
        device: Any = node.device
        x, self.k, self.width = node.inputs[0], k, node.inputs[0].shape[-1]
        self.rows, self.levels = math.prod(x.shape[:-1]), _levels(self.width, k)
        self.is_short = self.width * k <= (_FEW if self.rows < _MANY_ROWS else _FEW_OF_MANY)
        whole = self.levels[-1][0] > BLOCK
        kept = 0 if self.width <= BLOCK else self.width if whole else self.levels[0][1]
        self.sort = sort = Sort(device, self.rows, kept, key_of(x.dtype), reach=x.size)
        node.workspace(max(sort.nbytes, 1))
        position = "int32" if one else node.outputs[1].dtype.name
        macros: dict[str, str | int] = {"BITS": bits_name(x.dtype), "POSITION": position} | ({"ONE": 1} if one else {})
        source = Source.file("top.h", **macros, **sort.macros)
        self.first = device.function(source, "tf_top_short" if self.is_short else "tf_top_blocks")
        self.take = device.function(source, "tf_top_take") if whole else None
        self.total, self.keep = sort.index(self.rows * kept), sort.index(BLOCK if whole else k)
        key = np.dtype(key_of(x.dtype)).type
        self.order = ~key(0) if descending else key(0), *order_arguments(x.dtype)

    def __call__(self, x: Any, values: Any, *rest: Any) -> None:
        arrays, workspace, index = (x, values, rest[0]), rest[-1], self.sort.index
        if not self.rows or not self.k:
            return
        if self.is_short:
            sizes = index(self.rows), index(self.width), index(self.k)
            self.first(*spread(self.rows), *arrays, *sizes, *self.order)
            return
        for i, (size, following) in enumerate(self.levels):
            numbers = index(self.width), index(size), index(following), self.keep, index(self.k)
            items = self.rows * -(-size // BLOCK) * SORTING
            level = np.int32(i), np.int32((i - 1) % 2)
            self.first((items,), (SORTING,), *arrays, workspace, self.total, *numbers, *level, *self.order)
        if self.take is not None:
            self.sort.merge(workspace)
            count, side = index(self.rows * self.k), np.int32(self.sort.side)
            sizes = index(self.width), count, index(self.k)
            self.take(*spread(self.rows * self.k), *arrays, workspace, self.total, *sizes, side)


@kernel(KERNELS, ["TopK", "TopKV2"], "", types={"T": NUMBERS})
def top_k(node: KernelNode) -> Launcher:
    """The k largest elements of each row, descending, and their positions."""
    return _Top(node, node.outputs[0].shape[-1], descending=True, one=False)


@kernel(KERNELS, "NthElement", "", types={"T": NUMBERS})
def nth_element(node: KernelNode) -> Launcher:
    """The n-th smallest element of each row: the last of n + 1 from below, or of size - n from above."""
    size, n = node.inputs[0].shape[-1], node.const(1)
    assert n is not None
    below = size - int(n) if node.attrs["reverse"] else int(n) + 1
    above = size + 1 - below
    return _Top(node, min(below, above), descending=above < below, one=True)
