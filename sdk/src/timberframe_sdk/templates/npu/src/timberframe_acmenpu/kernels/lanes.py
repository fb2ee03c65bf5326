"""What the matrix unit reads: operands with their channels in lanes, in the dtype that it computes in.

Channels are padded with zeros to a multiple of LANES. Constants and versions of variables are packed once
(`KernelNode.prepared`); all else is packed at each launch, into the workspace of the node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmenpu.hardware import ALIGNMENT, LANES, accumulator

Pack = Callable[[np.ndarray, np.ndarray], None]


def padded(count: int) -> int:
    """Lanes for a number of channels: the next multiple of LANES."""
    return -(-count // LANES) * LANES


def pack(x: np.ndarray, out: np.ndarray) -> None:
    """Copies elements to the beginning of each dimension of a larger array, and zeros to the rest of it."""
    out[...] = 0
    out[tuple(slice(n) for n in x.shape)] = x


class Weights:
    """Input i of a node in lanes: an array of `shape`, its last two dimensions padded, which `pack` makes.

    prepared: it is made before runs, and launchers get it in place of the input. The queue makes it: `make` returns a
    tensor at once, and the launches that read it come later.
    """

    def __init__(self, node: sdk.KernelNode, i: int, shape: tuple[int, ...], pack: Pack, key: Any = None) -> None:
        device: Any = node.device
        dtype = accumulator(node.inputs[i].dtype)
        self.shape, self.pack = (*shape[:-2], padded(shape[-2]), padded(shape[-1])), pack

        def make(weights: Any) -> Any:
            out = device.empty(dtype, self.shape)
            device.queue.launch(pack, (weights,), (out,))
            return out

        self.prepared = node.prepared(i, ("lanes", key), make, self.shape, dtype)


def workspace(
    node: sdk.KernelNode, shapes: Sequence[tuple[int, ...]]
) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """Asks for scratch memory for arrays in the accumulator's dtype.

    Returns a function that divides the memory that a launcher gets into these arrays.
    """
    dtype = accumulator(node.inputs[0].dtype)
    sizes = [dtype.itemsize * math.prod(shape) for shape in shapes]
    offsets = [sum(-(-n // ALIGNMENT) * ALIGNMENT for n in sizes[:i]) for i in range(len(sizes) + 1)]
    node.workspace(max(offsets[-1], ALIGNMENT))

    def divide(memory: np.ndarray) -> tuple[np.ndarray, ...]:
        parts = zip(offsets, sizes, shapes, strict=False)
        return tuple([memory[at : at + nbytes].view(dtype).reshape(shape) for at, nbytes, shape in parts])

    return divide
