"""Kernels in Python for tensors of strings: the op's own reference, applied to object arrays of bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from timberframe_core.graph.inference import arg_ranges
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.native import Native

Launcher = Callable[..., None]


def reference_launcher(node: KernelNode) -> Launcher:
    """A launcher that calls the op's reference; `shape` inputs, which launchers do not get, come from the node."""
    op = registry.get(node.op)
    reference = op.reference
    assert reference is not None, f"op {op.name} has no reference"
    planned = {i for name in op.shape_inputs for i in arg_ranges(op.inputs, node.attrs)[name]}
    known = {i: node.const(i) for i in planned}
    given = len(node.inputs) - len(planned)

    def launch(*arrays: np.ndarray) -> None:
        data = iter(arrays[:given])
        result = reference(node.attrs, *(known[i] if i in known else next(data) for i in range(len(node.inputs))))
        for output, value in zip(arrays[given:], result if isinstance(result, tuple) else (result,), strict=True):
            output[...] = value

    return launch


def or_reference(build: Callable[[KernelNode], Native]) -> Callable[[KernelNode], Native | Launcher]:
    """The builder for native dtypes, which leaves tensors of objects to the op's reference."""

    @wraps(build)
    def choose(node: KernelNode) -> Any:
        strings = any(v.dtype.hasobject for v in (*node.inputs, *node.outputs))
        return reference_launcher(node) if strings else build(node)

    return choose
