"""QueueRunner: threads that keep a queue filled."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from timberframe.api.arithmetic import maximum, subtract
from timberframe.api.framework import GraphKeys
from timberframe.api.queues import QueueBase
from timberframe.api.selection import cast
from timberframe.saving.collections import register_proto_function
from timberframe.summary.functions import scalar
from timberframe.train.coordinator import Coordinator
from timberframe_core import logging
from timberframe_core.dtypes import float32
from timberframe_core.errors import (
    CODES,
    CancelledError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    WrongStateError,
)
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graphdef import messages
from timberframe_core.plugin.contracts import CancelToken


def summarize_fullness(queue: QueueBase, capacity: int, name: str, least: int | None = None) -> None:
    """Adds a scalar summary: which part of a queue's capacity, beyond `least` elements, is in use."""
    held = queue.size() if least is None else maximum(0, subtract(queue.size(), least))
    scalar(name, cast(held, float32) * (1.0 / (capacity - (least or 0))))


class QueueRunner:
    """Operations that fill a queue, each to be run again and again by a thread of its own.

    enqueue_ops: one for each thread. close_op: run when an enqueue_op raises one of queue_closed_exception_types
    (OutOfRangeError if None) in all threads; it closes the queue if None. cancel_op: run when a coordinator stops them;
    closes the queue and ends what waits to be added if None. queue_runner_def: a QueueRunnerDef that names all these in
    the current graph, within import_scope, instead.
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Operation | Tensor] | None = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            self._find(messages.as_message(queue_runner_def, messages.QueueRunnerDef, "queue_runner_def"), import_scope)
        elif queue is None or not enqueue_ops:
            missing = "queue is None" if queue is None else "enqueue_ops is empty"
            raise InvalidArgumentError(f"QueueRunner: {missing}; a queue and one operation at least are required")
        else:
            self._queue: Any = queue
            self._enqueue_ops = list(enqueue_ops)
            self._close_op = queue.close() if close_op is None else close_op
            self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
            self._closed_by = queue_closed_exception_types or (OutOfRangeError,)
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._errors: list[BaseException] = []
        self._runs: weakref.WeakKeyDictionary[Any, set[CancelToken]] = weakref.WeakKeyDictionary()
        """By session, what ends the runs of its threads."""

    def _find(self, proto: Any, import_scope: str | None) -> None:
        """Takes the queue's operation, and the others, from the current graph."""
        graph, prefix = get_default_graph(), f"{import_scope}/" if import_scope else ""

        def element(name: str) -> Any:
            return graph.as_graph_element(prefix + name)

        self._queue = element(proto.queue_name)
        self._enqueue_ops = [element(name) for name in proto.enqueue_op_name]
        self._close_op, self._cancel_op = element(proto.close_op_name), element(proto.cancel_op_name)
        self._closed_by = tuple(CODES[n] for n in proto.queue_closed_exception_types) or (OutOfRangeError,)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns its QueueRunnerDef. export_scope: names are within this scope, and without it in the message."""

        def name(element: Any) -> str:
            found: str = element.name
            return found.removeprefix(f"{export_scope}/") if export_scope else found

        return messages.QueueRunnerDef(
            queue_name=name(self._queue),
            enqueue_op_name=[name(op) for op in self._enqueue_ops],
            close_op_name=name(self._close_op),
            cancel_op_name=name(self._cancel_op),
            queue_closed_exception_types=[kind.error_code for kind in self._closed_by],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """Returns the runner that a QueueRunnerDef describes, in the current graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    @property
    def queue(self) -> Any:
        """The queue that it fills; of a QueueRunnerDef the operation that makes it."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Operation | Tensor]:
        """The operations that its threads run."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Operation:
        """The operation that closes the queue."""
        return self._close_op

    @property
    def cancel_op(self) -> Operation:
        """The operation that closes the queue and cancels pending additions."""
        return self._cancel_op

    @property
    def name(self) -> str:
        """Name of the queue."""
        found: str = self._queue.name
        return found

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        """The errors that mean that the queue was closed."""
        return self._closed_by

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """The exceptions that ended threads without a coordinator."""
        return self._errors

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Threads that run the operations in a session until its queue or the session is closed, or `coord` stops.

        None where threads of this session go on already. start: starts them.
        """
        with self._lock:
            if self._running.get(sess, 0):
                return []
            self._running[sess] = len(self._enqueue_ops)
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(
                    target=self._cancel_on_stop, args=(sess, coord), name=f"QueueRunnerThread-{self.name}-cancel"
                )
            )
        for thread in threads:
            thread.daemon = daemon
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(self, sess: Any, op: Operation | Tensor, coord: Coordinator | None) -> None:
        error: BaseException | None = None
        try:
            while self._enqueue(sess, op, coord):
                pass
        except self._closed_by:
            pass
        except Exception as e:
            error = e
        with self._lock:
            self._running[sess] -= 1
            last = not self._running[sess]
        if error is None:
            if last:
                self._try(sess, self._close_op)
        elif coord is not None:
            coord.request_stop(error)
        else:
            self._errors.append(error)
            if not isinstance(error, CancelledError | WrongStateError):  # the queue or session was closed
                logging.error("queue '%s' is not filled any more: %s: %s", self.name, type(error).__name__, error)

    def _enqueue(self, sess: Any, op: Operation | Tensor, coord: Coordinator | None) -> bool:
        """Runs an operation once; False where the coordinator stops."""
        cancel = CancelToken()
        with self._lock:
            runs = self._runs.setdefault(sess, set())
            runs.add(cancel)
        try:  # from here on `_cancel_on_stop` knows of the run, so that none is missed
            if coord is not None and coord.should_stop():
                return False
            sess.run_until(cancel, op)
        finally:
            with self._lock:
                runs.discard(cancel)
        return True

    def _cancel_on_stop(self, sess: Any, coord: Coordinator) -> None:
        """Closes the queue, and ends runs that wait for something else, such as gradients."""
        coord.wait_for_stop()
        self._try(sess, self._cancel_op)
        with self._lock:
            runs = list(self._runs.get(sess, ()))
        for cancel in runs:
            cancel.cancel(CancelledError(f"queue '{self.name}' is not filled any more: its coordinator stops"))

    def _try(self, sess: Any, op: Operation) -> None:
        """Runs an operation that closes the queue, which may be closed already, as may the session."""
        try:
            sess.run(op)
        except OpError as e:
            logging.debug("closing queue '%s': %s", self.name, e)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to a collection of the default graph, for `start_queue_runners`."""
    get_default_graph().add_to_collection(collection, qr)


def _queue_runner_def(runner: Any, export_scope: str | None = None) -> Any:
    if not isinstance(runner, QueueRunner):
        logging.warning("collection '%s' holds %r, no QueueRunner; it is not written", GraphKeys.QUEUE_RUNNERS, runner)
        return None
    return runner.to_proto(export_scope)


register_proto_function(
    GraphKeys.QUEUE_RUNNERS, messages.QueueRunnerDef, to_proto=_queue_runner_def, from_proto=QueueRunner.from_proto
)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all runners in a collection of the session's graph, and returns them.

    sess: the default session if None. daemon: the process may end while they run.
    """
    session = get_default_session() if sess is None else sess
    if session is None:
        raise InvalidArgumentError(
            "start_queue_runners: there is no default session; give one, or enter `with session:`"
        )
    runners = session.graph.get_collection(collection)
    return [t for qr in runners for t in qr.create_threads(session, coord, daemon, start)]
