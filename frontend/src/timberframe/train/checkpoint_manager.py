"""CheckpointManager: keeps the latest checkpoints of a tf.train.Checkpoint in a folder."""

from __future__ import annotations

import os
import time
from typing import Any

from timberframe.saving.bundle_writer import remove_bundle
from timberframe.train.checkpoint_state import get_checkpoint_state, update_checkpoint_state
from timberframe.train.object_checkpoints import Checkpoint
from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.graph.graph import get_default_graph


class CheckpointManager:
    """Saves a Checkpoint to ``directory/checkpoint_name-<number>``, and removes all but the latest max_to_keep.

    max_to_keep: None keeps all. keep_checkpoint_every_n_hours: besides these, one for each period of that length stays.
    One that is made again in a later process goes on with the checkpoints that the file `checkpoint` names.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        self._checkpoint = instance(checkpoint, Checkpoint, "CheckpointManager: checkpoint", "a tf.train.Checkpoint")
        if max_to_keep is not None and max_to_keep <= 0:
            raise InvalidArgumentError(
                f"CheckpointManager: max_to_keep is {max_to_keep}; it must be positive, or None for all"
            )
        self._directory: str = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._period = (keep_checkpoint_every_n_hours or float("inf")) * 3600
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._times: dict[str, float] = {}
        self._latest: str | None = None
        self._preserved = time.time()
        self._recover()

    def _recover(self) -> None:
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        self._latest = state.model_checkpoint_path
        paths, stamps = state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps
        self._times = dict(zip(paths, stamps if len(stamps) == len(paths) else [time.time()] * len(paths), strict=True))
        if state.last_preserved_timestamp:
            self._preserved = min(self._preserved, state.last_preserved_timestamp)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest one; None before the first."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of those that max_to_keep counts, the oldest first."""
        return list(self._times)

    def save(self, checkpoint_number: Any = None) -> str:
        """Saves, and returns the path. checkpoint_number: by default how often the Checkpoint was saved.

        In a graph by the default session.
        """
        number = self._checkpoint.count()
        if checkpoint_number is not None:
            fetched = hasattr(checkpoint_number, "graph") and not get_default_graph().eager
            session: Any = get_default_session()
            number = int(session.run(checkpoint_number) if fetched else checkpoint_number)
        path: str = self._checkpoint.write(f"{self._prefix}-{number}")
        self._times.pop(path, None)
        self._times[path] = time.time()
        self._latest = path
        removed = self._taken_off()
        self._record()  # before any is removed, so that the file never names one that is not there
        for old in removed:
            remove_bundle(old)
        return path

    def _taken_off(self) -> list[str]:
        """Takes those that are too many off the list; which of them are to be removed."""
        found = []
        while self._max_to_keep and len(self._times) > self._max_to_keep:
            path = next(iter(self._times))
            saved = self._times.pop(path)
            if saved - self._period >= self._preserved:
                self._preserved = saved
            else:
                found.append(path)
        return found

    def _record(self) -> None:
        """Writes the file `checkpoint`, with paths relative to the folder."""
        names = [os.path.relpath(path, self._directory) for path in self._times]
        folder, stamps = os.path.abspath(self._directory), list(self._times.values())
        update_checkpoint_state(folder, names[-1], names, None, stamps, self._preserved)
