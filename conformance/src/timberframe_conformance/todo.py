"""The command `conformance todo`: what a device lacks for a level, and which networks need it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from timberframe_conformance.case import FAILING, LEVELS, Result
from timberframe_conformance.commands import add_device, device_options, duration, open_device, whole, worker_processes
from timberframe_conformance.options import DEFAULT_TIMEOUT, device_arguments
from timberframe_conformance.reports.summary import is_missing
from timberframe_core.wording import counted

if TYPE_CHECKING:
    from timberframe_conformance.reports.summary import Run
    from timberframe_conformance.target import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what the command takes."""
    add_device(parser)
    parser.add_argument("--level", default="training", choices=LEVELS, help="the level to reach (default: training)")
    parser.add_argument("--timeout", type=duration, default=DEFAULT_TIMEOUT, metavar="S", help="seconds for one case")
    parser.add_argument("--jobs", type=whole(0), metavar="N", help="worker processes")
    parser.set_defaults(command=_todo)


@dataclass
class Item:
    """One thing to do: what is called, why it is not right yet, and the networks that need it."""

    what: str
    why: str
    networks: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        needed = f"; {', '.join(self.networks)}" if self.networks else ""
        return f"{self.what}: {self.why}{needed}"


def items(results: Iterable[Result]) -> list[Item]:
    """Returns what results say is missing or wrong: several inputs of one op with the same cause are one item."""
    found: dict[tuple[str, str], Item] = {}
    for r in results:
        why = r.message if r.verdict == "unsupported" else f"{r.verdict}: {r.message}"
        why = f"computed by {', '.join(k for k in r.kernels if k.endswith('(fallback)'))}" if r.fallback else why
        what = f"{r.op} {','.join(r.dtypes.values()) or '-'} {_attrs(r)}".rstrip()
        item = found.setdefault((what, r.cause or why), Item(what, why))
        item.networks.update(dict.fromkeys(r.networks))
    return list(found.values())


def _attrs(r: Result) -> str:
    """Returns the attrs that the id shows, or the name of a network."""
    detail = r.id.rsplit("/", 1)[-1]
    return detail if r.op == "Model" else " ".join(part for part in detail.split("-") if "=" in part)


def _todo(given: argparse.Namespace, console: Console) -> int:
    from timberframe_conformance.collect import collect
    from timberframe_conformance.judge import judge_case
    from timberframe_conformance.reports.terminal import waiting
    from timberframe_conformance.runner import run
    from timberframe_conformance.suites import networks

    options = replace(device_options(given), level=given.level, suites=(networks.SUITE,), timeout=given.timeout)
    target = open_device(options)
    with waiting(console, 1.0) as update:

        def progress(count: int, total: int, _: Result | None) -> None:
            update(count / (total or 1), f"{count} of {counted(total, 'case')} of networks")

        done = run(target, options, jobs=worker_processes(given.jobs, target.url), progress=progress)
    fallbacks: list[Item] = []
    by_level = {level: _open(done, level) for level in LEVELS[: LEVELS.index(given.level) + 1]}
    if given.level == LEVELS[-1]:
        cases = collect(target, replace(options, level=LEVELS[-1], suites=("forward",)))
        by_level[LEVELS[-1]] += [judge_case(c, target) for c in cases if c.detail == "no-kernel"]
        fallbacks = list(_fallbacks(target))
    for level, results in by_level.items():
        found = items(results) + (fallbacks if level == LEVELS[-1] else [])
        console.print(f"{level}: {counted(len(found), 'thing') if found else 'nothing'} to do", highlight=False)
        for item in found:
            console.print(f"  {escape(str(item))}", highlight=False)
    left = any(by_level.values()) or bool(fallbacks)
    if not left:
        command = f"conformance run {shlex.join(device_arguments(options))} --require {given.level}"
        console.print(escape(f"`{command}` says whether it is reached"), highlight=False)
    return int(left)


def _fallbacks(target: Target) -> Iterator[Item]:
    """Yields the ops that the device has computed by references, each with the dtypes."""
    from timberframe_conformance.suites.choice import has_kernel
    from timberframe_conformance.suites.forward import supported
    from timberframe_conformance.target import probe
    from timberframe_core.ops.definition import registry

    for op in filter(has_kernel, registry.all_ops()):
        groups, _ = supported(op, target)
        nodes = {types: probe(target.device, op, types, {}) for group in groups.values() for types in group}
        kernels = {types: target.device.kernel(node) for types, node in nodes.items()}
        found = [types for types, k in kernels.items() if k is not None and k.fallback]
        if found:
            dtypes = dict.fromkeys(types[0][1] if types else "-" for types in found)
            yield Item(f"{op.name} {', '.join(dtypes)}", "computed by the op's reference (fallback)")


def _open(done: Run, level: str) -> list[Result]:
    """Returns what keeps a level from being reached. Networks as a whole cannot run before all that they call can."""
    found = [r for r in done.results if r.level == level and (r.verdict in FAILING or is_missing(r))]
    return [r for r in found if r.op != "Model"] or found
