"""A device with a compiler for tests: it writes the source of one Python function for each cluster.

What it hands from node to node while it translates are names of variables of that source, not arrays.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import timberframe_sdk as sdk

EXPRESSIONS = {
    "Identity": "{}.copy()",
    "AddV2": "{} + {}",
    "Sub": "{} - {}",
    "Mul": "{} * {}",
    "MatMul": "{} @ {}",
    "Tanh": "np.tanh({})",
    "Less": "{} < {}",
    "Sqrt": "np.sqrt({})",
}
TROUBLE: dict[str, Callable[[Sequence[str]], None]] = {}
"""By op: what the compiler does when it has seen the ops of a program that has this one, for tests of failures."""


class SourceAllocator(sdk.Allocator):
    def raw(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)


class Tensor:
    """An array that later runs cannot change."""

    def __init__(self, x: np.ndarray) -> None:
        self.value = x
        self.dtype, self.shape = x.dtype, x.shape


class SourceDevice(sdk.CompilerDevice):
    """sources: the programs that were compiled, the newest last."""

    type, priority, cached_programs = "SOURCE", 3, 0  # tests change what the compiler does

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self.allocator = SourceAllocator(limit)
        self.attributes = sdk.DeviceAttributes(memory=limit or 1 << 30, model="source", slow_compile=True)
        self.sources: list[str] = []

    def supports(self, node: sdk.KernelNode) -> str | None:
        return None if node.op in EXPRESSIONS else f"{node.op} has no expression"

    def build(self, function: sdk.ClusterFunction) -> sdk.Program:
        ops = [n.op for n in function.cluster.nodes]
        for op in ops:
            TROUBLE.get(op, lambda ops: None)(ops)
        lines: list[str] = []
        constants: dict[str, np.ndarray] = {}

        def named(x: Any) -> str:
            if isinstance(x, str):
                return x
            name = f"c{len(constants)}"
            constants[name] = x
            return name

        def emit(node: sdk.KernelNode, inputs: Sequence[Any]) -> str:
            name = f"v{len(lines)}"
            lines.append(f"    {name} = {EXPRESSIONS[node.op].format(*map(named, inputs))}  # {node.name}")
            return name

        names = [f"p{i}" for i in range(len(function.parameters))]
        results = function(emit, names)
        head = f"def program({', '.join(names)}):"
        source = "\n".join([head, *lines, f"    return [{', '.join(map(named, results))}]"])
        self.sources.append(source)
        return self._program(function, source, constants)

    def load(self, function: sdk.ClusterFunction, data: bytes) -> sdk.Program:
        return self._program(function, *pickle.loads(data))

    def _program(self, function: sdk.ClusterFunction, source: str, constants: Mapping[str, np.ndarray]) -> sdk.Program:
        scope: dict[str, Any] = {"np": np, **constants}
        exec(source, scope)

        def run(arrays: Sequence[Tensor]) -> list[Tensor]:
            found = scope["program"](*(a.value for a in arrays))
            return [Tensor(np.asarray(x, v.dtype)) for x, v in zip(found, function.results, strict=True)]

        return sdk.Program(run, sdk.Memory(arena=100), lambda: pickle.dumps((source, constants)))

    def upload(self, x: np.ndarray) -> Tensor:
        return Tensor(np.array(x))

    def copy_out(self, a: Tensor) -> np.ndarray:
        return a.value.copy()


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    limit = sdk.memory_limit(config, "SOURCE", 1 << 30)
    made = [SourceDevice(limit)] if sdk.device_count(config, "SOURCE", 1) else []
    for device in made:
        device.cache = sdk.program_cache(config, "source", ["version 1"])
    return list(made)


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return []
