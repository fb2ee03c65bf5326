"""Traces tell the truth: events lie within their run, in order, in the host's clock, and are of this run alone."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError, NotApplicableError
from timberframe_conformance.suites.checks import Checks, tf

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

check = Checks("traces", "training")
collect = check.collect
NODES, SIZE = 8, 192
SLACK = 20_000.0
"""Microseconds by which times may be off: a busy host may be held up between an event and its own clock."""
TRIES = 4
"""Runs of which one must be in order, for the same reason."""


def _chain(count: int = NODES) -> tuple[Any, Any, list[str]]:
    """Products that each wait for the one before."""
    x = tf.placeholder(tf.float32, (SIZE, SIZE), name="x")
    y, names = x, []
    for i in range(count):
        y = tf.matmul(y, tf.constant(np.eye(SIZE, dtype=np.float32) * 2), name=f"product_{i}")
        names.append(f"product_{i}")
    return x, y, names


def _events(session: Any, fetch: Any, feeds: Any) -> tuple[list[dict[str, Any]], float]:
    """Returns the events of a traced run, and its microseconds, by the host's clock."""
    metadata = tf.RunMetadata()
    start = time.perf_counter_ns()
    session.run(fetch, feeds, tf.RunOptions(trace=True), metadata)
    took = (time.perf_counter_ns() - start) / 1000
    return [e for e in metadata.trace["traceEvents"] if e["ph"] == "X"], took


def _of_nodes(events: list[dict[str, Any]], names: list[str], target: Target) -> list[dict[str, Any]]:
    found = [next((e for e in events if e["name"] == n), None) for n in names]
    if all(e is None for e in found):
        raise NotApplicableError("a trace shows none of these nodes by itself")
    missing = [n for n, e in zip(names, found, strict=True) if e is None]
    if missing:
        raise CaseFailedError(f"the trace has no event of {', '.join(missing)}; each node that runs must have one")
    return [e for e in found if e is not None]


@check("Device", "within-the-run")
def _within(target: Target, graph: Any) -> None:
    """No event ends before it starts, starts before the run or ends after it, in the first run and in later ones."""
    x, y, _ = _chain()
    feeds = {x: np.ones((SIZE, SIZE), np.float32)}
    with target.session(graph) as session:
        for number in range(3):
            events, took = _events(session, y, feeds)
            for e in events:
                start, end = e["ts"], e["ts"] + e["dur"]
                what = f"run {number + 1}: event '{e['name']}' ({e['cat']}) from {start:.1f} to {end:.1f} us"
                if e["dur"] < 0:
                    raise CaseFailedError(f"{what} ends before it starts")
                if start < -SLACK or end > took + SLACK:
                    raise CaseFailedError(
                        f"{what} is no part of the run, which took {took:.1f} us; times are nanoseconds of "
                        "time.perf_counter_ns"
                    )


@check("Device", "in-order")
def _in_order(target: Target, graph: Any) -> None:
    """A node that waits for another one starts when that has ended."""
    x, y, names = _chain()
    wrong = []
    with target.session(graph) as session:
        for _ in range(TRIES):
            events, _ = _events(session, y, {x: np.ones((SIZE, SIZE), np.float32)})
            pairs = itertools.pairwise(_of_nodes(events, names, target))
            early = [(a["ts"] + a["dur"] - b["ts"], a["name"], b["name"]) for a, b in pairs]
            if max(early)[0] <= 50:
                return
            wrong.append(max(early))
    by, before, after = min(wrong)
    raise CaseFailedError(f"'{after}' starts {by:.1f} us before '{before}' ends, whose result it needs")


@check("Device", "add-up")
def _add_up(target: Target, graph: Any) -> None:
    """Nodes that wait for each other take no longer than the run, and work that is large takes some of its time."""
    x, y, names = _chain()
    feeds = {x: np.ones((SIZE, SIZE), np.float32)}
    with target.session(graph) as session:
        session.run(y, feeds)
        events, took = _events(session, y, feeds)
        total = sum(e["dur"] for e in _of_nodes(events, names, target))
    if total > took + SLACK:
        raise CaseFailedError(f"{len(names)} nodes, one after the other, take {total:.1f} us of a run of {took:.1f} us")
    if total <= 0:
        raise CaseFailedError(f"{len(names)} products of {SIZE} x {SIZE} matrices take no time; {took:.1f} us passed")


@check("Device", "of-this-run")
def _of_this_run(target: Target, graph: Any) -> None:
    """Checks that work which an earlier run prepared is no event of a later one."""
    x, y, _ = _chain(2)
    feeds = {x: np.ones((SIZE, SIZE), np.float32)}
    with target.session(graph) as session:
        session.run(y, feeds)
        events, _ = _events(session, y, feeds)
    prepared = [e["name"] for e in events if e["cat"] == "prepare"]
    if prepared:
        raise CaseFailedError(f"the second run's trace has '{prepared[0]}', which the first run did")
