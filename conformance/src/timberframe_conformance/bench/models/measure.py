"""Compares the results of all sides, then measures them alternately."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timberframe_conformance.bench.models.sides import DEVICE, Side

TOLERANCE = 1e-4
"""The greatest allowed difference from the device's results, relative to the largest magnitude in them. The order of
additions in float32 differs from system to system, which makes up to 2e-5 after a hundred layers; a wrong layer makes
far more."""


@dataclass(frozen=True)
class Effort:
    """How much is measured: the number of rounds, and the least time that every side runs in each."""

    rounds: int = 15
    seconds: float = 0.05
    warm_up: float = 0.3


QUICK = Effort(rounds=3, seconds=0.01, warm_up=0.02)
WINDOW, BUSY, PATIENCE = 0.004, 0.1, 3.0
"""Seconds that the process is watched for at a time, the share of a core that counts as busy, and seconds to wait."""


LEAST_SAMPLE = 2e-4
"""Seconds that a sample takes at least, so that reading the clock costs nothing."""


@dataclass(frozen=True)
class Spread:
    """Seconds of a run: median, quartiles and minimum of the samples, each the mean of a number of consecutive
    calls."""

    median: float
    lower: float
    upper: float
    fastest: float
    samples: int
    calls: int


@dataclass
class Row:
    """One network: times by side, differences from the device's results, and why sides are missing or it failed."""

    name: str
    batch: int
    kind: str
    times: dict[str, Spread] = field(default_factory=dict)
    differences: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    failed: str = ""

    def ratios(self, sides: Iterable[str]) -> dict[str, float]:
        """By side the time that it takes, in that of the device; of those that were measured."""
        if DEVICE not in self.times:
            return {}
        own = self.times[DEVICE].median
        return {side: self.times[side].median / own for side in sides if side in self.times}


def measure(row: Row, openers: Iterable[tuple[str, Callable[[], Side]]], effort: Effort) -> Row:
    """Opens the sides, compares their results and, if all agree, measures them. Fills and returns the row.

    A peer that cannot be opened or run is noted as absent; the device that cannot, or a difference beyond TOLERANCE,
    makes the row a failed one.
    """
    sides, results = [], {}
    for name, opener in openers:
        try:
            side = opener()
            results[name] = [np.asarray(v, np.float64) for v in side.results()]
        except Exception as e:
            reason = f"{type(e).__name__}: {e}".splitlines()[0]
            row.absent[name] = reason
            if name.startswith(DEVICE):
                row.failed = f"{name}: {reason}"
            continue
        sides.append(side)
    if not row.failed:
        _compare(row, results)
    if not row.failed:
        row.times = interleave(sides, effort)
    return row


def _compare(row: Row, results: dict[str, list[np.ndarray]]) -> None:
    for name in (n for n in results if n != DEVICE):
        row.differences[name] = max(map(difference, results[DEVICE], results[name]))
    wrong = {n: d for n, d in row.differences.items() if not d <= TOLERANCE}
    if wrong:
        differing = ", ".join(f"{name} by {d:.2g}" for name, d in wrong.items())
        row.failed = f"results differ from the device's: {differing} of their largest magnitude; at most {TOLERANCE:g}"


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Returns the largest difference of two arrays, of the largest magnitude in them; infinite
    where they do not compare.
    """
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return math.inf
    largest = max(float(np.max(np.abs(a), initial=0)), float(np.max(np.abs(b), initial=0)))
    return float(np.max(np.abs(a - b), initial=0)) / largest if largest else 0.0


def interleave(sides: Sequence[Side], effort: Effort) -> dict[str, Spread]:
    """Times of all sides, which alternate within each round; every round starts with another side."""
    fastest = {side.name: _warm_up(side, effort) for side in sides}
    calls = {name: math.ceil(LEAST_SAMPLE / seconds) for name, seconds in fastest.items()}
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for i in range(effort.rounds):
            first = i % len(sides)
            for side in (*sides[first:], *sides[:first]):
                taken = calls[side.name]
                count = math.ceil(effort.seconds / (taken * fastest[side.name]))
                samples[side.name] += _samples(side, taken, max(1, count))
    finally:
        if collecting:
            gc.enable()
    return {name: _spread(times, calls[name]) for name, times in samples.items()}


def _warm_up(side: Side, effort: Effort) -> float:
    """Returns seconds of the fastest run."""
    side.prepare()
    fastest, end = math.inf, time.perf_counter() + effort.warm_up
    while math.isinf(fastest) or time.perf_counter() < end:
        fastest = min(fastest, *(_seconds(side.call, 1) for _ in range(3)))
    return fastest


def _samples(side: Side, calls: int, count: int) -> list[float]:
    """Returns seconds of each of a number of runs."""
    side.prepare()
    settle()
    side.call()
    return [_seconds(side.call, calls) / calls for _ in range(count)]


def settle() -> None:
    """Waits until no thread of the process is busy.

    Threads of ONNX Runtime look out for more work for 25 ms to more than a second after a run, and would take a core
    from the side that is measured next.
    """
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        used, start = time.process_time(), time.perf_counter()
        time.sleep(WINDOW)
        if time.process_time() - used < BUSY * (time.perf_counter() - start):
            return


def _seconds(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def _spread(times: list[float], calls: int) -> Spread:
    lower, median, upper = (float(v) for v in np.percentile(times, (25, 50, 75)))
    return Spread(median, lower, upper, min(times), len(times), calls)
