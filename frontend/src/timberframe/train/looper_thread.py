"""LooperThread: does something again and again until a coordinator stops it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe.train.coordinator import Coordinator
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError


class LooperThread(threading.Thread):
    """A thread that calls a function, or the method `run_loop` of a subclass, until a coordinator stops it.

    timer_interval_secs: seconds from one call to the next, None for one after the other. target, args, kwargs: the
    function. An exception stops the coordinator's other threads, too.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self._coord = instance(coord, Coordinator, "LooperThread: coord", "a tf.train.Coordinator")
        if target is None and (args or kwargs):
            raise InvalidArgumentError("LooperThread: args or kwargs are given without target; they are for it")
        self._timer_interval_secs = timer_interval_secs
        self._called = (target, tuple(args or ()), dict(kwargs or {}))
        self._coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Returns a LooperThread that has been started."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        """Does the thread's work."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(max(0.0, due - time.monotonic())):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Is called before the first time."""

    def stop_loop(self) -> None:
        """Is called after the last time."""

    def run_loop(self) -> None:
        """Is called again and again."""
        target, args, kwargs = self._called
        if target is not None:
            target(*args, **kwargs)
