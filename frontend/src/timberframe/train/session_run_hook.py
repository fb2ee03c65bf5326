"""SessionRunHook: what is called before and after each run of a monitored session."""

from __future__ import annotations

from typing import Any, NamedTuple


class SessionRunArgs(NamedTuple):
    """What a hook adds to a run, or what the caller of `run` gave: fetches, a feed_dict, RunOptions."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a hook gets of a run: the results of its own fetches (None without), the RunOptions, the RunMetadata."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """One run, as hooks see it: they may look at what the caller asked for, and ask to stop after the run."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the caller of `run` gave."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The tf.Session; what it runs goes by no hook."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Makes `should_stop` of the monitored session be true after this run."""
        self._stop_requested = True


class SessionRunHook:
    """Is called at moments of a monitored session's life; a subclass defines what it needs.

    In order: `begin` once; for each session that is made, `after_create_session`; for each run `before_run` and
    `after_run`; at last `end`. Of several hooks each moment's methods are called in the hooks' order.
    """

    def begin(self) -> None:
        """Before the graph is finalized: the only moment at which a hook may add operations."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """After a session was made, also one that takes the place of a lost one. The graph is final now."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Before a run; may return what the run shall do besides."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """After a run that raised nothing."""

    def end(self, session: Any) -> None:
        """Before the last session is closed, unless an error other than OutOfRangeError or StopIteration ends it."""
