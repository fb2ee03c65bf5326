"""Guard zones and poison: how a kernel that writes outside its outputs, leaves some of them unwritten, or reads outside
its inputs, is found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.errors import InternalError
from timberframe_core.plugin.contracts import Array
from timberframe_sdk.testing.pages import PAGE, close_pages, new_pages, place

if TYPE_CHECKING:
    from timberframe_sdk.kernel_device import KernelDevice

GUARD = 64
"""Fewest bytes before and after each output that a kernel must leave alone."""
POISON = 0x7F  # large in every floating format, so that adding to it shows as well as keeping it

_phases = itertools.count(1)


@cache
def _bytes() -> np.ndarray:
    """Returns what guard zones hold, again and again: different bytes everywhere.

    A kernel that reads past its input and writes past its output by the same distance would copy one constant over
    itself.
    """
    return np.random.default_rng(2026).integers(0, 256, 65_521, np.uint8)


def zone_bytes(start: int, count: int) -> np.ndarray:
    """Returns what guard zones hold at `count` positions from `start` on."""
    start %= _bytes().size
    return np.tile(_bytes(), 1 + (start + count) // _bytes().size)[start : start + count]


_checked = [0]


def zones_checked() -> int:
    """Returns how many guard zones were looked at in this process so far: none, where a device has no mode for that."""
    return _checked[0]


def check_zone(zone: np.ndarray, expected: np.ndarray, what: str, where: str) -> None:
    """Raises InternalError if bytes of a zone `before` or `after` a tensor were written; `what` begins the message."""
    _checked[0] += 1
    wrong = np.flatnonzero(zone != expected)
    if wrong.size:
        offset = int(wrong[0]) - (zone.size if where == "before" else 0)
        fact = f"{wrong.size} bytes {where} it were written, the first at offset {offset}"
        raise InternalError(f"{what}: {fact}; a kernel writes inside its outputs only")


class GuardedArray:
    """A host array full of poison between two guard zones. (One of objects has none: no native kernel sees it.)

    fence: ``start`` or ``end`` for an array with this end against a page that nobody may read or write, as close as
    `alignment` (bytes, None for that of the element) allows; the rest of its pages are the zones.
    """

    def __init__(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], fence: str = "", alignment: int | None = None
    ) -> None:
        self._zones: list[tuple[np.ndarray, np.ndarray, str]] = []
        if dtype.hasobject:
            self.array = np.empty(shape, dtype)
            return
        nbytes = dtype.itemsize * math.prod(shape)
        phase = 4099 * next(_phases)
        if fence:
            start, end = place(PAGE, nbytes, fence, alignment or dtype.alignment)
            block = new_pages(end)
            first, last = PAGE, end - PAGE
            close_pages(block[:first])
            close_pages(block[last:end])
            block[first:last] = zone_bytes(phase, last - first)
        else:
            block = zone_bytes(phase, nbytes + 3 * GUARD)
            start, first, last = GUARD + -block.ctypes.data % GUARD, 0, block.size
        before, after = block[first:start], block[start + nbytes : last]
        self._zones = [(before, before.copy(), "before"), (after, after.copy(), "after")]
        block[start : start + nbytes] = POISON
        self.array = np.ndarray(shape, dtype, block, start)  # an empty slice would begin where the block does

    def check(self, what: str) -> None:
        """Raises InternalError if a guard zone was written."""
        for zone, expected, where in self._zones:
            check_zone(zone, expected, what, where)


def fenced(x: np.ndarray, fence: str, alignment: int | None = None) -> np.ndarray:
    """Returns a dense copy of a host array with one end against an inaccessible page, see GuardedArray."""
    copied = GuardedArray(x.dtype, x.shape, fence, alignment).array
    np.copyto(copied, x)
    return copied


class GuardedOutputs:
    """Makes the tensors of one run between guard zones, full of poison, and looks at the zones afterwards.

    fence: see RunContext. It is heeded on devices whose tensors are host arrays; others have zones.
    """

    def __init__(self, device: KernelDevice, fence: str = "") -> None:
        self._device = device
        self.fence = fence if device.host_memory else ""
        self._zone = max(GUARD, device.allocator.alignment)  # so that an output lies as aligned as any other
        self._made: list[tuple[Array, Array, np.ndarray]] = []
        self._fenced: list[GuardedArray] = []

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Returns a tensor between guard zones; one of objects has none, as it holds no bytes of its own."""
        if dtype.hasobject:
            return self._device.empty(dtype, shape)
        if self.fence:
            self._fenced.append(GuardedArray(dtype, shape, self.fence, self._device.allocator.alignment))
            return self._fenced[-1].array
        nbytes, zone = dtype.itemsize * math.prod(shape), self._zone
        pattern = zone_bytes(4099 * next(_phases), nbytes + 2 * zone)
        pattern[zone : zone + nbytes] = POISON
        buffer = self._device.allocator.allocate(pattern.size)
        whole = self._device.array(buffer, 0, pattern.dtype, pattern.shape)
        self._device.copy(self._device.copy_in(pattern), whole)
        made = self._device.array(buffer, zone, dtype, shape)
        self._made.append((made, whole, pattern))
        return made

    def check(self, arrays: Sequence[Array] | None = None) -> None:
        """Raises InternalError if bytes of a zone were written: of these tensors, by default of all that were made."""
        chosen = None if arrays is None else {id(a) for a in arrays}
        for guarded in self._fenced:
            if chosen is None or id(guarded.array) in chosen:
                guarded.check("a tensor of the run")
        for a, whole, pattern in self._made:
            if chosen is not None and id(a) not in chosen:
                continue
            now = np.asarray(self._device.copy_out(whole))
            for where, zone in (("before", slice(0, self._zone)), ("after", slice(pattern.size - self._zone, None))):
                check_zone(now[zone], pattern[zone], "a tensor of the run", where)

    def release(self, a: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Returns the same tensor in memory of its own, which outlives the run."""
        copied = self._device.empty(dtype, shape)
        self._device.copy(a, copied)
        return copied
