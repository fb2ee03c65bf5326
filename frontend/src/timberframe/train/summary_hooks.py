"""Hooks that write summaries, steps per second and timelines."""

from __future__ import annotations

import os
from typing import Any

from timberframe.summary.writer import FileWriterCache
from timberframe.train.basic_hooks import required_global_step
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe.train.timers import NeverTriggerTimer, SecondOrStepTimer, check_period
from timberframe_core import logging
from timberframe_core.config import RunMetadata, RunOptions
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages

_STALLED_WARNINGS = 5


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds, the first time with the first run.

    save_steps, save_secs: one of them. output_dir: where, or summary_writer: by what. scaffold: whose summary_op, or
    summary_op itself, a string tensor or a list of them.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            given = "neither" if scaffold is None else "both"
            raise InvalidArgumentError(f"SummarySaverHook: {given} of scaffold and summary_op given; one is required")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer: SecondOrStepTimer | NeverTriggerTimer = NeverTriggerTimer()
        if save_steps is not None or save_secs is not None:
            self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._next_step: int | None = None
        self._request_summary = False
        self._global_step: Any = None

    def begin(self) -> None:
        """Looks the global step up, and opens the writer."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step = None
        self._global_step = required_global_step("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step and, where it is time, for the summaries."""
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        requests = {"global_step": self._global_step}
        if self._request_summary and (summaries := self._summaries()):
            requests["summary"] = summaries
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        if self._summary_writer is None:
            return
        step = int(run_values.results["global_step"]) + 1
        if self._next_step is None or self._request_summary:
            step = int(run_context.session.run(self._global_step))
        if self._next_step is None:
            self._summary_writer.add_session_log(messages.SessionLog(status=messages.SessionLog.START), step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any = None) -> None:
        """Hands what was written to the operating system."""
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _summaries(self) -> list[Any]:
        found = self._summary_op if self._scaffold is None else self._scaffold.summary_op
        if found is None:
            return []
        return list(found) if isinstance(found, list | tuple) else [found]


class StepCounterHook(SessionRunHook):
    """Logs and writes steps per second, as ``global_step/sec``.

    every_n_steps (100), every_n_secs: one of them; for the latter every_n_steps is None. output_dir, summary_writer: as
    in SummarySaverHook.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        check_period("StepCounterHook", "every_n_steps", every_n_steps, "every_n_secs", every_n_secs)
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step: int | None = None
        self._stalled = 0
        self._global_step: Any = None
        self._summary_tag = ""

    def begin(self) -> None:
        """Looks the global step up, and opens the writer."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step = required_global_step("StepCounterHook")
        self._summary_tag = f"{self._global_step.op.name}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Counts."""
        before = int(run_values.results)
        if self._timer.should_trigger_for_step(before + 1):
            step = int(run_context.session.run(self._global_step))
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None and steps is not None:
                    self._log_and_record(steps, seconds, step)
        if before == self._last_global_step and self._stalled < _STALLED_WARNINGS:
            self._stalled += 1
            logging.warning(
                "the global step is %d in two runs one after the other; an optimizer raises it where its minimize or "
                "apply_gradients is given global_step",
                before,
            )
        self._last_global_step = before

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = elapsed_steps / max(elapsed_time, 1e-9)
        if self._summary_writer is not None:
            value = messages.Summary.Value(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(messages.Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, rate)


class ProfilerHook(SessionRunHook):
    """Writes a timeline of a run every so many steps or seconds: ``timeline-<step>.json``, for Chrome and Perfetto.

    save_steps, save_secs: one of them. show_dataflow, show_memory: TensorFlow's; change nothing.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_dir = output_dir
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._next_step: int | None = None
        self._request_trace = False
        self._global_step: Any = None

    def begin(self) -> None:
        """Looks the global step up."""
        self._next_step = None
        self._global_step = required_global_step("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for a trace where it is time, but not of the first run, which compiles."""
        self._request_trace = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._request_trace else None
        return SessionRunArgs(self._global_step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the timeline."""
        step = int(run_values.results) + 1
        if self._next_step is None:
            self._timer.update_last_triggered_step(int(run_values.results))
        if self._request_trace:
            step = int(run_context.session.run(self._global_step))
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        self._next_step = step + 1

    def _save(self, step: int, metadata: RunMetadata) -> None:
        os.makedirs(self._output_dir or ".", exist_ok=True)
        path = os.path.join(self._output_dir, f"timeline-{step}.json")
        metadata.save_trace(path)
        logging.info("Saving timeline for %d into '%s'.", step, path)
