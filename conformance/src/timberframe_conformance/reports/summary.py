"""A finished run: its results, verdict counts and reached levels."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_conformance import SUITE_VERSION
from timberframe_conformance.case import FAILING, LEVELS, NOT_RUN, VERDICTS, Result
from timberframe_conformance.suites import SUITES

CASE_FIELDS = ("id", "suite", "op", "dtypes", "verdict", "max_ulp", "limit", "seconds", "message", "repro")
MORE_FIELDS = ("level", "expected", "worst", "note", "asked_by", "networks", "cause", "kernels", "fallback", "waiver")


@dataclass
class Run:
    """All results of a run.

    missing: for each level, the ops that are not declared. level: the highest that was run. profile: what the device's
    profile declares. idle: suites that have no case for this device. not_run: cases without a result, since the user
    stopped the run.
    """

    device: dict[str, Any]
    environment: dict[str, Any]
    results: list[Result]
    seconds: float
    missing: dict[str, list[str]] = field(default_factory=dict)
    partial: bool = False
    suite_version: str = SUITE_VERSION
    level: str = LEVELS[-1]
    profile: dict[str, Any] = field(default_factory=dict)
    idle: Sequence[str] = ()
    not_run: int = 0

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(r.verdict for r in self.results)
        return {v: found.get(v, 0) for v in VERDICTS}

    @property
    def failed(self) -> bool:
        return any(r.verdict in FAILING for r in self.results)

    def levels(self) -> dict[str, dict[str, Any]]:
        """For each level that was run: whether it is reached, and all that keeps it from being so.

        Levels build on each other. `failing` is a number, waived failures included; `missing` are the ids of cases for
        which there is no kernel, and ops.
        """
        table: dict[str, dict[str, Any]] = {}
        below = True
        for level in LEVELS[: LEVELS.index(self.level) + 1]:
            own = [r for r in self.results if r.level == level]
            bad = [r.id for r in own if r.verdict in FAILING or r.verdict == "waived"]
            lacking = [r.id for r in own if is_missing(r)] + self.missing.get(level, [])
            reached = below and bool(own) and not (bad or lacking or self.partial)
            table[level] = {"reached": reached, "cases": len(own), "failing": len(bad), "missing": lacking}
            below = reached
        return table

    def reaches(self, level: str) -> bool:
        """Returns whether a level, with all below it, was run and is reached."""
        return bool(self.levels().get(level, {}).get("reached"))

    def to_json(self) -> str:
        """Returns the report as JSON, one case to a line."""
        head = {
            "device": self.device,
            "environment": self.environment,
            "suite_version": self.suite_version,
            "profile": self.profile,
            "idle": list(self.idle),
            "summary": {
                **self.counts,
                "cases": len(self.results),
                "seconds": round(self.seconds, 2),
                "partial": self.partial,
                "not_run": self.not_run,
                "level": self.level,
            },
            "levels": self.levels(),
        }
        cases = ",\n".join("    " + json.dumps(_case(r), allow_nan=False) for r in self.results)
        text = json.dumps(head, indent=2, allow_nan=False)
        return f'{text[:-2]},\n  "cases": [\n{cases}\n  ]\n}}\n'


def is_missing(r: Result) -> bool:
    """Returns whether a result says that a level lacks something."""
    return r.expected and (r.verdict == "unsupported" or (r.verdict == "pass" and r.fallback))


def _finite(x: float | None) -> float | None:
    return None if x is None or not np.isfinite(x) else float(f"{x:.6g}")


def _case(r: Result) -> dict[str, Any]:
    entry = {name: getattr(r, name) for name in CASE_FIELDS + MORE_FIELDS}
    entry["max_ulp"], entry["limit"], entry["seconds"] = _finite(r.max_ulp), _finite(r.limit), round(r.seconds, 5)
    return entry


def write_report(path: Path, run: Run) -> None:
    """Writes a run as JSON, compressed where the name ends in .xz: a thirtieth of tens of megabytes."""
    if path.suffix == ".xz":
        with lzma.open(path, "wt", encoding="utf-8") as file:
            file.write(run.to_json())
    else:
        path.write_text(run.to_json(), encoding="utf-8")


def read_json(path: Path) -> Any:
    """Returns what is in a JSON file, which is compressed where its name ends in .xz.

    Raises ValueError for what is not one.
    """
    try:
        if path.suffix == ".xz":
            with lzma.open(path, "rt", encoding="utf-8") as file:
                return json.load(file)
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, lzma.LZMAError, EOFError) as e:
        raise ValueError(f"{path}: {e}; JSON is required") from e


def load_run(path: Path) -> Run:
    """Returns a run from its JSON report. Raises ValueError for what is not one."""
    return as_run(read_json(path), path)


def as_run(data: Any, path: Path) -> Run:
    """Returns a run from what its JSON report at this path holds. Raises ValueError for what is not one."""
    lacking = [k for k in ("device", "environment", "summary", "levels", "cases") if k not in data]
    if lacking:
        raise ValueError(f"{path}: lacks {', '.join(lacking)}; a report of `conformance run --json` is required")
    known = set(CASE_FIELDS + MORE_FIELDS)
    results = [Result(**{k: v for k, v in c.items() if k in known}) for c in data["cases"]]
    missing = {
        level: [m for m in entry["missing"] if m.count("/") < 3] for level, entry in data["levels"].items()
    }  # fmt: skip
    summary = data["summary"]
    return Run(
        data["device"], data["environment"], results, summary["seconds"], missing, summary["partial"],
        data.get("suite_version", ""), summary.get("level", LEVELS[-1]), data.get("profile", {}), data.get("idle", ()),
        summary.get("not_run", 0),
    )  # fmt: skip


def describe_device(device: Any) -> dict[str, Any]:
    """Returns a device's identity for reports."""
    a = device.attributes
    return {
        "type": device.type, "spec": device.spec, "vendor": a.vendor, "model": a.model, "driver": a.driver,
        "memory": a.memory, "details": {k: str(v) for k, v in a.details.items()}, "dtypes": list(a.dtypes),
        "unsupported_ops": dict(a.unsupported_ops),
    }  # fmt: skip


