"""Which folders hold library code: errors name the line of the user's program, the nearest one outside of them."""

from __future__ import annotations

import os
import sys
from typing import TypeAlias

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
    """The folders, each with a separator at its end."""
    return _folders


Line: TypeAlias = tuple[str, int, str]
"""A line of a program: its file, its number, and the function that it is in."""


def user_line() -> Line | None:
    """The line of the nearest caller that is no library code; None where all callers are."""
    frame = sys._getframe(1)
    while True:
        file = frame.f_code.co_filename
        known = _is_library.get(file)
        if known is None:
            known = _is_library[file] = file.startswith(_folders)
        if not known:
            return file, frame.f_lineno, frame.f_code.co_name
        if frame.f_back is None:
            return None
        frame = frame.f_back
