"""Pipelines whose elements threads make ahead: prefetch, and map with several calls at a time."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from timberframe.pipelines.base import Block, Context, Cursor, Element, Pipeline, State
from timberframe.pipelines.functions import Map, MapCursor
from timberframe.pipelines.positions import pack, unpack
from timberframe_core.errors import CancelledError
from timberframe_core.plugin.host_ops import HostCall

_AUTOTUNED = 4
"""Elements that are kept ready where the program leaves the number open."""

_SLOW_SECONDS = 200e-6
"""A call that takes as long is worth handing to a thread."""

_LONGEST_WAIT_SECONDS = 0.2
"""After which a thread looks whether its run was cancelled."""

_SLOW_CALLS = 4
"""So many slow calls in a row begin it."""


class Prefetch(Pipeline):
    """The elements, up to `size` of which a thread makes ahead; negative: as many as seems good."""

    def __init__(self, call: HostCall, source: Pipeline, size: int) -> None:
        super().__init__(call, source.dtypes, source.shapes)
        self.source, self.buffer_size = source, _AUTOTUNED if size < 0 else size

    def begin(self, context: Context, path: str) -> Cursor:
        if not self.buffer_size:
            return self.source.begin(context, f"{path}/0")
        inner = context.child()
        return _PrefetchCursor(_Producer(self.source.begin(inner, f"{path}/0"), inner, self.buffer_size), context)

    def size(self) -> int:
        return self.source.size()


class _Failed:
    """An error in place of an element."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Ready:
    """What a thread has made ahead.

    elements: with errors in place of some. ended: whether the last one has come. changed: is held by who looks.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.elements: deque[Any] = deque()
        self.ended = self.closed = False
        self.changed = threading.Condition()

    def has_room(self) -> bool:
        """Returns whether the thread should make more: several in a row, since it takes long to wake one."""
        return 2 * len(self.elements) <= self.size

    def add(self, made: Any) -> None:
        """Adds an element; None is the end."""
        with self.changed:
            self.ended = made is None
            if made is not None:
                self.elements.append(made)
            self.changed.notify_all()

    def wait_for_room(self) -> None:
        """Waits until more elements are wanted, or none."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.has_room())

    def stop(self) -> None:
        """Makes the thread end."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()


class _Producer:
    """Makes elements ahead, in a thread that does not keep it alive. moving: is held by who moves the source."""

    def __init__(self, source: Cursor, context: Context, size: int) -> None:
        self.source, self._context = source, context
        self.ready = _Ready(size)
        self.moving = threading.Lock()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self.ready.stop).atexit = False  # `_close_all` waits for the threads

    def start(self) -> None:
        """Begins to make elements."""
        if self._thread is None and not self.ready.closed:
            self._thread = threading.Thread(
                target=_make_ahead, args=(weakref.ref(self), self.ready), name="prefetch", daemon=True
            )
            _running.add(self)
            self._thread.start()

    def fill(self) -> bool:
        """Makes elements until enough are ready; False where there are no more."""
        ready = self.ready
        while True:
            with self.moving:
                if ready.closed or ready.ended:
                    return False
                if len(ready.elements) >= ready.size:
                    return True
                try:
                    made: Any = self.source.next()
                except Exception as e:
                    made = _Failed(e)
                ready.add(made)

    def close(self) -> None:
        """Ends the thread."""
        self._context.cancel.cancel(CancelledError("the iterator was closed"))
        self.ready.stop()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.source.close()


def _make_ahead(producer: weakref.ref[_Producer], ready: _Ready) -> None:
    """Makes elements ahead, in a thread; while it waits, nothing of the session is held by it."""
    while (held := producer()) is not None and held.fill():
        del held
        ready.wait_for_room()


class _PrefetchCursor(Cursor):
    def __init__(self, producer: _Producer, context: Context) -> None:
        self._producer, self._context = producer, context
        self.fresh = producer.source.fresh

    def next(self) -> Element | None:
        ready = self._producer.ready
        elements = ready.elements
        with ready.changed:
            if not elements and not ready.ended:
                self._producer.start()
                self._context.cancel.wait_for(ready.changed, lambda: bool(elements) or ready.ended)
            if not elements:
                return None
            found: Element | _Failed = elements.popleft()
            if ready.has_room():
                ready.changed.notify_all()
        if isinstance(found, _Failed):
            raise found.error
        return found

    def pause(self) -> None:
        self._producer.moving.acquire()
        self._producer.source.pause()

    def resume(self) -> None:
        self._producer.source.resume()
        self._producer.moving.release()

    def position(self) -> State:
        ready = self._producer.ready
        held = [x for x in ready.elements if not isinstance(x, _Failed)]
        return {"ready": pack(held), "ended": ready.ended, "source": self._producer.source.position()}

    def set_position(self, state: State) -> None:
        self._producer.source.set_position(state["source"])
        ready = self._producer.ready
        ready.elements.extend(unpack(state["ready"]))
        ready.ended = state["ended"]

    def close(self) -> None:
        self._producer.close()


_running: weakref.WeakSet[_Producer] = weakref.WeakSet()
"""Those with a thread, which ends before the interpreter does."""


@atexit.register
def _close_all() -> None:
    for producer in list(_running):
        producer.close()


def processors() -> int:
    """Returns how many calls at a time are as good as any, where a program leaves that open."""
    return os.cpu_count() or 1


class ParallelMap(Map):
    """A function of each element, of several at the same time where the function is slow and has no state.

    calls: how many at a time; negative: as many as there are processors. The order stays.
    """

    def __init__(self, *given: Any, calls: int) -> None:
        super().__init__(*given)
        self.calls = min(calls, 64) if calls > 0 else processors()

    def begin(self, context: Context, path: str) -> Cursor:
        operations = self.function.graph.get_operations()
        if self.calls < 2 or any(op.op_def.stateful and op.op_def.role != "placeholder" for op in operations):
            return super().begin(context, path)
        return _ParallelCursor(self, context, self.source.begin(context, f"{path}/0"))


class _ParallelCursor(MapCursor):
    """Calls the function by itself until it has been slow; then `_begun` has what threads work on, with its inputs."""

    def __init__(self, pipeline: ParallelMap, context: Context, source: Cursor) -> None:
        super().__init__(pipeline, context, source)
        self._calls = pipeline.calls
        self._inner = context.child()  # that a run is cancelled ends no call whose result a later one gets
        self._called = pipeline.function.prepare(self._inner)
        self._pool: ThreadPoolExecutor | None = None
        self._begun: deque[tuple[Element | None, Future[Any]]] = deque()
        self._slow = 0
        self._quick = False

    def next(self) -> Element | None:
        if self._pool is not None:
            return self._next_of_threads(self._pool)
        start = time.perf_counter()
        found = super().next()
        self._note(time.perf_counter() - start)
        return found

    def block(self, count: int) -> Block | None:
        if self._pool is not None:
            return Cursor.block(self, count)
        start = time.perf_counter()
        block = super().block(min(count, _SLOW_CALLS) if self._batched is None and not self._quick else count)
        if block is not None and self._batched is None:
            self._note((time.perf_counter() - start) / block.count)
        return block

    def _note(self, seconds: float) -> None:
        self._quick = seconds < _SLOW_SECONDS / 4
        self._slow = 0 if seconds < _SLOW_SECONDS else self._slow + 1
        if self._slow >= _SLOW_CALLS:
            self._pool = ThreadPoolExecutor(self._calls, "map")

    def _next_of_threads(self, pool: ThreadPoolExecutor) -> Element | None:
        while len(self._begun) < self._calls:
            future: Future[Any]
            try:
                element = self.take()
            except Exception as e:
                future = Future()
                future.set_exception(e)
                self._begun.append((None, future))
                continue
            if element is None:
                break
            self._begun.append((element, pool.submit(self._called, element)))
        if not self._begun:
            return None
        future = self._begun[0][1]
        while not future.done():
            wait([future], _LONGEST_WAIT_SECONDS)
            self._context.cancel.check()
        self._begun.popleft()
        found: Element = future.result()
        return found

    def position(self) -> State:
        begun = [element for element, _ in self._begun if element is not None]
        return {"waiting": pack([*begun, *self._waiting]), "source": self.source.position()}

    def close(self) -> None:
        self._inner.cancel.cancel(CancelledError("the iterator was closed"))
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        super().close()