def left_to_the_host(run: Run) -> dict[str, list[str]]:
    """Returns the ops of this run that the device leaves to the host, by the reason."""
    asked = {r.op for r in run.results if r.verdict == "unsupported"}
    reasons: dict[str, list[str]] = {}
    for op, reason in sorted(run.device.get("unsupported_ops", {}).items()):
        if op in asked:
            reasons.setdefault(reason, []).append(op)
    return reasons


def failing(results: Sequence[Result]) -> list[list[Result]]:
    """Returns the failing results, those with the same verdict and cause together, in the order of
    the suites, by op and id.

    Suites build on each other, so that the first failures are rarely consequences of others; cases that were not run
    because others hung come last.
    """
    order = {name: i for i, name in enumerate(SUITES)}
    groups: dict[tuple[str, str], list[Result]] = {}
    bad = (r for r in results if r.verdict in FAILING)
    for r in sorted(bad, key=lambda r: (r.message.startswith(NOT_RUN), order.get(r.suite, len(order)), r.op, r.id)):
        groups.setdefault((r.verdict, r.cause or r.id), []).append(r)
    return list(groups.values())


def profile_remarks(run: Run) -> list[str]:
    """Returns what is to be said of the profile's entries: those that expired, and those that nothing needs."""
    remarks = []
    for entry in (*run.profile.get("waivers", ()), *run.profile.get("tolerances", ())):
        own = [r for r in run.results if r.waiver == entry["name"]]
        passing = [r for r in own if r.note.startswith("passes, though")]
        if entry["expired"]:
            count = sum(r.verdict in FAILING for r in own)
            remarks.append(f"expired {entry['name']}, on {entry['expires']}: {count} cases fail that it covers")
        elif passing:
            remarks.append(f"unexpected pass {passing[0].id}: one of {len(passing)} that {entry['name']} covers")
        elif not own and not run.partial:
            remarks.append(f"unused {entry['name']}: no case of this run needs it")
    return remarks


def by_fallback(results: Sequence[Result]) -> dict[str, int]:
    """Returns how many cases of each op references computed."""
    return dict(sorted(Counter(r.op for r in results if r.fallback).items()))
