"""`tf.gfile`: files and folders of this machine, under TensorFlow's names.

Names are strings or path objects; a prefix `file://` is left out. Errors are those of `tf.errors`.
"""

from __future__ import annotations

import glob
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from timberframe.boundary import guard
from timberframe_core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    MissingFileError,
    OpError,
    PermissionDeniedError,
    UnknownError,
)

__all__ = [
    "Copy", "DeleteRecursively", "Exists", "FastGFile", "FileStatistics", "GFile", "Glob", "IsDirectory",
    "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def _error(error: OSError, path: Any) -> OpError:
    kinds: tuple[tuple[type[OSError], type[OpError]], ...] = (
        (FileNotFoundError, MissingFileError), (FileExistsError, AlreadyExistsError),
        (PermissionError, PermissionDeniedError), (IsADirectoryError, FailedPreconditionError),
        (NotADirectoryError, FailedPreconditionError),
    )  # fmt: skip
    kind = next((made for raised, made in kinds if isinstance(error, raised)), UnknownError)
    return kind(f"'{path}': {error.strerror or error}")


def _of_files(function: F) -> F:
    """Returns the function, with errors of the operating system as those of `tf.errors`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OSError as e:
            raise _error(e, e.filename or (args[0] if args else "")) from e

    return call  # type: ignore[return-value]  # it has the same signature


def path_of(name: Any) -> str:
    """Returns the path that a name means, as a text."""
    text = os.fspath(name)
    text = text.decode() if isinstance(text, bytes) else text
    scheme, found, rest = text.partition("://")
    if not found:
        return text
    if scheme != "file":
        raise InvalidArgumentError(f"'{text}': scheme '{scheme}' is not here; a file of this machine is required")
    return rest


class GFile:
    """A file that is opened when it is first read or written. mode: r, w, a, r+, w+ or a+, with b for bytes."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "", 1) not in ("r", "w", "a", "r+", "w+", "a+"):
            raise InvalidArgumentError(f"tf.gfile.GFile: mode is {mode!r}; r, w, a, r+, w+ or a+, with b, is required")
        self._name, self._mode = name, mode
        self._file: Any = None

    @property
    def name(self) -> Any:
        """The path of the file."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode in which it was opened."""
        return self._mode

    @property
    def _opened(self) -> Any:
        if self._file is None:
            path = path_of(self._name)
            try:
                self._file = open(path, self._mode, encoding=None if "b" in self._mode else "utf-8")  # noqa: SIM115 - the object closes it
            except OSError as e:
                raise _error(e, path) from e
        return self._file

    def size(self) -> int:
        """Returns its size in bytes."""
        self.flush()
        return Stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """Returns the next n characters or bytes, all that follow for -1."""
        return self._opened.read(n)

    def readline(self) -> Any:
        """Returns the next line with its end, empty at the end of the file."""
        return self._opened.readline()

    def readlines(self) -> list[Any]:
        """Returns all lines that follow."""
        return list(self._opened.readlines())

    def write(self, file_content: Any) -> None:
        """Writes text, or bytes as UTF-8 where the file is one of text."""
        if isinstance(file_content, bytes) and "b" not in self._mode:
            file_content = file_content.decode()
        elif isinstance(file_content, str) and "b" in self._mode:
            file_content = file_content.encode()
        self._opened.write(file_content)

    def seek(self, offset: int | None = None, whence: int = io.SEEK_SET, position: int | None = None) -> None:
        """Moves to a position: from the start, or with whence 1 or 2 from here or from the end.

        position: the older name of an offset from the start.
        """
        if (offset is None) == (position is None):
            raise InvalidTypeError(f"seek: offset is {offset} and position is {position}; one of them is required")
        if position is not None:
            offset, whence = position, io.SEEK_SET
        self._opened.seek(offset, whence)

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Returns the position."""
        return int(self._opened.tell())

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file; reading or writing opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._opened)

    def __next__(self) -> Any:
        """Returns the next line with its end; StopIteration at the end of the file."""
        return next(self._opened)

    next = __next__


Open = FastGFile = GFile


class FileStatistics(NamedTuple):
    """length in bytes, time of the last change in nanoseconds, and whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


@_of_files
def Exists(filename: Any) -> bool:  # noqa: N802 - TensorFlow's name
    """Whether there is such a file or folder."""
    return os.path.exists(path_of(filename))


@_of_files
def IsDirectory(dirname: Any) -> bool:  # noqa: N802 - TensorFlow's name
    """Whether there is such a folder."""
    return os.path.isdir(path_of(dirname))


@_of_files
def MakeDirs(dirname: Any) -> None:  # noqa: N802 - TensorFlow's name
    """Makes a folder and those that it is in, unless they are there."""
    os.makedirs(path_of(dirname), exist_ok=True)


@_of_files
def MkDir(dirname: Any) -> None:  # noqa: N802 - TensorFlow's name
    """Makes a folder in one that is there."""
    os.mkdir(path_of(dirname))


@_of_files
def ListDirectory(dirname: Any) -> list[str]:  # noqa: N802 - TensorFlow's name
    """Names of what is in a folder."""
    return os.listdir(path_of(dirname))


@_of_files
def Glob(filename: Any) -> list[str]:  # noqa: N802 - TensorFlow's name
    """Files that a pattern, or any of a list of patterns, matches, in order."""
    patterns = filename if isinstance(filename, list | tuple) else [filename]
    return [found for pattern in patterns for found in sorted(glob.glob(path_of(pattern)))]


@_of_files
def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:  # noqa: N802 - TensorFlow's name
    """Copies a file; AlreadyExistsError where there is one of the new name, unless overwrite."""
    _check_free(newpath, overwrite)
    shutil.copyfile(path_of(oldpath), path_of(newpath))


@_of_files
def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:  # noqa: N802 - TensorFlow's name
    """Moves a file or folder; AlreadyExistsError where there is one of the new name, unless overwrite."""
    _check_free(newname, overwrite)
    os.replace(path_of(oldname), path_of(newname))


def _check_free(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path_of(path)):
        raise AlreadyExistsError(f"'{path}': exists; overwrite=True replaces it")


@_of_files
def Remove(filename: Any) -> None:  # noqa: N802 - TensorFlow's name
    """Deletes a file."""
    os.remove(path_of(filename))


@_of_files
def DeleteRecursively(dirname: Any) -> None:  # noqa: N802 - TensorFlow's name
    """Deletes a folder with all that is in it, or a file."""
    path = Path(path_of(dirname))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@_of_files
def Stat(filename: Any) -> FileStatistics:  # noqa: N802 - TensorFlow's name
    """Size and time of a file."""
    found = os.stat(path_of(filename))
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(path_of(filename)))


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:  # noqa: N802 - TensorFlow's name
    """(folder, folders in it, files in it) for a folder and all in it; in_order: each before those in it."""
    return iter(os.walk(path_of(top), topdown=in_order))


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
