"""Host memory with an inaccessible page before and after it: reading or writing there ends the process at once."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable

import numpy as np

PAGE = mmap.PAGESIZE
_NO_ACCESS_ON_WINDOWS = 1  # PAGE_NOACCESS
_PROT_NONE = 0


@functools.cache
def _protector() -> Callable[[int, int], bool] | None:
    """Returns what makes bytes from an address on inaccessible, and tells whether the system
    did; None if there is no way.
    """
    if sys.platform == "win32":
        change = ctypes.windll.kernel32.VirtualProtect

        def protect(address: int, nbytes: int) -> bool:
            old = ctypes.c_ulong()
            arguments = ctypes.c_void_p(address), ctypes.c_size_t(nbytes), _NO_ACCESS_ON_WINDOWS, ctypes.byref(old)
            return bool(change(*arguments))

        return protect
    try:
        mprotect = ctypes.CDLL(None).mprotect
    except (AttributeError, OSError):
        return None
    return lambda address, nbytes: mprotect(ctypes.c_void_p(address), ctypes.c_size_t(nbytes), _PROT_NONE) == 0


def new_pages(nbytes: int) -> np.ndarray:
    """At least `nbytes` of zeros in pages of their own, as uint8; MemoryError where there are none."""
    size = max(1, -(-nbytes // PAGE)) * PAGE
    try:
        # Private: the default of anonymous maps is memory that child processes share, which the system keeps as a file.
        block = mmap.mmap(-1, size) if sys.platform == "win32" else mmap.mmap(-1, size, flags=_private())
    except OSError as e:
        raise MemoryError(str(e)) from e
    return np.frombuffer(block, np.uint8)


def _private() -> int:
    return mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def close_pages(pages: np.ndarray) -> bool:
    """Makes whole pages inaccessible; False where the system has no way to, or no further ranges to spare."""
    protect = _protector()
    return protect is not None and protect(pages.__array_interface__["data"][0], pages.nbytes)


def place(top: int, nbytes: int, fence: str, alignment: int = 1) -> tuple[int, int]:
    """Returns where a tensor begins whose pages begin at `top`, and where the pages of the next one may begin.

    The tensor's `fence`, its ``start`` or ``end``, lies at a page that holds nothing else: at the end as closely as the
    alignment allows. `top` is a multiple of PAGE, with an empty page before it; another one lies before the result.
    """
    if fence == "start":
        return top, top + -(-nbytes // PAGE) * PAGE + PAGE
    size = -(-nbytes // alignment) * alignment
    end = top + -(-size // PAGE) * PAGE
    return end - size, end + PAGE
