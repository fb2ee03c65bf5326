"""The device: a cluster becomes one program of a PJRT device, compiled through JAX."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import timberframe_pjrt.translations  # noqa: F401  # which fills the table
from timberframe_pjrt.checks import RefusedError
from timberframe_pjrt.lowering import operations_by_node
from timberframe_pjrt.platforms import Platform, find_platform, modules_of
from timberframe_pjrt.programs import CompiledModule, Running, recorded, versions
from timberframe_pjrt.script import write_script
from timberframe_pjrt.settings import TYPE, Settings, settings_of
from timberframe_pjrt.tracing import traced_function
from timberframe_pjrt.translations.table import ALL, checks_of, refusal
from timberframe_sdk import (
    HARDWARE,
    Allocator,
    ClusterFunction,
    CompilerDevice,
    DeviceAttributes,
    Failures,
    InvalidArgumentError,
    Judged,
    KernelNode,
    OpError,
    Program,
    ResourceExhaustedError,
    device_count,
    memory_limit,
    program_cache,
)
from timberframe_sdk.recording import Recorder, judged_run, recorded_draws, recorded_runs

MEMORY = 1 << 32
"""Bytes that a device may use where neither the session nor the plugin says how many there are."""


class PjrtAllocator(Allocator):
    """Keeps the accounts: PJRT allocates the arrays, and `raw` serves those who ask for bytes."""

    def __init__(self, device: Any, limit: int | None) -> None:
        super().__init__(limit)
        self.device = device

    def raw(self, nbytes: int) -> Any:
        """Returns an array of bytes on the device."""
        return jax.device_put(np.empty(nbytes, np.uint8), self.device)


class PjrtDevice(CompilerDevice):
    """One device of a platform. Work is enqueued; copies to the host wait for it."""

    type, priority, asynchronous = TYPE, 5, True

    def __init__(self, index: int, platform: Platform, device: Any, settings: Settings, limit: int | None) -> None:
        super().__init__(index)
        self.failures = Failures("compile", "launch", "copy", "queue")
        self.platform, self.device, self.settings = platform, device, settings
        self.is_cpu = device.platform == "cpu"  # also of a plugin for CPUs by another name
        self.recorder: Recorder | None = None
        self.allocator = PjrtAllocator(device, limit)
        self.attributes = DeviceAttributes(
            memory=limit or _memory_of(device),
            vendor="PJRT",
            model=device.device_kind,
            driver=f"{platform.version}, jax {jax.__version__}",
            dtypes=ALL,
            details={
                HARDWARE: settings.hardware, "platform": platform.name, "library": platform.library,
                "matmul_precision": settings.matmul_precision,
                "jax_default_matmul_precision": jax.config.jax_default_matmul_precision, **settings.plugin_options,
            },
            slow_compile=True,
            modules=modules_of(platform),
        )  # fmt: skip

    def identity(self) -> list[str]:
        """Returns what programs depend on besides their clusters."""
        seen, library = self.attributes, self.platform.library
        built = str(Path(library).stat().st_mtime_ns) if library else ""
        settings = [str(self.device.id), repr(sorted(seen.details.items())), os.environ.get("XLA_FLAGS", "")]
        return [seen.model, seen.driver, built, *settings, *versions()]

    def supports(self, node: KernelNode) -> str | None:
        """See CompilerDevice."""
        return refusal(node)

    def build(self, function: ClusterFunction) -> Program:
        """Returns a program of the device."""
        nodes = function.cluster.nodes
        parameters = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in function.parameters]
        with jax.enable_x64(True), jax.default_device(self.device):
            traced = traced_function(function, self.settings.matmul_precision)
            lowered = jax.jit(traced, keep_unused=True).lower(*parameters)
            module = lowered.as_text().encode()
            if self.recorder is not None:  # compiling may end the process
                self.recorder.begin(module, recorded("input", [np.zeros(p.shape, p.dtype) for p in parameters]))
            compiled = compiled_of(lowered)
        names = operations_by_node(lowered.compiler_ir("stablehlo"), len(nodes))
        kernels = [(node.op, name) for node, own in zip(nodes, names, strict=True) for name in own]
        return self._program(function, CompiledModule(compiled, module, kernels))

    def load(self, function: ClusterFunction, data: bytes) -> Program:
        """See CompilerDevice."""
        return self._program(function, CompiledModule.load(data, self.device))

    def _program(self, function: ClusterFunction, made: CompiledModule) -> Program:
        return Program(Running(self, made, checks_of(function.cluster)), made.memory, made.save)

    def upload(self, x: np.ndarray) -> Any:
        """Returns a copy: the host array is the caller's to change, and JAX may keep or read what it gets."""
        self.failures.check("copy")
        with jax.enable_x64(True):
            return jax.device_put(np.array(x), self.device)

    def copy_out(self, a: Any) -> np.ndarray:
        """Returns a copy; waits for the work that makes it."""
        self.failures.check("copy")
        return np.array(a)

    def ready(self, a: Any) -> bool:
        """See CompilerDevice."""
        return bool(a.is_ready())

    def wait(self, a: Any) -> None:
        """See CompilerDevice."""
        self.failures.check("queue")
        a.block_until_ready()

    def record(self, folder: str) -> bool:
        """See Device."""
        self.recorder = Recorder(Path(folder))
        return True

    def script(self, folder: str, title: str, judged: Sequence[Judged]) -> str:
        """Returns a program of jax and numpy; see Device."""
        runs = recorded_runs(Path(folder))
        if not runs:
            return ""
        draws = recorded_draws(Path(folder))
        return write_script(*judged_run(runs, judged), title, self.platform, self.settings, draws)

    def error(self, e: Exception) -> OpError:
        """See CompilerDevice."""
        if isinstance(e, RefusedError):
            return InvalidArgumentError(str(e))
        if "RESOURCE_EXHAUSTED" in str(e):
            return ResourceExhaustedError(f"device {self.spec}: {e}")
        return super().error(e)


def compiled_of(lowered: Any) -> Any:
    """Returns what JAX has the device's plugin make of a lowered function."""
    return lowered.compile()


def _memory_of(device: Any) -> int:
    """Returns the bytes that a device says it has."""
    statistics = device.memory_stats() or {}
    return int(statistics.get("bytes_limit", MEMORY))


def devices(config: Mapping[str, Any]) -> list[PjrtDevice]:
    """Returns the devices of a session's settings: one, or as many as it asks for, on those of the platform in turn."""
    settings = settings_of(config)
    platform = find_platform(settings)
    found = platform.devices[settings.device_index :]
    limit = memory_limit(config, TYPE, _memory_of(found[0]))
    count = device_count(config, TYPE, 1)
    made = [PjrtDevice(i, platform, found[i % len(found)], settings, limit) for i in range(count)]
    for device in made:
        device.cache = program_cache(config, "pjrt", device.identity())
    return made
