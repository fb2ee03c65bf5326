"""Kernels on their way from source to GPU: the sources of a cluster are compiled several at a time.

NVRTC works without Python's lock. A kernel that is asked for while a cluster is built starts to be compiled, and all
are waited for when the cluster is built, so that errors name their nodes and nothing is compiled or loaded in a run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy

from timberframe_accelerator import DeviceTensor
from timberframe_cuda.compiler import compiled
from timberframe_cuda.context import DRIVER_ERRORS
from timberframe_sdk import InternalError, KernelNode
from timberframe_sdk.execution.errors import naming


@cache
def _compilers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "nvrtc")


class Kernel:
    """A kernel of a source, which is being compiled or loaded: a Function."""

    def __init__(self, device: Any, modules: Modules, source: str, name: str) -> None:
        self._device, self._modules, self._source, self._name = device, modules, source, name
        self._function: cupy.cuda.Function | None = None

    def load(self) -> Any:
        """Waits until the source is compiled and gives CuPy's function; InternalError with NVRTC's message."""
        if self._function is None:
            module: cupy.cuda.Module = self._modules.module(self._source)
            self._function = module.get_function(self._name)
        return self._function

    def __call__(self, items: Sequence[int], group: Sequence[int], *arguments: Any) -> None:
        device = self._device
        function: cupy.cuda.Function = self._function or self.load()
        given = [a.handle if isinstance(a, DeviceTensor) else a for a in arguments]
        blocks = tuple(n // g for n, g in zip(items, group, strict=True))
        streams, under_way = device.streams, device.kernels_under_way
        capture = streams.capture
        if capture is None:
            device.failures.check("launch")
        (under_way if capture is None else capture.kernels).launched(self._name)
        try:
            with device.gpu:
                function(blocks, tuple(group), given, stream=streams.current)
        except DRIVER_ERRORS as e:
            raise device.context.error(device.spec, e, under_way) from e
        if capture is not None:
            capture.pointers += [p for p in given if isinstance(p, cupy.cuda.MemoryPointer)]


class Modules:
    """The modules of a device by source. They are kept for good: unloading one may disturb a capture."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._compiling: dict[str, Future[bytes]] = {}
        self._loaded: dict[str, cupy.cuda.Module] = {}
        self._lock = threading.RLock()
        self._of_thread = threading.local()

    def kernel(self, source: str, name: str) -> Kernel:
        """Returns a kernel of a source; it is ready, unless this thread builds a cluster."""
        with self._lock:
            if source not in self._loaded and source not in self._compiling:
                self._compiling[source] = _compilers().submit(compiled, source, self._device.architecture)
        return Kernel(self._device, self, source, name)

    def module(self, source: str) -> cupy.cuda.Module:
        """Returns the module of a source, loaded; InternalError with NVRTC's message where it refuses the source."""
        with self._lock:
            found = self._loaded.get(source)
            if found is not None:
                return found
            compiling = self._compiling.get(source) or _compilers().submit(compiled, source, self._device.architecture)
        try:
            machine_code = compiling.result()
        except RuntimeError as e:
            words = f"{self._device.spec}: NVRTC refuses a source with the message\n{e}\n{source}"
            raise InternalError(words) from e
        finally:
            with self._lock:
                self._compiling.pop(source, None)
        with self._lock, self._device.calling():
            module = self._loaded.get(source)
            if module is None:
                module = cupy.cuda.Module()
                module.load(machine_code)
                self._loaded[source] = module
            return module

    @contextmanager
    def together(self) -> Iterator[None]:
        """Lets the kernels that this thread asks for be compiled at the same time; at the end they are ready."""
        if self._asked is not None:  # a cluster within one, such as the body of a loop
            yield
            return
        asked = self._of_thread.asked = {}
        try:
            yield
            for kernel, node in asked.items():
                if node is None:
                    kernel.load()
                else:
                    with naming(node, "NVRTC"):
                        kernel.load()
        finally:
            self._of_thread.asked = None

    @property
    def _asked(self) -> dict[Kernel, KernelNode | None] | None:
        return self._of_thread.__dict__.get("asked")

    def use(self, kernel: Kernel) -> Kernel:
        """Notes that this thread asks for a kernel: it is ready now, or when the cluster that is built is."""
        if self._asked is None:
            kernel.load()
        else:
            self._asked.setdefault(kernel, None)
        return kernel

    @contextmanager
    def asking(self, node: KernelNode) -> Iterator[None]:
        """Says of which node the kernels are that are asked for in the block."""
        yield
        asked = self._asked or {}
        asked.update({kernel: node for kernel, known in asked.items() if known is None})
