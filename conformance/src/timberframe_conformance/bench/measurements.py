"""The benchmarks as pytest items; `conformance bench` runs this file with pytest-benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PASSES = 3
"""Number of measurements of each call; all sides alternate, so that load on the machine affects them alike."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    plan = metafunc.config.stash.get(KEY, None)
    measurements, order = (plan.measurements, plan.order) if plan is not None else ([], {})
    entries = [(m, p) for p in range(PASSES) for m in sorted(measurements, key=lambda m: order[m.name])]
    metafunc.parametrize("entry", entries, ids=[f"{m.name}-{m.side}-{p}" for m, p in entries])


class Plan:
    """What is to be measured, and what was: the fastest time of each (name, side) in seconds.

    progress: called with the share that is done, and the name of what comes next.
    """

    def __init__(self, measurements: list[Any], progress: Callable[[float, str], None]) -> None:
        self.measurements = measurements
        self.progress = progress
        self.done = 0
        self.order = {m.name: i for i, m in enumerate(measurements)}
        self.fastest: dict[tuple[str, str], float] = {}


KEY = pytest.StashKey[Plan]()


def test_speed(entry: tuple[Any, int], benchmark: Any, request: pytest.FixtureRequest) -> None:
    measurement, _ = entry
    plan = request.config.stash[KEY]
    plan.progress(plan.done / (PASSES * len(plan.measurements)), f"{measurement.name}, {measurement.side}")
    plan.done += 1
    benchmark(measurement.call)
    key = measurement.name, measurement.side
    plan.fastest[key] = min(plan.fastest.get(key, float("inf")), benchmark.stats.stats.min)
