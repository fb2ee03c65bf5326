"""Host ops between nodes of the device: values that go to the host and come back, errors, cancelling, memory.

`tf.py_func` gets copies on the host, `tf.Print` its first input where it is, a queue blocks.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError, NotApplicableError
from timberframe_conformance.replacements import Replacements
from timberframe_conformance.suites.checks import Checks, in_threads, same, tf

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "host-ops"
F = np.float32
X = np.array([1, 2, 3], F)
TIMEOUT_SECONDS = 0.15
LATEST_SECONDS = 3.0
"""By then a run must have ended that was cancelled: much more than that takes, as machines are busy."""

check = Checks(SUITE)
collect = check.collect


def on_host(function: Callable[..., Any], inputs: Any, dtype: Any = tf.float32, shape: Any = None) -> Any:
    """Returns what a function of arrays gives; of unknown shape unless one is given."""
    made = tf.py_func(function, inputs, dtype)
    if shape is not None:
        made.set_shape(shape)
    return made


@check("PyFunc", "between-nodes")
def _between(target: Target, graph: Any) -> None:
    """Values of this run, not of the last one, in both directions; shapes that are known and ones that are not."""
    x = tf.placeholder(tf.float32, (None,))
    known = on_host(lambda a: a * 10, [x * 2.0], shape=(3,)) + 1.0
    unknown = on_host(lambda a: a[a > 2], [x * 2.0]) + 1.0
    with target.session(graph) as session:
        for factor in (1, 2, 1, 3):
            a = X * factor
            got = session.run([known, unknown], {x: a})
            same(got[0], a * 20 + 1, "what follows a host op of known shape")
            same(got[1], (a * 2)[a > 1] + 1, "what follows a host op of unknown shape")


@check("PyFunc", "several-inputs")
def _several(target: Target, graph: Any) -> None:
    """Inputs of equal dtype and shape, which may go through one buffer on their way, are each themselves."""
    x = tf.placeholder(tf.float32, (3,))
    parts = [x + 1.0, x * 2.0, x - 3.0, tf.square(x)]
    made = on_host(lambda *a: np.stack(a), parts, shape=(4, 3))
    total = tf.reduce_sum(made, 1)
    with target.session(graph) as session:
        for a in (X, -X):
            wanted = np.stack([a + 1, a * 2, a - 3, a * a])
            got = session.run([made, total], {x: a})
            same(got[0], wanted, "what a host op got")
            same(got[1], wanted.sum(1))


@check("PyFunc", "several-readers")
def _readers(target: Target, graph: Any) -> None:
    """A value that a host op reads, and later nodes and the caller, too, stays as it is."""
    x = tf.placeholder(tf.float32, (3,))
    y = x * 2.0
    first = on_host(lambda a: a + 1, [y], shape=(3,))
    with tf.control_dependencies([first]):
        later = y + first
        second = on_host(lambda a, b: a - b, [y, later], shape=(3,))
    with target.session(graph) as session:
        for a in (X, X * 5):
            got = session.run([y, later, second, y * 1.0], {x: a})
            for value, wanted in zip(got, (2 * a, 4 * a + 1, -2 * a - 1, 2 * a), strict=True):
                same(value, wanted)


@check("PyFunc", "dtypes")
def _dtypes(target: Target, graph: Any) -> None:
    """Every dtype that the device holds goes to the host and back bit for bit, also with no elements and as scalar."""
    held = target.device.attributes.dtypes or ("float32", "int32", "bool")
    fetches, feeds = [], {}
    for name in held:
        dtype = tf.as_dtype(name)
        for shape in ((2, 3), (0, 3), ()):
            count = int(np.prod(shape))
            words = np.array([b"a\x00", b"", b"xyz", b"-", b"b", b"c"][:count], object)
            value = words if dtype.numpy.hasobject else (np.arange(count) % 2).astype(dtype.numpy)
            x = tf.placeholder(dtype, shape)
            feeds[x] = value.reshape(shape)
            fetches.append(tf.identity(on_host(lambda a: a, [tf.identity(x)], dtype, shape)))
    with target.session(graph) as session:
        for got, wanted in zip(session.run(fetches, feeds), feeds.values(), strict=True):
            same(got, wanted, f"{wanted.dtype} through the host")


@check("Print", "stays-on-the-device")
def _stays(target: Target, graph: Any) -> None:
    """A value that a host op wants where it is, and gives as it is, is not copied."""
    x = tf.placeholder(tf.float32, (3,))
    y = tf.negative(tf.Print(tf.square(x), [], first_n=0))
    with target.session(graph) as session:
        same(session.run(y, {x: X}), -X * X)
        with _copies(next(d for d in session.list_devices() if d.spec == target.spec)) as copies:
            same(session.run(y, {x: X}), -X * X)
    if len(set(copies)) < len(copies):  # a copy that was started may be done by copy_out
        raise CaseFailedError(
            f"the device was asked for {', '.join(copies)}; one copy of the feed and one of the result do"
        )


@contextmanager
def _copies(device: Any) -> Iterator[list[str]]:
    """The names of the device's methods that were called to copy to the host or from it."""
    found: list[str] = []

    def noting(name: str, copy: Callable[..., Any]) -> Callable[..., Any]:
        def copying(*given: Any) -> Any:
            found.append(name)
            return copy(*given)

        return copying

    with Replacements() as replacements:
        for name in ("copy_in", "copy_out", "start_copy_out"):
            replacements.replace(device, name, functools.partial(noting, name))
        yield found


