"""Where devices report what they did in a traced run."""

from __future__ import annotations

from typing import Any, Protocol


class TraceSink(Protocol):
    """Where a traced run reports what it did. start: when it began, in nanoseconds of time.perf_counter_ns."""

    start: int

    def event(self, name: str, category: str, start: int, end: int, track: str, **details: Any) -> None:
        """Notes a thing that took from `start` to `end` (nanoseconds of time.perf_counter_ns) on a device's track."""
