"""CheckpointSaverHook: writes checkpoints in the course of a training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.saving.files import replace_file
from timberframe.saving.meta_graph import build_meta_graph
from timberframe.saving.positions import remove_leftover_positions, write_positions
from timberframe.summary.writer import FileWriterCache
from timberframe.train.basic_hooks import required_global_step
from timberframe.train.replica_positions import wait_for_replicas
from timberframe.train.saver import Saver
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe.train.timers import SecondOrStepTimer, check_period
from timberframe_core import logging
from timberframe_core.errors import InvalidArgumentError, WrongStateError
from timberframe_core.graph.graph import Graph
from timberframe_core.graphdef import messages


class CheckpointSaverListener:
    """Is called around each checkpoint that a CheckpointSaverHook writes; a subclass defines what it needs."""

    def begin(self) -> None:
        """Before the graph is finalized."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """After a checkpoint was written; returns True to stop the training."""

    def end(self, session: Any, global_step_value: int) -> None:
        """After the last checkpoint."""


class CheckpointSaverHook(SessionRunHook):
    """Writes a checkpoint at the beginning, every so many steps or seconds, and at the end.

    checkpoint_dir: where. save_secs, save_steps: one of them. saver: by what, or scaffold: by whose saver; else by the
    one of the collection GraphKeys.SAVERS. checkpoint_basename: how the files' names begin. listeners:
    CheckpointSaverListeners.

    Beside each checkpoint it writes the positions of random streams and iterators, `PREFIX.positions`.
    """

    def __init__(
        self,
        checkpoint_dir: Any,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise InvalidArgumentError("CheckpointSaverHook: both of saver and scaffold given; one at most is required")
        check_period("CheckpointSaverHook", "save_steps", save_steps, "save_secs", save_secs)
        self._saver = saver
        self._checkpoint_dir = os.fspath(checkpoint_dir)
        self._save_path = os.path.join(self._checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or ())
        self._summary_writer: Any = None
        self._global_step: Any = None
        self._saved = ""
        """The path of the last checkpoint of this session."""

    def add_listeners(self, listeners: Iterable[CheckpointSaverListener]) -> None:
        """Adds listeners, before `begin`."""
        self._listeners.extend(listeners)

    def begin(self) -> None:
        """Looks the global step up, and opens the writer of events."""
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step = required_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the graph and the first checkpoint."""
        self._saved = ""
        step = int(session.run(self._global_step))
        graph, saver = session.graph, self._used_saver(session)
        text = messages.format_text(graph.as_graph_def(add_shapes=True)).encode()
        replace_file(Path(self._checkpoint_dir) / "graph.pbtxt", text)
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(build_meta_graph(graph, saver.saver_def))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes a checkpoint where it is time: the step that the run saw may be one before the present one."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._global_step))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Writes the last checkpoint, unless the last step has one."""
        step = int(session.run(self._global_step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        else:
            self._write_positions(session, step)  # the input may have ended since
        for listener in self._listeners:
            listener.end(session, step)
        self._summary_writer.flush()

    def _save(self, session: Any, step: int) -> bool:
        """Writes a checkpoint; whether a listener wants the training to stop."""
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        saver = self._used_saver(session)
        self._write_positions(session, step)
        prefix = saver.prefix(session, self._save_path, step)
        if self._saved:
            wait_for_replicas(self._saved, prefix)
        self._saved = prefix
        saver.save(session, self._save_path, global_step=step)
        remove_leftover_positions(self._save_path)
        log = messages.SessionLog(status=messages.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        stops = [listener.after_save(session, step) for listener in self._listeners]
        return any(stops)

    def _write_positions(self, session: Any, step: int) -> None:
        write_positions(session, self._used_saver(session).prefix(session, self._save_path, step))

    def _used_saver(self, session: Any) -> Saver:
        if self._saver is None:
            self._saver = self._scaffold.saver if self._scaffold is not None else _collected_saver(session.graph)
        return self._saver


def _collected_saver(graph: Graph) -> Saver:
    found: list[Saver] = graph.get_collection(GraphKeys.SAVERS)
    if len(found) != 1:
        raise WrongStateError(
            f"CheckpointSaverHook: the collection '{GraphKeys.SAVERS}' has {len(found)} savers; give saver or "
            "scaffold, or add one saver to it"
        )
    return found[0]
