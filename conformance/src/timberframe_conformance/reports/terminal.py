"""The run on the terminal: progress while it goes, a summary at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from timberframe_conformance.case import FAILING, VERDICTS, Result
from timberframe_conformance.reports.summary import Run, by_fallback, failing, left_to_the_host, profile_remarks
from timberframe_core.wording import counted

STYLES = {
    "pass": "green",
    "fail": "red",
    "crash": "bold red",
    "timeout": "bold red",
    "unsupported": "dim",
    "not applicable": "dim",
    "waived": "yellow",
}
SHORT = {"not applicable": "n/a"}
SHOWN = 30
"""Causes of failing cases that the summary lists."""
LINE_SECONDS = 60.0
"""Without a terminal, a line of progress is printed so often."""
MOST_SHARES = 8
"""Ops that it names for each cause."""


@contextmanager
def progress(console: Console, title: str) -> Iterator[Any]:
    """A progress bar; yields a function for `runner.run`.

    Where there is no terminal, a long run prints a line a minute to stderr, from which a log shows that it goes on.
    """
    counts: Counter[str] = Counter()
    if not console.is_terminal:
        yield _lines(Console(stderr=True), title, counts)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[bad]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, bad="")

        def update(done: int, total: int, last: Result | None) -> None:
            if last is not None:
                counts[last.verdict] += 1
                if last.verdict in FAILING:
                    bar.console.print(f"[red]{last.verdict}[/] {escape(last.id)}: {escape(last.message[:300])}")
            bad = ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v] and v != "pass")
            bar.update(task, completed=done, total=total, bad=bad)

        yield update


@contextmanager
def waiting(console: Console, total: float) -> Iterator[Callable[[float, str], None]]:
    """A bar on a terminal, gone afterwards, and nothing elsewhere; for commands that print their results themselves.

    Yields what sets how much of the total is done, and says what is in work. Drawn by these calls alone: a thread that
    draws would disturb what is being measured.
    """
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=done, description=escape(text), refresh=True)


def _lines(console: Console, title: str, counts: Counter[str]) -> Any:
    shown = time.monotonic()

    def update(done: int, total: int, last: Result | None) -> None:
        nonlocal shown
        if last is not None:
            counts[last.verdict] += 1
        if time.monotonic() - shown >= LINE_SECONDS:
            shown = time.monotonic()
            bad = ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v] and v != "pass")
            console.print(f"{title}: {done} of {total} cases{', ' + bad if bad else ''}", highlight=False)

    return update


def summary(console: Console, run: Run) -> None:
    """Failing cases with the command that shows each, verdicts by suite, levels, and one last line."""
    groups = failing(run.results)
    for group in groups[:SHOWN]:
        r = group[0]
        console.print(
            f"[{STYLES[r.verdict]}]{r.verdict}[/] {escape(r.id)}\n    {escape(r.message)}\n    {escape(r.repro)}",
            highlight=False,
        )
        if group[1:]:
            console.print(f"    and {len(group) - 1} more for the same reason: {_shares(group[1:])}", highlight=False)
    if groups[SHOWN:]:
        console.print(f"... and {sum(map(len, groups[SHOWN:]))} more for {len(groups) - SHOWN} other reasons")
    for remark in profile_remarks(run):
        console.print(f"[yellow]profile[/] {escape(remark)}", highlight=False)
    console.print(_suites(run))
    console.print(_levels(run))
    for name, level in run.levels().items():
        if level["missing"]:  # below the table, which would break the id into pieces
            console.print(f"level {name} lacks, for example, {escape(level['missing'][0])}", highlight=False)
    for plugin, reason in run.environment.get("plugins_left_out", {}).items():
        console.print(f"[yellow]plugin '{plugin}' is left out:[/] {escape(reason)}", highlight=False)
    for question, reason in run.environment.get("unanswered", {}).items():
        console.print(f"[yellow]{question} is taken for unsupported:[/] supports {escape(reason)}", highlight=False)
    computed = by_fallback(run.results)
    if computed:
        found = ", ".join(f"{op} {n}" for op, n in computed.items())
        console.print(f"computed by references, which counts for no level: {escape(found)}", highlight=False)
    for reason, ops in left_to_the_host(run).items():
        console.print(f"left to the host: {', '.join(ops)}: {escape(reason)}", highlight=False)
    if run.idle:
        console.print(f"no case for this device: {', '.join(run.idle)}", highlight=False)
    if run.not_run:
        console.print(
            f"[red]stopped: {counted(run.not_run, 'case')} not run; the report is partial[/]", highlight=False
        )
    counts = ", ".join(f"{n} {v}" for v, n in run.counts.items() if n)
    style = "red" if run.failed else "green"
    console.print(
        f"[{style}]{run.device['spec']}: {len(run.results)} cases in {run.seconds:.1f} s: {counts or 'none'}[/]",
        highlight=False,
    )


def _shares(group: Sequence[Result]) -> str:
    """Returns how many cases of which suite and op there are."""
    counts = Counter(f"{r.suite}/{r.op}" for r in group)
    shown = [f"{name} {n}" for name, n in counts.most_common(MOST_SHARES)]
    return escape(", ".join(shown + ["..."] * (len(counts) > MOST_SHARES)))


def _suites(run: Run) -> Table:
    table = Table(title=None, box=None, pad_edge=False)
    table.add_column("suite")
    for verdict in VERDICTS:
        table.add_column(SHORT.get(verdict, verdict), justify="right", style=STYLES[verdict])
    table.add_column("seconds", justify="right")
    for suite in dict.fromkeys(r.suite for r in run.results):
        own = [r for r in run.results if r.suite == suite]
        counts = Counter(r.verdict for r in own)
        table.add_row(suite, *(str(counts[v] or "") for v in VERDICTS), f"{sum(r.seconds for r in own):.1f}")
    return table


def _levels(run: Run) -> Table:
    table = Table(title=None, box=None, pad_edge=False)
    for name in ("level", "reached", "cases", "failing", "missing"):
        table.add_column(name)
    for name, level in run.levels().items():
        part = run.partial or not level["cases"]
        reached = "[green]yes[/]" if level["reached"] else "[dim]part of the suite only[/]" if part else "[red]no[/]"
        table.add_row(name, reached, str(level["cases"]), str(level["failing"]), str(len(level["missing"]) or ""))
    return table
