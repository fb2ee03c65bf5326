"""Memory of a device, as the core asks for it and reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class Buffer(Protocol):
    """Memory of a device. It releases itself with its last reference; close() does so early and may be repeated."""

    nbytes: int
    handle: Any

    def close(self) -> None: ...


@dataclass(frozen=True)
class AllocatorStatistics:
    """Bytes and counts since the allocator was made; `limit` is None where there is none."""

    used: int
    peak: int
    limit: int | None
    live: int
    total: int


class Allocator(Protocol):
    """Memory of one device.

    fail_at: set to n, the allocation after the next n fails with ResourceExhaustedError and sets it to None again. So
    conformance injects faults.
    """

    alignment: int
    fail_at: int | None

    def allocate(self, nbytes: int) -> Buffer:
        """Returns a buffer; ResourceExhaustedError with what was asked, used and free when it does not fit."""

    def statistics(self) -> AllocatorStatistics: ...
