"""Requests that are computed together.

By default batching is adaptive: requests that come while the model is busy wait, and when it is free, they go as
one batch. No request waits for others to come, so a single client is as fast as without batching. A `batch_timeout`
makes batches wait to be full, as TensorFlow Serving has it.

A model of microseconds would be slowed by the hop into another thread; so one that has proved to be quick for as many
rows runs on the event loop itself when nothing waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from timberframe_serving.codes import as_op_error
from timberframe_serving.metrics import Metrics
from timberframe_serving.signatures import Array, Arrays, Signature

QUICK = 250e-6
"""Seconds under which a run on the event loop costs the others less than the way into a thread and back costs it."""
_MOST_LANES = 256
_GROWTH = 1.05
"""How much longer a run may seem than those before it: on a busy machine some take long for no reason of their own."""
Costs = Mapping[int, float]
"""Seconds of a run by the bits of its number of rows."""


class WouldWaitError(BaseException):
    """A request that may not wait would have to, and nothing has been done; it is not an answer, as an Exception is."""


@dataclass(frozen=True)
class BatchingSettings:
    """How requests are batched; the names are TensorFlow Serving's.

    enabled: else each request runs alone. batch_timeout: seconds that a batch waits to be full. max_enqueued_batches:
    how many full batches may wait; further requests are refused at once. allowed_batch_sizes: batches are padded up to
    the next of these.
    """

    enabled: bool = True
    max_batch_size: int = 64
    batch_timeout: float = 0.0
    max_enqueued_batches: int = 16
    num_batch_threads: int = 1
    allowed_batch_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("max_batch_size", "max_enqueued_batches", "num_batch_threads"):
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"batching: {name} is {getattr(self, name)}; at least 1 is required")
        sizes = self.allowed_batch_sizes
        if sizes and (list(sizes) != sorted(set(sizes)) or sizes[0] < 1 or sizes[-1] != self.max_batch_size):
            raise InvalidArgumentError(
                f"batching: allowed_batch_sizes are {list(sizes)}; growing sizes are required, of which the last is "
                f"max_batch_size, {self.max_batch_size}"
            )

    @classmethod
    def of(cls, message: Any, what: str, enabled: bool = True) -> BatchingSettings:
        """Returns those of a BatchingParameters message; raises InvalidArgumentError for what is not supported.

        what: names the message in errors.
        """
        if message.pad_variable_length_inputs:
            raise InvalidArgumentError(f"{what}: pad_variable_length_inputs is not supported; leave it out")
        named: dict[str, Any] = {
            name: getattr(message, name).value
            for name in ("max_batch_size", "max_enqueued_batches", "num_batch_threads")
            if message.HasField(name)
        }
        if message.HasField("batch_timeout_micros"):
            named["batch_timeout"] = message.batch_timeout_micros.value / 1e6
        if message.allowed_batch_sizes:
            named["allowed_batch_sizes"] = tuple(message.allowed_batch_sizes)
            named.setdefault("max_batch_size", message.allowed_batch_sizes[-1])
        return cls(enabled=enabled, **named)

    def padded(self, rows: int) -> int:
        """Returns how many rows a batch of so many gets."""
        return next((size for size in self.allowed_batch_sizes if size >= rows), rows)


@dataclass(eq=False)
class _Task:
    """A request: its arrays, rows (0 where it cannot be split), when it came, and where its results go."""

    arrays: Arrays
    rows: int
    since: float
    future: asyncio.Future[Arrays]


@dataclass(eq=False)
class _Lane:
    """The requests of one signature that can go together, and their costs by the bits of the number of rows."""

    signature: Signature
    batched: bool
    waiting: deque[_Task] = field(default_factory=deque)
    rows: int = 0
    running: int = 0
    costs: dict[int, float] = field(default_factory=dict)


class Batcher:
    """Runs the requests of one version of a model, on the event loop that asks it and in the threads of `pool`.

    A thread that has finished a batch takes the next one itself: an event loop that is busy refusing requests would
    leave it idle.
    """

    def __init__(
        self,
        model: str,
        settings: BatchingSettings,
        pool: Executor,
        metrics: Metrics,
        costs: Mapping[str, Costs] = MappingProxyType({}),
    ) -> None:
        """costs: those that are known from before, by signature."""
        self._costs = costs
        self._model, self._settings, self._pool, self._metrics = model, settings, pool, metrics
        self._lanes: OrderedDict[Any, _Lane] = OrderedDict()
        self._ready: deque[_Lane] = deque()
        """Lanes in which requests wait, each once."""
        self._running = 0
        self._lock = threading.Lock()
        """The lock of what lanes hold, `_ready` and `_running`: the event loop and the pool's threads change them."""
        self._timer: asyncio.TimerHandle | None = None
        self._at_once_last = True
        """Whether the last request was computed on the event loop itself."""
        self._capacity = settings.max_batch_size * settings.max_enqueued_batches

    @property
    def waiting(self) -> int:
        """The number of rows that wait."""
        return sum(lane.rows for lane in self._lanes.values())

    @property
    def quick(self) -> bool:
        """Whether a request would most likely be computed at once: the last one was, and none is in the way."""
        return self._at_once_last and not self._running

    def submit(
        self, signature: Signature, arrays: Arrays, batched: bool, may_wait: bool = True
    ) -> Arrays | asyncio.Future[Arrays]:
        """Returns the outputs for these inputs, or where it has to wait their future.

        batched: whether rows of several requests may be put together. may_wait: else WouldWaitError is raised where it
        has to. Raises what the model raises, and ResourceExhaustedError at once where too many wait. A request whose
        future is cancelled before it is computed is not computed.
        """
        lane, rows = self._lane(signature, arrays, batched)
        with self._lock:
            at_once = not lane.running and not lane.waiting and lane.costs.get(rows.bit_length(), 1.0) < QUICK
        self._at_once_last = at_once
        if at_once:
            return self._at_once(lane, arrays, rows)
        if not may_wait:
            raise WouldWaitError
        if lane.rows + max(rows, 1) > self._capacity and lane.waiting:
            raise self._full(lane)
        task = _Task(arrays, rows, time.perf_counter(), asyncio.get_running_loop().create_future())
        with self._lock:
            lane.waiting.append(task)
            lane.rows += max(rows, 1)
            if len(lane.waiting) == 1:
                self._ready.append(lane)
        task.future.add_done_callback(lambda done: self._withdraw(lane, task) if done.cancelled() else None)
        self._start()
        return task.future

    def check_room(self, coming: int = 0) -> None:
        """Raises ResourceExhaustedError where a queue is full: a look that costs less than reading a request.

        coming: how many requests are on their way here, or here; with as many as run and wait at most, it is full, too.
        """
        most = self._capacity + self._settings.max_batch_size * self._settings.num_batch_threads
        if coming >= most:
            raise ResourceExhaustedError(
                f"predict '{self._model}': {coming} requests are being answered; at most {most} may "
                "(max_batch_size times max_enqueued_batches, and the batches that run)"
            )
        with self._lock:
            full = next((lane for lane in self._ready if lane.rows >= self._capacity), None)
        if full is not None:
            raise self._full(full)

    def _full(self, lane: _Lane) -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"predict '{self._model}': {lane.rows} rows wait; at most {self._capacity} may "
            "(max_batch_size times max_enqueued_batches)"
        )

    def _withdraw(self, lane: _Lane, task: _Task) -> None:
        """Takes a cancelled request out of its lane, where it may still be."""
        with self._lock:
            if task in lane.waiting:
                lane.waiting.remove(task)
                lane.rows -= max(task.rows, 1)
                if not lane.waiting:
                    self._ready.remove(lane)

    def _lane(self, signature: Signature, arrays: Arrays, batched: bool) -> tuple[_Lane, int]:
        """Returns the lane of a request and its rows: those of one signature and inner shape share one."""
        rows = arrays[0].shape[0] if arrays and arrays[0].ndim else 0
        batched = batched and self._settings.enabled and rows > 0
        batched = batched and (len(arrays) == 1 or all(a.ndim and a.shape[0] == rows for a in arrays))
        key = (signature.name, *[a.shape[1:] for a in arrays]) if batched else (signature.name, None)
        lane = self._lanes.get(key)
        if lane is None:
            if len(self._lanes) >= _MOST_LANES:
                self._forget()
            lane = self._lanes[key] = _Lane(signature, batched, costs=dict(self._costs.get(signature.name, {})))
        return lane, rows

    def _forget(self) -> None:
        """Drops lanes in which nothing waits or runs, oldest first."""
        with self._lock:
            idle = [key for key, lane in self._lanes.items() if not lane.waiting and not lane.running]
        for key in idle[: len(self._lanes) - _MOST_LANES // 2]:
            del self._lanes[key]

    def _at_once(self, lane: _Lane, arrays: Arrays, rows: int) -> Arrays:
        begin = time.perf_counter()
        outputs = _outputs(lane.signature.call(*arrays))
        seconds = time.perf_counter() - begin
        self._learn(lane, rows, seconds)
        self._metrics.runtime.observe(seconds * 1e6, self._model, "Predict", "timberframe")
        return outputs

    def _learn(self, lane: _Lane, rows: int, seconds: float) -> None:
        bits = rows.bit_length()
        known = lane.costs.get(bits)
        lane.costs[bits] = seconds if known is None else min(seconds, known * _GROWTH)

    def _start(self) -> None:
        """Starts batches while threads are free and requests wait; runs on the event loop."""
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if self._running >= self._settings.num_batch_threads:
                    return
                lane, tasks, wait = self._next()
                if lane is not None:
                    self._running += 1
            if lane is None:
                if wait < math.inf and self._timer is None:
                    self._timer = loop.call_later(wait, self._timed)
                return
            self._pool.submit(self._work, loop, lane, tasks)

    def _timed(self) -> None:
        self._timer = None
        self._start()

    def _next(self) -> tuple[_Lane | None, list[_Task], float]:
        """Returns the next batch, of each lane in turn; without one, how many seconds the first of them may wait."""
        least = math.inf
        for _ in range(len(self._ready)):
            lane = self._ready.popleft()
            wait = self._to_wait(lane)
            tasks = self._taken(lane) if wait <= 0 else []
            if lane.waiting:
                self._ready.append(lane)
                least = min(least, max(wait, 0.0))
            if tasks:
                lane.running += 1
                return lane, tasks, 0.0
        return None, [], least

    def _to_wait(self, lane: _Lane) -> float:
        """Returns for how many seconds a lane's next batch may wait for more rows."""
        settings = self._settings
        if not settings.batch_timeout or not lane.batched or not lane.waiting or lane.rows >= settings.max_batch_size:
            return 0.0
        return lane.waiting[0].since + settings.batch_timeout - time.perf_counter()

    def _taken(self, lane: _Lane) -> list[_Task]:
        """Takes the next batch from a lane."""
        tasks: list[_Task] = []
        rows = 0
        while lane.waiting and (
            not tasks or (lane.batched and rows + lane.waiting[0].rows <= self._settings.max_batch_size)
        ):
            task = lane.waiting.popleft()
            lane.rows -= max(task.rows, 1)
            if not task.future.done():
                tasks.append(task)
                rows += task.rows
        return tasks

    def _work(self, loop: asyncio.AbstractEventLoop, lane: _Lane, tasks: list[_Task]) -> None:
        """Computes a batch, and what waits when it is done; runs in a thread."""
        found: _Lane | None = lane
        while found is not None:
            lane, now = found, time.perf_counter()
            for task in tasks:
                self._metrics.queuing.observe((now - task.since) * 1e6, self._model)
            try:
                results, seconds = self._compute(lane, tasks)
            except BaseException as error:
                results, seconds = [as_op_error(error)] * len(tasks), 0.0  # a future takes no StopIteration
            with self._lock:
                lane.running -= 1
                if seconds:
                    self._learn(lane, sum(t.rows for t in tasks), seconds)
                found, following, wait = self._next()
                self._running -= found is None
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, tasks, results)
                if found is None and wait < math.inf:
                    loop.call_soon_threadsafe(self._start)
            tasks = following

    def _compute(self, lane: _Lane, tasks: list[_Task]) -> tuple[list[Any], float]:
        """Returns the outputs of each request, or its error, and the seconds of the run; runs in a thread."""
        begin = time.perf_counter()
        results: list[Any]
        try:
            results = self._together(lane, tasks)
        except (OpError, ValueError) as error:
            # One request may be to blame: each is tried alone, so that the others do not fail with it.
            results = [error] if len(tasks) == 1 else [_alone(lane.signature.call, task) for task in tasks]
        seconds = time.perf_counter() - begin
        self._metrics.runtime.observe(seconds * 1e6, self._model, "Predict", "timberframe")
        return results, seconds

    def _together(self, lane: _Lane, tasks: list[_Task]) -> list[Any]:
        if not lane.batched:
            return [_outputs(lane.signature.call(*task.arrays)) for task in tasks]
        rows = sum(task.rows for task in tasks)
        size = self._settings.padded(rows)
        self._metrics.batch_sizes.observe(rows, self._model)
        if self._settings.allowed_batch_sizes:
            self._metrics.padding.observe(size - rows, self._model)
        if len(tasks) == 1 and size == rows:
            return [_outputs(lane.signature.call(*tasks[0].arrays))]
        joined = [_joined([task.arrays[i] for task in tasks], size - rows) for i in range(len(tasks[0].arrays))]
        outputs = _outputs(lane.signature.call(*joined))
        _check_rows(outputs, size, lane.signature)
        results, at = [], 0
        for task in tasks:
            results.append([o[at : at + task.rows] for o in outputs])
            at += task.rows
        return results


