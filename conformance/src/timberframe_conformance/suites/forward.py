"""Forward: every op in every dtype against the truth."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.case import Case, CaseFailedError, Measured, Types, UnsupportedError, id_of
from timberframe_conformance.cases.trials import Trial, samples_of, trial_case, trials
from timberframe_conformance.cases.types import combinations, is_expected
from timberframe_conformance.levels.requirement import level_of
from timberframe_conformance.repro import op_script
from timberframe_conformance.tolerance.compare import check
from timberframe_core.dtypes import resource
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "forward"


def is_callable(op: OpDef) -> bool:
    """Returns whether a device can be asked to call the op on values by itself; the graphs suite tries others."""
    if op.on_host or any(a.dtype is resource for a in op.outputs):
        return False
    return op.reference is not None and not op.function_attrs


def supported(op: OpDef, target: Target) -> tuple[dict[str, list[Types]], list[Types]]:
    """Dtype combinations that the device has a kernel for, by group; and those that a level requires and it lacks."""
    groups: dict[str, list[Types]] = {}
    missing: list[Types] = []
    for key, found in combinations(op).items():
        for types in found:
            if target.supports(op, types) is None:
                groups.setdefault(key, []).append(types)
            elif is_expected(op.name, dict(types)) is not False and target.holds(op, types):
                missing.append(types)
    return groups, missing


def collect(target: Target, ops: Sequence[OpDef], soak: bool = False) -> Iterator[Case]:
    """Yields a case for each trial of each op, and one for each dtype combination without a
    kernel that a level asks for.
    """
    for op in ops:
        if not is_callable(op):
            continue
        groups, missing = supported(op, target)
        samples = samples_of(op, soak)
        if not soak and not samples:
            yield Case(SUITE, op.name, (), "no-samples", _no_samples)
            continue
        if not soak:
            for types in missing:
                if is_expected(op.name, dict(types)):
                    yield Case(SUITE, op.name, types, "no-kernel", functools.partial(_no_kernel, op, types))
        broken = target.broken.items() if not soak else ()
        for types, why in [(types, why) for (name, types), why in broken if name == op.name]:
            yield Case(SUITE, op.name, types, "supports", functools.partial(_broken, why), level_of(op, types))
        for trial in trials(op, groups, soak):
            expected = is_expected(op.name, dict(trial.types)) is not False
            level = "soak" if soak else trial.level
            yield trial_case(SUITE, trial, run_trial, level=level, expected=expected, script=script_of(SUITE, trial))


def script_of(suite: str, trial: Trial) -> Callable[[str], str]:
    """Writes stand-alone Python that calls the op as the trial does."""
    return functools.partial(_script, trial, id_of(suite, trial.op.name, trial.types, trial.detail))


def _no_samples(target: Target) -> Measured | None:
    raise CaseFailedError("the op declares no samples; an op needs samples to be judged")


def _broken(why: str, target: Target) -> Measured | None:
    raise CaseFailedError(f"{why}; None, a reason or DEPENDS is required")


def _no_kernel(op: OpDef, types: Types, target: Target) -> Measured | None:
    raise UnsupportedError(target.supports(op, types) or "no kernel")


def run_trial(trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Calls the op as the trial says, and compares what it gives with the truth."""
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    got, dtypes = drive.call(target, trial.op, attrs, arrays, known=trial.known)
    return judge(trial, attrs, arrays, got, dtypes, target)


def judge(
    trial: Trial,
    attrs: Mapping[str, Any],
    arrays: Sequence[Any],
    got: Sequence[Any],
    dtypes: Sequence[np.dtype],
    target: Target,
) -> Measured | None:
    """Compares outputs with the truth, as far as the sample determines them."""
    if trial.sample.implementation_defined:
        return Measured(note=f"implementation-defined: {trial.sample.implementation_defined}")
    if not trial.op.outputs and trial.op.name == "DestroyResourceOp":
        return None
    return check(
        trial.op, attrs, drive.flatten(arrays), got, dtypes, flushes_subnormals=target.profile.flushes_subnormals
    )


def _script(trial: Trial, case_id: str, spec: str) -> str:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    return op_script(case_id, trial.op, attrs, arrays, spec, known=trial.known, constants=trial.constants)
