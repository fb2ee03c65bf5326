"""Accelerator kernels for the first elements of sorted rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.indexing import NUMBERS, bits_name
from timberframe_accelerator.launches import Source, spread
from timberframe_accelerator.sorting import BLOCK, SORTING, Sort, key_of, order_arguments
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_MOST_WORK, _MANY_ROWS, _MOST_WORK_OF_MANY = 512, 256, 8192
"""Elements times entries wanted up to which one work-item takes a row; it may be more where there are many rows."""
_CHUNK, _MOST_CHUNK_RESULTS = 256, 16
"""Elements of a longer row that one work-item takes, and entries wanted up to which it does."""


def _levels(size: int, k: int, chunk: int) -> list[tuple[int, int]]:
    """Row sizes and following row sizes of the rounds that leave the first k of each part, until one part is left.

    chunk: elements of a part in the first round, or 0; else a part is a block. Where blocks would not get much shorter
    the rounds end with several: then rows are sorted whole.
    """
    levels = []
    part = chunk or BLOCK
    while size > part and 2 * k <= part:
        following = size // part * k + min(size % part, k)
        levels.append((size, following))
        size, part = following, BLOCK
    return [*levels, (size, size)]


class _Top:
    """Puts the first k elements of each row and their positions into the outputs; with `one`, only the last of them."""

    def __init__(self, node: KernelNode, k: int, descending: bool, one: bool) -> None:
        device: Any = node.device
        x, self.k, self.width = node.inputs[0], k, node.inputs[0].shape[-1]
        self.rows = math.prod(x.shape[:-1])
        is_short = self.width * k <= (_MOST_WORK if self.rows < _MANY_ROWS else _MOST_WORK_OF_MANY)
        self.chunk = self.width if is_short else _CHUNK if k <= _MOST_CHUNK_RESULTS else 0
        self.levels = _levels(self.width, k, self.chunk)
        whole = not self.chunk and self.levels[-1][0] > BLOCK
        kept = self.width if whole else self.levels[0][1] if len(self.levels) > 1 else 0
        self.sort = sort = Sort(device, self.rows, kept, key_of(x.dtype), reach=x.size)
        node.workspace(max(sort.nbytes, 1))
        position = "int32" if one else node.outputs[1].dtype.name
        macros: dict[str, str | int] = {"BITS": bits_name(x.dtype), "POSITION": position} | ({"ONE": 1} if one else {})
        source = Source.file("top.h", **macros, **sort.macros)
        self.chunks = device.function(source, "tf_top_chunks") if self.chunk else None
        self.blocks = device.function(source, "tf_top_blocks") if len(self.levels) > bool(self.chunk) else None
        self.take = device.function(source, "tf_top_take") if whole else None
        self.total, self.keep = sort.index(self.rows * kept), sort.index(BLOCK if whole else k)
        key = np.dtype(key_of(x.dtype)).type
        self.order = ~key(0) if descending else key(0), *order_arguments(x.dtype)

    def __call__(self, x: Any, values: Any, *rest: Any) -> None:
        arrays, index = (x, values, rest[0], rest[-1], self.total), self.sort.index
        if not self.rows or not self.k:
            return
        for i, (size, following) in enumerate(self.levels):
            if i == 0 and self.chunks is not None:
                numbers = [index(n) for n in (self.rows, size, following, self.chunk, self.k)]
                self.chunks(*spread(self.rows * -(-size // self.chunk)), *arrays, *numbers, *self.order)
            elif self.blocks is not None:
                numbers = [*(index(n) for n in (self.width, size, following)), self.keep, index(self.k)]
                level, items = (np.int32(i), np.int32((i - 1) % 2)), self.rows * -(-size // BLOCK) * SORTING
                self.blocks((items,), (SORTING,), *arrays, *numbers, *level, *self.order)
        if self.take is not None:
            self.sort.merge(rest[-1])
            count, side = index(self.rows * self.k), np.int32(self.sort.side)
            self.take(*spread(self.rows * self.k), *arrays, index(self.width), count, index(self.k), side)


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
