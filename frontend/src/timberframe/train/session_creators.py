"""SessionCreators: how monitored sessions get their tf.Session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from timberframe.train.scaffold import Scaffold
from timberframe.train.session_manager import SessionManager
from timberframe_core.graph.graph import get_default_graph


class SessionCreator(ABC):
    """Makes sessions: the first, and others where one was lost."""

    @abstractmethod
    def create_session(self) -> Any:
        """Returns a new session."""


class ChiefSessionCreator(SessionCreator):
    """Makes sessions of the default graph that are restored from a checkpoint, or initialized where there is none.

    scaffold: how; the default one if None. master: the target. checkpoint_dir: the folder with checkpoints, or
    checkpoint_filename_with_path: one checkpoint.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._manager: SessionManager | None = None

    def create_session(self) -> Any:
        """Returns a new session, restored or initialized; finalizes the graph."""
        self._scaffold.finalize()
        self._manager = self._manager or _manager(self._scaffold)
        return self._manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions of the default graph whose model the chief makes ready; waits max_wait_secs seconds for that."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs
        self._manager: SessionManager | None = None

    def create_session(self) -> Any:
        """Returns a new session of a model that is ready; finalizes the graph."""
        self._scaffold.finalize()
        self._manager = self._manager or _manager(self._scaffold)
        return self._manager.wait_for_session(self._master, self._config, self._max_wait_secs)


def _manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
    )
