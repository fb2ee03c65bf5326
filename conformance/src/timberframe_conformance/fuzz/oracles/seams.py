"""Other values of variables, sessions that draw random numbers, and the same graph in another process."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe
from timberframe_conformance.case import CaseFailedError, NotApplicableError
from timberframe_conformance.fuzz.build import HOST, Built, build
from timberframe_conformance.fuzz.expected import Expected, expect
from timberframe_conformance.fuzz.subject import Subject, oracle
from timberframe_conformance.suites.targets import Sides
from timberframe_conformance.suites.weights import LASTING_RUNS

tf: Any = timberframe
RUNS = 3
_sides: dict[str, Sides | None] = {}


@oracle("versions")
def versions(s: Subject) -> int:
    """Variables that get other values, and then their first ones again: each run sees those of its time."""
    if not s.built.variables or s.program.has_updates or s.program.draws:
        return 0
    built = build(s.program, s.target.spec)
    values: dict[Any, np.ndarray] = {}
    updates = []
    with built.graph.as_default():
        for number, variable in built.variables.items():
            value = s.program.steps[number].value
            assert value is not None
            given = tf.placeholder(value.dtype, value.shape)
            values[given] = np.roll(value.ravel(), 1).reshape(value.shape)
            updates.append(variable.assign(given).op)
    try:
        feeds = {**built.feeds, **values}
        expected = expect(built.fetches, feeds, [*built.initializers, *updates], s.target.profile.flushes_subnormals)
    except Exception:  # NumPy's references may raise any exception for values that an op would refuse
        return 0
    count = 0
    with s.session(built) as session:
        s.check_same(s.run(session, built=built), "the run before variables get other values")
        session.run(updates, values)
        try:
            for number in range(LASTING_RUNS):
                got = s.run(session, built=built)
                if number in (0, LASTING_RUNS - 1):
                    count += _judge(s, got, expected, "with other values of variables")
        except tf.errors.OpError as e:
            if s.refuses_alone(e, built, feeds, [*built.initializers, *updates]):
                return 0
            raise
        session.run(built.initializers)
        for _ in range(2):
            count += s.check_close(s.run(session, built=built), "with the first values of variables again")
    return count


def _judge(s: Subject, got: Any, expected: list[Expected | None], when: str) -> int:
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        message = "" if e is None else e.mismatch(g)
        if message:
            raise CaseFailedError(f"{when}, {s.result(i)}: {message}")
    return len(got)


@oracle("streams")
def streams(s: Subject) -> int:
    """Each run draws the next numbers of its streams, in any session the same."""
    if not s.program.draws:
        return 0
    runs = []
    for _ in range(2):
        with s.plain_session() as session:
            runs.append([s.run(session) for _ in range(RUNS)])
    flush = s.target.profile.flushes_subnormals
    expected = expect(s.built.fetches, s.built.feeds, s.built.initializers, flush, RUNS)
    _judge(s, runs[0][-1], expected, f"in run {RUNS} of a session")
    return sum(s.check_same(b, f"run {k} of a second session", a) for k, (a, b) in enumerate(zip(*runs, strict=True)))


@oracle("process")
def process(s: Subject) -> int:
    """On a device of the same kind in another process, only rounding may differ."""
    if s.target.name not in _sides:
        try:
            _sides[s.target.name] = Sides(s.target)
        except NotApplicableError:
            _sides[s.target.name] = None
    sides = _sides[s.target.name]
    if sides is None:
        return 0
    built = build(s.program, sides.there, f"/job:localhost{HOST}")
    try:
        return _run_there(s, sides, built)
    except tf.errors.UnavailableError:  # on a busy machine a process may not answer in time
        return _run_there(s, sides, built)


def _run_there(s: Subject, sides: Sides, built: Built) -> int:
    tf.Session.reset(sides.url)  # variables of other programs
    with sides.session(sides.url, built.graph, allow_soft_placement=True) as session:
        if built.initializers:
            session.run(built.initializers)
        return s.check_close(s.run(session, built=built), "in another process")
