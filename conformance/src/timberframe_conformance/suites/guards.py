"""Guard zones and poison: a kernel writes all of its outputs, and nothing else."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe.ops.opdef import OpDef
from timberframe_conformance.case import Case, CaseFailedError, Measured
from timberframe_conformance.cases.trials import Trial
from timberframe_conformance.cluster import one_node, run_cluster
from timberframe_conformance.drive import flatten
from timberframe_conformance.suites.choice import chosen, odd_sized
from timberframe_conformance.suites.forward import judge

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "guards"


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Two sizes of each op and dtype, through the device's contract, in the guarded mode."""
    for trial in chosen(target, ops, odd_sized):
        case = Case(SUITE, trial.op.name, trial.types, trial.detail, lambda _: None)
        yield Case(
            SUITE, trial.op.name, trial.types, trial.detail, functools.partial(_run, trial, case.id), trial.op.level
        )


def _run(trial: Trial, case_id: str, target: Target) -> Measured | None:
    arrays = trial.arrays(case_id)
    attrs = trial.attrs(arrays)
    flat = flatten(arrays)
    before = [x.copy() for x in flat]
    cluster, fed = one_node(target.device, trial.op, attrs, flat)
    got = run_cluster(target.device, cluster, fed, "guarded")
    for i, (x, old) in enumerate(zip(flat, before, strict=True)):
        same = x.tobytes() == old.tobytes() if x.dtype != object else np.array_equal(x, old)
        if not same:
            raise CaseFailedError(f"input {i} was written to; inputs are borrowed and never changed")
    return judge(trial, attrs, arrays, got, [v.dtype for v in cluster.outputs], target)
