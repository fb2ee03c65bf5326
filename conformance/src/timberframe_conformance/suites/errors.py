"""Errors: a wrong call raises the right class with the right message, and the session works afterwards."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe import device as device_scope
from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured, Types
from timberframe_conformance.cases.trials import Trial, fits, trial_case
from timberframe_conformance.cluster import fenced_input, one_node, run_cluster
from timberframe_conformance.levels.requirement import BREADTH, level_of
from timberframe_conformance.suites.choice import preferred
from timberframe_conformance.suites.forward import supported
from timberframe_core.errors import NoKernelError, OpError
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import ErrorSample, Sample

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "errors"
DTYPES = 2
"""How many dtypes each error sample is tried in."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each error sample, with shapes known while the graph is built and with unknown ones."""
    for op in ops:
        samples = list(op.errors())
        if not samples or op.function_attrs:
            continue
        groups, _ = supported(op, target)
        for number, error in enumerate(samples):
            sample = Sample(error.inputs, error.attrs, error.types)
            fitting = [t for group in groups.values() for t in group if fits(op, sample, t)]
            fitting.sort(key=lambda types: level_of(op, types) == BREADTH)
            for types in _varied(fitting):
                for known in (True, False):
                    trial = Trial(op, types, sample, number, known=known)
                    yield trial_case(SUITE, trial, functools.partial(_run, error))


def _varied(types: list[Types]) -> list[Types]:
    """Returns the most used dtypes first, then from different kinds."""
    ranked = preferred([t[0][1] if t else "" for t in types], None)
    first = {key: t for t in reversed(types) for key in [t[0][1] if t else ""]}
    return [first[key] for key in dict.fromkeys(ranked)][:DTYPES]


def _run(error: ErrorSample, trial: Trial, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    try:
        built = drive.build(trial.op, attrs, arrays, target.spec, known=trial.known)
    except Exception as e:
        _check(e, error, "building the graph")
        return None
    with built.graph.as_default(), device_scope(target.spec):
        probe = apply_op("Placeholder", (), {"dtype": "float32", "shape": (3,)}, name="probe")
        total = apply_op("Identity", [probe])
    with target.session(built.graph) as session:
        before = target.statistics()
        for attempt in ("running", "running again"):
            _expect(built, session, error, attempt)
        after = target.settled(before)
        if after.live > before.live + 1 and after.used > before.used:
            # One arena may stay with the compiled program; what the second failure adds is a leak.
            _expect(built, session, error, "running again")
            again = target.settled(after)
            if again.live > after.live:
                raise CaseFailedError(
                    f"each failing run leaves {again.live - after.live} live allocations; it must leave none"
                )
        if not built.setup:
            for fence in ("", "end") if target.device.host_memory else ("",):
                _expect_guarded(trial, error, case_id, target, fence)
        values = np.array([1, 2, 3], np.float32)
        if not np.array_equal(session.run(total, {probe: values}), values):
            raise CaseFailedError("after the error the session gives wrong results; it must go on working")
    return None


def _expect(built: drive.Built, session: Any, error: ErrorSample, what: str) -> None:
    try:
        drive.execute(built, session)
    except CaseFailedError:
        raise
    except Exception as e:
        _check(e, error, what)
        return
    raise CaseFailedError(f"{what} raised nothing; it must raise {error.error} with a message matching {error.match!r}")


def _expect_guarded(trial: Trial, error: ErrorSample, case_id: str, target: Target, fence: str) -> None:
    """Once more in poisoned memory, in case a kernel that continues after the error uses values as addresses."""
    arrays = trial.arrays(case_id)
    flat = drive.flatten(arrays)
    try:
        if fence:
            flat = [fenced_input(target.device, x, fence) for x in flat]
        cluster, fed = one_node(target.device, trial.op, trial.attrs(arrays), flat)
        run_cluster(target.device, cluster, fed, "guarded", fence)
    except Exception as e:
        _check(e, error, "running in poisoned memory")
        return
    raise CaseFailedError(f"running in poisoned memory raised nothing; it must raise {error.error}")


def _check(raised: Exception, error: ErrorSample, what: str) -> None:
    name = type(raised).__name__
    if isinstance(raised, NoKernelError):
        raise raised
    if not isinstance(raised, OpError) or name != error.error:
        raise CaseFailedError(f"{what} raised {name}: {raised}; {error.error} is required") from raised
    if not re.search(error.match, str(raised), re.S):
        raise CaseFailedError(
            f"{what} raised {name} with the message {str(raised)!r}; it must match {error.match!r}"
        ) from raised