@check("PyFunc", "loop")
def _loop(target: Target, graph: Any) -> None:
    """In the body of a loop, beside nodes of the device."""
    n, x = tf.placeholder(tf.int32, ()), tf.placeholder(tf.float32, (3,))
    body = lambda i, a: (i + 1, on_host(lambda b: b + 1, [a * 2.0], shape=(3,)))  # noqa: E731 - for tf.while_loop
    y = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), x])[1]
    with target.session(graph) as session:
        for count in (0, 1, 4):
            same(session.run(y, {x: X, n: count}), X * 2**count + 2**count - 1, f"after {count} iterations")


@check("PyFunc", "threads")
def _threads(target: Target, graph: Any) -> None:
    """Runs at the same time get values of their own."""
    x = tf.placeholder(tf.float32, (1000,))
    y = on_host(lambda a: a * 3, [x + 1.0], shape=(1000,)) + x
    with target.session(graph) as session:

        def work(number: int) -> None:
            for k in range(8):
                a = np.full(1000, 10 * number + k, F)
                same(session.run(y, {x: a}), a * 4 + 3, f"run {k} of thread {number}")

        in_threads(work, 3)


@check("PyFunc", "error")
def _error(target: Target, graph: Any) -> None:
    """An exception in a host op ends the run by an error that names it; variables are as they were, runs go on."""
    fails: list[bool] = []

    def function(a: np.ndarray) -> np.ndarray:
        if fails:
            raise ValueError("no reading")
        return a

    v = tf.Variable(X, name="v")
    given = tf.py_func(function, [v * 2.0], tf.float32, name="reads")
    given.set_shape((3,))
    update = v.assign(given + 1.0).op
    with target.session(graph) as session:
        session.run(v.initializer)
        session.run(update)
        fails.append(True)
        for _ in range(2):
            try:
                session.run(update)
            except tf.errors.InvalidArgumentError as e:
                if "reads" not in str(e) or "no reading" not in str(e):
                    raise CaseFailedError(f"the error says {e}; it must name the node and what it raised") from e
            else:
                raise CaseFailedError("an exception in a host op is no error")
            same(session.run(v), X * 2 + 1, "a variable after a host op failed")
        fails.clear()
        session.run(update)
        same(session.run(v), (X * 2 + 1) * 2 + 1, "the variable after the next run")


@check("PyFunc", "error-before-it")
def _error_before(target: Target, graph: Any) -> None:
    """What an error of the device has spoilt does not reach a host op, also where the device tells later."""
    called: list[Any] = []

    def function(a: np.ndarray) -> np.ndarray:
        called.append(a)
        return a

    row = tf.placeholder(tf.int32, (1,))
    taken = tf.gather(tf.constant(np.ones((4, 3), F)), row, name="taken")
    y = on_host(function, [taken * 2.0], shape=(1, 3)) + 1.0
    with target.session(graph) as session:
        same(session.run(y, {row: [1]}), np.full((1, 3), 3))
        try:
            session.run(y, {row: [4]})
        except tf.errors.InvalidArgumentError as e:
            if "taken" not in str(e):
                raise CaseFailedError(f"the error says {e}; it must name 'taken'") from e
        else:
            raise CaseFailedError("an index out of range is no error")
        if len(called) != 1:
            raise CaseFailedError("a host op was called with what a node before it had failed to make")
        same(session.run(y, {row: [2]}), np.full((1, 3), 3))


