"""A device that is right by construction: its kernels are the ops' own references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.ulp import round_to
from timberframe_conformance.truth.reference import true_outputs
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.nodes import passed_inputs
from timberframe_sdk import Device, KernelDef, KernelNode, Launcher, hookimpl, random_launcher
from timberframe_sdk.numpy_device import NumpyDevice


class ReferenceDevice(NumpyDevice):
    """Every op with a reference, in every dtype."""

    type, priority = "REFERENCE", 1


def build(node: KernelNode) -> Launcher:
    """A launcher that evaluates the op's reference and rounds once."""
    op = registry.get(node.op)
    if op.stream is not None:
        return random_launcher(node)
    positions = passed_inputs(node)

    def launch(*arrays: np.ndarray) -> Any:
        given = dict(zip(positions, arrays, strict=False))
        inputs = [given[i] if i in given else np.asarray(node.const(i)) for i in range(len(node.inputs))]
        results = true_outputs(op, node.attrs, inputs)
        shapes = []
        for value, out, result in zip(node.outputs, arrays[len(positions) :], results, strict=True):
            rounded = round_to(result, value.dtype)
            if value.dynamic:
                out.reshape(-1)[: rounded.size] = rounded.reshape(-1)
                shapes.append(rounded.shape)
            else:
                out[...] = rounded
        return shapes or None

    return launch


def _has_kernel(op: OpDef) -> bool:
    return op.reference is not None and bool(op.outputs)


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    return [KernelDef(op.name, "REFERENCE", build) for op in registry.all_ops() if _has_kernel(op)]


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    return [ReferenceDevice()]
