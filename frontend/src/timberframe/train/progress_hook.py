"""ProgressHook: how far a training is, on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from timberframe.train.basic_hooks import required_global_step
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import get_default_graph

_CLEAR_LINE = "\r\x1b[2K"


class ProgressHook(SessionRunHook):
    """Keeps one line of a terminal up to date: ``step 400 of 1000, loss 0.0213, 812 steps/s, 1 s left``.

    last_step: the global step at which the training ends, where that is known. tensors: a map from tags to scalars, or
    their names, to show. every_n_secs: how often. stream: where to write, by default standard error; nothing is
    written to what is no terminal. The line is cleared when the training ends. This hook is Timberframe's own;
    TensorFlow has none of this kind.
    """

    def __init__(
        self,
        last_step: int | None = None,
        tensors: Mapping[str, Any] | None = None,
        every_n_secs: float = 0.2,
        stream: TextIO | None = None,
    ) -> None:
        if every_n_secs <= 0:
            raise InvalidArgumentError(f"ProgressHook: every_n_secs is {every_n_secs}; it must be positive")
        self._last_step = last_step
        self._tensors = dict(tensors or {})
        self._every_n_secs = every_n_secs
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._fetches: dict[str, Any] = {}
        self._started: tuple[int, float] | None = None
        self._next = 0.0

    def begin(self) -> None:
        """Looks the global step and the tensors up."""
        graph = get_default_graph()
        values = {tag: graph.as_graph_element(t) for tag, t in self._tensors.items()}
        self._fetches = {"step": required_global_step("ProgressHook"), "values": values}
        self._started = None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the global step and the tensors where it is time."""
        return SessionRunArgs(self._fetches) if self._shown and time.monotonic() >= self._next else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the line."""
        if run_values.results is None:
            return
        now, step = time.monotonic(), int(run_values.results["step"])
        self._next = now + self._every_n_secs
        if self._started is None:
            self._started = step, now
        parts = [f"step {step}" if self._last_step is None else f"step {step} of {self._last_step}"]
        parts += [f"{tag} {float(value):.4g}" for tag, value in run_values.results["values"].items()]
        first, begun = self._started
        if step > first:
            rate = (step - first) / (now - begun)
            parts.append(f"{rate:.3g} steps/s")
            if self._last_step is not None:
                parts.append(f"{max(self._last_step - step, 0) / rate:.0f} s left")
        self._stream.write(_CLEAR_LINE + ", ".join(parts))
        self._stream.flush()

    def end(self, session: Any) -> None:
        """Clears the line."""
        if self._shown:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()
