"""What devices keep for constants, such as the copies that they upload."""

from __future__ import annotations

import mmap
import weakref
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")


class PerConstant(Generic[T]):
    """One thing for each host array, for as long as the array lives; arrays are distinguished by identity."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[np.ndarray], T]] = {}

    def get(self, x: np.ndarray) -> T | None:
        """Returns what is kept for this very array."""
        found = self._kept.get(id(x))
        return None if found is None or found[0]() is not x else found[1]

    def keep(self, x: np.ndarray, thing: T) -> T:
        """Keeps the thing, which must not refer to the array, and returns it."""
        key = id(x)
        self._kept[key] = weakref.ref(x, lambda _: self._kept.pop(key, None)), thing
        return thing

    def clear(self) -> None:
        """Drops all of them."""
        self._kept.clear()


def leave_in_file(x: np.ndarray) -> None:
    """Gives the memory back that a constant of a mapped file takes, once a kernel has it in another form.

    What reads it again gets it from the file again. Of other arrays nothing changes.
    """
    base: Any = x
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    if not isinstance(mapped, mmap.mmap) or not x.flags.c_contiguous or not hasattr(mmap, "MADV_DONTNEED"):
        return
    offset = x.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    start, end = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE, (offset + x.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > start and memoryview(mapped).readonly:  # what was written to a private mapping is nowhere else
        mapped.madvise(mmap.MADV_DONTNEED, start, end - start)
