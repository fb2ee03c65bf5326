"""`conformance bench --growth`: how the cost of graphs grows with nodes, variables, nesting and shapes."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import timberframe as tf
from timberframe_conformance.bench import growth_programs
from timberframe_conformance.bench.table import duration
from timberframe_conformance.commands import UsageError
from timberframe_conformance.reports.terminal import waiting

HIGHEST = 1.15
"""The exponent above which a cost does not count as linear."""
REPEATS = 3
DEVICE, TENSORFLOW = "device", "tensorflow"
_TOO_LONG = 600  # seconds after which TensorFlow is not waited for


@dataclass
class Curve:
    """The medians of one part of a program on one side, by size."""

    program: str
    part: str
    side: str
    seconds: dict[int, float] = field(default_factory=dict)

    @property
    def exponent(self) -> float:
        """The k of size ** k that fits the medians best, by least squares of logarithms; NaN for less than two."""
        if len(self.seconds) < 2:
            return math.nan
        sizes, times = np.log(list(self.seconds)), np.log(list(self.seconds.values()))
        return float(np.polyfit(sizes, times, 1)[0])

    def to_dict(self) -> dict[str, Any]:
        """Returns the curve as JSON holds it."""
        shown = {str(size): seconds for size, seconds in self.seconds.items()}
        return {"program": self.program, "part": self.part, "side": self.side, "seconds": shown,
                "exponent": None if math.isnan(self.exponent) else self.exponent}  # fmt: skip


def bench_growth(given: argparse.Namespace, console: Console) -> int:
    """Measures and prints; status 1 where an exponent of ours is above the limit with --check."""
    names = [n for n in growth_programs.PROGRAMS if given.keyword in n]
    if not names:
        raise UsageError(f"-k {given.keyword!r}: no program has such a name; a part of one is required, as in -k chain")
    sides: dict[str, Callable[[str, int], Mapping[str, list[float]]]] = {DEVICE: _ours}
    if given.vs:
        if given.vs != TENSORFLOW or given.peer_python is None:
            raise UsageError(f"--vs {given.vs}: growth is compared with tensorflow, whose Python --peer-python names")
        sides[TENSORFLOW] = lambda name, size: _theirs(given.peer_python, name, size)
    with waiting(console, len(names)) as update:
        curves = [
            curve
            for i, name in enumerate(names)
            for side, run in sides.items()
            for curve in _curves(name, side, run, lambda text, i=i: update(i, text))  # type: ignore[misc]  # binds i
        ]
    console.print(_table(curves))
    if given.json:
        given.json.write_text(json.dumps([c.to_dict() for c in curves], indent=2) + "\n")
    above = [c for c in curves if c.side == DEVICE and c.exponent > HIGHEST]
    for c in above:
        console.print(f"[red]target missed[/] {c.program}, {c.part}: size ** {c.exponent:.2f}, at most {HIGHEST}")
    return 1 if given.check and above else 0


def _curves(
    name: str, side: str, run: Callable[[str, int], Mapping[str, list[float]]], progress: Callable[[str], None]
) -> list[Curve]:
    found: dict[str, Curve] = {}
    for size in growth_programs.PROGRAMS[name][1]:
        progress(f"{name}, {side}, {size}")
        for part, seconds in run(name, size).items():
            curve = found.setdefault(part, Curve(name, part, side))
            curve.seconds[size] = max(statistics.median(seconds), 1e-9)  # a logarithm is taken of it
    return list(found.values())


def _ours(name: str, size: int) -> Mapping[str, list[float]]:
    return growth_programs.measure(tf, name, size, REPEATS)


def _theirs(python: str, name: str, size: int) -> Mapping[str, list[float]]:
    """Returns the seconds that TensorFlow takes, in a process of its own; none where it fails or takes too long."""
    command = [python, growth_programs.__file__, name, str(size), str(REPEATS)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TOO_LONG, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {}
    lines = done.stdout.splitlines()
    found: Mapping[str, list[float]] = json.loads(lines[-1]) if done.returncode == 0 and lines else {}
    return found


def _table(curves: Sequence[Curve]) -> Table:
    """Returns a line for each part of a program and each side: the sizes, the medians, the exponent."""
    table = Table(box=None, pad_edge=False)
    for column in ("program", "part", "side", "sizes", "medians", "exponent"):
        table.add_column(column)
    for c in curves:
        good = c.exponent <= HIGHEST or c.side != DEVICE
        times = " ".join(duration(s).replace(" ", "") for s in c.seconds.values())
        exponent = f"[{'green' if good else 'red'}]{c.exponent:.2f}[/]"
        table.add_row(c.program, c.part, c.side, " ".join(map(str, c.seconds)), times, exponent)
    return table
