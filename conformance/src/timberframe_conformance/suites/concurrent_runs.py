"""Runs of one graph at the same time: with feeds of several shapes, and while some fail or the session ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.suites.checks import Checks, in_threads, same, tf
from timberframe_core.errors import CancelledError, InvalidArgumentError, WrongStateError

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

check = Checks("concurrency")
collect = check.collect

THREADS = 4
RUNS = 6
SESSIONS = 3
_WAIT_SECONDS = 60.0


def _changing_loop(x: Any) -> Any:
    """Returns a loop that keeps the shape of three elements, and gives that to others: its
    first three elements, plus 3.
    """
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y[:3] + 1.0), [tf.constant(0), x], shapes)[1]


def _feed(size: int) -> np.ndarray:
    return np.arange(size, dtype=np.float32)


@check("Graph", "run-waits-while-others-have-other-shapes")
def _waits(target: Target, graph: Any) -> None:
    """A run that is under way goes on with its own stages when other shapes need other ones."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        if len(x) == 3:
            begun.set()
            go_on.wait(_WAIT_SECONDS)
        return x[:3]

    x = tf.placeholder(tf.float32, [None])
    waited = tf.py_func(wait, [x], tf.float32)
    waited.set_shape([3])  # so that what follows is bound before the run begins, and what follows the next in the run
    y = tf.py_func(np.copy, [waited * 2.0], tf.float32) * _changing_loop(x)
    wanted = _feed(3) * 2 * (_feed(3) + 3)
    with target.session(graph) as session:

        def work(number: int) -> None:
            if number == 0:
                same(session.run(y, {x: _feed(3)}), wanted, "what the run that waited gives")
                return
            try:
                if not begun.wait(_WAIT_SECONDS):
                    raise CaseFailedError("the run that shall wait does not begin")
                same(session.run(y, {x: _feed(5)}), wanted, "what the other run gives")
            finally:
                go_on.set()

        in_threads(work, 2)


@check("Graph", "threads-with-feeds-of-several-shapes")
def _several_shapes(target: Target, graph: Any) -> None:
    """Threads that feed several shapes in turn, each another one at first, get what belongs to their own."""
    x = tf.placeholder(tf.float32, [None])
    y, total = _changing_loop(x), tf.reduce_sum(x * 2.0)
    sizes = (3, 5, 8, 3, 64, 4)
    for _ in range(SESSIONS):
        with target.session(graph) as session:

            def work(number: int, session: Any = session) -> None:
                for run in range(RUNS):
                    size = sizes[(number + run) % len(sizes)]
                    got, added = session.run([y, total], {x: _feed(size)})
                    same(got, _feed(3) + 3, f"the loop's result for {size} elements in thread {number}")
                    same(added, np.float32(size * (size - 1)), f"the sum of {size} elements in thread {number}")

            in_threads(work, THREADS)


@check("Graph", "threads-of-which-some-fail")
def _some_fail(target: Target, graph: Any) -> None:
    """Runs that fail take nothing from those of other threads, nor from the variable that all of them read."""
    x = tf.placeholder(tf.float32, [None])
    index = tf.placeholder(tf.int32, [])
    variable = tf.Variable(np.full(3, 2.0, np.float32))
    with tf.control_dependencies([tf.Assert(tf.less(index, 3), ["index", index])]):
        y = _changing_loop(x) * variable + tf.cast(index, tf.float32)
    with target.session(graph) as session:
        session.run(variable.initializer)

        def work(number: int) -> None:
            for run in range(RUNS):
                size, i = (3, 5)[run % 2], (1, 7)[(number + run) % 2]
                try:
                    got = session.run(y, {x: _feed(size), index: i})
                except InvalidArgumentError:
                    if i < 3:
                        raise
                    continue
                if i >= 3:
                    raise CaseFailedError(f"a run with index {i} gave {got!r:.100}; it must raise InvalidArgumentError")
                same(got, (_feed(3) + 3) * 2 + 1, f"the result of run {run} of thread {number}")

        in_threads(work, THREADS)
        same(session.run(variable), np.full(3, 2.0), "the variable afterwards")


@check("Graph", "session-closes-while-threads-run")
def _closing(target: Target, graph: Any) -> None:
    """Runs that a session's end meets give their result or an error that says so, and none is kept waiting."""
    x = tf.placeholder(tf.float32, [None])
    y = _changing_loop(x)
    for _ in range(SESSIONS):
        session, running = target.session(graph), threading.Barrier(THREADS + 1)

        def work(number: int, session: Any = session, running: threading.Barrier = running) -> None:
            running.wait(_WAIT_SECONDS)
            if number == THREADS:
                session.close()
                return
            for run in range(RUNS):
                try:
                    same(session.run(y, {x: _feed((3, 5, 9)[(number + run) % 3])}), _feed(3) + 3)
                except (CancelledError, WrongStateError):
                    return

        with session:
            in_threads(work, THREADS + 1)
