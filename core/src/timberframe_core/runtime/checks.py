"""What a session checks while it runs, for finding faults of devices: memory around tensors, and a second device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.compiler.place import Devices
from timberframe_core.config import SessionConfig
from timberframe_core.errors import InternalError, InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import (
    Array,
    Cluster,
    Device,
    Executable,
    KernelNode,
    RunContext,
    TraceSink,
    Value,
)
from timberframe_core.runtime.agreement import Divergence, first_divergence
from timberframe_core.runtime.reproduction import save_reproduction

_FENCES = {"zones": "", "start": "start", "end": "end"}


class Checks:
    """The checks that a SessionConfig asks for. It makes the context of each run."""

    def __init__(self, config: SessionConfig, devices: Devices) -> None:
        self._mode = "guarded" if config.memory_checks else "nodes"
        self._fence = _FENCES.get(config.memory_checks, "")
        self._shadow: Device | None = None
        if config.shadow_device:
            name = config.shadow_device if "/" in config.shadow_device else f"/device:{config.shadow_device}"
            found = devices.matching(name)
            if not found:
                raise InvalidArgumentError(
                    f"SessionConfig.shadow_device {config.shadow_device!r} does not exist; {devices.describe(name)}"
                )
            self._shadow = found[0]

    @staticmethod
    def wanted(config: SessionConfig) -> bool:
        """Returns whether the settings ask for any."""
        return bool(config.memory_checks or config.shadow_device)

    def context(self, trace: TraceSink | None = None) -> RunContext:
        """That of a run which is checked."""
        context = RunContext(trace=trace, mode=self._mode, fence=self._fence)
        if self._shadow is not None:
            context.observer = Shadow(self._shadow)
        return context


class Shadow:
    """Compares each node of one run with the same node on another device; raises InternalError at the first divergence.

    Not compared are nodes that this device declines, loops and branches (their bodies are, where the executor drives
    them), kernels that cover several nodes, draws of random numbers, and results whose size only the kernel knows.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._made: dict[Value, np.ndarray] = {}

    def __call__(self, node: KernelNode, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Observes a run: see RunContext."""
        if node.device is self.device:
            return
        # A kernel that works in place has overwritten its input, so results are kept from when they were made.
        given = [self._host(node, v, a) for v, a in zip(node.inputs, inputs, strict=True)]
        got = [np.array(node.device.copy_out(a)) for a in outputs]
        self._made.update(zip(node.outputs, got, strict=True))
        if any(a is b for a in outputs for b in inputs) or not self._is_comparable(node):
            return
        wanted = self._compute(node, given)
        if wanted is None:
            return
        found = first_divergence(registry.get(node.op), node.attrs, given, got, wanted)
        if found is not None:
            raise InternalError(self._message(node, found, save_reproduction(node, given, self.device)), node.name)

    def _host(self, node: KernelNode, value: Value, array: Array) -> np.ndarray:
        kept = self._made.get(value)
        if kept is not None:
            return kept
        if value.kind == "const":
            return np.asarray(value.constant)
        return np.asarray(node.device.copy_out(array))

    def _is_comparable(self, node: KernelNode) -> bool:
        op = registry.find(node.op)
        plain = op is not None and node.stream is None and not node.inner and op.role is None
        return plain and not any(v.dynamic or v.dtype.hasobject for v in (*node.inputs, *node.outputs))

    def _compute(self, node: KernelNode, given: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs by the other device; None where it declines the node."""
        inputs = [
            Value(i, v.dtype, x.shape, "const" if v.kind == "const" else "input", x if v.kind == "const" else None)
            for i, (v, x) in enumerate(zip(node.inputs, given, strict=True))
        ]
        outputs = [Value(len(inputs) + i, v.dtype, v.shape) for i, v in enumerate(node.outputs)]
        attrs = {name: value for name, value in node.attrs.items() if name != "_kernel"}
        twin = KernelNode(node.op, node.name, attrs, inputs, outputs, self.device, node.where)
        if self.device.supports(twin) is not None:
            return None
        fed = [v for v in inputs if v.kind == "input"]
        executable: Executable = self.device.compile(Cluster(self.device, [twin], fed, outputs))
        arrays = [self.device.copy_in(np.ascontiguousarray(given[v.id]).reshape(v.shape)) for v in fed]
        return [np.asarray(self.device.copy_out(a)) for a in executable.run(arrays, RunContext())]

    def _message(self, node: KernelNode, found: Divergence, saved: Any) -> str:
        return (
            f"{node.op} '{node.name}': output {found.output} on {node.device.spec} differs from that on "
            f"{self.device.spec} in {found.differing} of {found.size} elements, first at {list(found.place)}: "
            f"{found.got}, not {found.wanted}; they may differ by {found.allowed:.3g}. `python {saved}` shows it again"
        )
