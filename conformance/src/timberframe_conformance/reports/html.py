"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections import defaultdict
from importlib.resources import files
from typing import Any

import jinja2

from timberframe_conformance.cases.types import TESTABLE
from timberframe_conformance.reports.summary import Run, by_fallback, failing, left_to_the_host, profile_remarks

_SEVERITY = ("crash", "timeout", "fail", "waived", "unsupported", "not applicable", "pass")


def html(run: Run) -> str:
    """The page: levels, counts, the matrix of ops and dtypes, worst errors, failing cases and how to see each."""
    source = (files("timberframe_conformance.reports") / "page.html").read_text()
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    columns, matrix = _matrix(run)
    return page.render(
        run=run, levels=run.levels(), counts=run.counts, columns=columns, matrix=matrix, worst=_worst(run),
        failing=failing(run.results)[:500], waived=[r for r in run.results if r.verdict == "waived"],
        remarks=profile_remarks(run),
        suites=_suites(run), left=left_to_the_host(run), computed=by_fallback(run.results),
    )  # fmt: skip


def _matrix(run: Run) -> tuple[list[str], dict[str, dict[str, dict[str, Any]]]]:
    cells: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for r in run.results:
        dtype = next(iter(r.dtypes.values()), "any")
        cell = cells[r.op].setdefault(dtype, {"verdict": "pass", "cases": 0, "failing": 0, "ulp": None, "limit": None})
        cell["cases"] += 1
        cell["failing"] += r.verdict in ("fail", "crash", "timeout")
        if _SEVERITY.index(r.verdict) < _SEVERITY.index(cell["verdict"]):
            cell["verdict"] = r.verdict
        if r.max_ulp is not None and (cell["ulp"] is None or r.max_ulp > cell["ulp"]):
            cell["ulp"], cell["limit"] = r.max_ulp, r.limit
    columns = [t for t in (*TESTABLE, "any") if any(t in row for row in cells.values())]
    return columns, dict(sorted(cells.items()))


def _worst(run: Run) -> list[Any]:
    """For each op and dtype with a limit, the case with the greatest error, as a share of its limit."""
    best: dict[tuple[str, str], Any] = {}
    for r in run.results:
        if r.max_ulp is None or not r.limit:
            continue
        key = r.op, ",".join(r.dtypes.values())
        if key not in best or r.max_ulp / r.limit > best[key].max_ulp / best[key].limit:
            best[key] = r
    return sorted(best.values(), key=lambda r: -r.max_ulp / r.limit)[:200]


def _suites(run: Run) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for r in run.results:
        row = table.setdefault(r.suite, defaultdict(float))
        row[r.verdict] += 1
        row["seconds"] += r.seconds
        row["cases"] += 1
    return table
