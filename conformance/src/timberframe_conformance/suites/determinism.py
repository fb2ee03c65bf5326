"""Determinism: equal inputs give equal bits, in every run and at any number of threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.suites.choice import chosen, largest
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "determinism"
THREADS = (1, 2, 3, 5)
RUNS = 2


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields the largest trial of each op, in at most four dtypes."""
    for trial in chosen(target, ops, largest, dtypes=4):
        yield trial_case(SUITE, trial, _run)


def _run(trial: Trial, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    first: list[Any] | None = None
    for threads in THREADS:
        built = drive.build(trial.op, attrs, arrays, target.spec)
        with target.session(built.graph, intra_op_parallelism_threads=threads) as session:
            for run in range(RUNS if trial.op.stream is None else 1):  # a second run of a stream draws other numbers
                got = drive.execute(built, session)
                if first is None:
                    first = got
                else:
                    _same(first, got, f"run {run + 1} with {threads} threads")
    return None


def _same(first: Sequence[Any], got: Sequence[Any], what: str) -> None:
    for i, (a, b) in enumerate(zip(first, got, strict=True)):
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype == object:
            equal = np.array_equal(x, y)
        else:
            equal = x.shape == y.shape and x.tobytes() == y.tobytes()
        if not equal:
            raise CaseFailedError(
                f"output {i} of {what} differs from that of the first run, with one thread; every bit must be equal"
            )
