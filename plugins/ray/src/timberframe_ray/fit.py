"""Trainings by several processes, which go on with as many as there are when one is lost or another can be had.

Ray Train would do this with pandas and pyarrow, which double the installation, and hands checkpoints to its controller,
which may lose the last one. Here a program keeps its checkpoints itself, as `tf.train.MonitoredTrainingSession` does.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from timberframe_ray import engine
from timberframe_ray.collectives.group import DEADLINE_SECONDS
from timberframe_ray.server import start_here
from timberframe_sdk import InvalidArgumentError, UnavailableError, logging

_LOOK_SECONDS = 0.5
_BLAME_SECONDS = 2.0
"""After the first process that has lost another one, errors are awaited for so long that may be the cause."""
_GRACE_SECONDS = 3.0
"""Enough processes being there, others are waited for so long."""


@dataclass
class Attempt:
    """A group of processes that a training had. end: why it has ended, empty where the training did."""

    size: int
    end: str = ""


@dataclass
class Result:
    """What a training gave. values: what the function returned in each process, by rank; attempts: its groups."""

    values: list[Any]
    attempts: list[Attempt] = field(default_factory=list)


def fit(
    train_fn: Callable[[], Any],
    workers: int | tuple[int, int] = (1, 4),
    max_failures: int = 3,
    cpus: float = 1.0,
    seconds: float = DEADLINE_SECONDS,
) -> Result:
    """Calls `train_fn` in several new processes, which are one group (`timberframe_ray.group()`), until it returns.

    train_fn: takes nothing; what it returns, and it itself, must be picklable.
    workers: how many processes, or the fewest and the most. It starts with as many as can be had, and when one is lost,
    or when another can be had, all start again. `train_fn` must go on from its last checkpoint: rank 0 restores it, as
    ``tf.train.MonitoredTrainingSession(checkpoint_dir=folder if rank == 0 else None, scaffold=...)`` does, and
    `broadcast_variables` gives it to the others.
    max_failures: how often processes may be lost; UnavailableError after that. cpus: those that Ray is to keep for each
    process. seconds: how long to wait for the fewest, and in collectives for a process that hangs.
    Errors of `train_fn` itself are raised at once, with a note of the rank and its traceback. Where this process
    has not joined Ray, it joins the one at RAY_ADDRESS, or starts one on this machine, which ends with it.
    """
    _check_numbers(workers, max_failures, cpus, seconds)
    fewest, most = _range(workers)
    if os.environ.get("RAY_ADDRESS", "local") not in ("", "local"):
        engine.join()
    start_here(cpus=max(1, math.ceil(most * cpus)))
    pool = _Pool(most, cpus)
    attempts: list[Attempt] = []
    failures = 0
    try:
        while True:
            group = pool.gather(fewest, seconds)
            attempts.append(Attempt(len(group)))
            logging.info("fit: training with %d processes", len(group))
            found = _attempt(train_fn, group, pool, seconds)
            if isinstance(found, list):
                return Result(found, attempts)
            attempts[-1].end = str(found)
            pool.end(group)
            if not isinstance(found, _MoreError):
                failures += 1
                logging.warning("fit: %s", found)
                if failures > max_failures:
                    raise UnavailableError(
                        f"fit: {failures} groups of processes were lost, the last as {found}; "
                        f"at most {max_failures} may be"
                    )
    finally:
        pool.end(pool.handles)


def _range(workers: int | tuple[int, int]) -> tuple[int, int]:
    """Returns the fewest and the most."""
    return (workers, workers) if isinstance(workers, int) else workers


def _check_numbers(workers: int | tuple[int, int], max_failures: int, cpus: float, seconds: float) -> None:
    fewest, most = _range(workers)
    if not 1 <= fewest <= most:
        raise InvalidArgumentError(f"fit: workers is {workers}; 1 <= fewest <= most is required")
    if max_failures < 0 or cpus < 0 or not seconds > 0:
        raise InvalidArgumentError(
            f"fit: max_failures is {max_failures}, cpus is {cpus:g}, seconds is {seconds:g}; at least 0, at least 0 "
            "and more than 0 are required"
        )


class _MoreError(Exception):
    """Another process can be had."""


class _Pool:
    """Processes of a training that are there, and those for which there is no room yet."""

    def __init__(self, most: int, cpus: float) -> None:
        self._most, self._cpus = most, cpus
        self.handles: list[Any] = []
        self._addresses: dict[Any, Any] = {}

    def gather(self, fewest: int, seconds: float) -> list[Any]:
        """Returns the processes that are there, at least so many; UnavailableError where they are not there in time."""
        start = time.monotonic()
        while True:
            while len(self.handles) < self._most:
                handle = engine.start_trainer(self._cpus)
                self.handles.append(handle)
                self._addresses[handle] = handle.address.remote()
            there, waited = self.there(), time.monotonic() - start
            if len(there) == self._most or (len(there) >= fewest and waited > _GRACE_SECONDS):
                return there
            if waited > seconds:
                raise UnavailableError(
                    f"fit: {len(there)} processes could be had in {seconds:g} s; at least {fewest} with {self._cpus:g} "
                    "CPUs each are required"
                )
            time.sleep(_LOOK_SECONDS / 5)

    def there(self) -> list[Any]:
        """Returns the processes that have started; ends those that have not and never will, as their node was lost."""
        found = []
        for handle in list(self.handles):
            if engine.ready(self._addresses[handle]):
                try:
                    self.address(handle)
                    found.append(handle)
                except engine.LostError:
                    self.end([handle])
        return found

    def address(self, handle: Any) -> str:
        """Returns where the group of a process can meet."""
        found: str = engine.get(self._addresses[handle])
        return found

    def end(self, handles: Sequence[Any]) -> None:
        """Ends processes: what a training leaves in one is not for the next."""
        for handle in list(handles):
            engine.end(handle)
            self.handles.remove(handle)
            del self._addresses[handle]


def _attempt(train_fn: Callable[[], Any], group: Sequence[Any], pool: _Pool, seconds: float) -> list[Any] | Exception:
    """Returns what the function gave in each process; or why all must start again, which is
    no error of the function.
    """
    try:
        address, name = pool.address(group[0]), secrets.token_hex(8)
    except engine.LostError as e:
        return e
    running = [h.run.remote(train_fn, rank, len(group), address, name, seconds) for rank, h in enumerate(group)]
    answers: dict[int, Any] = {}
    lost: Exception | None = None
    end = float("inf")
    while len(answers) < len(group) and time.monotonic() < end:
        for rank, ref in enumerate(running):
            if rank in answers or not engine.ready(ref):
                continue
            try:
                answers[rank] = engine.get(ref)
                if "error" not in answers[rank]:
                    continue
                if not answers[rank]["lost"]:
                    raise answers[rank]["error"]
                found: Exception = UnavailableError(str(answers[rank]["error"]))
            except engine.LostError as e:
                answers[rank], found = {}, e
            if lost is None:
                lost, end = found, time.monotonic() + _BLAME_SECONDS
        if not answers and len(pool.there()) > len(group):
            return _MoreError("another process can be had")
        engine.wait(next((r for i, r in enumerate(running) if i not in answers), running[0]), _LOOK_SECONDS)
    return lost or [answers[rank]["result"] for rank in range(len(group))]
