"""The device: kernels are functions of torch, on tensors of one of its backends."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timberframe_sdk import (
    HARDWARE,
    Buffer,
    DeviceAttributes,
    Failures,
    Judged,
    KernelDevice,
    device_count,
    memory_limit,
)
from timberframe_sdk.recording import recorded_draws
from timberframe_torch import lazy as torch
from timberframe_torch.arrays import Layout, TorchAllocator, TorchArray, array_in, from_bytes, host_bytes, layout_of
from timberframe_torch.backends import Backend, find_backend, switches
from timberframe_torch.recorder import Recorder, recorded_launches
from timberframe_torch.script import write_script
from timberframe_torch.settings import TYPE, Settings, settings_of

MEMORY = 1 << 32
"""Bytes that a device may use where neither the session nor torch says how many there are."""


class TorchDevice(KernelDevice):
    """One device of a backend of PyTorch. Work is enqueued in order, and copies to the host wait for it."""

    type, priority = TYPE, 5
    allocator: TorchAllocator

    def __init__(self, index: int, backend: Backend, settings: Settings, threads: int, limit: int | None) -> None:
        super().__init__(index)
        self.failures = Failures("launch", "copy", "compile")
        self.backend, self.settings, self.is_cpu = backend, settings, backend.is_host
        self.threads = threads
        self.use_threads()
        self.recorder: Recorder | None = None
        self.allocator = TorchAllocator(backend.device, limit)
        self._module: Any = backend_module(backend)
        self.attributes = DeviceAttributes(
            memory=limit or MEMORY,
            vendor="PyTorch",
            model=_name_of(self._module, backend),
            driver=" ".join(filter(None, (f"torch {torch.__version__}", _version_of(backend)))),
            dtypes=backend.dtypes,
            details={
                HARDWARE: settings.hardware, "dispatch key": backend.key, "module": backend.module,
                "views": settings.views, **switches(),
            },
            modules=("torch", *filter(None, [backend.module])),
        )  # fmt: skip

    def array(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> TorchArray:
        """See KernelDevice."""
        return array_in(buffer, offset, dtype, shape)

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> TorchArray:
        """See KernelDevice."""
        return self._empty(dtype, shape)

    def _empty(self, dtype: np.dtype[Any], shape: tuple[int, ...], layout: Layout | None = None) -> TorchArray:
        count = int(np.prod(shape)) if layout is None else layout.offset + layout.span
        return array_in(self.allocator.allocate(count * dtype.itemsize), 0, dtype, shape, layout)

    def copy(self, source: TorchArray, target: TorchArray) -> None:
        """See KernelDevice."""
        self.failures.check("launch")
        if target.tensor.numel():
            target.tensor.copy_(source.tensor)

    def copy_in(self, x: np.ndarray) -> TorchArray:
        """Returns a tensor whose elements lie as those of the host array, where the options have such views.

        Bytes alone are copied, so that no kernel for views of the backend has a part in it.
        """
        self.failures.check("copy")
        layout = layout_of(x) if self.settings.views == "fed" else None
        made = self._empty(x.dtype, x.shape, layout)
        if made.nbytes:
            made.whole.copy_(torch.from_numpy(host_bytes(x, layout)))
        return made

    def copy_out(self, a: TorchArray) -> np.ndarray:
        """Returns a copy; waits for the work that makes it."""
        self.failures.check("copy")
        if not a.nbytes:
            return np.empty(a.shape, a.dtype)
        host = a.whole.cpu().numpy()
        return from_bytes(np.array(host), a.dtype, a.shape, a.layout)

    def synchronize(self) -> None:
        """Waits for all that was enqueued."""
        wait = getattr(self._module, "synchronize", None)
        if not self.backend.is_host and wait is not None:
            with contextlib.suppress(NotImplementedError):
                wait()

    def use_threads(self) -> None:
        """Gives torch the device's number of threads for what this thread of the process calls.

        torch keeps the number by thread, and one that has not asked for it gives oneDNN all of OpenMP's threads.
        """
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)

    def record(self, folder: str) -> bool:
        """See Device."""
        self.recorder = Recorder(Path(folder))
        return True

    def script(self, folder: str, title: str, judged: Sequence[Judged]) -> str:
        """Returns a program of torch and numpy; see Device."""
        launches = recorded_launches(Path(folder))
        if not launches:
            return ""
        return write_script(launches, judged, title, self.backend, self.settings, recorded_draws(Path(folder)))


def backend_module(backend: Backend) -> Any:
    """Returns what torch has of a backend under its name, such as `torch.xpu`; None where it has nothing."""
    try:
        return getattr(torch, backend.name)
    except (AttributeError, ImportError):
        return None


def _name_of(module: Any, backend: Backend) -> str:
    """Returns what a backend calls the device, its own name where it says nothing."""
    try:
        return str(module.get_device_name(backend.device))
    except Exception:  # few backends say it, each in its own way
        return backend.name


def _version_of(backend: Backend) -> str:
    """Returns the version of what the backend runs on: its module's, CUDA's."""
    if backend.name == "cuda":
        return f"CUDA {torch.version.cuda}"
    if not backend.module:
        return ""
    return f"{backend.module} {getattr(importlib.import_module(backend.module), '__version__', '')}".strip()


def devices(config: Mapping[str, Any]) -> list[TorchDevice]:
    """Returns the devices of a session's settings, all of them on one device of the backend."""
    settings = settings_of(config)
    backend = find_backend(settings)
    torch.set_float32_matmul_precision(settings.matmul_precision)
    if settings.deterministic != torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(settings.deterministic)  # which imports torch's compiler
    own = _first_threads()
    threads = config.get("threads") or own
    limit = memory_limit(config, TYPE, MEMORY)
    return [TorchDevice(i, backend, settings, threads, limit) for i in range(device_count(config, TYPE, 1))]


@functools.cache
def _first_threads() -> int:
    """Returns how many threads torch has; the first call, before any device was made, decides."""
    return int(torch.get_num_threads())
