"""Kernels: those that no other suite runs, since they have a label, or another of higher priority in front of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timberframe_conformance.case import Case, Measured, Types
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.cases.types import as_attrs, combinations
from timberframe_conformance.mutants.base import MutantKernel
from timberframe_conformance.suites import forward, guards
from timberframe_conformance.suites.choice import has_kernel, largest, middling, short, small, strongest, trials_in
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import KernelDef
from timberframe_core.plugin.kernels import only

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "kernels"


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each hidden kernel of the device in each of its dtypes, on a few sizes."""
    for op in ops:
        if not has_kernel(op):
            continue
        found = [k for k in target.device.kernels.kernels(op.name) if k.device == target.device.type]
        plain = [k for k in found if not (k.covers or isinstance(k, MutantKernel))]
        for kernel in plain:
            if kernel.label or any(_hides(other, kernel) for other in plain):
                for group in combinations(op).values():
                    taken = [types for types in group if kernel.accepts(as_attrs(types)) is None]
                    yield from _cases(op, kernel, taken[:1])


def _hides(other: KernelDef, kernel: KernelDef) -> bool:
    """Returns whether another kernel is chosen before this one, for some dtypes at least."""
    if other.label or other.priority <= kernel.priority:
        return False
    both = other.types.keys() & kernel.types.keys()
    return all(set(other.types[name]) & set(kernel.types[name]) for name in both)


def _cases(op: OpDef, kernel: KernelDef, combinations: Sequence[Types]) -> Iterator[Case]:
    for types in combinations:
        for trial in strongest(trials_in(op, types), small, middling, short, largest):
            name = f"label={kernel.label}" if kernel.label else f"priority={kernel.priority}"
            run = functools.partial(_run, kernel)
            yield trial_case(SUITE, trial, run, f"{name}-{trial.detail}", expected=False)


def _run(kernel: KernelDef, trial: Trial, case_id: str, target: Target) -> Measured | None:
    """Right results in a session, and between guard zones."""
    with only(target.device.kernels, kernel):
        measured = forward.run_trial(trial, case_id, target)
        guards.run_trial(trial, case_id, target)
    return measured
