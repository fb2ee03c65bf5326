"""Guard zones around the outputs of a cluster, and poison in all that a run writes, on any device that runs kernel by
kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe.errors import InternalError
from timberframe.plugin.contracts import Array
from timberframe_sdk.allocator import Buffer

if TYPE_CHECKING:
    from timberframe_sdk.kernel_device import KernelDevice

GUARD = 64
"""Fewest bytes before and after each output that a kernel must leave alone."""
POISON = 0x7F  # large in every floating format, so that adding to it shows as well as keeping it


class GuardedOutputs:
    """Makes the outputs of one run between guard zones, full of poison, and looks at the zones afterwards."""

    def __init__(self, device: KernelDevice) -> None:
        self._device = device
        self._zone = max(GUARD, device.allocator.alignment)  # so that an output lies as aligned as any other
        self._made: list[tuple[Buffer, Array, np.ndarray]] = []

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A tensor between guard zones; one of objects has none, as it holds no bytes of its own."""
        if dtype.hasobject:
            return self._device.empty(dtype, shape)
        nbytes, zone = dtype.itemsize * math.prod(shape), self._zone
        pattern = np.random.default_rng(len(self._made)).integers(0, 256, nbytes + 2 * zone, np.uint8)
        pattern[zone : zone + nbytes] = POISON
        buffer = self._device.allocator.allocate(pattern.size)
        whole = self._device.array(buffer, 0, pattern.dtype, pattern.shape)
        self._device.copy(self._device.copy_in(pattern), whole)
        self._made.append((buffer, whole, pattern))
        return self._device.array(buffer, zone, dtype, shape)

    def poison(self, buffer: Buffer, nbytes: int) -> None:
        """Fills memory that kernels must not read before they write it."""
        if nbytes:
            pattern = self._device.copy_in(np.full(nbytes, POISON, np.uint8))
            self._device.copy(pattern, self._device.array(buffer, 0, np.dtype(np.uint8), (nbytes,)))

    def check(self) -> None:
        """Raises InternalError if bytes of a zone were written."""
        for i, (_, whole, pattern) in enumerate(self._made):
            now = np.asarray(self._device.copy_out(whole))
            for where, zone in (("before", slice(0, self._zone)), ("after", slice(pattern.size - self._zone, None))):
                count = int(np.count_nonzero(now[zone] != pattern[zone]))
                if count:
                    raise InternalError(
                        f"an output of the run ({i}): {count} bytes {where} it were written; "
                        "a kernel writes inside its outputs only"
                    )

    def release(self, a: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """The same tensor in memory of its own, which outlives the run."""
        copied = self._device.empty(dtype, shape)
        self._device.copy(a, copied)
        return copied
