"""Supervisor: prepares sessions, and runs the services of a training in threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.api.variable_collections import global_variables_initializer, report_uninitialized_variables
from timberframe.saving.files import replace_file
from timberframe.saving.meta_graph import build_meta_graph
from timberframe.summary.functions import merge_all
from timberframe.summary.writer import FileWriter
from timberframe.train.coordinator import Coordinator
from timberframe.train.looper_thread import LooperThread
from timberframe.train.queue_runner import QueueRunner
from timberframe.train.saver import Saver
from timberframe.train.scaffold import Scaffold
from timberframe.train.session_manager import SessionManager
from timberframe.train.steps import global_step as step_of
from timberframe_core import logging
from timberframe_core.errors import WrongStateError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graphdef import messages

_USE_DEFAULT = 0


class Supervisor:
    """Prepares sessions of a graph, and writes checkpoints and summaries while they train.

    graph: the default one if None; it is final from now on. ready_op, init_op, local_init_op, summary_op, saver,
    global_step: by default those of the graph's collections, or made as by `tf.train.Scaffold`; None for none.
    init_feed_dict, init_fn: for init_op, and after it. logdir: the folder of checkpoints and summaries; None for
    neither. save_summaries_secs, save_model_secs: how often, 0 for never. checkpoint_basename: how the names of
    checkpoints begin. recovery_wait_secs: how long to wait before looking again for a model that another process makes
    ready, where is_chief is False. stop_grace_secs: how long threads may take to end. summary_writer: instead of one of
    its own. session_manager: makes the sessions.
    """

    USE_DEFAULT = _USE_DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = _USE_DEFAULT,
        ready_for_local_init_op: Any = _USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = _USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = _USE_DEFAULT,
        logdir: Any = None,
        summary_op: Any = _USE_DEFAULT,
        saver: Any = _USE_DEFAULT,
        global_step: Any = _USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = _USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        with self._graph.as_default():
            self._ready_op = _chosen(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            ready = ready_for_local_init_op
            self._ready_for_local_init_op = _chosen(ready, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None)
            self._init_op = _chosen(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = _chosen(local_init_op, GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
            self._saver = _chosen(saver, GraphKeys.SAVERS, _saver_of_variables)
            self._summary_op = _chosen(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = _chosen(global_step, GraphKeys.GLOBAL_STEP, lambda: None)
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        self._is_chief = is_chief
        self._coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._logdir = os.fspath(logdir) if logdir and is_chief else None
        self._save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self._save_summaries_secs = save_summaries_secs
        self._save_model_secs = save_model_secs
        self._summary_writer = summary_writer if is_chief else None
        if summary_writer is _USE_DEFAULT:
            self._summary_writer = FileWriter(self._logdir) if self._logdir else None
        self._graph_written = self._writer_closed = False
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._graph.finalize()

    # What it has

    @property
    def is_chief(self) -> bool:
        """Whether it initializes the model and runs the services."""
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        """What makes the sessions."""
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """What stops the threads."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """Initializes the model."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        """Feeds for init_op."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """Names what is not initialized."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """Names what must be initialized before local_init_op."""
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        """Writes summaries; None without logdir."""
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        """What is written to summaries."""
        return self._summary_op

    @property
    def save_summaries_secs(self) -> float:
        """Seconds between summaries."""
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        """The global step; None where the graph has none."""
        return self._global_step

    @property
    def saver(self) -> Any:
        """Writes checkpoints."""
        return self._saver

    @property
    def save_model_secs(self) -> float:
        """Seconds between checkpoints."""
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """How the paths of checkpoints begin; None without logdir."""
        return self._save_path

    # Sessions

    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> AbstractContextManager[Any]:
        """Returns a context with a session that is ready; at its end threads stop, and the session is closed.

        An exception inside, or of a thread, is raised at the end, but for OutOfRangeError.
        """
        return self._managed(master, config, start_standard_services, close_summary_writer)

    @contextmanager
    def _managed(self, master: str, config: Any, services: bool, close_summary_writer: bool) -> Iterator[Any]:
        session = None
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=services)
            yield session
        except Exception as e:
            self.request_stop(e)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)  # raises what was the reason to stop
            finally:
                if session is not None:
                    session.close()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """Returns a session that is ready, with services and queue runners started."""
        self._coord.clear_stop()
        if self._summary_writer is not None:
            self._summary_writer.reopen()
            self._writer_closed = False
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(master, config, max_wait_secs)
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    PrepareSession = prepare_or_wait_for_session

    def _write_graph(self) -> None:
        if self._logdir:
            text = messages.format_text(self._graph.as_graph_def(add_shapes=True)).encode()
            replace_file(Path(self._logdir) / "graph.pbtxt", text)
        if self._summary_writer is not None and not self._graph_written:
            self._summary_writer.add_graph(self._graph)
            saver_def = None if self._saver is None else self._saver.saver_def
            self._summary_writer.add_meta_graph(build_meta_graph(self._graph, saver_def))
            self._graph_written = True

    # Threads

    def start_standard_services(self, sess: Any) -> list[LooperThread]:
        """Starts the threads that write summaries, steps per second and checkpoints; returns them."""
        if not self._is_chief:
            raise WrongStateError("Supervisor: is_chief is False; the chief alone may start the services")
        if not self._logdir:
            logging.warning("Supervisor: there is no logdir; no checkpoint and no summary is written")
            return []
        threads: list[LooperThread] = []
        writer = self._summary_writer
        if writer is not None and self._global_step is not None:
            writer.add_session_log(messages.SessionLog(status=messages.SessionLog.START), self._step(sess))
        if writer is not None and self._save_summaries_secs:
            if self._summary_op is not None:
                threads.append(self._thread(self._save_summaries_secs, self._save_summaries, sess))
            if self._global_step is not None:
                threads.append(_StepCounter(self, sess))
        if self._saver is not None and self._save_model_secs:
            threads.append(self._thread(self._save_model_secs, self._save_model, sess))
        for thread in threads:
            thread.start()
        return threads

    def _thread(self, seconds: float, target: Callable[[Any], None], sess: Any) -> LooperThread:
        return LooperThread(self._coord, seconds, target, (sess,))

    def _save_summaries(self, sess: Any) -> None:
        self.summary_computed(sess, sess.run(self._summary_op))

    def _save_model(self, sess: Any) -> None:
        self._saver.save(sess, self._save_path, global_step=self._global_step)
        if self._summary_writer is not None and self._global_step is not None:
            log = messages.SessionLog(status=messages.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
            self._summary_writer.add_session_log(log, self._step(sess))

    def _step(self, sess: Any) -> int:
        return step_of(sess, self._global_step)

    def start_queue_runners(self, sess: Any, queue_runners: Sequence[QueueRunner] | None = None) -> list[Any]:
        """Starts the threads of queue runners, by default of all in the graph's collection; returns them."""
        runners = queue_runners
        if runners is None:
            runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [t for r in runners for t in r.create_threads(sess, self._coord, daemon=True, start=True)]

    StartQueueRunners = start_queue_runners

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls a function every so many seconds, until it is time to stop."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    Loop = loop

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Writes a summary that a run gave. global_step: its step, by default that of the session."""
        if self._summary_writer is None:
            raise WrongStateError("Supervisor: has no summary writer; logdir or summary_writer gives it one")
        if global_step is None and self._global_step is not None:
            global_step = self._step(sess)
        self._summary_writer.add_summary(summary, global_step)

    SummaryComputed = summary_computed

    # Stopping

    def should_stop(self) -> bool:
        """Returns whether somebody asked to stop."""
        return self._coord.should_stop()

    ShouldStop = should_stop

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop. ex: the exception that is the reason."""
        self._coord.request_stop(ex)

    RequestStop = request_stop

    def wait_for_stop(self) -> bool:
        """Waits until somebody asks to stop."""
        return self._coord.wait_for_stop()

    WaitForStop = wait_for_stop

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """Returns a context in which an exception becomes the reason to stop, instead of being raised."""
        return self._coord.stop_on_exception()

    StopOnException = stop_on_exception

    def stop(
        self, threads: Sequence[Any] | None = None, close_summary_writer: bool = True, ignore_live_threads: bool = False
    ) -> None:
        """Stops the threads, waits for them, and closes the writer; raises the exception that was the reason to stop.

        threads: further ones to wait for.
        """
        self._coord.request_stop()
        try:
            self._coord.join(threads, self._stop_grace_secs, ignore_live_threads)
        finally:
            if close_summary_writer and self._summary_writer is not None and not self._writer_closed:
                self._summary_writer.add_session_log(messages.SessionLog(status=messages.SessionLog.STOP))
                self._summary_writer.close()
                self._graph_written, self._writer_closed = False, True

    Stop = stop


