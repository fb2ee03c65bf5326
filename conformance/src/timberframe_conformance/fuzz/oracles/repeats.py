"""Runs of one session, one after the other and at the same time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.expected import expect
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_core.errors import OpError

THREADS = 3


@oracle("again")
def again(s: Subject) -> int:
    """The second, third and fourth run of a session give the bits of the first."""
    count = 0
    with s.session() as session:
        for number in ("first", "second", "third", "fourth"):
            count += s.check_same(s.run(session), f"the {number} run of a session")
    return count


@oracle("batch")
def batch(s: Subject) -> int:
    """After a run with another first size, results are as before; and those of that run are right, too."""
    other = None if s.program.queues else _other_sizes(s)
    if other is None:
        return 0
    with s.session() as session:
        s.check_same(s.run(session), "the run before one with another size")
        found = _attempt(s, session, other)
        s.check_same(s.run(session), "the run after one with another size")
        again = _attempt(s, session, other)
    with s.session() as session:
        fresh = _attempt(s, session, other)
    for what, results in (("after the first size again", again), ("of a new session", fresh)):
        if (results is None) != (found is None):
            raise CaseFailedError(f"a run with another size and one {what}: only one of them raises an error")
        if found is not None:
            s.check_same(results or [], f"a run with another size and one {what}", found)
    return 2 * len(s.first) + _judge(s, other, found)


def _judge(s: Subject, feeds: dict[Any, np.ndarray], found: list[Any] | None) -> int:
    if found is None:
        return 0
    try:
        expected = expect(s.built.fetches, feeds, s.built.initializers, s.target.profile.flushes_subnormals)
    except Exception:  # NumPy's references may raise any exception for inputs that an op would refuse
        return 0
    for i, (got, e) in enumerate(zip(found, expected, strict=True)):
        message = "" if e is None else e.mismatch(got)
        if message:
            raise CaseFailedError(f"in a run with another size, {s.result(i)}: {message}")
    return len(found)


def _attempt(s: Subject, session: Any, feeds: dict[Any, np.ndarray]) -> list[Any] | None:
    try:
        return list(s.run(session, feeds=feeds))
    except OpError:
        return None


def _other_sizes(s: Subject) -> dict[Any, np.ndarray] | None:
    """Feeds whose unknown first size is one more, with rows repeated; None where none is unknown."""
    sizes = {len(x) for t, x in s.built.feeds.items() if _free(t, x)}
    if not sizes:
        return None
    chosen = sorted(sizes)[int(s.rng.integers(len(sizes)))]
    rows = np.arange(chosen + 1) % max(chosen, 1)
    if not chosen:
        return None
    return {t: x[rows] if _free(t, x) and len(x) == chosen else x for t, x in s.built.feeds.items()}


def _free(tensor: Any, value: np.ndarray) -> bool:
    shape = tensor.static_shape
    return bool(value.ndim) and (shape is None or shape[0] is None)


@oracle("threads")
def threads(s: Subject) -> int:
    """Runs at the same time in one session give the bits of the first."""
    if s.program.has_updates or s.program.queues:
        return 0
    problems: list[BaseException] = []
    counts: list[int] = []

    def work(session: Any) -> None:
        try:
            counts.extend(s.check_same(s.run(session), "a run in parallel to others") for _ in range(2))
        except BaseException as e:  # raised again by the thread that waits
            problems.append(e)

    assert s.first is not None
    with s.session() as session:
        made = [threading.Thread(target=work, args=(session,)) for _ in range(THREADS)]
        for t in made:
            t.start()
        for t in made:
            t.join()
    if problems:
        raise problems[0]
    return sum(counts)
