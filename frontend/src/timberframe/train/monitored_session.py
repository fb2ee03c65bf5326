"""Monitored sessions: restored or initialized, with hooks, made again where they are lost."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from timberframe.saving.positions import settle_positions
from timberframe.train import wrapped_sessions
from timberframe.train.checkpoint_hooks import CheckpointSaverHook
from timberframe.train.coordinator import Coordinator
from timberframe.train.queue_runner import start_queue_runners
from timberframe.train.replica_positions import ReplicaPositionsHook, is_synchronous
from timberframe.train.scaffold import Scaffold
from timberframe.train.session_creators import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from timberframe.train.session_run_hook import SessionRunHook
from timberframe.train.summary_hooks import StepCounterHook, SummarySaverHook
from timberframe.train.wrapped_sessions import CoordinatedSession, HookedSession, RecoverableSession, WrappedSession
from timberframe_core.arguments import instance, listed
from timberframe_core.errors import InvalidArgumentError, OutOfRangeError, WrongStateError
from timberframe_core.graph.defaults import Evaluator
from timberframe_core.graph.graph import get_default_graph

USE_DEFAULT = object()
_GRACE_SECS = 120


class _MonitoredSession(Evaluator):
    """What MonitoredSession and SingularMonitoredSession have in common. recovers: whether lost sessions are replaced.

    In a `with` block OutOfRangeError and StopIteration end the training without being raised.
    """

    StepContext = wrapped_sessions.StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Sequence[SessionRunHook] | None,
        recovers: bool,
        stop_grace_period_secs: float,
    ) -> None:
        self._begin_graph = get_default_graph()
        self._graph_was_finalized = self._begin_graph.finalized
        self._hooks = [
            instance(h, SessionRunHook, "monitored session: an item of hooks", "a tf.train.SessionRunHook")
            for h in listed(hooks or (), "monitored session: hooks", "SessionRunHooks")
        ]
        for hook in self._hooks:
            hook.begin()
        self._session_creator = session_creator or ChiefSessionCreator()
        self._stop_grace_period_secs = stop_grace_period_secs
        self._coord: Coordinator | None = None
        self._raw: Any = None
        self._sess: WrappedSession | None = (
            RecoverableSession(self._create_session) if recovers else self._create_session()
        )

    def _create_session(self) -> CoordinatedSession:
        """Returns a session in its layers; what fails on the way closes it."""
        self._raw = self._session_creator.create_session()
        self._coord = Coordinator(clean_stop_exception_types=())
        try:
            start_queue_runners(self._raw, self._coord)
            for hook in self._hooks:
                hook.after_create_session(self._raw, self._coord)
            # A session that writes no checkpoints, as that of an evaluation, has an input of its own.
            goes_on = any(isinstance(h, CheckpointSaverHook | ReplicaPositionsHook) for h in self._hooks)
            settle_positions(self._raw, goes_on)
        except BaseException:
            self._coord.request_stop()
            self._raw.close()
            raise
        return CoordinatedSession(HookedSession(self._raw, self._hooks), self._coord, self._stop_grace_period_secs)

    @property
    def graph(self) -> Any:  # type: ignore[override]  # an attribute of other sessions
        """The graph; None once the session is closed."""
        return None if self._raw is None else self._raw.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """`tf.Session.run`, with the hooks before and after."""
        return self._open().run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable[[Any], Any]) -> Any:
        """Returns what a function of a StepContext returns: it may run in the raw session, by
        the hooks, and ask to stop.

        Raises StopIteration where it asks to stop, which ends a `with` block.
        """
        names = list(inspect.signature(step_fn).parameters)
        if names != ["step_context"]:
            raise InvalidArgumentError(
                f"run_step_fn: step_fn has the arguments {names}; one is required, which is named step_context"
            )
        return self._open().run_step_fn(step_fn, self._tf_sess)

    def should_stop(self) -> bool:
        """Returns whether to stop: a hook or a thread asked for it, or the session is closed."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Ends: hooks first, then threads and session."""
        self._close(None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if kind is not None and issubclass(kind, OutOfRangeError | StopIteration):
            kind = None
        self._close(kind)
        return kind is None

    def _close(self, error: type[BaseException] | None) -> None:
        sess = self._open()
        try:
            if error is None and self._raw is not None:
                for hook in self._hooks:
                    hook.end(self._raw)
        finally:
            try:
                sess.close()
            finally:
                self._sess = self._raw = self._coord = None
                if not self._graph_was_finalized:
                    self._begin_graph.unfinalize()

    def _open(self) -> WrappedSession:
        if self._sess is None:
            raise WrongStateError("monitored session: is closed; make a new one to run again")
        return self._sess

    def _tf_sess(self) -> Any:
        """Returns the tf.Session."""
        return self._raw


class MonitoredSession(_MonitoredSession):
    """A session that is initialized or restored, calls hooks, starts queue runners, and recovers.

    session_creator: makes the tf.Session, ChiefSessionCreator() if None. hooks: SessionRunHooks. After AbortedError or
    UnavailableError another session is made, and the run repeated. stop_grace_period_secs: for threads, in close().
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = _GRACE_SECS,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A monitored session that does not recover, and hands out its tf.Session.

    hooks: SessionRunHooks. scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: as in
    ChiefSessionCreator.
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = _GRACE_SECS,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """Returns the tf.Session; what it runs goes by no hook."""
        return self._tf_sess()


def MonitoredTrainingSession(  # noqa: N802 - TensorFlow's name
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = _GRACE_SECS,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: Any = None,
) -> MonitoredSession:
    """Returns a MonitoredSession with the hooks that a training has: it writes checkpoints and
    summaries, and logs its speed.

    checkpoint_dir: where checkpoints are written, and restored from. save_checkpoint_secs (600), save_checkpoint_steps:
    how often. summary_dir: where summaries are written, checkpoint_dir if None; save_summaries_steps (100),
    save_summaries_secs: how often. log_step_count_steps: steps between logs of the speed. None switches each off.
    is_chief: other workers wait at most max_wait_secs seconds for the chief to make the model ready, and have `hooks`
    alone. chief_only_hooks come before all others.

    Training that was killed goes on from the last checkpoint with the same random numbers and elements of datasets,
    and ends with the same bits as one that was not: a checkpoint has the positions of both beside it. So does
    synchronous training by several workers (SyncReplicasOptimizer without backups) where all have the same
    checkpoint_dir and save_checkpoint_steps.
    """
    summary_steps, summary_secs = _periods(save_summaries_steps, save_summaries_secs, 100, None)
    checkpoint_steps, checkpoint_secs = _periods(save_checkpoint_steps, save_checkpoint_secs, None, 600)
    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        worker_hooks = list(hooks or ())
        if checkpoint_dir and _positive(checkpoint_steps) and is_synchronous(get_default_graph()):
            worker_hooks.insert(0, ReplicaPositionsHook(checkpoint_dir, checkpoint_steps))
        return MonitoredSession(worker, worker_hooks, stop_grace_period_secs)
    all_hooks: list[SessionRunHook] = list(chief_only_hooks or ())
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir and log_step_count_steps and log_step_count_steps > 0:
        all_hooks.append(StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps))
    if summary_dir and _positive(summary_steps, summary_secs):
        all_hooks.append(SummarySaverHook(summary_steps, summary_secs, output_dir=summary_dir, scaffold=scaffold))
    if checkpoint_dir and _positive(checkpoint_steps, checkpoint_secs):
        all_hooks.append(CheckpointSaverHook(checkpoint_dir, checkpoint_secs, checkpoint_steps, scaffold=scaffold))
    all_hooks.extend(hooks or ())
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _periods(steps: Any, secs: Any, default_steps: Any, default_secs: Any) -> tuple[Any, Any]:
    """Steps and seconds: the defaults where neither is given, else None for the one that is not."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default_steps, default_secs
    return (None if steps is USE_DEFAULT else steps), (None if secs is USE_DEFAULT else secs)


def _positive(*periods: Any) -> bool:
    return any(p is not None and p > 0 for p in periods)
