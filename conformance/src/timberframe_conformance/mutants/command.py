"""The command `conformance mutants`: proves that the suite notices known bugs."""

from __future__ import annotations

import argparse
import subprocess
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.commands import (
    UsageError,
    add_device,
    device_options,
    open_device,
    parse_share,
    refuse_ignored,
    select,
    split_names,
)

if TYPE_CHECKING:
    from timberframe_conformance.mutants.base import Mutant
    from timberframe_conformance.mutants.prove import Proof


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_device(parser, "", ": whose kernels get the bugs (default: the best)")
    parser.add_argument("--list", action="store_true", help="print the selected mutants")
    parser.add_argument("--name", default="", metavar="A,B", help="only these mutants")
    parser.add_argument(
        "--share", default="", metavar="K/N", help="only the Kth of N shares, from 0; K may be 'commit'"
    )
    parser.add_argument("--changed", metavar="REV", help="only mutants whose op's files changed since a git revision")
    parser.add_argument(
        "--soak", action="store_true", help="mutants that level soak must notice, which takes minutes and gigabytes"
    )
    parser.add_argument("--framework", action="store_true", help="known bugs of the framework, which fuzzing must find")
    parser.add_argument(
        "--lazy", action="store_true", help="kernels of each op that do too little, which the suites must find"
    )
    parser.set_defaults(command=mutants)


def mutants(given: argparse.Namespace, console: Console) -> int:
    """Runs the mutants; status 0 when each is noticed as it should be."""
    from timberframe_conformance.mutants.catalogue import MUTANTS
    from timberframe_conformance.mutants.prove import prove
    from timberframe_conformance.reports.terminal import waiting

    if given.list:
        refuse_ignored(given, ("device",), "with --list")
    if given.framework:
        refuse_ignored(given, ("share", "changed", "soak"), "with --framework")
        from timberframe_conformance.fuzz.mutants import FRAMEWORK_MUTANTS
        from timberframe_conformance.fuzz.prove import prove_framework

        if given.list:
            for name in select(given.name, FRAMEWORK_MUTANTS, "mutant") or FRAMEWORK_MUTANTS:
                bug = FRAMEWORK_MUTANTS[name]
                console.print(f"{bug.name}: {bug.what}", highlight=False)
            return 0
        return prove_framework(device_options(given, _best_device()), given.name, console)
    if given.lazy:
        refuse_ignored(given, ("name", "changed", "soak"), "with --lazy")
        from timberframe_conformance.mutants.prove_lazy import print_lazy, report_lazy

        return print_lazy(console) if given.list else report_lazy(device_options(given), given.share, console)
    names = _selected(given, [n for n, m in MUTANTS.items() if m.fits(given.device) and m.soak == given.soak])
    if given.list:
        for m in map(MUTANTS.__getitem__, names):
            console.print(f"{m.name}: {m.subject}{m.what} ({m.found_by})", highlight=False)
        return 0
    start = time.perf_counter()
    options = device_options(given, _best_device())
    target = open_device(options)
    proofs: list[Proof] = []
    with waiting(console, len(names)) as update:
        for name in names:
            update(len(proofs), name)
            proofs.append(prove(target, MUTANTS[name], options))
            _show(name, proofs[-1], console)
    tried = [p for p in proofs if not p.skipped]
    good = sum(p.ok for p in tried)
    console.print(
        f"{good} of {len(tried)} mutants caught by the cases that should, in {time.perf_counter() - start:.1f} s",
        highlight=False,
    )
    return 0 if good == len(tried) else 1


def _show(name: str, proof: Proof, console: Console) -> None:
    if proof.skipped:
        console.print(f"[dim]n/a[/]     {name}: {escape(proof.skipped)}", highlight=False)
    elif proof.ok:
        console.print(
            f"[green]caught[/]  {name}: by {proof.noticed} of {proof.tried} cases, first {escape(proof.first)}",
            highlight=False,
        )
    else:
        label = "wrongly" if proof.caught else "missed"
        console.print(f"[red]{label}[/]  {name}: {escape('; '.join(proof.problems))}", highlight=False)


def _best_device() -> str:
    """Returns the name of the device that sessions prefer."""
    from timberframe import SessionConfig
    from timberframe_core.runtime.devices import devices_for

    devices = devices_for(SessionConfig())
    if not devices:
        raise UsageError("there is no device; install a device plugin")
    return devices[0].type.lower()


def _selected(given: argparse.Namespace, names: list[str]) -> list[str]:
    from timberframe_conformance.mutants.catalogue import MUTANTS
    from timberframe_conformance.mutants.prove import changed_mutants
    from timberframe_conformance.options import in_share

    chosen: list[str] = []
    if given.name:
        chosen = list(split_names(given.name))
        unknown = [n for n in chosen if n not in names]
        for mutant in (MUTANTS[n] for n in unknown if n in MUTANTS):
            raise UsageError(f"mutant {mutant.name} is left out: {_why_left_out(mutant, given)}")
        if unknown:
            raise UsageError(f"mutant {', '.join(unknown)} is not known; --list prints all")
    if given.share:
        share = parse_share(given.share)
        chosen += [n for n in names if in_share(n, share)]
    if given.changed:
        done = subprocess.run(
            ["git", "diff", "--name-only", given.changed], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UsageError(f"--changed {given.changed}: {done.stderr.strip() or 'git fails'}; a revision is required")
        chosen += changed_mutants(done.stdout.split())
    if not given.name and not given.share and not given.changed:
        chosen = names
    return [n for n in names if n in set(chosen)]


def _why_left_out(mutant: Mutant, given: argparse.Namespace) -> str:
    if mutant.soak != given.soak:
        return f"it is tried with{'' if mutant.soak else 'out'} --soak"
    return f"it has a device of its own, and --device {given.device} asks for another"
