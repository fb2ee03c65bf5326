"""Programs of a device: what runs one, and how it is kept on disk."""

from __future__ import annotations

import hashlib
import pickle
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import serialize_executable

from timberframe_pjrt.checks import Check, raise_refused
from timberframe_pjrt.settings import TYPE
from timberframe_sdk import KernelNode, Memory
from timberframe_sdk.fallbacks import note_kernel

if TYPE_CHECKING:
    from timberframe_pjrt.device import PjrtDevice


@dataclass(frozen=True)
class CompiledModule:
    """A cluster as a plugin compiled it. module: its StableHLO. kernels: ops of the cluster, and what they became."""

    compiled: Any
    module: bytes
    kernels: Sequence[tuple[str, str]]

    @property
    def memory(self) -> Memory:
        """The memory that it needs beside parameters and results, as far as the plugin says."""
        try:
            used = self.compiled.memory_analysis()
        except Exception:  # a plugin that cannot say it has its own way to say so
            return Memory()
        return Memory() if used is None else Memory(used.generated_code_size_in_bytes, used.temp_size_in_bytes)

    def save(self) -> bytes:
        """Returns it as bytes, for `load`."""
        return pickle.dumps((serialize_executable.serialize(self.compiled), self.module, list(self.kernels)))

    @classmethod
    def load(cls, data: bytes, device: Any) -> CompiledModule:
        """Returns what `save` gave, on a device of PJRT."""
        (program, inputs, outputs), module, kernels = pickle.loads(data)
        compiled = serialize_executable.deserialize_and_load(
            program, inputs, outputs, backend=device.client, execution_devices=[device]
        )
        return cls(compiled, module, kernels)


class Running:
    """Runs a program: its results are there when it has shown that it refuses none of its inputs."""

    def __init__(self, device: PjrtDevice, made: CompiledModule, checks: Sequence[tuple[KernelNode, Check]]) -> None:
        self.device, self.made, self.checks = device, made, checks

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Returns the arrays of the results."""
        failures, recorder = self.device.failures, self.device.recorder
        failures.check("launch")
        number = None if recorder is None else recorder.begin(self.made.module, recorded("input", arrays))
        results = list(self.made.compiled(*arrays))
        rows = results.pop() if self.checks else None
        if not results:  # nobody can wait for it later
            failures.check("queue")
        if recorder is not None and number is not None:
            recorder.end(number, recorded("output", results))
        if rows is not None:
            raise_refused(self.checks, np.asarray(rows))
        for op, kernel in self.made.kernels:
            note_kernel(TYPE, op, kernel)
        return results


def recorded(kind: str, arrays: Sequence[Any]) -> dict[str, np.ndarray]:
    """Returns arrays as they are recorded."""
    return {f"{kind}_{i}": np.asarray(x) for i, x in enumerate(arrays)}


@cache
def versions() -> tuple[str, ...]:
    """Returns the versions that programs on disk depend on: of JAX, of our translations, of the host's processor."""
    own = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        own.update(file.read_bytes())
    return jax.__version__, jax.lib.__version__, own.hexdigest(), platform.machine(), _processor()


def _processor() -> str:
    """Returns the features of the host's processor, for which code on it is compiled; "" where Linux does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