class _StepCounter(LooperThread):
    """Writes steps per second."""

    def __init__(self, supervisor: Supervisor, sess: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor = supervisor
        self._session = sess
        self._tag = f"{supervisor.global_step.op.name}/sec"
        self._last: tuple[float, int] = (0.0, 0)

    def start_loop(self) -> None:
        """Looks at the first step."""
        self._last = time.monotonic(), step_of(self._session, self._supervisor.global_step)

    def run_loop(self) -> None:
        """Writes how many there were since the last time."""
        (since, before), now = self._last, time.monotonic()
        step = step_of(self._session, self._supervisor.global_step)
        self._last = now, step
        rate = (step - before) / (now - since) if now > since else float("inf")
        value = messages.Summary.Value(tag=self._tag, simple_value=rate)
        self._supervisor.summary_computed(self._session, messages.Summary(value=[value]), step)
        logging.info("%s: %g", self._tag, rate)


def _chosen(given: Any, collection: str, make: Callable[[], Any]) -> Any:
    """Returns what was given, or else the first of a collection, or what `make` makes, which is added to it."""
    if given is not _USE_DEFAULT:
        return given
    graph = get_default_graph()
    found = graph.get_collection(collection)
    if found:
        return found[0]
    made = make()
    if made is not None:
        graph.add_to_collection(collection, made)
    return made


def _saver_of_variables() -> Saver | None:
    return Saver() if get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES) else None