def _deliver(tasks: Sequence[_Task], results: Sequence[Any]) -> None:
    """Gives each request its result, or its error; runs on the event loop."""
    for task, result in zip(tasks, results, strict=True):
        if task.future.done():
            continue
        if isinstance(result, BaseException):
            task.future.set_exception(result)
        else:
            task.future.set_result(result)


def _outputs(found: Any) -> list[Array]:
    return [np.asarray(o) for o in found]


def _alone(call: Callable[..., Any], task: _Task) -> Any:
    try:
        return _outputs(call(*task.arrays))
    except (OpError, ValueError) as error:
        return error


def _joined(arrays: Sequence[Array], padding: int) -> Array:
    """Returns arrays one after another, and the first row of all as often as rows are to be added."""
    return np.concatenate([*arrays, *([np.repeat(arrays[0][:1], padding, axis=0)] if padding else [])])


def _check_rows(outputs: Sequence[Array], rows: int, signature: Signature) -> None:
    for port, output in zip(signature.outputs, outputs, strict=True):
        if not output.ndim or output.shape[0] != rows:
            raise InvalidArgumentError(
                f"signature '{signature.name}': output '{port.name}' of {rows} rows has shape {list(output.shape)}; "
                f"its first size must be {rows} for requests to be computed together"
            )
