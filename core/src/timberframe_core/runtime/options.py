"""Runs with options: a time limit, a timeline, partition graphs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any

from timberframe_core.arguments import instance
from timberframe_core.config import RunMetadata, RunOptions, SessionConfig
from timberframe_core.errors import DeadlineExceededError
from timberframe_core.plugin.contracts import CancelToken

if TYPE_CHECKING:
    from timberframe_core.runtime.runner import Runner
    from timberframe_core.runtime.session import BaseSession


class Timeline:
    """Collects events in the Trace Event format; a track is a device."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._tracks: dict[str, int] = {}
        self._lock = threading.Lock()
        self.start = time.perf_counter_ns()

    def event(self, name: str, category: str, start: int, end: int, track: str, **details: Any) -> None:
        """Notes a thing that took from `start` to `end`, in nanoseconds of time.perf_counter_ns."""
        with self._lock:
            number = self._tracks.setdefault(track, len(self._tracks) + 1)
            self._events.append(
                {
                    "name": name,
                    "cat": category,
                    "ph": "X",
                    "ts": (start - self.start) / 1000,  # the format counts microseconds
                    "dur": (end - start) / 1000,
                    "pid": os.getpid(),
                    "tid": number,
                    "args": details,
                }
            )

    def as_json(self) -> dict[str, Any]:
        """Returns the object that chrome://tracing and Perfetto load."""
        names = [
            {"name": "thread_name", "ph": "M", "pid": os.getpid(), "tid": number, "args": {"name": track}}
            for track, number in self._tracks.items()
        ]
        return {"traceEvents": [*names, *self._events], "displayTimeUnit": "ns"}


class Deadline:
    """Cancels a run when its time is over, unless it ends first."""

    def __init__(self, token: CancelToken, options: RunOptions, config: SessionConfig) -> None:
        milliseconds, setting = options.timeout_in_ms, "RunOptions.timeout_in_ms"
        if not milliseconds:
            milliseconds, setting = config.operation_timeout_in_ms, "SessionConfig.operation_timeout_in_ms"
        self._timer: threading.Timer | None = None
        if milliseconds:
            error = DeadlineExceededError(
                f"the run took longer than {setting}={milliseconds}; raise the limit or run less at once"
            )
            self._timer = threading.Timer(milliseconds / 1000, token.cancel, (error,))
            self._timer.daemon = True
            token.limited = True
            token.poll()

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def run_with_options(
    session: BaseSession, runner: Runner, values: Mapping[Any, Any], options: RunOptions, metadata: RunMetadata | None
) -> Any:
    """Session.run with RunOptions; fills `metadata`."""
    instance(metadata, (RunMetadata, NoneType), "run_metadata", "a tf.RunMetadata")
    timeline = Timeline() if options.trace else None
    context = session.context(timeline)
    with Deadline(context.cancel, options, session.config):
        result = runner.run(values, context, options.fetch_on_device)
    if metadata is not None:
        metadata.trace = None if timeline is None else timeline.as_json()
        if options.output_partition_graphs:
            from timberframe_core.runtime.partitions import partition_graphs

            metadata.partition_graphs = partition_graphs(runner.plan)
    return result
