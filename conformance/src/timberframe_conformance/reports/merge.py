"""Several runs as one: the newest of each device side by side, the others as its history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from timberframe_conformance.case import FAILING, LEVELS, VERDICTS, Result, label_of
from timberframe_conformance.cases.types import TESTABLE
from timberframe_conformance.reports.badge import device_label
from timberframe_conformance.reports.compare import compare
from timberframe_conformance.reports.summary import (
    Run,
    as_run,
    by_fallback,
    failing,
    left_to_the_host,
    profile_remarks,
    read_json,
)

CHANGES = 300
"""Changes between two runs that the history lists; it says how many there are in all."""
_ABSENT = "-"
_FIRST = ("float32", "float64", "float16", "bfloat16", "int32", "int64")
_COLUMNS = [*_FIRST, *(t for t in TESTABLE if t not in _FIRST), "any"]
"""Dtypes in the order of the page: those that most graphs have come first."""


class _Numbers:
    """Numbers texts in the order in which they come, so that each is written once."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    @property
    def texts(self) -> list[str]:
        return list(self.known)


def merged(runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the runs as the page's data: cases by columns, what runs say of them as arrays in the order of the cases.

    A device is known by its name, vendor and model. The newest run that tried the whole suite is shown, or
    else the newest.
    """
    devices = by_device(runs)
    shown = newest(runs)
    suites, ops, types, details, kernels = (_Numbers() for _ in range(5))
    index: dict[str, int] = {}
    columns: dict[str, list[int]] = {"suite": [], "op": [], "types": [], "detail": []}
    for run in shown:
        for r in run.results:
            if r.id not in index:
                index[r.id] = len(index)
                label = label_of(tuple(r.dtypes.items()))
                columns["suite"].append(suites(r.suite))
                columns["op"].append(ops(r.op))
                columns["types"].append(types(label))
                columns["detail"].append(details(_detail(r.id)))
    found = [_shown(run, index, kernels) for run in shown]
    for column, name in zip(found, _names(shown), strict=True):
        column["name"] = name
    return {
        "verdicts": VERDICTS, "failing": sorted(FAILING), "levels": LEVELS, "dtypes": _COLUMNS,
        "suites": suites.texts, "ops": ops.texts, "types": types.texts, "details": details.texts,
        "kernels": kernels.texts, "cases": columns, "runs": found, "networks": _networks(shown, index),
        "history": [_history(name, own) for name, own in zip(_names(shown), devices, strict=True)],
    }  # fmt: skip


def load_all(
    paths: Iterable[Path], before: Callable[[Path], None] = lambda _: None
) -> tuple[list[Run], list[dict[str, Any]]]:
    """Returns the runs and the benches among JSON files, and in folders of submissions.

    before: called with each file, before it is read. Raises ValueError, which names the file, for one that is neither.
    """
    runs, benches = [], []
    for path in (file for given in paths for file in _files(given)):
        before(path)
        data = read_json(path)
        if (
            isinstance(data, dict)
            and {"device", "environment"} <= data.keys()
            and {"measurements", "rows"} & data.keys()
        ):
            benches.append(data)
        else:
            runs.append(as_run(data, path))
    return runs, benches


def _files(path: Path) -> list[Path]:
    """Returns a file itself; of a folder its report, and its bench if it has one."""
    bench = path / "bench.json"
    return [path / "report.json", *([bench] if bench.exists() else [])] if path.is_dir() else [path]


def newest(runs: Iterable[Run]) -> list[Run]:
    """Of each device the newest run that tried the whole suite, or else the newest."""
    return [next((r for r in reversed(own) if not r.partial), own[-1]) for own in by_device(runs)]


def by_device(runs: Iterable[Run]) -> list[list[Run]]:
    """Returns the runs of each device, from the oldest to the newest."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        key = tuple(str(run.device.get(part, "")) for part in ("spec", "vendor", "model"))
        groups.setdefault(key, []).append(run)
    return [sorted(own, key=lambda r: str(r.environment.get("date", ""))) for own in groups.values()]


def _names(runs: Sequence[Run]) -> list[str]:
    """Returns what the page calls devices: their names, with the model where two have the same name."""
    short = [device_label(run) for run in runs]
    return [
        f"{name} {run.device.get('model', '')}".strip() if short.count(name) > 1 else name
        for name, run in zip(short, runs, strict=True)
    ]


def _detail(case_id: str) -> str:
    """Returns the id after suite, op and dtypes."""
    return case_id.split("/", 3)[-1]


def _networks(runs: Sequence[Run], index: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Returns by level the networks that were run as a whole, each with the number of its case."""
    found: dict[str, dict[str, int]] = {}
    for r in (r for run in runs for r in run.results):
        if (r.suite, r.op) == ("networks", "Model"):
            found.setdefault(r.level, {})[r.networks[0] if r.networks else _detail(r.id)] = index[r.id]
    return {level: [{"name": name, "case": i} for name, i in own.items()] for level, own in found.items()}


def _shown(run: Run, index: dict[str, int], kernels: _Numbers) -> dict[str, Any]:
    """Returns a device's column: what is known of it, and arrays that say of each case what came of it."""
    verdict, level = [_ABSENT] * len(index), [_ABSENT] * len(index)
    ulp: list[float | None] = [None] * len(index)
    limit: list[float | None] = [None] * len(index)
    milliseconds: list[float | None] = [None] * len(index)
    kernel: list[int | None] = [None] * len(index)
    texts: dict[int, dict[str, str]] = {}
    for r in run.results:
        i = index[r.id]
        verdict[i], level[i] = str(VERDICTS.index(r.verdict)), str(LEVELS.index(r.level))
        ulp[i], limit[i] = _rounded(r.max_ulp), _rounded(r.limit)
        milliseconds[i] = _rounded(1e3 * r.seconds)
        if r.kernels:
            kernel[i] = kernels(", ".join(r.kernels))
        if said := _texts(r):
            texts[i] = said
    return {
        **head(run), "verdict": "".join(verdict), "level": "".join(level), "ulp": ulp, "limit": limit,
        "ms": milliseconds, "kernel": kernel, "texts": texts,
        "failures": [
            {"verdict": g[0].verdict, "message": g[0].message, "repro": g[0].repro, "cases": [index[r.id] for r in g]}
            for g in failing(run.results)
        ],
    }  # fmt: skip


def head(run: Run) -> dict[str, Any]:
    """Returns what a run says besides its cases."""
    return {
        "device": run.device, "environment": run.environment, "suite_version": run.suite_version,
        "seconds": round(run.seconds, 1), "partial": run.partial, "not_run": run.not_run,
        "counts": run.counts, "count": len(run.results), "reached": run.levels(), "profile": run.profile,
        "remarks": profile_remarks(run), "left": left_to_the_host(run), "fallback": by_fallback(run.results),
        "idle": list(run.idle),
    }  # fmt: skip


def _texts(r: Result) -> dict[str, str]:
    """Returns what a case has to say: of one that passes, only where its note or the profile says something."""
    wanted = {"note": r.note, "waiver": r.waiver}
    if r.verdict != "pass":
        wanted |= {"message": r.message, "repro": r.repro, "worst": r.worst}
    return {name: text for name, text in wanted.items() if text}


def _history(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the runs of one device, each with what changed since the one before."""
    points = []
    for before, run in zip([None, *runs[:-1]], runs, strict=True):
        changes = [] if before is None else compare(before, run)
        labels = [c.label for c in changes]
        points.append({
            "date": str(run.environment.get("date", "")), "git": run.environment.get("git", ""),
            "suite_version": run.suite_version, "partial": run.partial, "count": len(run.results),
            "counts": run.counts, "reached": [n for n, level in run.levels().items() if level["reached"]],
            "seconds": round(run.seconds, 1), "labels": {label: labels.count(label) for label in dict.fromkeys(labels)},
            "changes": [[c.label, c.case, c.before, c.after, c.detail] for c in changes[:CHANGES]],
        })  # fmt: skip
    return {"name": name, "points": points}


def _rounded(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(f"{x:.3g}")
