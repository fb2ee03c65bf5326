"""What changed between two runs."""

from __future__ import annotations

from dataclasses import dataclass

from timberframe_conformance.case import FAILING
from timberframe_conformance.reports.summary import Run

GOOD = frozenset({"pass"})


@dataclass(frozen=True)
class Change:
    """One case that differs. label: FIX (now passes), REGRESSION (no longer does), DIFFERENCE (anything else)."""

    label: str
    case: str
    before: str
    after: str
    detail: str = ""


def compare(before: Run, after: Run, ulp_factor: float = 2.0) -> list[Change]:
    """Returns the changes, worst first.

    A case whose worst error grew or shrank by `ulp_factor` counts as a DIFFERENCE.
    """
    old = {r.id: r for r in before.results}
    new = {r.id: r for r in after.results}
    changes = []
    for case in sorted(old.keys() | new.keys()):
        a, b = old.get(case), new.get(case)
        was, now = (a.verdict if a else "absent"), (b.verdict if b else "absent")
        if was != now:
            changes.append(Change(_label(was, now), case, was, now, b.message if b and now in FAILING else ""))
        elif a is not None and b is not None and _apart(a.max_ulp, b.max_ulp, ulp_factor):
            changes.append(Change("DIFFERENCE", case, f"{a.max_ulp:.3g} ULP", f"{b.max_ulp:.3g} ULP"))
    order = {"REGRESSION": 0, "FIX": 1, "DIFFERENCE": 2}
    return sorted(changes, key=lambda c: (order[c.label], c.case))


def _label(was: str, now: str) -> str:
    if now in FAILING and was not in FAILING:
        return "REGRESSION"
    if was in GOOD and now not in GOOD:
        return "REGRESSION" if now == "unsupported" else "DIFFERENCE"
    if was in FAILING and now in GOOD:
        return "FIX"
    return "DIFFERENCE"


def _apart(a: float | None, b: float | None, factor: float) -> bool:
    if a is None or b is None:
        return False
    low, high = sorted((a, b))
    return high > max(low, 0.5) * factor
