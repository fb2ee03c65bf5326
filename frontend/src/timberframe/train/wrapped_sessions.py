"""The layers of a monitored session: each wraps the session below, and adds one thing to its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from timberframe.saving.positions import note_input
from timberframe.train.coordinator import Coordinator
from timberframe.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from timberframe_core import logging
from timberframe_core.config import RunMetadata, RunOptions
from timberframe_core.errors import (
    AbortedError,
    InvalidTypeError,
    OpError,
    OutOfRangeError,
    UnavailableError,
    WrongStateError,
)

_PLAIN = RunOptions()
LOST = (AbortedError, UnavailableError)
"""Errors after which a new session goes on from the last checkpoint."""


class WrappedSession:
    """A session around another one, which is None once it is closed."""

    def __init__(self, sess: Any) -> None:
        self._sess = sess

    @property
    def graph(self) -> Any:
        """The session's graph."""
        return self._sess.graph

    def should_stop(self) -> bool:
        """Returns whether to stop: asked for in any layer, or closed."""
        if self._check_stop() or self._sess is None:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        """Returns whether this layer asks to stop."""
        return False

    def close(self) -> None:
        """Closes the sessions below; a lost one may be unable to, which is no error."""
        if self._sess is not None:
            try:
                self._sess.close()
            except LOST as e:
                logging.error("closing a lost session: %s", e)
            finally:
                self._sess = None

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs in the session below."""
        if self._sess is None:
            raise WrongStateError("monitored session: is closed; make a new one to run again")
        return self._sess.run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable[[Any], Any], raw_session: Callable[[], Any]) -> Any:
        """Calls a function of a StepContext. raw_session: gives the tf.Session."""
        return step_fn(StepContext(raw_session(), self.run))


class StepContext:
    """What the function of `MonitoredSession.run_step_fn` gets: the tf.Session, and a `run` by the hooks."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The tf.Session; what it runs goes by no hook."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """`MonitoredSession.run`."""
        return self._run_with_hooks(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the function, and the training."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class HookedSession(WrappedSession):
    """Calls hooks before and after each run."""

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks = list(hooks)
        self._stop = False

    def _check_stop(self) -> bool:
        return self._stop

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs what the caller and the hooks ask for, all at once; returns what the caller asked for."""
        if self.should_stop():
            raise WrongStateError("monitored session: a hook asked to stop; check should_stop() before a run")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        asked, feeds, merged = self._before_run(
            context, feed_dict, _PLAIN if options is None else RunOptions.of(options)
        )
        used, metadata = (None if merged == _PLAIN else merged), run_metadata
        if metadata is None and used is not None:
            metadata = RunMetadata()
        note_input(self._sess, ended=False)
        try:
            found = super().run([fetches, *asked.values()], feeds or None, used, metadata)
        except OutOfRangeError:
            note_input(self._sess, ended=True)
            raise
        results = dict(zip(asked, found[1:], strict=True))
        for i, hook in enumerate(self._hooks):
            hook.after_run(context, SessionRunValues(results.get(i), merged, metadata))
        self._stop = self._stop or context.stop_requested
        return found[0]

    def _before_run(
        self, context: SessionRunContext, feed_dict: Any, options: RunOptions
    ) -> tuple[dict[int, Any], dict[Any, Any], RunOptions]:
        """Returns what hooks ask for: fetches by the hook's number, feeds with the caller's, options."""
        asked: dict[int, Any] = {}
        feeds: dict[Any, Any] = dict(feed_dict or {})
        fed_by = dict.fromkeys(feeds, "the caller of run")
        for i, hook in enumerate(self._hooks):
            request = hook.before_run(context)
            if request is None:
                continue
            if not isinstance(request, SessionRunArgs):
                raise InvalidTypeError(
                    f"{type(hook).__name__}.before_run: returned {request!r}; a SessionRunArgs or None is required"
                )
            if request.fetches is not None:
                asked[i] = request.fetches
            for tensor, value in (request.feed_dict or {}).items():
                other = fed_by.setdefault(tensor, type(hook).__name__)
                if tensor in feeds:
                    fed = getattr(tensor, "name", tensor)
                    raise WrongStateError(
                        f"monitored session: '{fed}' is fed by {type(hook).__name__} and by {other}; "
                        "one of them must not feed it"
                    )
                feeds[tensor] = value
            if request.options:
                options = _merged(options, RunOptions.of(request.options))
        return asked, feeds, options


def _merged(a: RunOptions, b: RunOptions) -> RunOptions:
    return replace(
        a,
        trace_level=max(a.trace_level, b.trace_level),
        trace=a.trace or b.trace,
        timeout_in_ms=max(a.timeout_in_ms, b.timeout_in_ms),
        output_partition_graphs=a.output_partition_graphs or b.output_partition_graphs,
    )


class CoordinatedSession(WrappedSession):
    """Stops with the threads of a coordinator, and stops them when it is closed."""

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self) -> bool:
        # A lost session that a thread noticed first is to be made again, which `should_stop` of the layer above does.
        try:
            self._coord.raise_requested_exception()
        except LOST:
            raise
        except Exception:
            return True
        return self._coord.should_stop()

    def close(self) -> None:
        """Stops the threads, waits for them, closes; raises what ended them."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except OpError as e:  # what `join` raises says more
                logging.debug("closing a session: %s", e)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs; where a thread lost the session, its error is raised in place of what followed from it."""
        try:
            return super().run(fetches, feed_dict, options, run_metadata)
        except LOST:
            raise
        except Exception:
            try:
                self._coord.raise_requested_exception()
            except LOST:
                raise
            except Exception as e:
                logging.debug("a thread ended with %s: %s", type(e).__name__, e)
            raise


class RecoverableSession(WrappedSession):
    """Makes a new session where one is lost, and runs again what was under way.

    create: makes a session.
    """

    def __init__(self, create: Callable[[], Any]) -> None:
        self._create = create
        super().__init__(self._create_session())

    def _create_session(self) -> Any:
        while True:
            try:
                return self._create()
            except LOST as e:
                logging.warning("a session was lost while it was made (%s); another one is made", e)

    def _check_stop(self) -> bool:
        if self._sess is None:
            return True
        try:
            return bool(self._sess._check_stop())
        except LOST as e:
            logging.info("the session is lost (%s); another one goes on from the last checkpoint", e)
            self.close()
            self._sess = self._create_session()
            return False  # it was made a moment ago

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs, in a new session where the present one is lost."""
        return self._again(lambda sess: sess.run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(self, step_fn: Callable[[Any], Any], raw_session: Callable[[], Any]) -> Any:
        """Calls a function of a StepContext, again with a new session where the present one is lost."""
        return self._again(lambda sess: sess.run_step_fn(step_fn, raw_session))

    def _again(self, work: Callable[[Any], Any]) -> Any:
        while True:
            try:
                if self._sess is None:
                    self._sess = self._create_session()
                return work(self._sess)
            except LOST as e:
                logging.info("the session is lost (%s); another one goes on from the last checkpoint", e)
                self.close()
