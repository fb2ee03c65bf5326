"""SessionManager: makes sessions whose variables have values, from a checkpoint or by initializers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from timberframe.saving.positions import read_positions
from timberframe.train.checkpoint_state import get_checkpoint_state
from timberframe_core import logging
from timberframe_core.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    WrongStateError,
)
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.runtime.session import Session

_FIRST_WAIT_SECS = 0.25
"""Before the second look for a ready model; twice as long before each later one."""


class SessionManager:
    """Makes sessions of a graph (the default one if None) that are ready for training.

    local_init_op: runs in every new session, with local_init_run_options and local_init_feed_dict. ready_op: gives the
    names of what has no value yet; None for a graph that is always ready. ready_for_local_init_op: the same, before
    local_init_op runs. recovery_wait_secs: how long to wait before looking again for a checkpoint, and at most for a
    ready model: the first looks come sooner.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise InvalidArgumentError(
                "SessionManager: ready_for_local_init_op is given without local_init_op; give both, or none"
            )
        self._graph = graph or get_default_graph()
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """Returns a session whose model is ready: restored from the latest checkpoint of a folder or,
        without one, initialized.

        init_op, init_feed_dict, init_fn: initialize it. saver: restores. checkpoint_filename_with_path: a checkpoint
        in place of the folder. wait_for_checkpoint: at most max_wait_secs seconds. Raises WrongStateError where
        nothing initializes the model, or variables have no value after.
        """
        session, restored = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            if not restored:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise WrongStateError(
                        "SessionManager: there is no checkpoint, and neither init_op, init_fn nor local_init_op; one "
                        "is required to initialize the model"
                    )
                if init_op is not None:
                    session.run(init_op, init_feed_dict)
                if init_fn is not None:
                    init_fn(session)
            for missing, what in (
                (self._run_local_init_op(session), "for local_init_op"),
                (self._missing(session, self._ready_op), "for training"),
            ):
                if missing:
                    source = "the checkpoint" if restored else "init_op and init_fn"
                    raise WrongStateError(
                        f"SessionManager: the model is not ready {what}: after {source} these variables have no value: "
                        f"{missing}; init_op or local_init_op must initialize them"
                    )
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """Returns a session restored from a checkpoint, and whether its model is ready; the
        arguments are prepare_session's.
        """
        session, restored = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            missing = self._run_local_init_op(session)
            if not missing and restored:
                missing = self._missing(session, self._ready_op)
        except BaseException:
            session.close()
            raise
        if missing:
            logging.info("restored session is not ready: %s have no value", missing)
        return session, restored and not missing

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: float = float("inf")) -> Session:
        """Returns a session whose model another process makes ready; DeadlineExceededError
        after max_wait_secs seconds.
        """
        end = time.monotonic() + (float("inf") if max_wait_secs is None else max_wait_secs)
        pause = _FIRST_WAIT_SECS
        while True:
            session = Session(master, graph=self._graph, config=config)
            missing = "nothing could be read"
            try:
                missing = self._run_local_init_op(session) or self._missing(session, self._ready_op)
            except FailedPreconditionError as e:
                missing = str(e)
            except BaseException:
                session.close()
                raise
            if not missing:
                return session
            session.close()
            pause = min(pause, self._recovery_wait_secs)
            if end - time.monotonic() < pause:
                raise DeadlineExceededError(
                    f"SessionManager: the model was not ready after {max_wait_secs} seconds ({missing}); the chief "
                    "must initialize it"
                )
            logging.info("waiting for model to be ready: %s", missing)
            time.sleep(pause)
            pause *= 2

    def _restored(
        self,
        master: str,
        saver: Any,
        folder: str | None,
        path: str | None,
        wait: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Session, bool]:
        """Returns a session, and whether it has the values of a checkpoint."""
        if folder and path:
            raise InvalidArgumentError(
                "SessionManager: both of checkpoint_dir and checkpoint_filename_with_path given; one is required"
            )
        session = Session(master, graph=self._graph, config=config)
        try:
            if saver is None or not (folder or path):
                return session, False
            paths = []
            if not path:
                state = self._checkpoint_state(str(folder), wait, max_wait_secs)
                if state is None:
                    return session, False
                path, paths = state.model_checkpoint_path, list(state.all_model_checkpoint_paths)
            saver.restore(session, path)
            read_positions(session, str(path))
            if paths:
                saver.recover_last_checkpoints(paths)
        except BaseException:
            session.close()
            raise
        return session, True

    def _checkpoint_state(self, folder: str, wait: bool, max_wait_secs: float) -> Any:
        waited = 0.0
        while (state := get_checkpoint_state(folder)) is None and wait and waited < max_wait_secs:
            logging.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
        return state

    def _run_local_init_op(self, session: Session) -> str:
        """Runs local_init_op where the model is ready for it; else the names of variables without a value."""
        if self._local_init_op is None:
            return ""
        missing = self._missing(session, self._ready_for_local_init_op)
        if not missing:
            session.run(self._local_init_op, self._local_init_feed_dict, self._local_init_run_options)
        return missing

    def _missing(self, session: Session, ready_op: Any) -> str:
        """Returns the names that ready_op gives, "" where the model is ready."""
        if ready_op is None:
            return ""
        found = session.run(ready_op)
        if found is None or not len(found):  # an operation, or no names
            return ""
        return ", ".join(name.decode() if isinstance(name, bytes) else str(name) for name in found)
