"""What the machine can do, measured in the same run: fused multiply-adds, matrix products, copies."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import numpy as np

CACHED_BYTES = 1 << 22
"""A copy of as many bytes as the kernels' inputs have: it stays in the caches, as those do."""
MEMORY_BYTES = 1 << 26
REPEATS = 40
NATIVE_FLAGS = ("-march=native", "-DVECTOR_BYTES=64")
ISA_FLAGS = {"avx2": ("-march=x86-64-v3", "-DVECTOR_BYTES=32")}
"""Flags of the C compiler by the detail `isa` of a device that uses less than the machine has."""


def best(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Returns seconds of the fastest of some calls."""
    fastest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def multiply_add_rate(isa: str = "") -> float | None:
    """float32 operations a second of one core in a loop of fused multiply-adds; None without a C compiler.

    isa: the instruction set that the loop is compiled for, one of ISA_FLAGS; any other means all that the machine has.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "peak.so"
        source = str(files("timberframe_conformance.bench") / "peak.c")
        flags = ISA_FLAGS.get(isa, NATIVE_FLAGS)
        command = [compiler, "-O3", *flags, "-shared", "-fPIC", "-o", str(library), source]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        function = ctypes.CDLL(str(library)).multiply_add
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_int64]
    count = 200_000
    operations = float(function(count))
    return operations / best(lambda: function(count))


def copy_rate(nbytes: int = CACHED_BYTES, threads: int = 1) -> float:
    """Returns bytes read and written a second by copies of nbytes in all, of an equal part on each thread."""
    part = nbytes // 4 // threads
    pairs = [(np.empty(part, np.float32), np.ones(part, np.float32)) for _ in range(threads)]
    repeats = REPEATS * CACHED_BYTES // nbytes + 5
    if threads == 1:
        return 2.0 * nbytes / best(lambda: np.copyto(*pairs[0]), repeats)
    with ThreadPoolExecutor(threads) as pool:
        return 2.0 * nbytes / best(lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs)), repeats)
