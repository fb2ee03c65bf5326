"""Variants: devices that choose among several implementations of a kernel at run time are tried with each.

A device names them in ``attributes.variants``: a device option, and the values that it takes here, such as
``{"isa": ("scalar", "avx2")}``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timberframe_conformance import drive
from timberframe_conformance.case import Case, Measured
from timberframe_conformance.cases.trials import Trial, trial_case
from timberframe_conformance.cases.weaknesses import input_size
from timberframe_conformance.suites.choice import chosen, largest, middling, small
from timberframe_conformance.suites.forward import is_callable, judge
from timberframe_core.ops.definition.accuracy import Exact
from timberframe_core.ops.definition.opdef import OpDef

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "variants"
ARITHMETIC = frozenset(
    {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "Less", "Equal", "Cast", "AddN"}
)
"""Ops whose result is exact and whose kernels are compiled once for each variant all the same."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Yields each variant but the one in use, on ops that compute (rather than move data), in every dtype."""
    attributes = target.device.attributes
    variants = [
        (option, value)
        for option, values in attributes.variants.items()
        for value in values
        if value != attributes.details.get(option)
    ]
    computing = [op for op in ops if not isinstance(op.accuracy, Exact) or op.name in ARITHMETIC]
    for variant in variants:
        updates = chosen(target, computing, largest, dtypes=4, kernel=lambda op: bool(op.updates) and is_callable(op))
        for trial in itertools.chain(chosen(target, computing, _special, _large), updates):
            yield trial_case(SUITE, trial, functools.partial(_run, variant), f"{variant[1]}-{trial.detail}")


def _special(trials: Sequence[Trial]) -> list[Trial]:
    """Returns small ones with special values."""
    return [dataclasses.replace(t, special=True) for t in small(trials)]


def _large(trials: Sequence[Trial]) -> list[Trial]:
    """Larger ones with ordinary values."""
    return [t for t in trials if input_size(t) >= 1000] + middling(trials)


def _run(variant: tuple[str, str], trial: Trial, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    built = drive.build(trial.op, attrs, arrays, target.spec)
    options = {target.device.type: dict([variant])}
    with target.session(built.graph, device_options=options) as session:
        got = drive.execute(built, session)
    return judge(trial, attrs, arrays, got, built.dtypes, target)
