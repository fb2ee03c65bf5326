"""Runs one case and gives its verdict."""

from __future__ import annotations

import functools
import re
import time
from contextlib import suppress
from dataclasses import replace

from timberframe_conformance.case import (
    FAILING,
    Case,
    CaseFailedError,
    Measured,
    NotApplicableError,
    Result,
    UnsupportedError,
    WrongValuesError,
    is_subject,
)
from timberframe_conformance.cases.trials import trial_of
from timberframe_conformance.repro import one_line
from timberframe_conformance.target import Target
from timberframe_conformance.tolerance.declared import in_force
from timberframe_core.errors import NoKernelError, OpError
from timberframe_core.failures import raised
from timberframe_core.ops.definition import registry

LONGEST_FOR_A_SECOND_RUN = 1.0
"""Seconds that a failed case may have taken that is run once more, so that both runs stay within its time limit."""


def judge_case(case: Case, target: Target) -> Result:
    """Returns the verdict: pass, fail, unsupported, or waived if the profile has a waiver for the failure."""
    result = Result.of(case, "pass")
    start = time.perf_counter()
    target.lookups.begin()
    try:
        target.reset()
        with in_force(target.profile):
            _measure(result, case.run(target))
    except UnsupportedError as e:
        result.verdict, result.message = "unsupported", str(e)
    except NotApplicableError as e:
        result.verdict, result.message = "not applicable", str(e)
    except CaseFailedError as e:
        result.verdict, result.message = "fail", str(e)
        result.cause = cause_of(result)
        _measure(result, e.measured)
        if isinstance(e, WrongValuesError) and time.perf_counter() - start < LONGEST_FOR_A_SECOND_RUN:
            _compare_with_second_run(result, case, target)
            _compare_with_dense_inputs(result, case, target)
    except NoKernelError as e:
        result.verdict, result.message = "unsupported", f"{type(e).__name__}: {e}"
    except OpError as e:
        result.verdict, result.message = "fail", f"{type(e).__name__}: {e}"
        result.cause = cause_of(result, of_op=False)
    except Exception as e:
        result.verdict, result.message = "fail", raised(e, skipped=())
        result.cause = cause_of(result, of_op=False)
    _note_loss(result, target)
    result.seconds = time.perf_counter() - start
    used = target.lookups.end(_ops_of(case.op))
    result.kernels = tuple(dict.fromkeys([*used.names, *result.kernels]))
    result.fallback = result.verdict == "pass" and (used.fallback or result.fallback)
    return finish(result, target)


def _note_loss(result: Result, target: Target) -> None:
    """Makes a crash of a case after which the device does nothing any more, be it by what the case left under way."""
    with suppress(Exception):
        target.device.synchronize()
    lost = target.device.lost
    if lost:
        result.verdict = "crash"
        result.message = result.message if lost in result.message else lost
        result.cause = cause_of(result, of_op=False)


def _compare_with_second_run(result: Result, case: Case, target: Target) -> None:
    """Runs a case that gave wrong values once more, and says so where these differ from run to run."""
    other = "the right one"
    try:
        target.reset()
        with in_force(target.profile):
            case.run(target)
    except CaseFailedError as e:
        other = str(e)
    except Exception as e:
        other = f"{type(e).__name__}: {e}"
    if other != result.message:
        result.message += (
            f"; another result at a second run: {other}; work is probably not ordered, or memory is read before it is "
            "written"
        )
        result.cause += "; another result at a second run"


_NOT_HEEDED = {
    "strided": "strides are not heeded",
    "fortran": "strides are not heeded",
    "reversed": "strides below zero are not heeded",
    "offset": "the place of the first element is not heeded",
    "misaligned": "an alignment is taken for granted",
}
"""By the layout of inputs that give wrong values, though in order in memory they give the right ones, what is wrong."""


def _compare_with_dense_inputs(result: Result, case: Case, target: Target) -> None:
    """Runs a case that gave wrong values with the same inputs in order in memory, and says so where that is right."""
    trial, run = trial_of(case), case.run
    if trial is None or trial.layout not in _NOT_HEEDED:
        return
    if not isinstance(run, functools.partial) or run.args[:1] != (trial,):
        return
    try:
        target.reset()
        with in_force(target.profile):
            run.func(replace(trial, layout="dense"), *run.args[1:], target)
    except Exception:  # wrong in this layout, too
        return
    words = _NOT_HEEDED[trial.layout]
    result.message += f"; its inputs lie {trial.layout} in memory, and where the same ones lie in order the result is "
    result.message += f"right: {words}"
    result.cause = f"{result.op}: {words}"


def _ops_of(op: str) -> list[str]:
    """Returns the ops whose kernels a case of an op is about; none for a case about no op."""
    if is_subject(op):
        return []
    found = registry.find(op)
    return [op, *([found.update_op] if found is not None and found.update_op else [])]


def cause_of(result: Result, of_op: bool = True) -> str:
    """Returns a message without what differs from case to case.

    of_op: failures of different ops have different causes.
    """
    text = re.sub(r"  \[.*", "", result.message.replace(result.op, "<op>"))
    text = re.sub(r"; only [^;]*", "", text)  # which elements differ
    text = re.sub(r"0x[0-9a-f]+|[-+]?\d[\w.+-]*|\b(nan|inf|True|False)\b", "#", text)
    text = re.sub(r"#(, ?#)*,?", "#", text)
    return f"{result.op}: {text}" if of_op else text


def finish(result: Result, target: Target) -> Result:
    """Adds the command that shows a failure, and applies what the device and its profile declare."""
    waiver = target.profile.waiver(result.id)
    reason = target.device.attributes.unsupported_ops.get(result.op)
    if result.verdict == "unsupported" or result.fallback:
        result.level = result.asked_by
    if result.verdict == "unsupported" and reason is not None:
        result.note = f"left to the host: {reason}"
    if result.verdict in FAILING:
        result.cause = result.cause or f"{result.op}: {result.verdict}"
        result.repro = one_line(result.id, target.options)
        if waiver is not None:
            result.message = f"waived until {waiver.expires}: {waiver.reason} ({result.verdict}: {result.message})"
            result.verdict, result.waiver = "waived", waiver.name
        elif (expired := target.profile.expired_waiver(result.id)) is not None:
            result.message += f"; its waiver expired on {expired.expires}"
            result.waiver = expired.name
    elif waiver is not None and result.verdict == "pass":
        result.note = f"passes, though a waiver says that it does not: {waiver.reason}"
        result.waiver = waiver.name
    return result


def _measure(result: Result, measured: Measured | None) -> None:
    if measured is None:
        return
    result.max_ulp = None if measured.max_ulp is None else float(measured.max_ulp)
    result.limit = None if measured.limit is None else float(measured.limit)
    result.worst, result.note, result.waiver = measured.worst, measured.note, measured.waiver
    if measured.fallback:
        result.kernels, result.fallback = (f"{measured.fallback} (fallback)",), True
