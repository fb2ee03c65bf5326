"""Where the random numbers of a node start: the same for all devices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from timberframe_core.errors import InternalError
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import KernelNode, RandomStream
from timberframe_core.plugin.nodes import passed_inputs


@dataclass(frozen=True)
class StreamOrigin:
    """A stream of the Session: each launch reserves `blocks` of its counter; key and high are the rest of its state."""

    stream: RandomStream
    key: int
    high: int
    blocks: int


@dataclass(frozen=True)
class SeedOrigin:
    """A pair of seeds: the index of their tensor among the inputs that a kernel gets, and their dtype."""

    index: int
    dtype: np.dtype


@dataclass(frozen=True)
class StateOrigin:
    """The inputs key, counter and alg, from `index` on among the inputs that a kernel gets."""

    index: int


Origin = StreamOrigin | SeedOrigin | StateOrigin


def stream_origin(node: KernelNode) -> Origin:
    """Returns where the numbers of a random op's node start."""
    op = registry.get(node.op)
    if op.stream is not None:
        if node.stream is None:
            raise InternalError("has no random stream; the node of a stateful random op is made with one")
        key, high = node.stream.start(node.attrs)
        blocks = op.stream.blocks(node.attrs, [v.shape for v in node.inputs], node.outputs[0].shape)
        return StreamOrigin(node.stream, key, high, blocks)
    names = [a.name for a in op.inputs]
    if "seed" in names:
        return SeedOrigin(input_index(node, "seed"), node.inputs[names.index("seed")].dtype)
    return StateOrigin(input_index(node, "key"))


def input_index(node: KernelNode, name: str) -> int:
    """Returns the index of the input of this name among those that a kernel gets."""
    names = [a.name for a in registry.get(node.op).inputs]
    return passed_inputs(node).index(names.index(name))


def paired_indices(*shapes: tuple[int, ...]) -> np.ndarray:
    """Returns the indices of the elements of tensors that broadcast together: a row for each element of the result."""
    indices = np.broadcast_arrays(*(np.arange(math.prod(s)).reshape(s) for s in shapes))
    return np.stack(indices, -1).reshape(-1, len(shapes))


def bounded_batch(node: KernelNode) -> int:
    """Returns how many numbers of ParameterizedTruncatedNormal share one row of parameters."""
    from timberframe_ops.random.stateful import batch_size

    return max(1, batch_size([v.shape for v in node.inputs[1:]], node.outputs[0].shape))
