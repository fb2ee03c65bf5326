"""Families of programs in `conformance fuzz`: which are run, for how long, and what is printed of them."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.commands import UsageError, cache_folder
from timberframe_conformance.fuzz.families import FAMILIES
from timberframe_conformance.fuzz.families.session import FamilyOutcome, FamilySession
from timberframe_core.wording import counted

GRAPHS = "graphs"
"""The name by which `--family` asks for random graphs, which are no family of this folder."""

SECONDS_SHARE = 1 / 25
PROGRAMS_SHARE = 1 / 20
"""Share of the time, or of the number of programs, that each family gets where none is named, beside random graphs."""


def chosen(given: argparse.Namespace, is_cpu: bool) -> tuple[str, ...]:
    """Returns the families to run: those named, else all on a CPU, unless options ask for what graphs alone have."""
    names = tuple(n for n in given.family.split(",") if n)
    unknown = [n for n in names if n not in FAMILIES and n != GRAPHS]
    if unknown:
        raise UsageError(f"family {unknown[0]!r} is not known; known are {', '.join((GRAPHS, *FAMILIES))}")
    if [n for n in names if n != GRAPHS] and (given.library or given.option):
        raise UsageError("--family with --library or --option: families run devices without options; graphs alone do")
    if names:
        return tuple(n for n in names if n != GRAPHS)
    special = given.oracles or given.op or given.mutant or given.device_profile or given.library or given.option
    return () if special or not is_cpu else tuple(FAMILIES)


def check_peer(given: argparse.Namespace) -> str:
    """Returns the interpreter that has TensorFlow, "" where none is asked for."""
    if not given.vs:
        return ""
    if not given.peer:
        if importlib.util.find_spec("tensorflow") is None:
            raise UsageError("tensorflow is not installed here; --vs tensorflow needs it, or --peer PYTHON that has it")
        return sys.executable
    if shutil.which(given.peer) is None:
        raise UsageError(
            f"--peer {given.peer}: no such program; the Python of an environment with tensorflow is needed"
        )
    return str(given.peer)


def run(given: argparse.Namespace, names: tuple[str, ...], seed: int, device: str, console: Console) -> int:
    """Runs families and prints what each gave; the number of failures."""
    peer = check_peer(given)
    folder: Path = (given.store or cache_folder("fuzz")) / "families"
    failures = 0
    for name in names:
        programs, seconds = _amount(given)
        if not programs:
            continue
        session = FamilySession(FAMILIES[name], folder, peer, device, given.timeout)
        try:
            outcome = session.run(
                seed, programs=programs, seconds=seconds, report=lambda t: console.print(escape(t), highlight=False)
            )
        finally:
            session.close()
        console.print(escape(summary(outcome)), highlight=False)
        failures += len(outcome.failures)
    return failures


def _amount(given: argparse.Namespace) -> tuple[int, float]:
    """Returns the number of programs of a family, and its seconds."""
    alone = bool(given.family)
    if given.programs is not None:
        return (given.programs if alone else int(given.programs * PROGRAMS_SHARE)), 1e9
    seconds = given.seconds or 60.0
    return 1 << 62, seconds if alone else seconds * SECONDS_SHARE


def summary(outcome: FamilyOutcome) -> str:
    """Returns one line: what was judged, what known differences explain, what failed."""
    explained = ", ".join(f"{name}: {count}" for name, count in sorted(outcome.explained.items()))
    parts = [counted(outcome.programs, "program"), f"{outcome.judged} judged", f"{outcome.refused} refused by both"]
    parts += [
        f"{outcome.compared} results compared",
        f"{outcome.explained.total()} explained" + (f" ({explained})" if explained else ""),
    ]
    again = f" (and {outcome.repeated.total()} more of the same)" if outcome.repeated else ""
    return f"{outcome.family}: {', '.join(parts)}, {counted(len(outcome.failures), 'failure')}{again}"
