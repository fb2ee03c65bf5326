"""Kernels that write a value into a part of a tensor: all of the old one is moved, then the value over it."""

from __future__ import annotations

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.kernels.movement import itemsize, selected, source, target
from timberframe_cpu.moves import dense, plan
from timberframe_cpu.reference import or_reference
from timberframe_sdk.native import Native


@or_reference
def assign_slice(node: KernelNode) -> Native:
    """The value is number 1 of the inputs that the kernel gets."""
    moves = [(source(node), target(node))]
    if node.inputs[4].size:
        part, _ = selected(node, target(node), node.inputs[4].shape, 1)
        moves.append((dense(part.shape, itemsize(node), 1), part))
    return plan(moves, itemsize(node))


KERNELS = [
    KernelDef("TensorStridedSliceUpdate", "CPU", assign_slice),
    KernelDef("ResourceStridedSliceAssign", "CPU", assign_slice),
]
