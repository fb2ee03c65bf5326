"""Leaks: after a session closed, the device's allocator is where it was before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured, NotApplicableError
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.suites.choice import chosen, small_or_middling
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "leaks"
RUNS = 4


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields one trial of each op, in at most two dtypes, run several times."""
    for trial in chosen(target, ops, small_or_middling, dtypes=2):
        yield trial_case(SUITE, trial, _run)


def _run(trial: Trial, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    built = drive.build(trial.op, attrs, arrays, target.spec)
    start = target.statistics()
    with target.session(built.graph) as session:
        drive.execute(built, session)
        first = target.statistics()
        for _ in range(RUNS):
            drive.execute(built, session)
        later = target.settled(first)
        if later.live > first.live:
            raise CaseFailedError(
                f"{RUNS} more runs left {later.live - first.live} live allocations ({later.used - first.used} bytes); "
                "a run must give back what it took"
            )
    del session, built
    end = target.settled(start)
    if end.live > start.live or end.used > start.used:
        raise CaseFailedError(
            f"after the session closed {end.live} allocations of {end.used} bytes are live; it was {start.live} "
            f"of {start.used}"
        )
    if end.total == start.total:
        raise NotApplicableError("the runs ask the device's allocator for nothing")
    return None
