"""Fault injection: whichever allocation fails, the error is clean, nothing leaks, and the session goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from timberframe_conformance import drive
from timberframe_conformance.case import NOT_RUN, Case, CaseFailedError, Measured, NotApplicableError
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.suites.choice import chosen, middling_or_small
from timberframe_conformance.suites.forward import judge
from timberframe_core.errors import NoKernelError, ResourceExhaustedError
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target
    from timberframe_core.plugin.contracts import Allocator, AllocatorStatistics

SUITE = "faults"

MOST_ALLOCATIONS = 60
"""Number of allocations of an op's first run that are made to fail at most."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields one trial of each op, in at most two dtypes."""
    for trial in chosen(target, ops, middling_or_small, dtypes=2):
        yield trial_case(SUITE, trial, _run)


def _run(trial: Trial, case_id: str, target: Target) -> Measured | None:
    try:
        _inject(trial, case_id, target)
    except (NoKernelError, NotApplicableError):
        raise
    except Exception:  # a good run before would leave fewer allocations to fail: kernels keep scratch memory
        with suppress(Exception):  # errors of the run with the fault
            target.device.synchronize()
        _require_good_run(trial, case_id, target)
        raise
    return None


def _require_good_run(trial: Trial, case_id: str, target: Target) -> None:
    """NotApplicableError where the op fails without a fault, too, which other suites report."""
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    try:
        got, dtypes = drive.call(target, trial.op, attrs, arrays)
        judge(trial, attrs, arrays, got, dtypes, target)
    except Exception as e:
        why = str(e) if isinstance(e, CaseFailedError) else f"{type(e).__name__}: {e}"
        raise NotApplicableError(f"{NOT_RUN}: the run fails without a fault, too: {why}") from e


def _inject(trial: Trial, case_id: str, target: Target) -> None:
    """Runs the op as often as it allocates memory, with another allocation failing each time."""
    allocator = target.device.allocator
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    for n in range(MOST_ALLOCATIONS):
        built = drive.build(trial.op, attrs, arrays, target.spec)
        with target.session(built.graph) as session:
            before = target.statistics()
            consumed, recovered = _attempt(allocator, n, built, session)
            if not consumed and n == 0:
                raise NotApplicableError("the run asks the device's allocator for nothing")
            if not consumed:
                return
            if recovered is not None:
                judge(trial, attrs, arrays, recovered, built.dtypes, target)
                continue
            after = target.settled(before)
            got = drive.execute(built, session)
            judge(trial, attrs, arrays, got, built.dtypes, target)
            if after.used > before.used or after.live > before.live:
                _hold_against_good_run(trial, attrs, arrays, target, n, before)


def _hold_against_good_run(
    trial: Trial, attrs: Any, arrays: Any, target: Target, n: int, before: AllocatorStatistics
) -> None:
    """Compares the memory that a session keeps after a failed and a good run with what it keeps after a good run alone.

    A session may keep what serves the next run, such as tables of a kernel's sizes.
    """
    kept = target.settled(before)
    built = drive.build(trial.op, attrs, arrays, target.spec)
    with target.session(built.graph) as session:
        drive.execute(built, session)
        both = target.settled(kept)
        used, live = both.used - kept.used, both.live - kept.live
        if kept.used - before.used > used or kept.live - before.live > live:
            raise CaseFailedError(
                f"after allocation {n} failed and the run was repeated, the session keeps {kept.used - before.used} "
                f"bytes in {kept.live - before.live} buffers; after a run without a failure it keeps {used} in {live}"
            )


def _attempt(allocator: Allocator, n: int, built: drive.Built, session: Any) -> tuple[bool, list[Any] | None]:
    """Runs with the nth allocation failing.

    Gives whether the run came to that allocation, and its results where it did and went on all the same: a device may
    give memory back and ask again, and then its results must be right. Any error but a clean one is a failure.
    """
    allocator.fail_at = n
    got = None
    try:
        got = drive.execute(built, session)
    except ResourceExhaustedError as e:
        if "bytes" not in str(e):
            raise CaseFailedError(
                f"allocation {n} failed with {str(e)!r}; the message must say how many bytes were asked"
            ) from e
    except NoKernelError:
        raise
    except Exception as e:
        raise CaseFailedError(
            f"allocation {n} failed as {type(e).__name__}: {e}; ResourceExhaustedError is required"
        ) from e
    finally:
        consumed = allocator.fail_at is None
        allocator.fail_at = None
    return consumed, got
