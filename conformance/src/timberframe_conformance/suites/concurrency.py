"""Concurrency: several threads that run one node or one graph at once get what they get one by one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.suites import concurrent_runs
from timberframe_conformance.suites.checks import in_threads
from timberframe_conformance.suites.choice import chosen, middling_or_small
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "concurrency"
THREADS = 3
RUNS = 4
_SWITCH_SECONDS = 1e-5


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields one trial of each op, in one dtype, and graphs; ops that draw random numbers are the suite `random`'s."""
    without_streams = [op for op in ops if op.stream is None]
    for trial in chosen(target, without_streams, middling_or_small, dtypes=1):
        yield trial_case(SUITE, trial, _run)
    yield from concurrent_runs.collect(target, ops)


def _run(trial: Trial, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    built = drive.build(trial.op, trial.attrs(arrays), arrays, target.spec)
    feeds = [_other_values(built, trial, f"{case_id}/{i}", target) for i in range(THREADS)]
    with target.session(built.graph) as session:
        alone = [_outputs(session, built, each) for each in feeds]

        def work(i: int) -> None:
            for run in range(RUNS):
                when = f"run {run} of thread {i}, while {THREADS} threads run the node at once,"
                _compare(alone[i], _outputs(session, built, feeds[i]), when)

        with _switching_often():
            in_threads(work, THREADS)
        for i, each in enumerate(feeds):
            _compare(
                alone[i], _outputs(session, built, each), f"a run with inputs {i} after those of {THREADS} threads"
            )
    return None


def _other_values(built: drive.Built, trial: Trial, seed: str, target: Target) -> dict[Any, np.ndarray]:
    """Feeds with values of their own, as far as the sample leaves them open."""
    arrays = trial.arrays(seed)
    other = drive.build(trial.op, trial.attrs(arrays), arrays, target.spec).feeds.values()
    return dict(zip(built.feeds, other, strict=True))


def _outputs(session: Any, built: drive.Built, feeds: Any) -> list[np.ndarray]:
    return [np.array(x) for x in session.run(built.fetches, feeds)]


def _compare(alone: Sequence[np.ndarray], got: Sequence[np.ndarray], when: str) -> None:
    for i, (x, y) in enumerate(zip(alone, got, strict=True)):
        equal = np.array_equal(x, y) if x.dtype == object else x.shape == y.shape and x.tobytes() == y.tobytes()
        if not equal:
            raise CaseFailedError(
                f"output {i} of {when} differs from what the same inputs give alone; runs must share nothing that they "
                "write to, such as a buffer of the kernel"
            )


@contextmanager
def _switching_often() -> Iterator[None]:
    """In the block Python gives each of its threads a short time only, so that they meet."""
    old = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(old)
