"""The device under test, and what the suites need to know about it."""

from __future__ import annotations

from typing import Any

import timberframe as tf
from timberframe.errors import OpError
from timberframe.ops import registry
from timberframe.ops.opdef import OpDef
from timberframe.plugin.contracts import AllocatorStatistics, Device, KernelNode, Value
from timberframe_conformance.case import Types
from timberframe_conformance.cases.types import as_attrs
from timberframe_conformance.options import Options
from timberframe_conformance.profile import Profile, load_profile


EXECUTOR_OPS = frozenset({
    "Const", "Placeholder", "PlaceholderWithDefault", "NoOp", "Shape", "ShapeN", "Rank", "Size", "VarHandleOp",
    "ReadVariableOp", "AssignVariableOp", "VarIsInitializedOp", "VariableShape", "DestroyResourceOp", "Identity",
})  # fmt: skip
"""Ops that the core carries out on any device, so that a device needs no kernel for them."""

UPDATES = {"AssignAddVariableOp": "AddV2", "AssignSubVariableOp": "Sub"}
"""Ops that the core carries out with another op's kernel."""


class NoSuchDevice(LookupError):
    """The device to test does not exist; the message says which do, and why this one does not."""


class Target:
    """A device under test. `name` is what the user typed, `spec` what graphs say, `device` the object behind it."""

    def __init__(self, name: str, device: Device, profile: Profile | None = None) -> None:
        self.name = name
        self.device = device
        self.spec = device.spec
        self.profile = profile or Profile()
        self._supports: dict[tuple[str, Types], str | None] = {}

    def session(self, graph: Any, **config: Any) -> Any:
        """A session on a graph; keyword arguments are SessionConfig's."""
        return tf.Session(graph=graph, config=tf.SessionConfig(**config) if config else None)

    def supports(self, op: OpDef, types: Types) -> str | None:
        """None if the device has a kernel for an op in these dtypes, else why not."""
        if op.name in EXECUTOR_OPS:
            return None
        if op.name in UPDATES:
            return self.supports(registry.get(UPDATES[op.name]), tuple(("T", dtype) for _, dtype in types))
        key = op.name, types
        if key not in self._supports:
            self._supports[key] = self.device.supports(probe(self.device, op, types))
        return self._supports[key]

    def statistics(self) -> AllocatorStatistics:
        """What the device's allocator says."""
        return self.device.allocator.statistics()


def probe(device: Device, op: OpDef, types: Types) -> KernelNode:
    """A node of the op in these dtypes, without shapes: what the placer asks about."""
    attrs = {n: a.default for n, a in op.attrs.items() if not a.required} | as_attrs(types)
    inputs = [Value(i, _numpy(a, types), (), "input") for i, a in enumerate(op.inputs)]
    outputs = [Value(len(inputs) + i, _numpy(a, types), ()) for i, a in enumerate(op.outputs)]
    return KernelNode(op.name, "probe", attrs, inputs, outputs, device)


def _numpy(arg: Any, types: Types) -> Any:
    if arg.dtype is not None:
        return arg.dtype.numpy
    found = as_attrs(types).get(arg.type_attr or "")
    return (found or tf.float32).numpy
