"""Which folders hold library code: errors name the line of the user's program, the nearest one outside of them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

_folders: tuple[str, ...] = (os.path.dirname(os.path.abspath(__file__)) + os.sep,)

_is_library: dict[str, bool] = {}
"""Of each file that was asked for: whether it is in one of the folders. Deep stacks have the same few files."""


def add_library_folder(file: str) -> None:
    """Counts the folder of this source file as library code. A package that adds nodes for its users calls it.

    file: the ``__file__`` of the package's ``__init__.py``.
    """
    global _folders
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    if folder not in _folders:
        _folders = (*_folders, folder)
        _is_library.clear()


def library_folders() -> tuple[str, ...]:
    """Returns the folders, each with a separator at its end."""
    return _folders


Line: TypeAlias = tuple[str, int, str]
"""A line of a program: its file, its number, and the function that it is in."""


class _Known(threading.local):
    """Of each thread: a function of the library that runs, by its frame, and the user's line that it works for."""

    frame: Any = None
    line: Line | None = None


_known = _Known()


@contextmanager
def same_user_line() -> Iterator[None]:
    """Makes what is made in the block, which is in a function of the library, look for the user's line no further up.

    Bodies in bodies are gone through by calls in calls: without it each look would go through all of them.
    """
    before = _known.frame, _known.line
    frame = sys._getframe(2)  # 1 is contextlib's
    _known.frame, _known.line = frame, _line_from(frame)
    try:
        yield
    finally:
        _known.frame, _known.line = before


def user_line() -> Line | None:
    """Returns the line of the nearest caller that is no library code; None where all callers are."""
    return _line_from(sys._getframe(1))


def _line_from(frame: Any) -> Line | None:
    mark = _known.frame
    while True:
        if frame is mark:
            return _known.line
        file = frame.f_code.co_filename
        known = _is_library.get(file)
        if known is None:
            known = _is_library[file] = file.startswith(_folders)
        if not known:
            return file, frame.f_lineno, frame.f_code.co_name
        if frame.f_back is None:
            return None
        frame = frame.f_back
