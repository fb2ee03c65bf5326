"""Positions of replicas that train one model synchronously, each in its session, beside the chief's checkpoints."""

from __future__ import annotations

import os
import time
from typing import Any
from weakref import WeakSet

from timberframe.saving.positions import has_positions, read_positions, tasks_with_positions, write_positions
from timberframe.train.basic_hooks import required_global_step
from timberframe.train.checkpoint_state import latest_checkpoint
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe_core import logging
from timberframe_core.graph.device_spec import DeviceSpec

WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.005

_synchronous: WeakSet[Any] = WeakSet()
"""Graphs of replicas of which none is ahead of the others by a step."""


def mark_synchronous(graph: Any) -> None:
    """Says that each step of the graph's training takes a gradient of every replica."""
    _synchronous.add(graph)


def is_synchronous(graph: Any) -> bool:
    """Returns whether the graph has been marked."""
    return graph in _synchronous


def wait_for_replicas(before: str, prefix: str) -> None:
    """Returns when the replicas with positions beside the checkpoint `before` have them beside the one of `prefix`.

    One that does not write them in 10 seconds has ended, and is left out from then on.
    """
    missing, end = tasks_with_positions(before), time.monotonic() + WAIT_SECONDS
    while missing := {task for task in missing if not has_positions(prefix, task)}:
        if time.monotonic() > end:
            logging.warning("checkpoint '%s' is without the positions of %s", prefix, ", ".join(sorted(missing)))
            return
        time.sleep(_LOOK_SECONDS)


class ReplicaPositionsHook(SessionRunHook):
    """Writes the positions of a replica at the global steps at which the chief, another one, writes checkpoints.

    checkpoint_dir, save_steps: as the chief has them. The chief waits for the files, so that a checkpoint that is
    complete has the positions of all replicas. A new session goes on with those of the step that it finds.
    """

    def __init__(self, checkpoint_dir: Any, save_steps: int, checkpoint_basename: str = "model.ckpt") -> None:
        self._folder, self._save_steps = os.fspath(checkpoint_dir), save_steps
        self._path = os.path.join(self._folder, checkpoint_basename)
        self._global_step: Any = None
        self._task = ""
        self._first = self._last = 0

    def begin(self) -> None:
        """Looks the global step up."""
        self._global_step = required_global_step("ReplicaPositionsHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads the positions of this step, and writes what it begins with, so that the chief knows of it."""
        place = DeviceSpec.from_string(session.list_devices()[0].name)
        self._task = "" if place.job == "localhost" else f"{place.job}-{place.task}"
        step = int(session.run(self._global_step))
        latest = latest_checkpoint(self._folder)
        self._first = step if latest is None else int(latest.rpartition("-")[2])
        if self._task:
            read_positions(session, self._prefix(step), self._task)
            self._write(session, step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes positions where it is time: the step that the run saw may be one before the present one."""
        seen = int(run_values.results)
        if self._task and any((step - self._first) % self._save_steps == 0 for step in (seen, seen + 1)):
            step = int(run_context.session.run(self._global_step))
            if (step - self._first) % self._save_steps == 0:
                self._write(run_context.session, step)

    def end(self, session: Any) -> None:
        """Writes those of the last step."""
        step = int(session.run(self._global_step))
        if self._task and step != self._last:
            self._write(session, step)

    def _write(self, session: Any, step: int) -> None:
        write_positions(session, self._prefix(step), self._task)
        self._last = step

    def _prefix(self, step: int) -> str:
        return f"{self._path}-{step}"
