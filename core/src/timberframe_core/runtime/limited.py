"""Work on the host of runs with a time limit: on threads, of which those that nothing ends are left to themselves."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar
from weakref import WeakSet

from timberframe_core.plugin.waiting import CancelToken

_GRACE_SECONDS = 0.2
"""Seconds that work has to end by itself after its run was cancelled: it may give back what it has taken."""

_depth: ContextVar[int] = ContextVar("_depth", default=0)
"""The number of such works that the current one is part of: each has less time than the one around it, which goes on
with it.
"""

_EXIT_SECONDS = 1.0
"""Seconds for which the end of the program waits for work that was left to itself."""

_left: WeakSet[threading.Thread] = WeakSet()
"""Threads of work that was left to itself."""

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
        except BaseException as e:  # raised by the thread that waits
            errors.append(e)
        with ended:
            ended.notify_all()

    def is_over() -> bool:
        return bool(results or errors)

    thread = threading.Thread(target=run, daemon=True, name="host work of a run with a time limit")
    thread.start()
    with ended:
        try:
            cancel.wait_for(ended, is_over)
        except BaseException as e:
            if e is not cancel.reason or not ended.wait_for(is_over, _GRACE_SECONDS / (depth + 1)):
                _left.add(thread)
                raise
    if errors:
        raise errors[0]
    return results[0]


@atexit.register
def _end_left() -> None:
    """Raises SystemExit in work that was left to itself, and waits for it a while.

    An interpreter that ends stops such threads where they are, and C++ code, such as RE2's, then aborts the process.
    """
    threads = [t for t in _left if t.ident is not None and t.is_alive()]
    if not threads:
        return
    import ctypes  # late: few programs need it

    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    end = time.monotonic() + _EXIT_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
