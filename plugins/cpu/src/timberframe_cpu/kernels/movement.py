"""Kernels that move whole tensors without looking at their elements."""

from __future__ import annotations

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.native import native
from timberframe_sdk.native import Native


def copy(node: KernelNode) -> Native:
    """The output has the input's bytes."""
    return native("copy", node.outputs[0].nbytes)


KERNELS = [KernelDef("Identity", "CPU", copy, inplace=((0, 0),))]
