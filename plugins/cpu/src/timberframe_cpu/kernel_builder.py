"""What each node of a cluster runs: kernels built once for all nodes that are alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_cpu.native import native
from timberframe_sdk import UNIT_KERNELS, KernelDef, KernelNode, KernelRegistry, Preparation, Value, passed_inputs
from timberframe_sdk.execution.control_flow import control_flow
from timberframe_sdk.execution.prepared import PreparedForms
from timberframe_sdk.launching import build_kernel
from timberframe_sdk.native import Native

_CACHED_CONSTANT_BYTES = 256
_CACHE_ENTRIES = 20_000
_BYTES_PER_WEIGHT = 4096


@dataclass(slots=True)
class Launch:
    """How a node runs: by a native kernel or by a Python launcher, exactly one of which is set.

    passed: positions of the inputs that it receives, in other forms where `preparations` say so. weight: about how long
    it takes (see program.h).
    """

    native: Native | None
    python: Callable[..., Any] | None
    inplace: tuple[tuple[int, int], ...]
    passed: tuple[int, ...]
    weight: int
    workspace_bytes: int = 0
    preparations: tuple[Preparation, ...] = ()
    definition: KernelDef | None = None  # kept, so that its id stays taken while it is in a key


class KernelBuilder:
    """Builds launches for one device; keeps those of native kernels, whose parameters depend on what is in the key."""

    def __init__(self, device: Any, kernels: Callable[[], KernelRegistry]) -> None:
        self._device = device
        self._kernels = kernels
        self._known: dict[Any, Launch] = {}
        self.forms = PreparedForms(lambda x: np.require(x, requirements=["C", "A"]))

    def definition(self, node: KernelNode) -> KernelDef | None:
        """Returns the registered kernel for a node; None where the device itself runs the op."""
        if node.op in UNIT_KERNELS:
            return self._kernels().find(node)
        return self._kernels().require(node)

    def build(self, node: KernelNode) -> Launch:
        """Returns the launch of a node; UnimplementedError that lists what is registered if there is no kernel."""
        definition = self.definition(node)
        key = _key(definition, node)
        launch = None if key is None else self._known.get(key)
        if launch is None:
            launch = self._new(definition, node)
            if key is not None and launch.native is not None:
                if len(self._known) >= _CACHE_ENTRIES:
                    self._known.clear()
                self._known[key] = launch
        node.workspace_bytes, node.preparations = launch.workspace_bytes, launch.preparations
        return launch

    def _new(self, definition: KernelDef | None, node: KernelNode) -> Launch:
        passed = passed_inputs(node)
        weight = 1 + (sum(v.nbytes for v in (*node.inputs, *node.outputs)) // _BYTES_PER_WEIGHT)
        if definition is None:
            built: Any = _unit_kernel(node)
            inplace: tuple[tuple[int, int], ...] = ((0, 0),)
        else:
            node.workspace_bytes = 0
            built = build_kernel(definition, node)
            inplace = definition.inplace
        if isinstance(built, Native):
            return Launch(built, None, inplace, passed, weight, node.workspace_bytes, node.preparations, definition)
        return Launch(None, built, inplace, passed, weight, node.workspace_bytes, node.preparations, definition)

    def python_control_flow(self, node: KernelNode) -> Launch:
        """Returns a loop or branch that Python drives, its bodies being executables of their own."""
        return Launch(None, control_flow(self._device, node), (), tuple(range(len(node.inputs))), 1)


def _unit_kernel(node: KernelNode) -> Any:
    if node.outputs[0].dtype.hasobject:
        return lambda x, out: np.copyto(out, x)
    return native("copy", node.outputs[0].nbytes)


def _key(definition: KernelDef | None, node: KernelNode) -> Any:
    """Returns what a native kernel's parameters are made from; None where that is costly to find out."""
    if node.inner:  # of a kernel that covers several nodes, whose attrs count, too
        return None
    try:
        key = (
            node.op,
            definition and id(definition),
            tuple(node.attrs.items()),
            node.stream and (node.stream.address, node.stream.start(node.attrs)),
            *[_value_key(v) for v in node.inputs],
            None,
            *[(v.dtype.num, v.shape) for v in node.outputs],
        )
        hash(key)
    except TypeError:
        return None
    return key


def _value_key(value: Value) -> Any:
    if value.kind != "const":
        return value.dtype.num, value.shape, value.kind == "resource" and not value.replaced
    if value.nbytes > _CACHED_CONSTANT_BYTES or value.dtype.hasobject:
        raise TypeError("a large constant: the builder may prepare it")
    return value.dtype.num, value.shape, value.constant.tobytes()
