"""Many training steps in one session: whether memory use grows.

``python -m timberframe_conformance.bench.soak --device=cpu`` runs a million.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import timberframe as tf
from timberframe_conformance.bench.training import mlp

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SIZES = (16, 12, 10)
BATCH = 8
STEPS = 1_000_000
PARTS = 20
ALLOWED_GROWTH = 1 << 20
"""Bytes by which the resident memory may differ at the end: pages of malloc come and go, a leak of a byte a step shows
in a million of them."""


@dataclass(frozen=True)
class Memory:
    """After `steps` steps: resident bytes of the process, and live allocations and bytes of the device."""

    steps: int
    resident: int
    live: int
    used: int


def resident_bytes() -> int:
    """Resident memory of this process; 0 if the system does not report it."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0


def run_steps(target: Target, steps: int, parts: int = PARTS) -> Iterator[Memory]:
    """Trains a small network and yields the memory use after each part of the steps."""
    training = mlp(tf, target.session, target.spec, SIZES, BATCH)
    call, done = training.call(), 0
    for part in range(1, parts + 1):
        while done < steps * part // parts:
            call()
            done += 1
        gc.collect()
        statistics = target.statistics()
        yield Memory(done, resident_bytes(), statistics.live, statistics.used)
    training.session.close()


def growth(found: list[Memory]) -> str | None:
    """Returns what grew between the first part, which warms up, and the last; None where nothing did."""
    first, last = found[0], found[-1]
    if last.live > first.live or last.used > first.used:
        return f"live allocations rose from {first.live} ({first.used} bytes) to {last.live} ({last.used} bytes)"
    if last.resident - first.resident > ALLOWED_GROWTH:
        return f"resident memory rose from {first.resident} to {last.resident} bytes"
    return None


def main() -> int:
    """Runs the soak and prints a line for each part; status 1 where memory grew."""
    from timberframe_conformance.commands import UsageError, add_device, device_options, open_device, whole

    parser = argparse.ArgumentParser(description=__doc__)
    add_device(parser, judges=False)
    parser.add_argument("--steps", type=whole(PARTS), default=STEPS)
    given = parser.parse_args()
    try:
        target = open_device(device_options(given))
    except UsageError as e:
        parser.error(str(e))
    found = []
    for memory in run_steps(target, given.steps):
        found.append(memory)
        print(
            f"{memory.steps} steps: {memory.resident} bytes resident, {memory.live} allocations of {memory.used} bytes"
        )
    wrong = growth(found)
    print(wrong or "memory is flat")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
