"""The devices that reports are about, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from timberframe_conformance.case import FAILING, LEVELS
from timberframe_conformance.reports.badge import badge_name, device_heading
from timberframe_conformance.reports.breadth import breadth_table
from timberframe_conformance.reports.merge import newest
from timberframe_conformance.reports.summary import Run

_HEAD = """# Devices

What the conformance suite found about devices, from their newest reports. Levels: *core* is what a perceptron and
LeNet need, *inference* what frozen networks need, *training* their training steps, *breadth* every op and dtype that
TensorFlow has a kernel for. `conformance todo --device=NAME --level L` says what a level asks for, and
`conformance report REPORTS --markdown PAGE --badges FOLDER` makes this page. What has no column, such as a
GPU that only a plugin is there for, has not been judged. Failures that a waiver covers keep a level from being
reached, too.
"""
_BREADTH = """## Breadth

Pairs of op and dtypes that a device supports, by family of ops: those of which a case passed, of
those that its run tried. A run of the level breadth tries all that TensorFlow has kernels for, in the dtypes that the
device holds.
"""


def devices_page(runs: Sequence[Run], badges: str = "") -> str:
    """Markdown of the newest run of each device: levels, cases, pairs of op and dtypes, and what it was run with.

    badges: the folder of their badges, as the page names it; without one it has none.
    """
    shown = newest(runs)
    columns = [("device", "-", "model", *LEVELS, "cases", "failing", "waived", "suite", "run on"), *map(_column, shown)]
    table = "\n".join(f"|{'|'.join(row)}|" for row in zip(*columns, strict=True))
    sections = "\n".join(_section(run, badges) for run in shown)
    return f"{_HEAD}\n{table}\n\n{_BREADTH}\n{breadth_table(shown)}\n\n{sections}"


def _column(run: Run) -> tuple[str, ...]:
    """Returns the device's column of the table: its heading, what is beneath it, and facts."""
    device, counts = run.device, run.counts
    model = _cell(" ".join(str(device.get(k, "")) for k in ("vendor", "model")))
    if device.get("driver") and device.get("model") == run.environment.get("processor"):
        model += f": the machine's processor, by {device.get('details', {}).get('platform', 'a driver')}"
    return (
        f"`{device_heading(run)}`", "-", model,
        *(_level(run, level) for level in LEVELS), f"{len(run.results):,}", f"{sum(counts[v] for v in FAILING):,}",
        f"{counts['waived']:,}", run.suite_version, str(run.environment.get("date", ""))[:10],
    )  # fmt: skip


def _level(run: Run, level: str) -> str:
    found = run.levels().get(level)
    if found is None or not found["cases"]:
        return "not run"
    return "reached" if found["reached"] else "part" if run.partial else "not reached"


def _section(run: Run, badges: str) -> str:
    e = run.environment
    plugins = ", ".join(f"{name} ({v})" for name, v in e.get("plugins", {}).items()) or "none"
    pictures = [f"![{level}: {_level(run, level)}]({badges}/{badge_name(run, level)})" for level in LEVELS]
    lines = [
        f"## {device_heading(run)}", "", *([" ".join(pictures), ""] if badges else []),
        f"- driver: {run.device.get('driver') or 'none'}",
        f"- machine: {e.get('processor', '')}, {e.get('cores', '?')} cores, {e.get('system', '')}",
        f"- plugins: {plugins}",
        f"- suite: {', '.join([run.suite_version, *_revisions(e)])}",
    ]  # fmt: skip
    waivers, wider = (run.profile.get(name, ()) for name in ("waivers", "tolerances"))
    lines += [f"- waiver of `{w['cases']}`, until {w['expires']}: {w['reason']}" for w in waivers]
    lines += [f"- tolerance of {t['ulp']:g} ULP for `{t['op']}`, until {t['expires']}: {t['reason']}" for t in wider]
    for level, found in run.levels().items():
        if missing := found["missing"]:
            lines.append(f"- level {level} lacks {len(missing):,}, for example `{missing[0]}`")
    return "\n".join(lines) + "\n"


def _revisions(environment: Mapping[str, Any]) -> Iterator[str]:
    """Yields which files the suite had, and of which commit, as far as that is known: an installed one is of none."""
    for name, key in (("files", "suite_hash"), ("commit", "git")):
        if value := str(environment.get(key) or "")[:12]:
            yield f"{name} {value}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip()