def _blocked(x: Any) -> tuple[Any, Any, Any]:
    """Returns a queue, an operation that adds what the device computes, and a node of the
    device after the taking end.
    """
    queue = tf.FIFOQueue(10, tf.float32, shapes=[(3,)])
    return queue, queue.enqueue(x * 2.0), tf.exp(queue.dequeue() * 0.0) + 1.0


@check("QueueDequeueV2", "time-limit")
def _time_limit(target: Target, graph: Any) -> None:
    """A host op that blocks ends with its run's time limit; what the device did beside it is given up."""
    x = tf.placeholder(tf.float32, (3,))
    queue, add, y = _blocked(x)
    big = tf.reduce_sum(tf.square(x))
    with target.session(graph) as session:
        session.run(add, {x: X})
        same(session.run([y, big], {x: X})[0], np.full(3, 2))
        before = target.settled(target.statistics())
        start = time.monotonic()
        try:
            session.run([y, big], {x: X}, tf.RunOptions(timeout_in_ms=int(1000 * TIMEOUT_SECONDS)))
        except tf.errors.DeadlineExceededError:
            pass
        else:
            raise CaseFailedError("a run that waits for an empty queue ended before its time limit")
        _in_time(start + TIMEOUT_SECONDS)
        after = target.settled(before)
        if after.used > before.used:
            raise CaseFailedError(f"after a run that was given up {after.used - before.used} bytes more are in use")
        session.run(add, {x: X})
        same(session.run([y, big], {x: X})[0], np.full(3, 2), "the first run after one that was given up")
        same(session.run(queue.size()), 0, "the number of elements")


def _in_time(start: float) -> None:
    took = time.monotonic() - start
    if took > LATEST_SECONDS:
        raise CaseFailedError(f"a host op that waits ended {took:.1f} s after it was cancelled")


@check("QueueDequeueV2", "closed")
def _closed(target: Target, graph: Any) -> None:
    """Closing the session ends a host op that blocks in another thread."""
    x = tf.placeholder(tf.float32, (3,))
    _, add, y = _blocked(x)
    found: list[BaseException] = []
    session = target.session(graph)
    session.run(add, {x: X})
    session.run(y)

    def run() -> None:
        try:
            session.run(y)
        except BaseException as e:
            found.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(TIMEOUT_SECONDS)
    start = time.monotonic()
    session.close()
    thread.join(10 * LATEST_SECONDS)
    _in_time(start)
    if not found or not isinstance(found[0], tf.errors.CancelledError):
        raise CaseFailedError(f"the run ended with {found}; a CancelledError is required")


@check("PyFunc", "memory")
def _memory(target: Target, graph: Any) -> None:
    """Values that cross are all freed, in runs that end well and in those that do not."""
    if target.url:
        raise NotApplicableError("what the device drops reaches its process with the next call")
    fails: list[bool] = []
    given: list[weakref.ref[np.ndarray]] = []

    def function(a: np.ndarray) -> np.ndarray:
        given.append(weakref.ref(a))
        if fails:
            raise ValueError("asked for")
        return a + 1

    x = tf.placeholder(tf.float32, (5000,))
    y = tf.square(on_host(function, [tf.square(x)], shape=(5000,)))
    with target.session(graph) as session:
        session.run(y, {x: np.ones(5000, F)})
        before = target.settled(target.statistics())
        for k in range(12):
            if k % 3 == 2:
                fails.append(True)
            try:
                session.run(y, {x: np.full(5000, k, F)})
            except tf.errors.InvalidArgumentError:
                fails.clear()
        after = target.settled(before)
        if after.used > before.used or after.live > before.live:
            raise CaseFailedError(
                f"after 12 further runs {after.used - before.used} bytes more are in use, "
                f"in {after.live - before.live} buffers"
            )
    gc.collect()
    if any(array() is not None for array in given):
        raise CaseFailedError("arrays that host ops got are still there when the session is closed")
