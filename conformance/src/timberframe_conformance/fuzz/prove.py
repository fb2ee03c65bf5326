"""Proves that fuzzing finds known bugs of the framework, each within MINUTES: `conformance mutants --framework`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.commands import cores, open_device, select, shortened
from timberframe_conformance.fuzz.findings import Finding, Store
from timberframe_conformance.fuzz.mutants import FRAMEWORK_MUTANTS
from timberframe_conformance.fuzz.session import Outcome, Session, judge_apart
from timberframe_conformance.fuzz.worker import Task
from timberframe_conformance.options import Options
from timberframe_conformance.reports.terminal import waiting

MINUTES = 5
SEED = 1


def prove_framework(options: Options, names: str, console: Console) -> int:
    """Fuzzes with each mutant in place until something is found; status 0 when that is so for all.

    options: of a run on the device.
    """
    chosen = select(names, FRAMEWORK_MUTANTS, "mutant") or tuple(FRAMEWORK_MUTANTS)
    target = open_device(options)
    caught = 0
    with waiting(console, len(chosen)) as update:
        for tried, name in enumerate(chosen):
            update(tried, name)
            caught += _is_caught(options, target.spec, name, console)
    console.print(f"{caught} of {len(chosen)} mutants of the framework caught", highlight=False)
    return 0 if caught == len(chosen) else 1


def _is_caught(options: Options, spec: str, name: str, console: Console) -> bool:
    """Returns whether fuzzing notices a mutant, which is printed."""
    outcome = fuzz_mutant(options, spec, name, cores())
    found = next((f for f, _ in outcome.findings if is_due(f)), None)
    if found is None:
        console.print(f"[red]missed[/]  {name}: {escape(FRAMEWORK_MUTANTS[name].what)}", highlight=False)
        return False
    console.print(
        f"[green]caught[/]  {name}: by {found.oracle} in {outcome.seconds:.0f} s, program {found.number}: "
        f"{escape(shortened(found.message, 200))}",
        highlight=False,
    )
    return True


def is_due(finding: Finding) -> bool:
    """Returns whether a program that fails with a mutant passes without; a timeout counts for the mutant that hangs."""
    by_chance = finding.oracle == "timeout" and finding.mutant != "hangs"
    task = Task(finding.device, finding.seed, "", settings=finding.settings, profile=finding.profile)
    return not by_chance and not judge_apart(finding, task, 60.0)


def fuzz_mutant(options: Options, spec: str, name: str, jobs: int, seconds: float = 60.0 * MINUTES) -> Outcome:
    """Returns a session with a mutant in place, until the first failure that is due to it.

    options: of a run on the device.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        task = Task(
            options.device, SEED, "", seconds=seconds, shrink_seconds=0.0, mutant=name, settings=options.settings,
            profile=options.profile,
        )  # fmt: skip
        return Session(task, Store(Path(folder), options.device), spec, jobs, lambda text: None, is_due).run()
