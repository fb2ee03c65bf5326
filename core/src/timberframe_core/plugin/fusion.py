"""Fused nodes: chains of elementwise nodes that a device runs as one.

A fused node has the op `FUSED`; its only inner cluster holds the nodes that it stands for, whose inputs and outputs
line up with its own. The last of them may be a reduction, whose result is then the only one; its axes are no input. The
pass `fuse` makes such nodes for devices whose `fusion` says what they can fuse. A device runs them in its own way:
block by block, or as generated source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import Reduction
from timberframe_core.plugin.contracts import KernelNode

FUSED = "_Fused"


def _no(node: KernelNode) -> bool:
    return False


@dataclass(frozen=True)
class Fusion:
    """What a device can fuse.

    accepts: whether it can fuse a node; it is asked of elementwise nodes of fixed shape alone. reduces: whether it can
    end a chain with a reduction, whose axes are constant. run: fewest elements that all operands of a chain walk at a
    time; shorter inner dimensions are not worth it to some devices.
    """

    accepts: Callable[[KernelNode], bool]
    reduces: Callable[[KernelNode], bool] = _no
    run: int = 1


def is_elementwise(node: KernelNode) -> bool:
    """Returns whether the node's op is elementwise: only such nodes are fused."""
    op = None if node.inner else registry.find(node.op)
    return op is not None and op.elementwise


def reduction(node: KernelNode) -> Reduction | None:
    """Returns how the node's op reduces its first input along axes, with which it may end a
    chain; None for other ops.
    """
    op = None if node.inner else registry.find(node.op)
    return None if op is None else op.reduction


Dim = tuple[int, tuple[int, ...]]  # size, and each operand's stride in elements


def merged_dims(shapes: Sequence[tuple[int, ...]], out_shape: tuple[int, ...]) -> list[Dim]:
    """Returns the dimensions of a result that operands broadcast to, innermost first, with as few as describe the walk.

    Dimensions of size 1 are left out; neighbours that all operands walk alike are one.
    """
    rank = len(out_shape)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    steps = [1] * len(shapes)
    dims: list[Dim] = []
    for axis in reversed(range(rank)):
        size = out_shape[axis]
        if size == 1:
            continue
        strides = tuple(0 if s[axis] == 1 else step for s, step in zip(padded, steps, strict=True))
        steps = [step * s[axis] for s, step in zip(padded, steps, strict=True)]
        if dims and all(s == t * dims[-1][0] for s, t in zip(strides, dims[-1][1], strict=True)):
            dims[-1] = dims[-1][0] * size, dims[-1][1]
        else:
            dims.append((size, strides))
    return dims
