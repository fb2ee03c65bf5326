"""Keeps on disk what toolchains made of clusters, so that the next process need not compile them again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from timberframe_core import logging
from timberframe_core.errors import FailedPreconditionError
from timberframe_core.plugin.contracts import Cluster
from timberframe_sdk.settings import cache_folder, check_private, private_folder

MOST_BYTES = 1 << 30
"""The most that a folder holds."""
_MAGIC = b"timberframe-program-1\n"
_HASH_BYTES = hashlib.sha256().digest_size
_SUFFIX = ".program"


class ProgramCache:
    """Programs by the fingerprint of their cluster, in a folder that nobody but its user may write to.

    name: of the folder. identity: what programs depend on besides their clusters: the device, its settings, versions of
    its driver and of what translates. only: whether nothing but what is here may run. Several processes may use the
    same folder. A folder that others may write to is not used, since programs are code.
    """

    def __init__(self, name: str, identity: Sequence[str], only: bool = False, most_bytes: int = MOST_BYTES) -> None:
        self.folder = cache_folder(name) / "programs"
        self.only = only
        self._identity = "\0".join(identity)
        self._most_bytes = most_bytes
        self._is_private: bool | None = None

    def get(self, fingerprint: str) -> bytes | None:
        """Returns what was kept for a cluster; None where there is nothing, or nothing that is whole."""
        if not self._usable():
            return None
        entry = kept_file(self._file(fingerprint))
        if entry is None:
            return None
        data = entry[len(_MAGIC) + _HASH_BYTES :]
        if entry[: len(_MAGIC)] != _MAGIC or entry[len(_MAGIC) : -len(data) or None] != hashlib.sha256(data).digest():
            self.drop(fingerprint)
            return None
        return data

    def put(self, fingerprint: str, data: bytes) -> None:
        """Keeps what a cluster became; a folder that cannot be written to only costs time."""
        if self._usable():
            keep_file(self._file(fingerprint), _MAGIC + hashlib.sha256(data).digest() + data, self._most_bytes)

    def drop(self, fingerprint: str) -> None:
        """Removes what was kept for a cluster."""
        with contextlib.suppress(OSError):
            self._file(fingerprint).unlink()

    def _file(self, fingerprint: str) -> Path:
        key = hashlib.sha256(f"{self._identity}\0{fingerprint}".encode()).hexdigest()
        return self.folder / f"{key[:40]}{_SUFFIX}"

    def _usable(self) -> bool:
        """Returns whether the folder is there, and the user's alone; says why not once."""
        if self._is_private is None:
            try:
                private_folder(self.folder)
                self._is_private = True
            except OSError as e:
                logging.warning("programs are not kept: %s", e)
                self._is_private = False
        return self._is_private


def kept_file(file: Path) -> bytes | None:
    """Returns the bytes of a file of a cache; None where it is not there, or others may write to its folder."""
    try:
        check_private(file.parent)
        found = file.read_bytes()
        os.utime(file)  # what was used last is kept longest
    except OSError:
        return None
    return found


def keep_file(file: Path, data: bytes, most_bytes: int) -> None:
    """Writes a file of a cache at once, so that another process sees all of it or none, and makes room in its folder.

    most_bytes: the most that the folder holds. One that cannot be written to, or that others may write to, only costs
    time.
    """
    with contextlib.suppress(OSError):
        private_folder(file.parent)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as scratch:
            scratch.write(data)
        Path(scratch.name).replace(file)
        _prune(file.parent, most_bytes)


def _prune(folder: Path, most_bytes: int) -> None:
    """Removes the files that were not used for longest, down to half of what there may be, where there is more."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process removed it
            status = path.stat()
            files.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= most_bytes:
        return
    for _, size, path in sorted(files):
        if total <= most_bytes // 2:
            break
        path.unlink(missing_ok=True)
        total -= size


def program_cache(config: Mapping[str, Any], name: str, identity: Sequence[str]) -> ProgramCache | None:
    """Returns the cache for a device of a session that has `SessionConfig.compile` set; None for any other."""
    mode = config.get("compile", "")
    return ProgramCache(name, identity, only=mode == "cached_only") if mode else None


def not_kept(device: str, cluster: Cluster, cache: ProgramCache) -> FailedPreconditionError:
    """Returns the error of a cluster that is not on disk, where nothing else may run."""
    return FailedPreconditionError(
        f"{device} has no compiled program of the cluster of {len(cluster.nodes)} that begins here, for these shapes, "
        f"in {cache.folder}, and SessionConfig.compile is 'cached_only'; a run with 'cached' compiles it, and keeps it "
        "where its toolchain can"
    )
