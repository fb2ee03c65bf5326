"""Stages of different devices at the same time: which may overlap, and which thread runs them when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from timberframe_core.compiler.plan import BoundStage
from timberframe_core.compiler.state import variable_name
from timberframe_core.dtypes import resource
from timberframe_core.errors import InternalError, OpError
from timberframe_core.plugin.waiting import pause

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

_POLL_SECONDS = 0.02  # longest wait while stages run: for Ctrl-C, and for errors in what was enqueued


class StageThreads:
    """Threads of a session for stages that overlap.

    They take a stage only if one of them is idle: a stage in a queue could wait for ever, as a loop that holds a thread
    waits for the stages of its body.
    """

    def __init__(self, count: int) -> None:
        from concurrent.futures import ThreadPoolExecutor  # here, since most sessions have one device

        self._pool = ThreadPoolExecutor(count, "timberframe")
        self._idle = threading.Semaphore(count)

    def take(self, work: Callable[[], None], must: bool = False) -> bool:
        """Makes an idle thread do the work; False if there is none, or if the session was closed meanwhile.

        must: one is made for this work if there is none.
        """
        if not self._idle.acquire(blocking=False):
            if must:
                threading.Thread(target=work, name="timberframe", daemon=True).start()
            return must
        try:
            self._pool.submit(self._run, work)
        except RuntimeError:  # what the pool raises after `close`
            self._idle.release()
            return False
        return True

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._idle.release()

    def close(self) -> None:
        """Ends the threads when they have done what they do."""
        self._pool.shutdown(wait=False)


def overlapping(stages: Sequence[BoundStage]) -> bool:
    """Returns whether running the stages one after the other would keep one device waiting for another without need."""
    if wait_for_each_other(stages):
        return True
    copies_wait = any(s.device.asynchronous and s.stage.sends for s in stages)
    waits = dependencies(stages)
    reach: list[set[int]] = []
    for before in waits:
        reach.append(set(before).union(*(reach[b] for b in before)))
    for j, stage in enumerate(stages):
        for i in range(j):
            independent = stages[i].device is not stage.device and i not in reach[j]
            if independent and (copies_wait or _blocks(stages[i]) or _blocks(stage)):
                return True
    return False


def wait_for_each_other(stages: Sequence[BoundStage]) -> bool:
    """Returns whether a host op may wait for what another stage does with its resource, so
    that both must run at once.
    """
    if not any(_may_wait(s) for s in stages):
        return False
    users: dict[str, int] = {}
    waited_for: set[str] = set()
    for stage in stages:
        for name in {variable_name(x) for n in stage.nodes for x in n.inputs if x.dtype is resource}:
            users[name] = users.get(name, 0) + 1
            if _may_wait(stage):
                waited_for.add(name)
    return any(users[name] > 1 for name in waited_for)


def _may_wait(bound: BoundStage) -> bool:
    return any(n.op.blocks for n in bound.nodes)


def _blocks(bound: BoundStage) -> bool:
    """Returns whether running the stage takes as long as its work does; otherwise it is only enqueued."""
    return not bound.device.asynchronous or bound.executable is None or any(n.bodies for n in bound.stage.nodes)


def dependencies(stages: Sequence[BoundStage]) -> list[set[int]]:
    """For each stage, the positions of the stages that must end before it starts."""
    maker = {x: i for i, s in enumerate(stages) for x in s.outputs}
    stage_of = {n: i for i, s in enumerate(stages) for n in s.stage.nodes}
    waits: list[set[int]] = []
    last_on: dict[int, int] = {}
    for i, stage in enumerate(stages):
        before = {maker[x] for x in stage.inputs if x in maker}
        for node in stage.stage.nodes:
            before.update(stage_of[c] for c in _ordered_before(node) if c in stage_of)
            before.update(stage_of[x.node] for x in node.inputs if x.dtype is resource and x.node in stage_of)
        if not _may_wait(stage):
            if id(stage.device) in last_on:
                before.add(last_on[id(stage.device)])  # one device runs its stages in order
            last_on[id(stage.device)] = i
        waits.append({b for b in before if b != i})
    return waits


def _ordered_before(node: Any) -> list[Any]:
    """Returns the nodes that must run before, looking through NoOps."""
    result, stack, seen = [], [*node.control, *node.after], set()
    while stack:
        before = stack.pop()
        if before in seen:
            continue
        seen.add(before)
        result.append(before)
        if before.op.role == "no_op":
            stack.extend((*before.control, *before.after))
    return result


class Overlapped:
    """Runs stages as soon as what they wait for is there.

    The caller's thread enqueues the stages that need no more than that, and watches copies come in. What takes time
    runs on idle threads of the session, unless nothing else is left to do meanwhile.
    """

    def __init__(self, run: Run, stages: list[BoundStage]) -> None:
        self.run_ = run
        self.stages = stages
        self.waits = dependencies(stages)
        self.left = [len(w) for w in self.waits]
        self.followers: list[list[int]] = [[] for _ in stages]
        for i, before in enumerate(self.waits):
            for b in before:
                self.followers[b].append(i)
        self.ready = [i for i, n in enumerate(self.left) if n == 0]
        self.condition = threading.Condition()
        self.unfinished = len(stages)
        self.failure: BaseException | None = None
        self.running = 0

    def run(self) -> None:
        """Runs all stages; raises the first failure when nothing of the run is at work any more on a thread."""
        with self.condition:
            try:
                self._schedule()
            except BaseException as e:  # Ctrl-C, which comes to the thread that waits here
                self._fail(e)
            while self.running:  # nothing of it outlives the call
                self.condition.wait(_POLL_SECONDS)
        if self.failure is not None:
            raise self.failure

    def _schedule(self) -> None:
        threads: StageThreads = self.run_.runtime.threads
        idle_since: float | None = None
        while self.unfinished and self.failure is None:
            arrived = (i for i in self.ready if self.run_.arrived(self.stages[i]))
            i = min(arrived, key=lambda i: _may_wait(self.stages[i]), default=None)
            if i is None:
                self.run_.context.cancel.check()
                self.run_.raise_known_errors()
                now = time.perf_counter()
                idle_since = now if idle_since is None else idle_since
                waited = now - idle_since
                self.condition.wait(pause(waited) if self.ready else pause(waited, _POLL_SECONDS))
                continue
            idle_since = None
            self.ready.remove(i)
            self.running += 1
            waits = _blocks(self.stages[i]) and (self.ready or self.running > 1)
            if waits and threads.take(partial(self._one, i), _may_wait(self.stages[i])):
                continue
            self.condition.release()
            try:
                self._one(i)
            finally:
                self.condition.acquire()

    def _fail(self, error: BaseException) -> None:
        """Notes the first failure and stops the other stages."""
        if self.failure is None:
            self.failure = error
            self.run_.context.cancel.cancel(
                error if isinstance(error, OpError) else InternalError(f"a peer stage failed: {error!r}")
            )

    def _one(self, i: int) -> None:
        error: BaseException | None = None
        try:
            self.run_.run_stage(self.stages[i])
        except BaseException as e:
            error = e
        with self.condition:
            self.running -= 1
            if error is not None:
                self._fail(error)
            else:
                self.unfinished -= 1
                for follower in self.followers[i]:
                    self.left[follower] -= 1
                    if not self.left[follower]:
                        self.ready.append(follower)
            self.condition.notify_all()
