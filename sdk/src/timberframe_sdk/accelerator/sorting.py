"""Sorting on accelerators: blocks by a kernel of the family, then rounds of merging (see sort.h)."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_sdk.accelerator.device import GROUP, DeviceTensor, Source, index_name, index_type, spread

BLOCK = 1024
"""Entries that one work-group sorts: TF_BLOCK of sort.h."""
_MERGED = 16
"""Entries that one work-item merges: TF_MERGED of sort.h."""


class Sort:
    """A stable sort of `rows` rows of `size` entries each.

    key: dtype of the keys. reach: what places must be able to count beside the entries. more: macros of merge.h.
    macros: what sources that include sort.h are compiled with. nbytes: of the workspace that holds the entries. side:
    where in it they are at the end.
    """

    def __init__(self, device: Any, rows: int, size: int, key: str, reach: int = 0, **more: str | int) -> None:
        total = rows * size
        self.index = index_type(2 * total, reach)
        self.macros: dict[str, str | int] = {"KEY": key, "INDEX": index_name(2 * total, reach), **more}
        self.nbytes = 2 * total * (np.dtype(key).itemsize + np.dtype(self.index).itemsize)
        self.blocks = -(-size // BLOCK)
        self.groups = ((rows * self.blocks * GROUP,), (GROUP,))
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
    """What kernels that order elements by order.h take for TF_ORDER_PARAMETERS."""
    bits = np.dtype(f"uint{8 * dtype.itemsize}").type
    sign = bits(0 if dtype.kind in "ub" else 1 << (8 * dtype.itemsize - 1))
    return sign, np.array(np.inf, dtype).view(bits)[()] if dtype.kind not in "iub" else bits(0)


def key_of(dtype: np.dtype[Any]) -> str:
    """The dtype of keys in the order of elements."""
    return "uint64" if dtype.itemsize == 8 else "uint32"


def key_name(rows: int) -> str:
    """The dtype of keys that are row numbers below `rows`; the highest key stands for no row."""
    return "uint32" if rows < 2**32 - 1 else "uint64"
