"""`tf.io.gfile`: the functions of `tf.gfile` by the names and arguments of TensorFlow 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from timberframe import gfile as _old
from timberframe.boundary import guard
from timberframe.gfile import GFile as GFile

__all__ = [
    "GFile", "copy", "exists", "glob", "isdir", "listdir", "makedirs", "mkdir", "remove", "rename", "rmtree", "stat",
    "walk",
]  # fmt: skip


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file; AlreadyExistsError where there is one and overwrite is False."""
    _old.Copy(src, dst, overwrite)


def exists(path: Any) -> bool:
    """Returns whether there is a file or folder of this name."""
    return _old.Exists(path)


def glob(pattern: Any) -> list[str]:
    """Returns the names that a pattern, or any of several, matches."""
    return _old.Glob(pattern)


def isdir(path: Any) -> bool:
    """Returns whether there is a folder of this name."""
    return _old.IsDirectory(path)


def listdir(path: Any) -> list[str]:
    """Returns the names in a folder."""
    return _old.ListDirectory(path)


def makedirs(path: Any) -> None:
    """Makes a folder, and those around it, where they are missing."""
    _old.MakeDirs(path)


def mkdir(path: Any) -> None:
    """Makes a folder in one that exists."""
    _old.MkDir(path)


def remove(path: Any) -> None:
    """Removes a file."""
    _old.Remove(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames or moves a file or folder; AlreadyExistsError where there is one and overwrite is False."""
    _old.Rename(src, dst, overwrite)


def rmtree(path: Any) -> None:
    """Removes a folder with all that is in it."""
    _old.DeleteRecursively(path)


def stat(path: Any) -> Any:
    """Returns the size and time of a file; see `tf.gfile.Stat`."""
    return _old.Stat(path)


def walk(top: Any, topdown: bool = True, onerror: Callable[..., Any] | None = None) -> Iterator[Any]:
    """(folder, folders in it, files in it) of a folder and all below it. onerror: is called with each error."""
    return os.walk(_old.path_of(top), topdown, onerror)


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
