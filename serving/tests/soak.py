"""Swaps versions under load for long: ``python soak.py [--minutes M | --requests N] [--swaps S]``.

No request may fail, and what the server holds must stay as it was: memory, threads, open files. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from figures import PREDICT, clients, held, row, save, served
from load import Result

SIZES = (64, 96, 48, 10)
GROWTH, MEGABYTES = 1.05, 10
"""How much more memory the last third of a run may take than the first."""
CLIENTS = 4


class Run:
    """A load that goes on until it has lasted so long and had so many answers, and versions that change meanwhile."""

    def __init__(self, base: Path, number: int, seconds: float, requests: int, swaps: int) -> None:
        self._base, self._number = base, number
        self._seconds, self._requests, self._swaps = seconds, requests, swaps
        self.result = Result()
        self.held: list[tuple[int, int, int]] = []
        self._begin = time.monotonic()

    @property
    def share(self) -> float:
        """The part of the run that is over."""
        answers = sum(map(len, self.result.times.values())) / self._requests if self._requests else 1.0
        return min(answers, (time.monotonic() - self._begin) / self._seconds if self._seconds else 1.0)

    async def load(self, port: int) -> None:
        """Asks with some clients."""

        async def client(ask: object) -> None:
            while self.share < 1:
                begin = time.perf_counter()
                status = await ask()  # type: ignore[operator]
                self.result.add(status, time.perf_counter() - begin)

        await asyncio.gather(*map(client, await clients(port, PREDICT, row(SIZES[0]), CLIENTS)))

    async def change(self) -> None:
        """Puts a new version beside the others whenever its time has come; every tenth is damaged."""
        for swap in range(1, self._swaps + 1):
            while self.share < swap / (self._swaps + 1):
                await asyncio.sleep(0.05)
            if self.share >= 1:
                return  # the machine was too slow for as many
            await asyncio.to_thread(save, self._base.parent / "new", SIZES, swap)
            if swap % 10 == 0:
                (self._base.parent / "new" / "saved_model.pb").write_bytes(b"damaged")
            (self._base.parent / "new").rename(self._base / str(swap + 1))
            await asyncio.sleep(1)
            self.held.append(held(self._number))


def judged(run: Run) -> list[str]:
    """Returns what is not as it should be."""
    wrong = []
    if run.result.refused:
        wrong.append(f"{len(run.result.refused)} requests failed: {sorted(run.result.times)}")
    third = max(1, len(run.held) // 3)
    first, last = np.array(run.held[:third]), np.array(run.held[-third:])
    before, after = first[:, 0].max(), last[:, 0].max()
    if after > before * GROWTH + MEGABYTES:
        wrong.append(f"memory has grown from {before} to {after} MB")
    for at, what in ((1, "threads"), (2, "open files")):
        if last[:, at].max() > first[:, at].max() + 2:
            wrong.append(f"{what} have grown from {first[:, at].max()} to {last[:, at].max()}")
    return wrong


async def soak(base: Path, seconds: float, requests: int, swaps: int) -> list[str]:
    """Runs it; returns what is not as it should be."""
    save(base / "1", SIZES)
    with served(base, "--file_system_poll_wait_seconds=0.2") as (http, _, number):
        run = Run(base, number, seconds, requests, swaps)
        changing = asyncio.ensure_future(run.change())
        await run.load(http)
        await changing
    print(f"{len(run.result.good)} answers, {len(run.result.refused)} failures, {len(run.held)} swaps")
    for what, values in zip(("MB", "threads", "open files"), zip(*run.held, strict=True), strict=True):
        print(f"{what}: {values[0]} at first, {values[-1]} at last, {min(values)} to {max(values)}")
    return judged(run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--swaps", type=int, default=100)
    given = parser.parse_args()
    if not given.minutes and not given.requests:
        given.minutes = 60
    with tempfile.TemporaryDirectory() as folder:
        wrong = asyncio.run(soak(Path(folder) / "m", given.minutes * 60, given.requests, given.swaps))
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
