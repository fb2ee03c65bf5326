"""Folders for files of tests."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path


def get_temp_dir() -> str:
    """Returns a folder for files of tests, one for each process; TEST_TMPDIR of the environment if it is set."""
    folder = os.environ.get("TEST_TMPDIR") or _folder_of(os.getpid())
    os.makedirs(folder, exist_ok=True)
    return folder


@cache
def _folder_of(process: int) -> str:
    """Returns a new folder for a process, of a name that nobody else can have made before."""
    return tempfile.mkdtemp(prefix=f"timberframe_test_{process}_")


def test_src_dir_path(relative_path: str) -> str:
    """Returns a path below the folder of the program."""
    return str(Path(sys.argv[0]).resolve().parent / relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
