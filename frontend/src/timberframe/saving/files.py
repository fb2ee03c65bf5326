"""Files that are written completely or not at all, and the leftovers of killed writers.

A writer holds a lock on the file that it is writing. A killed writer no longer holds its lock; that distinguishes its
leftovers from files that are being written.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from timberframe_core.errors import (
    FailedPreconditionError,
    MissingFolderError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
)

try:
    import fcntl
except ImportError:  # Windows has no flock; leftovers of killed writers then stay
    fcntl = None  # type: ignore[assignment] # in place of a module that does not exist

_TEMPORARY = ".writing"
_QUIET = 600  # seconds without a change after which a file may be a leftover; locks may not reach other machines


_KINDS: dict[int, type[OpError]] = {
    errno.ENOSPC: ResourceExhaustedError, errno.EDQUOT: ResourceExhaustedError, errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError, errno.EROFS: PermissionDeniedError, errno.ENOENT: MissingFolderError,
    errno.ENOTDIR: MissingFolderError, errno.EEXIST: MissingFolderError,  # what should be a folder is a file
}  # fmt: skip


@contextmanager
def file_errors(task: str) -> Iterator[None]:
    """Converts errors of files to ours; `task` says what was to be done."""
    try:
        yield
    except OpError:
        raise
    except OSError as e:
        kind = _KINDS.get(e.errno or 0, FailedPreconditionError)
        what = f" of '{e.filename}'" if e.filename else ""
        raise kind(f"{task}: {e.strerror or e}{what}; what was there before is unchanged") from e


def sync_folder(folder: Path) -> None:
    """Makes created, renamed and removed names survive a loss of power."""
    with contextlib.suppress(OSError):  # some file systems do not let folders be opened or synchronised
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class UnfinishedFile:
    """A file that is being written under another name than its own."""

    file: IO[bytes]
    path: Path

    def put_in_place(self) -> None:
        """Gives it its own name, once all of it is on the disk: it replaces what had that name."""
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.file.name, self.path)
        sync_folder(self.path.parent)


@contextmanager
def unfinished_file(path: Path) -> Iterator[UnfinishedFile]:
    """A new file, locked until the block ends, and removed then unless it was put in place. Makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}{_TEMPORARY}")
    with open(temporary, "xb") as file:
        _lock(file)
        try:
            yield UnfinishedFile(file, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def map_file(path: Path) -> np.ndarray:
    """Returns the bytes of a file, read as they are needed."""
    if not path.stat().st_size:
        return np.empty(0, np.uint8)  # an empty file cannot be mapped
    return np.memmap(path, np.uint8, "r")


def replace_file(path: Path, data: bytes) -> None:
    """Makes `data` the content of a file, in one step: readers see the old content or the new one. Makes its folder."""
    with replaced_file(path) as file:
        file.write(data)


@contextmanager
def replaced_file(path: Path) -> Iterator[IO[bytes]]:
    """`replace_file` with what the block writes."""
    with unfinished_file(path) as made:
        yield made.file
        made.put_in_place()
    for abandoned in path.parent.glob(f".{glob.escape(path.name)}.*{_TEMPORARY}"):
        _remove_if_abandoned(abandoned, lambda _: True)


def remove_leftovers(folder: Path, prefix: str, is_leftover: Callable[[Path], bool], suffix: str) -> None:
    """Removes what killed writers left: unfinished files, and leftovers whose names end in `suffix`, a pattern."""
    for path in folder.glob(f"*{suffix}"):
        if path.name.startswith(prefix):
            _remove_if_abandoned(path, is_leftover)
    remove_unfinished(folder, prefix)


def remove_unfinished(folder: Path, prefix: str) -> None:
    """Removes the unfinished files of killed writers."""
    for path in folder.glob(f".*{_TEMPORARY}"):
        if path.name.startswith(f".{prefix}"):
            _remove_if_abandoned(path, lambda _: True)


def _lock(file: IO[Any]) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_if_abandoned(path: Path, is_leftover: Callable[[Path], bool]) -> None:
    if fcntl is None:
        return
    try:
        if time.time() - path.stat().st_mtime < _QUIET or not is_leftover(path):
            return
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a writer is at work
            if is_leftover(path):  # the writer may have finished just before
                path.unlink()
    except OSError:
        return
