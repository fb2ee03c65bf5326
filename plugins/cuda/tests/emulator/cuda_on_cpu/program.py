"""Sources in CUDA C++ compiled by the system's C++ compiler, and kernels of theirs run on host memory."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from timberframe_accelerator import header_folders
from timberframe_sdk import headers_digest

HEADER = Path(__file__).with_name("cuda.h")
MOST_ITEMS = 1024
"""Work-items of a group, as on every GPU of today."""
_STACK = 64 * 1024
FLAGS = (
    "-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-ffp-contract=off", "-fno-math-errno", "-fwrapv",
    "-fsanitize=bounds,alignment", "-fsanitize-undefined-trap-on-error",  # what ends a GPU's context ends the process
)  # fmt: skip
_ENTRIES = """
extern "C" int launch_{0}(void **arguments, const unsigned *sizes, int backwards, char *stacks) {{
  return emulated_launch({0}, arguments, sizes, backwards, stacks);
}}
extern "C" void types_{0}(char *text) {{ emulated_types({0}, text); }}
"""
_launching = threading.Lock()  # shared memory and the indices of work-items are variables of a library
_launches = 0


@cache
def compiler() -> str | None:
    """Returns the C++ compiler: that of CXX, or else c++, g++ or clang++; None without one."""
    names = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    return next((path for name in names if name and (path := shutil.which(name))), None)


class Program:
    """The library that a source was compiled to."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._barriers = bool(ctypes.c_int.in_dll(self._library, "has_barriers").value)

    def parameters(self, kernel: str) -> list[str]:
        """Returns what a kernel takes: ``pointer`` or the name of a dtype."""
        text = ctypes.create_string_buffer(4096)
        self._library[f"types_{kernel}"](text)
        return text.value.decode().split()

    def launch(
        self, kernel: str, parameters: Sequence[str], items: Sequence[int], group: Sequence[int], values: Sequence[Any]
    ) -> None:
        """Runs a kernel to its end. values: addresses and NumPy scalars. RuntimeError where a GPU would fail."""
        global _launches
        given = ["pointer" if isinstance(v, int) else v.dtype.name for v in values]
        if given != list(parameters):
            raise RuntimeError(f"{kernel}: takes {' '.join(parameters)}; it was given {' '.join(given)}")
        sizes = _sizes(kernel, items, group)
        stored = [np.array(v, np.uint64 if isinstance(v, int) else v.dtype) for v in values]
        pointers = (ctypes.c_void_p * max(len(stored), 1))(*(h.ctypes.data for h in stored))
        with _launching:
            _launches += 1
            stacks = ctypes.c_void_p(_stacks().ctypes.data if self._barriers else 0)
            missed = self._library[f"launch_{kernel}"](pointers, sizes, ctypes.c_int(_launches % 2), stacks)
        if missed:
            raise RuntimeError(
                f"{kernel}: some work-items of a group wait at the barrier of line {missed}, others do not"
            )


def _sizes(kernel: str, items: Sequence[int], group: Sequence[int]) -> Any:
    """Groups and sizes of a group by x, y and z; RuntimeError where a GPU refuses them."""
    counts = [n // g for n, g in zip(items, group, strict=True)]
    even = all(n > 0 and n % g == 0 for n, g in zip(items, group, strict=True))
    if not even or np.prod(group) > MOST_ITEMS or any(c > 65535 for c in counts[1:]) or counts[0] >= 2**31:
        raise RuntimeError(f"{kernel}: {tuple(items)} work-items in groups of {tuple(group)} cannot be launched")
    ones = [1] * (3 - len(counts))
    return (ctypes.c_uint * 6)(*counts, *ones, *group, *ones)


@cache
def _stacks() -> Any:
    """Memory for the stacks of a group's fibers, of which only the touched pages exist."""
    return np.frombuffer(mmap.mmap(-1, MOST_ITEMS * _STACK), np.uint8)


def compiled(source: str) -> Path:
    """Returns the shared library of a source, from the cache or made now. RuntimeError with the compiler's message."""
    path = compiler()
    if path is None:
        raise RuntimeError("no C++ compiler is installed; kernels cannot be run on the CPU")
    headers = headers_digest(source, header_folders(), [HEADER])
    key = hashlib.sha256("\0".join((source, headers, path, _ENTRIES, *FLAGS)).encode()).hexdigest()[:32]
    folder = Path(os.environ.get("TIMBERFRAME_CACHE") or user_cache_path("timberframe")) / "cuda_on_cpu"
    library = folder / f"{key}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "made.so"
        whole = f'#include "{HEADER}"\n{source}'
        text = _compile(path, ["-std=c++17", "-E", "-P", *(f"-I{folder}" for folder in header_folders())], whole)
        entries = "".join(_ENTRIES.format(kernel) for kernel in re.findall(r"__global__ void (\w+)", text))
        barriers = text.count("emulated_barrier(") > 1  # the first is its definition
        entries += f'extern "C" {{ int has_barriers = {int(barriers)}; }}\n'
        _compile(path, [*FLAGS, "-D__global__=", "-o", str(made)], text + entries)
        made.replace(library)
    return library


def _compile(path: str, arguments: Sequence[str], text: str) -> str:
    command = [path, *arguments, "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
