"""The measured models as tables on the terminal and in Markdown, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich.console import Console

from timberframe_conformance.bench.models.measure import TOLERANCE, Effort, Row, Spread
from timberframe_conformance.bench.models.sides import (
    DEVICE,
    DEVICE_VARIABLES,
    ONNXRUNTIME,
    PEERS,
    TENSORFLOW,
    TENSORFLOW_VARIABLES,
)
from timberframe_conformance.bench.table import duration
from timberframe_conformance.reports.environment import environment, numerical_variables

INFERENCE, TRAINING = "inference", "training"
SIDES = {
    INFERENCE: (DEVICE, DEVICE_VARIABLES, TENSORFLOW, TENSORFLOW_VARIABLES, ONNXRUNTIME),
    TRAINING: (DEVICE, TENSORFLOW),
}
TITLES = {
    DEVICE: "ours", DEVICE_VARIABLES: "SavedModel", TENSORFLOW: "TF", TENSORFLOW_VARIABLES: "TF, variables",
    ONNXRUNTIME: "ORT",
}  # fmt: skip
RATIOS = {TENSORFLOW: "of TF", ONNXRUNTIME: "of ORT", DEVICE_VARIABLES: "SavedModel/frozen"}
PACKAGES = ("tensorflow-cpu", "tensorflow", "onnxruntime", "tf2onnx", "onnx", "timberframe")


@dataclass
class Results:
    """What a run of `conformance bench --models` found, and how it was made."""

    device: str
    threads: int
    effort: Effort
    cleared: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    @property
    def failed(self) -> list[Row]:
        """Rows with wrong results, or that the device cannot run."""
        return [row for row in self.rows if row.failed]

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as JSON holds them; times in seconds."""
        return {
            "device": self.device,
            "environment": {**environment(), "cleared": self.cleared, "peers": _versions()},
            "method": {
                "threads": self.threads, "tolerance": TOLERANCE, **asdict(self.effort),
            },
            "geometric_means": {
                f"{kind} {title}": mean for kind in SIDES for title, mean in geometric_means(self.rows, kind).items()
            },
            "rows": [_row(row) for row in self.rows],
        }  # fmt: skip


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _row(row: Row) -> dict[str, Any]:
    made = asdict(row)
    made["ratios"] = {RATIOS[side]: ratio for side, ratio in row.ratios(RATIOS).items()}
    return made


def geometric_means(rows: Iterable[Row], kind: str) -> dict[str, float]:
    """By ratio its geometric mean over the rows that have it; "of the best" is that to each row's fastest peer."""
    chosen = [row for row in rows if row.kind == kind and not row.failed]
    means = {}
    for side, title in RATIOS.items():
        ratios = [row.ratios([side])[side] for row in chosen if side in row.times]
        if ratios:
            means[title] = _mean(ratios)
    best = [min(row.ratios(PEERS).values()) for row in chosen if row.ratios(PEERS)]
    return means | ({"of the best": _mean(best)} if best else {})


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def cells(rows: Sequence[Row], kind: str) -> tuple[list[str], list[list[str]]]:
    """Header and lines of a table; sides that no row has get no column."""
    sides = [s for s in SIDES[kind] if any(s in row.times for row in rows)]
    ratios = [s for s in RATIOS if s in sides]
    header = ["model", "batch", *(TITLES[s] for s in sides), *(RATIOS[s] for s in ratios)]
    lines = []
    for row in rows:
        times = [_time(row.times[s]) if s in row.times else "" for s in sides]
        found = row.ratios(ratios)
        shown = [f"{found[s]:.2f}x" if s in found else "" for s in ratios]
        lines.append([row.name, str(row.batch), *times, *shown])
    return header, lines


def _time(spread: Spread) -> str:
    """Returns the median, and half of the distance between the quartiles."""
    return f"{duration(spread.median)} ±{50 * (spread.upper - spread.lower) / spread.median:.0f}%"


def show(results: Results, console: Console) -> None:
    """Prints a table for inference and one for training, geometric means, and what failed or is missing."""
    if results.cleared:
        cleared = ", ".join(f"{k}={v}" for k, v in results.cleared.items())
        console.print(f"removed for this run: {cleared}", highlight=False)
    if set_here := numerical_variables():
        console.print(f"set: {', '.join(f'{k}={v}' for k, v in set_here.items())}", highlight=False)
    for kind in SIDES:
        good = [row for row in results.rows if row.kind == kind and row.times]
        if not good:
            continue
        console.print(aligned(*cells(good, kind)), highlight=False, markup=False)
        means = ", ".join(f"{title} {mean:.2f}x" for title, mean in geometric_means(good, kind).items())
        console.print(f"geometric means, {kind}: {means or 'no peer'}", highlight=False)
    _notes(results, console)


def aligned(header: list[str], lines: list[list[str]], left: int = 1) -> str:
    """Returns a table as text, `left` columns aligned to the left; a terminal or file of any width shows all of it."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *lines)
    ]
    return "\n".join(rows)


def _notes(results: Results, console: Console) -> None:
    console.print(
        f"{environment()['processor']}, {results.threads} thread(s) on every side; medians over "
        f"{results.effort.rounds} rounds of alternating sides; "
        "± half the distance of the quartiles; a ratio above 1 means that ours is faster",
        highlight=False,
    )
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in results.rows:
        for side, reason in row.absent.items():
            reasons.setdefault((side, reason), []).append(f"{row.name} ({row.batch})")
    for (side, reason), names in reasons.items():
        console.print(f"{side} left out for {', '.join(names)}: {reason}", highlight=False, markup=False)
    for row in results.failed:
        console.print(f"[red]failed[/] {row.name} ({row.batch}):", end=" ", highlight=False)
        console.print(row.failed, highlight=False, markup=False)


def markdown(results: Results) -> str:
    """Returns the tables for documents."""
    parts = []
    for kind in SIDES:
        rows = [row for row in results.rows if row.kind == kind and row.times]
        if rows:
            header, lines = cells(rows, kind)
            parts.append("\n".join("|" + "|".join(line) + "|" for line in (header, ["-"] * len(header), *lines)))
    return "\n\n".join(parts) + "\n"
