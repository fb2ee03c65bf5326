"""Which folders hold library code: errors name the line of the user's program, the nearest one outside of them."""

from __future__ import annotations

import os
import sys
from typing import TypeAlias

_folders: tuple[str, ...] = (os.path.dirname(os.path.abspath(__file__)) + os.sep,)


def add_library_folder(file: str) -> None:
    """Counts the folder of this source file as library code. A package that adds nodes for its users calls it.

    file: the ``__file__`` of the package's ``__init__.py``.
    """
    global _folders
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    if folder not in _folders:
        _folders = (*_folders, folder)


def library_folders() -> tuple[str, ...]:
    """The folders, each with a separator at its end."""
    return _folders


Line: TypeAlias = tuple[str, int, str]
"""A line of a program: its file, its number, and the function that it is in."""


def user_line() -> Line | None:
    """The line of the nearest caller that is no library code; None where all callers are."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_folders):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
