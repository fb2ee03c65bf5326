"""Fused nodes compiled by the system's C compiler, in the background, into a cache on disk.

Until a node is compiled, and where there is no compiler, it runs block by block; the results have the same bits. The
cache is keyed by source, headers, flags and compiler, and written atomically, so that processes may share it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_sdk import logging
from timberframe_sdk.include import include_directory
from timberframe_sdk.include.headers import headers_digest
from timberframe_sdk.settings import cache_folder, private_folder

FUNCTION = "tf_fused"
_FLAGS = (
    "-std=c11", "-O3", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "-Werror=implicit-function-declaration",
)  # fmt: skip
_AVX2 = ("-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt")
_AVX512 = (*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512")
_ISA_FLAGS = {"scalar": (), "avx2": _AVX2, "avx512": _AVX512}
_SECONDS = 60
_SCRATCH = "making-"
_STALE_SECONDS = 3600


class CompiledSources:
    """Functions by source and instruction set. Each has a cell that holds its address once it is compiled, else 0."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], np.ndarray] = {}
        self._wanted: queue.SimpleQueue[tuple[str, str, np.ndarray]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._functions: dict[tuple[str, str], int] = {}
        self._libraries: list[Any] = []
        self._idle = threading.Condition()
        self._unfinished = 0

    def cell(self, source: str, isa: str) -> int:
        """Address of the cell of a source's function, which is compiled if it is not yet; 0 without a compiler."""
        if compiler() is None:
            return 0
        key = source, isa
        with self._lock:
            found = self._cells.get(key)
            if found is None:
                found = self._cells[key] = np.zeros(1, np.int64)
                with self._idle:
                    self._unfinished += 1
                self._wanted.put((source, isa, found))
                if self._worker is None or not self._worker.is_alive():  # a forked child has none
                    self._worker = threading.Thread(target=self._work, name="timberframe-compile", daemon=True)
                    self._worker.start()
        return int(found.ctypes.data)

    def function(self, source: str, isa: str) -> int:
        """Address of a source's function, compiled now if it is not yet. Raises OSError or CalledProcessError."""
        key = source, isa
        if key not in self._functions:
            self._functions[key] = self._load(source, isa)
        return self._functions[key]

    def _load(self, source: str, isa: str) -> int:
        library = ctypes.CDLL(str(compiled(source, isa)))
        self._libraries.append(library)
        return ctypes.cast(library[FUNCTION], ctypes.c_void_p).value or 0

    def wait(self, seconds: float) -> bool:
        """Waits until all that was requested is compiled; returns whether it is."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._unfinished, seconds)

    def _work(self) -> None:
        while True:
            source, isa, cell = self._wanted.get()
            try:
                cell[0] = self._load(source, isa)
            except Exception as e:  # a compiler that fails, or a library that does not suit
                logging.warning("a chain of nodes goes on running block by block: %s", e)
            with self._idle:
                self._unfinished -= 1
                self._idle.notify_all()


@cache
def compiler() -> tuple[str, str] | None:
    """Returns the C compiler's path and what it says of its version: that of CC, or else cc, gcc
    or clang; None without one.
    """
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path is None:
            continue
        try:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        return path, version.stdout
    return None


def compiled(source: str, isa: str) -> Path:
    """Returns the shared library of a source, from the cache or made now. Raises OSError or CalledProcessError."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C compiler")
    path, version = found
    flags = (*_FLAGS, *_ISA_FLAGS[isa])
    headers = headers_digest(source, [include_directory()])
    key = hashlib.sha256("\0".join((source, headers, version, *flags)).encode()).hexdigest()[:32]
    folder = private_folder(cache_folder("fused"))
    library = folder / f"{key}.so"
    if library.exists():
        return library
    _sweep(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH) as scratch:
        text, made = Path(scratch) / "fused.c", Path(scratch) / "fused.so"
        text.write_text(source)
        command = [path, *flags, f"-I{include_directory()}", str(text), "-o", str(made)]
        subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)
        made.replace(library)  # at once: another process sees the whole file or none
    return library


def _sweep(folder: Path) -> None:
    """Removes what processes left that ended while they compiled."""
    for left in folder.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(left)


sources = CompiledSources()
"""The compiled sources of this process."""
