"""The cache of compiled kernels filled in advance, on a machine with NVRTC and without a GPU.

A program runs on a device that compiles each kernel which it is asked for and computes nothing: every result is zero.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from timberframe_accelerator import (
    DTYPES,
    UNSUPPORTED_OPS,
    AcceleratorDevice,
    DeviceTensor,
    Function,
    Limits,
    Multiplication,
)
from timberframe_cuda.compiler import ACCESS_BYTES, compiled
from timberframe_cuda.products import is_served
from timberframe_sdk import Allocator, Buffer, DeviceAttributes

LIMITS = Limits(1024, 48 * 1024, access_bytes=ACCESS_BYTES)
"""Work-items of a group and bytes of its shared memory, the same on every GPU that NVRTC 12 and 13 compile for."""


class Compilation:
    """Sources being compiled for some architectures, several at a time."""

    def __init__(self, architectures: Sequence[str], jobs: int) -> None:
        self._architectures = architectures
        self._pool = ThreadPoolExecutor(jobs)
        self._started: dict[str, list[Future[bytes]]] = {}

    def add(self, source: str) -> None:
        """Starts to compile a source, unless it was added before."""
        if source not in self._started:
            self._started[source] = [self._pool.submit(compiled, source, a) for a in self._architectures]

    def finish(self) -> tuple[int, list[str]]:
        """Waits; the number of sources, and NVRTC's messages for those that it refuses."""
        refused = [e for futures in self._started.values() for f in futures if (e := f.exception()) is not None]
        return len(self._started), [str(e) for e in refused]


def precompile(sources: Iterable[str], architectures: Sequence[str], jobs: int) -> tuple[int, list[str]]:
    """Compiles sources into the cache; see `Compilation.finish`."""
    compilation = Compilation(architectures, jobs)
    for source in sources:
        compilation.add(source)
    return compilation.finish()


class _HostAllocator(Allocator):
    def raw(self, nbytes: int) -> np.ndarray:
        return np.zeros(nbytes, np.uint8)


class CompilingDevice(AcceleratorDevice):
    """A device that has kernels compiled and launches none."""

    type = "CUDA"
    priority = 300
    asynchronous = False
    limits = LIMITS
    attributes = DeviceAttributes(
        memory=1 << 40, vendor="NVIDIA", model="no GPU", dtypes=DTYPES, unsupported_ops=UNSUPPORTED_OPS
    )

    def __init__(self, compilation: Compilation) -> None:
        super().__init__()
        self.allocator = _HostAllocator()
        self._compilation = compilation

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        return self.empty(dtype, shape)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceTensor:
        return DeviceTensor(np.zeros(shape, dtype), dtype, shape)

    def copy(self, source: DeviceTensor, target: DeviceTensor) -> None:
        """Leaves the target as it is."""

    def copy_in(self, x: np.ndarray) -> DeviceTensor:
        return DeviceTensor(x, x.dtype, x.shape)

    def copy_out(self, a: DeviceTensor) -> np.ndarray:
        return np.array(a.handle)

    def multiplier(self, wanted: Multiplication) -> Function | None:
        return _launches_nothing if is_served(wanted) else None

    def build(self, source: str, name: str) -> Function:
        self._compilation.add(source)
        return _launches_nothing


def _launches_nothing(items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
    """Stands for a kernel."""


_requested: Compilation | None = None


def compiling_devices() -> list[CompilingDevice]:
    """Returns the device of a program that runs to have its kernels compiled; none otherwise."""
    return [] if _requested is None else [CompilingDevice(_requested)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; 0 if every kernel was compiled, 1 if NVRTC refuses one."""
    global _requested
    parser = argparse.ArgumentParser("python -m timberframe_cuda", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("precompile", help="compiles the kernels of a program into the cache")
    command.add_argument("--arch", action="append", required=True, help="such as sm_90; may be given several times")
    command.add_argument("--jobs", type=int, default=os.cpu_count(), help="sources that are compiled at a time")
    command.add_argument("program", help="a program in Python")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    chosen = parser.parse_args(arguments)
    _requested = Compilation(chosen.arch, chosen.jobs)
    sys.argv = [chosen.program, *chosen.arguments]
    try:
        runpy.run_path(chosen.program, run_name="__main__")
    finally:
        count, refused = _requested.finish()
        _requested = None
    print("\n".join([*refused, f"{count} sources for {', '.join(chosen.arch)}, {len(refused)} refused"]))
    return int(bool(refused))
