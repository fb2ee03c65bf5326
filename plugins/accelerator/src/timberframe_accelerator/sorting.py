"""Sorting on accelerators: blocks by a kernel of the family, then rounds of merging (see sort.h)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.device import DeviceTensor
from timberframe_accelerator.launches import Source, index_name, index_type, spread
from timberframe_sdk import KernelNode

REFUSE, IGNORE, IGNORE_NEGATIVE = range(3)
"""What to do about indices out of range: the policies of tuples.h."""
BLOCK = 1024
"""Entries that one work-group sorts: TF_BLOCK of sort.h."""
SORTING = 128
"""Work-items of that group; each takes TF_CHUNK entries at a time."""
_MERGED = 16
"""Entries that one work-item merges: TF_MERGED of sort.h."""
_SCANNING, _DIGIT_BITS, _DIGITS = 256, 4, 16
"""Work-items of a group that scans: TF_SCANNING of group_scan.h; bits that a round of radix.h sorts by."""
_DIGIT_GROUP = 16 * _SCANNING
"""Entries of a group of radix.h: TF_DIGIT_GROUP."""
_LEAST_RADIX_ENTRIES, _MOST_RADIX_BITS = 4096, 20
"""Entries from which, and bits of keys up to which, the rounds of radix.h are fewer than those of merging."""


class Sort:
    """A stable sort of `rows` rows of `size` entries each.

    key: dtype of the keys. reach: what positions must be able to count beside the entries. more: macros of merge.h.
    macros: what sources that include sort.h are compiled with. nbytes: of the workspace that holds the entries. side:
    where in it they are at the end.
    """

    def __init__(self, device: Any, rows: int, size: int, key: str, reach: int = 0, **more: str | int) -> None:
        total = rows * size
        self.index = index_type(2 * total, reach)
        self.macros: dict[str, str | int] = {"KEY": key, "INDEX": index_name(2 * total, reach), **more}
        self.nbytes = 2 * total * (np.dtype(key).itemsize + np.dtype(self.index).itemsize)
        self.blocks = -(-size // BLOCK)
        self.groups = ((rows * self.blocks * SORTING,), (SORTING,))
        self._sizes = self.index(total), self.index(size)
        self._runs = [BLOCK << i for i in range(max(self.blocks - 1, 0).bit_length())]
        self.side = self.index(len(self._runs) % 2)
        self._spread = spread(rows * -(-size // _MERGED))
        self._merge = device.function(Source.file("merge.h", **self.macros), "tf_merge") if self._runs else None

    def merge(self, workspace: DeviceTensor, *arguments: Any) -> None:
        """Merges the sorted blocks of each row; arguments: what SORT_PARAMETERS asks for."""
        for i, run in enumerate(self._runs):
            assert self._merge is not None
            self._merge(*self._spread, workspace, *self._sizes, self.index(run), self.index(i % 2), *arguments)


def order_arguments(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Returns what kernels that order elements by order.h take for TF_ORDER_PARAMETERS."""
    bits = np.dtype(f"uint{8 * dtype.itemsize}").type
    sign = bits(0 if dtype.kind in "ub" else 1 << (8 * dtype.itemsize - 1))
    return sign, np.array(np.inf, dtype).view(bits)[()] if dtype.kind not in "iub" else bits(0)


def key_of(dtype: np.dtype[Any]) -> str:
    """Returns the dtype of keys in the order of elements."""
    return "uint64" if dtype.itemsize == 8 else "uint32"


def key_name(rows: int) -> str:
    """Returns the dtype of keys that are row numbers below `rows`; the highest key stands for no row."""
    return "uint32" if rows < 2**32 - 1 else "uint64"


class DigitSort:
    """A stable sort of `count` entries by the low `bits` of their keys (see radix.h): quick where these are few.

    sort: the one that it stands in for, whose macros and workspace it has. side: where the entries are at the end.
    """

    def __init__(self, device: Any, sort: Sort, count: int, bits: int) -> None:
        groups, index = -(-count // _DIGIT_GROUP), sort.index
        source = Source.file("radix.h", **sort.macros)
        names = ("tf_radix_count", "tf_radix_sums", "tf_radix_move")
        self._count, self._sums, self._move = (device.function(source, name) for name in names)
        self._all, self._one = ((groups * _SCANNING,), (_SCANNING,)), ((_SCANNING,), (_SCANNING,))
        self._sizes, self._numbers = index(count), index(groups * _DIGITS)
        self._rounds = [(index(i % 2), np.int32(shift)) for i, shift in enumerate(range(0, bits, _DIGIT_BITS))]
        self.nbytes = sort.nbytes + groups * _DIGITS * np.dtype(index).itemsize
        self.side = index(len(self._rounds) % 2)

    def __call__(self, workspace: DeviceTensor) -> None:
        for step in self._rounds:
            self._count(*self._all, workspace, self._sizes, *step)
            self._sums(*self._one, workspace, self._sizes, self._numbers)
            self._move(*self._all, workspace, self._sizes, *step)


class SortedRows:
    """Sorting index tuples by the rows that they name in a tensor (see sort_rows.h).

    indices: their dtype. bounds: below which the indices of a tuple must lie. policy: of tuples.h. side: where in the
    workspace the entries are at the end.
    """

    def __init__(
        self, node: KernelNode, indices: np.dtype[Any], count: int, bounds: Sequence[int], policy: int, reach: int
    ) -> None:
        device: Any = node.device
        self.count, rows = count, math.prod(bounds)
        self.sort = sort = Sort(device, 1, count, key_name(rows), reach)
        bits = rows.bit_length()  # that distinguish `no row`, which has all bits, from the last row
        by_digits = count > _LEAST_RADIX_ENTRIES and bits <= _MOST_RADIX_BITS
        self.digits = DigitSort(device, sort, count, bits) if by_digits else None
        name = "tf_sort_rows" if self.digits is None else "tf_find_rows"
        self.find = device.function(Source.file("sort_rows.h", TINDEX=indices.name, **sort.macros), name)
        self.over = sort.groups if self.digits is None else spread(count)
        self.side = sort.side if self.digits is None else self.digits.side
        table, depth = device.table(np.array(bounds, np.int64)), np.int32(len(bounds))
        self.arguments = node.number, table, sort.index(count), depth, np.int32(policy)
        node.workspace(max(sort.nbytes if self.digits is None else self.digits.nbytes, 1))

    def __call__(self, indices: DeviceTensor, workspace: DeviceTensor, status: DeviceTensor) -> None:
        if not self.count:
            return
        self.find(*self.over, indices, workspace, status, *self.arguments)
        if self.digits is None:
            self.sort.merge(workspace)
        else:
            self.digits(workspace)
