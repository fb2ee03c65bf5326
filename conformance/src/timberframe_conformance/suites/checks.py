"""Checks: cases that are functions of a target, each called inside a graph on its device."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import timberframe
from timberframe_conformance.case import LEVELS, Case, Measured, NotApplicableError, WrongValuesError
from timberframe_conformance.hypotheses.places import places_in
from timberframe_conformance.tolerance.compare import differing
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

tf: Any = timberframe  # its functions take anything that converts to a tensor
Check = Callable[["Target", Any], Measured | None]


SWITCH_SECONDS = 1e-4
"""After which another thread may go on; Python's own 5 ms suffice for hundreds of launches."""


class Checks:
    """The checks of a suite. level: the conformance level that they count for.

    expected: whether a level is incomplete where a check says that the device does not take part.
    """

    def __init__(self, suite: str, level: str = LEVELS[-1], expected: bool = True) -> None:
        self.suite = suite
        self.level = level
        self.expected = expected
        self._found: list[tuple[str, str, str, tuple[str, ...], Check]] = []

    def __call__(self, op: str, detail: str, level: str = "", ops: tuple[str, ...] = ()) -> Callable[[Check], Check]:
        """Adds a check for an op, or for a subject such as ``Graph``; it is called with the target and a graph.

        ops: those of its graphs, by which it is chosen, too.
        """

        def add(function: Check) -> Check:
            self._found.append((op, detail, level or self.level, ops, function))
            return function

        return add

    def collect(self, target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
        """Yields a case for each check."""
        for op, detail, level, of_graph, function in self._found:
            run = functools.partial(_run, function)
            yield Case(self.suite, op, (), detail, run, level, self.expected, of_graph=of_graph)


def _run(function: Check, target: Target) -> Measured | None:
    graph = tf.Graph()
    with graph.as_default(), tf.device(target.spec):
        return function(target, graph)


def only_own_variables(target: Target) -> None:
    """NotApplicableError where sessions share variables by name, as those of another process do."""
    if target.url:
        raise NotApplicableError("sessions share the variables of a target")


def same(got: Any, wanted: Any, what: str = "the result") -> None:
    """Raises WrongValuesError unless both are equal in shape and values."""
    y = np.asarray(wanted)
    x = np.asarray(got, object) if y.dtype == object else np.asarray(got)  # bytes of a scalar may end with zeros
    if x.shape != y.shape or y.size <= SHOWN:
        if x.shape != y.shape or not np.array_equal(x, y):
            raise WrongValuesError(f"{what} is {x.tolist()!r:.200}; it must be {y.tolist()!r:.200}")
        return
    wrong = np.asarray(x != y)
    if wrong.any():
        where = places_in(wrong)
        raise WrongValuesError(f"{what} is wrong: {differing(wrong, x, y)}{where and f'; {where}'}")


SHOWN = 12
"""Elements of an array that a message shows as a whole; of a larger one it says where it is wrong."""


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Calls ``work(number)`` in several threads at once, and raises the first of their errors.

    Python goes from thread to thread so often that a driver written in it is interrupted between its commands.
    """
    errors: list[BaseException] = []

    def body(number: int) -> None:
        try:
            work(number)
        except BaseException as e:  # raised again by the thread that waits
            errors.append(e)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
