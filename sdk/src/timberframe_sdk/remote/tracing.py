"""Traces over processes: a worker keeps the events of a run, and the client puts them on the clock of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import timberframe_sdk as sdk
from timberframe_core.wording import counted

CLOCK_SECONDS = 10.0
"""A clock's offset is measured again after so long: clocks of two machines may run apart by 0.5 ms in a second."""
_PINGS = 8


class RecordedEvents:
    """A TraceSink of a worker's run, whose events are plain values."""

    def __init__(self) -> None:
        self.start = time.perf_counter_ns()
        self._events: list[list[Any]] = []

    def event(self, name: str, category: str, start: int, end: int, track: str, **details: Any) -> None:
        """See `TraceSink`."""
        self._events.append([name, category, start, end, track, details])

    def as_plain(self) -> dict[str, Any]:
        """Returns what `report` takes: when the run began and ended, and its events."""
        return {"start": self.start, "end": time.perf_counter_ns(), "events": self._events}


def report(sink: sdk.TraceSink, recorded: Mapping[str, Any], track: str, nodes: Sequence[str], offset: int) -> None:
    """Reports a worker's run of a cluster and its events. offset: nanoseconds by which that clock is ahead."""
    name = f"cluster of {counted(len(nodes), 'node')}"
    start, end = recorded["start"] - offset, recorded["end"] - offset
    sink.event(name, "cluster", start, end, track, nodes=list(nodes))
    for name, category, start, end, its_track, details in recorded["events"]:
        sink.event(name, category, start - offset, end - offset, its_track, **details)


def clock_offset(ask: Callable[[], int]) -> int:
    """Returns nanoseconds by which the clock that `ask` reads is ahead of `time.perf_counter_ns` here.

    By the quickest of a few pings, wrong by half of what it took at most; 0 where it cannot be told from 0: processes
    of one machine have one clock.
    """
    pings = []
    for _ in range(_PINGS):
        start = time.perf_counter_ns()
        there = ask()
        end = time.perf_counter_ns()
        pings.append((end - start, there - (start + end) // 2))
    took, offset = min(pings)
    return offset if abs(offset) > took / 2 else 0
