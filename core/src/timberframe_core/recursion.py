"""Room on Python's stack for functions within functions: tracing and compiling them recurse as deep as they are nested.

Python's recursion limit protects the stack of the processor. A level of nesting takes less than 2 KiB of that, so
MAX_NESTING levels fit the 8 MiB that threads usually have; the limit is raised for no more than these need.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from timberframe_core.errors import ResourceExhaustedError

MAX_NESTING = 1000
"""Bodies within bodies that can be built and run."""

_FRAMES_PER_LEVEL = 12  # for compiling, which uses eight
_FREE_FRAMES = 1000  # that Python has left wherever a call begins, as in a new program
_FREE_DEPTH = 16  # nested functions that Python's usual limit always has room for

_lock = threading.Lock()
_users = 0
_limit_before = 0


@contextmanager
def room(levels: int) -> Iterator[None]:
    """Lets the code inside recurse through so many levels of nesting; afterwards the limit is what it was."""
    global _users, _limit_before
    wanted = 2 * _depth() + _FREE_FRAMES + levels * _FRAMES_PER_LEVEL  # twice: calls through C count, but have no frame
    with _lock:
        if not _users:
            _limit_before = sys.getrecursionlimit()
        _users += 1
        sys.setrecursionlimit(max(wanted, sys.getrecursionlimit()))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                with suppress(RecursionError):  # this thread is deeper than that; the next one that is not sets it back
                    sys.setrecursionlimit(_limit_before)


def _depth() -> int:
    """Frames of this thread."""
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


@contextmanager
def nested(levels: int) -> Iterator[None]:
    """`room(levels)` for a compiler or a run; what does not fit all the same is a ResourceExhaustedError."""
    try:
        with room(min(levels, MAX_NESTING)):
            yield
    except RecursionError:
        raise ResourceExhaustedError(
            f"functions are nested too deep for Python's stack; at most {MAX_NESTING} levels can run"
        ) from None


def levels_of(functions: int) -> int:
    """Returns how deep so many functions can be nested; 0 for so few that no room need be made."""
    return functions if functions > _FREE_DEPTH else 0
