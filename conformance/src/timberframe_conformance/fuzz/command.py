"""The command `conformance fuzz`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.commands import (
    UsageError,
    add_device,
    cache_folder,
    device_options,
    duration,
    open_device,
    parse_seed,
    random_seed,
    refuse_ignored,
    select,
    split_names,
    whole,
    worker_processes,
    writable,
)
from timberframe_core.wording import counted

if TYPE_CHECKING:
    from collections import Counter

    from timberframe_conformance.fuzz.pool import Pool
    from timberframe_conformance.fuzz.session import Outcome
    from timberframe_conformance.options import Options
    from timberframe_conformance.target import Target


SECONDS = 60.0
"""How long programs are drawn by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_device(parser, "cpu", " (default: cpu)")
    parser.add_argument(
        "--family", default="", metavar="A,B", help="only these families of programs (default: graphs, and some of all)"
    )
    parser.add_argument("--seconds", type=duration, metavar="S", help="how long to draw programs (default: 60)")
    parser.add_argument(
        "--programs", type=whole(1), metavar="N", help="how many programs to draw, in place of --seconds"
    )
    parser.add_argument(
        "--seed", default="", metavar="S", help="seed of the programs: a number or 'commit' (default: a random one)"
    )
    parser.add_argument("--store", type=Path, metavar="DIR", help="where failures are kept (default: the user's cache)")
    parser.add_argument("--oracles", default="", metavar="A,B", help="only these oracles")
    parser.add_argument("--op", default="", metavar="A,B", help="of the device's kernels draw only those of these ops")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="judge a stored failure (.json) alone")
    parser.add_argument("--vs", choices=["tensorflow"], default="", help="run the same programs in another system, too")
    parser.add_argument(
        "--peer", default="", metavar="PYTHON", help="the Python that has tensorflow (default: this one)"
    )
    parser.add_argument("--timeout", type=duration, default=60.0, metavar="S", help="seconds for one program")
    parser.add_argument("--jobs", type=whole(1), metavar="N", help="worker processes (default: one a core)")
    parser.add_argument("--mutant", default="", metavar="NAME", help="put a known bug into the framework first")
    parser.set_defaults(command=fuzz)


def fuzz(given: argparse.Namespace, console: Console) -> int:
    """Draws and judges programs; status 0 when none failed, 1 when one did."""
    from timberframe_conformance.fuzz.families import command as families
    from timberframe_conformance.fuzz.findings import Store
    from timberframe_conformance.fuzz.judge import ORACLES
    from timberframe_conformance.fuzz.session import Session
    from timberframe_conformance.fuzz.worker import Task
    from timberframe_conformance.reports.terminal import waiting

    _check(given)
    oracles = select(given.oracles, ORACLES, "oracle")
    options = device_options(given)
    target = open_device(options)
    if given.replay:
        return _replay(given, options, console)
    names = families.chosen(given, target.device.type == "CPU")
    seed = parse_seed(given.seed) if given.seed else random_seed()
    failures = families.run(given, names, seed, target.spec, console)
    if given.family and families.GRAPHS not in given.family.split(","):
        return 1 if failures else 0
    pool = _pool(given.op, target)
    seconds = 1e9 if given.programs is not None else given.seconds or SECONDS
    end = 1 << 62 if given.programs is None else given.programs
    task = Task(
        given.device, seed, "", end=end, seconds=seconds, timeout=given.timeout, oracles=oracles, mutant=given.mutant,
        vs=given.vs, ops=pool.ops, profile=options.profile, settings=options.settings,
    )  # fmt: skip
    store = Store(given.store or cache_folder("fuzz"), given.device)
    writable("--store", store.folder)
    jobs = given.jobs or (1 if given.vs else worker_processes(None, target.url))
    console.print(f"{target.spec}: fuzzing with --seed {seed}", highlight=False)
    total = seconds if given.programs is None else given.programs
    start = time.monotonic()
    with waiting(console, total) as update:

        def progress(outcome: Outcome) -> None:
            done = time.monotonic() - start if given.programs is None else outcome.programs
            found = counted(len(outcome.findings), "failure")
            replayed = outcome.known + outcome.replayed
            tried = outcome.programs or not replayed
            what = counted(outcome.programs, "program") if tried else f"{counted(replayed, 'known program')} replayed"
            update(done, f"{what}, {found}")

        def report(text: str) -> None:
            console.print(escape(text), highlight=False)

        outcome = Session(task, store, target.spec, jobs, report, progress=progress).run()
    _summary(outcome, target.spec, pool, console)
    return 1 if outcome.findings or failures else 0


