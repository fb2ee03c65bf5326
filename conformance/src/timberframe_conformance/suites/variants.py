"""Variants: devices that choose among several implementations of a kernel at run time are tried with each.

A device names its variants in ``attributes.details["variants"]`` and takes one as the device option ``variant``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timberframe.ops.accuracy import Exact
from timberframe.ops.opdef import OpDef
from timberframe_conformance import drive
from timberframe_conformance.case import Case, Measured
from timberframe_conformance.cases.trials import Trial
from timberframe_conformance.suites.choice import chosen, input_size, odd_sized
from timberframe_conformance.suites.forward import judge

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "variants"
ARITHMETIC = frozenset(
    {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "Less", "Equal", "Cast", "AddN"}
)
"""Ops whose result is exact and whose kernels are compiled once for each variant all the same."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Each variant on ops that compute (rather than move data): three trials in every dtype."""
    names = target.device.attributes.details.get("variants", ())
    computing = [op for op in ops if not isinstance(op.accuracy, Exact) or op.name in ARITHMETIC]
    for variant in names:
        for trial in chosen(target, computing, _pick):
            for special in (False, True):
                again = Trial(trial.op, trial.types, trial.sample, trial.number, special=special)
                detail = f"{variant}-{again.detail}"
                case_id = Case(SUITE, trial.op.name, trial.types, detail, lambda _: None).id
                yield Case(
                    SUITE,
                    trial.op.name,
                    trial.types,
                    detail,
                    functools.partial(_run, again, variant, case_id),
                    trial.op.level,
                )


def _pick(trials: list[Trial]) -> list[Trial]:
    found = odd_sized(trials)
    large = [t for t in trials if input_size(t) >= 1000]
    return found + [t for t in large[:1] if t not in found]


def _run(trial: Trial, variant: str, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    built = drive.build(trial.op, attrs, arrays, target.spec)
    options = {target.device.type: {"variant": variant}}
    with target.session(built.graph, device_options=options) as session:
        got = drive.execute(built, session)
    return judge(trial, attrs, arrays, got, built.dtypes, target)
