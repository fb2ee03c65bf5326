"""Accuracies that conformance has measured: of the reports in conformance/results, the newest of each device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from timberframe_conformance.case import Result
from timberframe_conformance.reports.merge import load_all, newest
from timberframe_conformance.reports.summary import Run
from timberframe_core.ops.definition.formats import FORMATS

SUITES = ("forward", "networks", "guards", "variants")
"""Suites whose cases call one op by itself."""


@dataclass
class Measured:
    """The worst error of an op in a dtype on a device, and the largest share of its limit that a case used."""

    device: str
    op: str
    dtypes: str
    date: str
    cases: int = 0
    failing: int = 0
    ulp: float = 0.0
    share: float = 0.0

    def add(self, result: Result) -> None:
        """Counts a case."""
        self.cases += 1
        self.failing += result.verdict != "pass"
        if result.max_ulp is not None:
            self.ulp = max(self.ulp, result.max_ulp)
            self.share = max(self.share, result.max_ulp / result.limit if result.limit else 0.0)


def runs(folder: Path) -> Sequence[Run]:
    """Returns the newest run of each device among the reports of a folder."""
    found, _ = load_all(sorted(folder.iterdir()))
    return newest(found)


def measured(shown: Sequence[Run]) -> dict[str, list[Measured]]:
    """By op, what runs measured for each device and dtype."""
    found: dict[tuple[str, str, str], Measured] = {}
    for run in shown:
        device, date = run.device["type"], str(run.environment.get("date", ""))[:10]
        for r in run.results:
            if r.suite in SUITES and r.max_ulp is not None:
                label = _label(list(r.dtypes.values()))
                key = r.op, label, device
                found.setdefault(key, Measured(device, r.op, label, date)).add(r)
    by_op: dict[str, list[Measured]] = {}
    for m in found.values():
        by_op.setdefault(m.op, []).append(m)
    return by_op


def _label(dtypes: Sequence[str]) -> str:
    """Returns the dtype that an error is counted in: the first floating one, or else the first."""
    return next((d for d in dtypes if d in FORMATS), next(iter(dtypes), ""))