def _check(given: argparse.Namespace) -> None:
    if given.replay:
        drawing = ("seconds", "programs", "seed", "store", "oracles", "op", "jobs")
        refuse_ignored(given, drawing, "with --replay")
    if given.programs is not None:
        refuse_ignored(given, ("seconds",), "with --programs")
    if given.vs and not given.peer:
        try:
            from timberframe_conformance.fuzz.oracles import tensorflow as tensorflow
        except ImportError as e:
            raise UsageError(f"tensorflow cannot be imported ({e}); --vs tensorflow needs it") from e
    if given.mutant:
        from timberframe_conformance.fuzz.mutants import FRAMEWORK_MUTANTS

        if given.mutant not in FRAMEWORK_MUTANTS:
            raise UsageError(f"mutant {given.mutant!r} is not known; known are {', '.join(FRAMEWORK_MUTANTS)}")
    if "tensorflow" in split_names(given.oracles) and not given.vs:
        raise UsageError("oracle tensorflow needs --vs tensorflow")


def _replay(given: argparse.Namespace, options: Options, console: Console) -> int:
    """Judges a stored failure by the oracle that found it; status 1 if it still fails."""
    from timberframe_conformance.fuzz.findings import Finding
    from timberframe_conformance.fuzz.session import replay
    from timberframe_conformance.fuzz.worker import Task

    try:
        finding = Finding.from_json(given.replay.read_text())
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise UsageError(f"--replay {given.replay}: {e}; a finding's .json is required") from e
    mutant = given.mutant or finding.mutant
    task = Task(
        given.device, finding.seed, "", mutant=mutant, vs=given.vs, profile=options.profile, settings=options.settings
    )
    oracle, message = replay(finding, task, given.timeout)
    with_mutant = f" with mutant {mutant}" if mutant else ""
    text = f"FAILED {oracle}: {message}{with_mutant}" if oracle else f"{finding.oracle}: passes{with_mutant}"
    console.print(escape(text), highlight=False)
    return 1 if oracle else 0


def _pool(text: str, target: Target) -> Pool:
    """Returns what is drawn from, of the device; UsageError where it has no kernel of an op that --op names."""
    from timberframe_conformance.fuzz.pool import Pool

    pool = Pool(target, ops=split_names(text))
    lacking = [n for n in pool.ops if n not in pool.own]
    if lacking:
        raise UsageError(f"--op {', '.join(lacking)}: {target.spec} has no kernel that programs may have")
    return pool


def _ops_that_ran(ran: Counter[str], pool: Pool) -> str:
    """Returns how many nodes ran on the device, and of how many of the ops that were to be drawn."""
    own = {op: ran[op] for op in pool.own if op in ran}
    if not pool.ops:
        return f"{ran.total()} nodes of {len(own)} of its {counted(len(pool.own), 'op')}"
    return (
        f"{ran.total()} nodes, {sum(own.values())} of them of {len(own)} of the {counted(len(pool.own), 'op')} of --op"
    )


def _summary(outcome: Outcome, spec: str, pool: Pool, console: Console) -> None:
    from timberframe_conformance.fuzz.judge import ORACLES

    rows = {name: outcome.compared[name] for name in ORACLES if name in outcome.compared}
    width = max((len(name) for name in rows), default=6)
    console.print(f"{'oracle':<{width}}  results compared", highlight=False)
    for name, count in rows.items():
        console.print(f"{name:<{width}}  {count:>16}", highlight=False)
    console.print(
        f"{outcome.programs_on_device} of {outcome.programs} programs had nodes on {spec}: "
        + _ops_that_ran(outcome.on_device, pool),
        highlight=False,
    )
    for name, count in outcome.repeated.most_common():
        console.print(escape(f"repeated, {count} times: {name}"), highlight=False)
    replayed = f", {counted(outcome.known, 'known program')} replayed" if outcome.known else ""
    if outcome.replayed:
        replayed += f", {counted(outcome.replayed, 'stored failure')} replayed ({outcome.fixed} fixed)"
    invalid = f" ({outcome.invalid} of them invalid)" if outcome.invalid else ""
    console.print(
        f"{spec}: {counted(outcome.programs, 'program')}{invalid} in {outcome.seconds:.0f} s{replayed}: "
        f"{counted(len(outcome.findings), 'failure')}",
        highlight=False,
    )
