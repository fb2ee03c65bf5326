"""Work on the host of runs that a clock may end: on threads, of which those are left behind that nothing else ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

from timberframe_core.plugin.waiting import CancelToken

_GRACE_SECONDS = 0.2
"""How long work has to end by itself after its run was cancelled: it may give back what it has taken."""

_depth: ContextVar[int] = ContextVar("_depth", default=0)
"""How many such works the current one is part of: each has less time than the one around it, which goes on with it."""

T = TypeVar("T")


def carry_out(work: Callable[[], T], cancel: CancelToken) -> T:
    """Returns what work gives; where a clock ends the run, raises its reason soon after, whatever work still does."""
    if not cancel.limited:
        return work()
    depth, context = _depth.get(), copy_context()
    context.run(_depth.set, depth + 1)
    ended = threading.Condition()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as e:  # whoever waits raises it
            errors.append(e)
        with ended:
            ended.notify_all()

    def is_over() -> bool:
        return bool(results or errors)

    threading.Thread(target=run, daemon=True, name="host work of a run with a time limit").start()
    with ended:
        try:
            cancel.wait_for(ended, is_over)
        except BaseException as e:
            if e is not cancel.reason or not ended.wait_for(is_over, _GRACE_SECONDS / (depth + 1)):
                raise
    if errors:
        raise errors[0]
    return results[0]
