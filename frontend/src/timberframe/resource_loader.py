"""`tf.resource_loader`: files that lie beside a program's modules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from timberframe_core.errors import NotFoundError

__all__ = ["get_data_files_path", "get_path_to_datafile", "get_root_dir_with_all_resources", "load_resource"]


def get_data_files_path() -> str:
    """Returns the folder of the module that calls."""
    return os.path.dirname(sys._getframe(1).f_code.co_filename)


def get_path_to_datafile(path: str) -> str:
    """Returns the path of a file that is named relative to the folder of the module that calls."""
    return os.path.join(os.path.dirname(sys._getframe(1).f_code.co_filename), path)


def get_root_dir_with_all_resources() -> str:
    """Returns the folder of the program."""
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def load_resource(path: str) -> bytes:
    """Returns the contents of a file below the program's folder; NotFoundError where there is none."""
    full = Path(get_root_dir_with_all_resources()) / path
    try:
        return full.read_bytes()
    except OSError as e:
        raise NotFoundError(f"load_resource: '{full}': {e.strerror}") from e
