"""The command `conformance hostile`."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.commands import (
    add_device,
    cache_folder,
    cores,
    device_options,
    duration,
    open_device,
    parse_seed,
    random_seed,
    select,
    whole,
    writable,
)
from timberframe_conformance.commit import commit_number
from timberframe_core.wording import counted

if TYPE_CHECKING:
    from timberframe_conformance.hostile.verdict import Verdict

_SHOWN = 20

LEAST_MEMORY = 16
"""MB without which no session of the undamaged files runs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_device(parser, "", ": runs the graphs (default: the best)", judges=False)
    parser.add_argument("--count", type=whole(1), default=5000, metavar="N", help="how many files (default: 5000)")
    parser.add_argument("--seconds", type=duration, metavar="S", help="start no further file after this time")
    parser.add_argument(
        "--seed", default="", metavar="S", help="a number, or 'commit' for the commit's (default; without git: random)"
    )
    parser.add_argument("--format", default="", metavar="A,B", help="only files of these formats")
    parser.add_argument("--jobs", type=whole(1), metavar="N", help="processes (default: one a core)")
    parser.add_argument(
        "--timeout", type=duration, default=30.0, metavar="S", help="seconds for one file (default: 30)"
    )
    parser.add_argument(
        "--memory", type=whole(LEAST_MEMORY), default=256, metavar="MB", help="limit of a session (default: 256)"
    )
    parser.add_argument("--store", type=Path, metavar="DIR", help="where failures are kept (default: the user's cache)")
    parser.set_defaults(command=hostile)


def hostile(given: argparse.Namespace, console: Console) -> int:
    """Uses mutated files; status 0 when each gave a right answer or an OpError, 1 when one did not."""
    from timberframe_conformance.hostile import findings
    from timberframe_conformance.hostile.formats import FORMATS
    from timberframe_conformance.hostile.kinds import Limits
    from timberframe_conformance.hostile.run import run_files, tasks_of
    from timberframe_conformance.reports.terminal import waiting

    formats = select(given.format, FORMATS, "format") or tuple(FORMATS)
    seed = parse_seed(given.seed or ("commit" if commit_number() else str(random_seed())))
    target = open_device(options) if (options := device_options(given)).device else None
    limits = Limits(
        seconds=given.timeout, memory=given.memory << 20, device_type=target.device.type if target else "",
        config=target.config if target else {},
    )  # fmt: skip
    folder = writable("--store", given.store or cache_folder("hostile"))
    jobs, start = given.jobs or cores(), time.monotonic()
    stored = list(findings.stored(folder))
    with waiting(console, len(stored) + given.count) as update:
        report = _Report(console, update)
        before = run_files(stored, limits, jobs, done=report)
        fixed = findings.remove_fixed(folder, before)
        if before:
            console.print(f"{len(before)} stored files tried first: {fixed} now pass", highlight=False)
        console.print(f"mutated files of seed {seed}", highlight=False)
        known = {v.signature for v in before}
        verdicts = run_files(tasks_of(formats, seed, given.count), limits, jobs, given.seconds, report)
    for verdict in _first_of_each([v for v in verdicts if v.failed and v.signature not in known])[:_SHOWN]:
        console.print(f"{verdict.id}: stored in {findings.keep(folder, verdict, limits)}", highlight=False)
    _summary(console, formats, verdicts, time.monotonic() - start)
    return 1 if any(v.failed for v in (*before, *verdicts)) else 0


class _Report:
    """Shows how many files are done, and the first failure of each cause."""

    def __init__(self, console: Console, update: Callable[[float, str], None]) -> None:
        self._console, self._update = console, update
        self._done, self._seen = 0, set[tuple[str, str, str]]()

    def __call__(self, verdict: Verdict) -> None:
        self._done += 1
        if verdict.failed and verdict.signature not in self._seen:
            self._seen.add(verdict.signature)
            what = f"{verdict.kind} in {verdict.location}: {verdict.message}" if verdict.kind else verdict.message
            self._console.print(f"[red]{verdict.verdict}[/] {verdict.id}: {escape(what)}", highlight=False)
        self._update(self._done, f"{counted(self._done, 'file')}, {counted(len(self._seen), 'failure')}")


def _first_of_each(failed: list[Verdict]) -> list[Verdict]:
    """Returns one failure of each cause."""
    return list({v.signature: v for v in reversed(failed)}.values())


def _summary(console: Console, formats: Sequence[str], verdicts: list[Verdict], seconds: float) -> None:
    from timberframe_conformance.hostile.verdict import PASS, VERDICTS

    counts = Counter((v.format, v.verdict) for v in verdicts)
    used = [w for w in VERDICTS if w == PASS or any(counts[f, w] for f in formats)]
    console.print(f"{'format':<12}" + "".join(f"{w:>15}" for w in used), highlight=False)
    for name in formats:
        console.print(f"{name:<12}" + "".join(f"{counts[name, w] or '':>15}" for w in used), highlight=False)
    failed = sum(v.failed for v in verdicts)
    console.print(f"{counted(len(verdicts), 'file')} in {seconds:.0f} s: {counted(failed, 'failure')}", highlight=False)
