"""Runs and benches as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe_conformance.reports.merge import merged
from timberframe_conformance.reports.summary import Run
from timberframe_core.drawing.page import asset, page

FOLDER = "timberframe_conformance.reports.page"
"""The files of which pages are made."""
_CHARTS = ("charts.js", "speed.js", "bench.js")
_SCRIPTS = ("charts.js", "cases.js", "matrix.js", "accuracy.js", "speed.js", "overview.js", "report.js")


def html(runs: Sequence[Run], benches: Sequence[dict[str, Any]] = ()) -> str:
    """Returns the page: devices side by side, levels, failures by cause, ops and dtypes,
    accuracy, speed, history, cases.

    benches: what `conformance bench --json` wrote.
    """
    data = {**merged(runs), "benches": list(benches)}
    names = ", ".join(run["name"] for run in data["runs"])
    return page(
        f"Conformance of {names}", asset(FOLDER, "report.html"), data, [asset(FOLDER, "report.css")],
        [asset(FOLDER, name) for name in _SCRIPTS],
    )  # fmt: skip


def bench_html(benches: Sequence[dict[str, Any]]) -> str:
    """Returns the page of benches: against peers, against the roofline, and how speed grows with
    sizes, batches and cores.
    """
    names = ", ".join(dict.fromkeys(b["device"] for b in benches))
    return page(
        f"Speed of {names}", asset(FOLDER, "bench.html"), list(benches), [asset(FOLDER, "report.css")],
        [asset(FOLDER, name) for name in _CHARTS],
    )  # fmt: skip
