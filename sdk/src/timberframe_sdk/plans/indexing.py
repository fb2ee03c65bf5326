"""What gathering, scattering and segments mean in sizes: shared by the kernels of all devices."""

from __future__ import annotations

import math

import numpy as np

from timberframe_core.plugin.contracts import KernelNode

MODES = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Min": "min", "Max": "max", "Sum": "add", "Mean": "add",
    "Prod": "mul", "Nd": "add", "NdNonAliasingAdd": "add",
}  # fmt: skip
"""How updates are combined, by the end of an op's name."""


def gather_sizes(node: KernelNode) -> tuple[int, int, int, int, int]:
    """Returns sizes that see params as [batch, outer, limit, inner] and indices as [batch, count];
    count comes before inner.
    """
    params, indices = node.inputs[0], node.inputs[1]
    axis, batch = 0, 0
    if node.op == "GatherV2":
        value = node.const(2)
        assert value is not None
        axis = int(value) % len(params.shape)
        batch = node.attrs["batch_dims"] + (len(indices.shape) if node.attrs["batch_dims"] < 0 else 0)
    elif node.op == "ResourceGather":
        axis = batch = node.attrs["batch_dims"]
    outer, inner = math.prod(params.shape[batch:axis]), math.prod(params.shape[axis + 1 :])
    return math.prod(params.shape[:batch]), outer, params.shape[axis], math.prod(indices.shape[batch:]), inner


def tuple_sizes(indices: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Returns how many index tuples there are, their length, the elements of a slice that each
    names, and how many slices.
    """
    depth = indices[-1]
    return math.prod(indices[:-1]), depth, math.prod(target[depth:]), math.prod(target[:depth])


def in_tuple_order(message: str) -> str:
    """Returns a message about an index, its position and the size, for kernels that report one like an index tuple.

    Such kernels report the tuple's number, the wrong index, the dimension and its size.
    """
    return message.format("{1}", "{0}", "{3}")


def update_sizes(node: KernelNode) -> tuple[int, int, int, int]:
    """tuple_sizes of a ResourceScatter*, by row number, or a ResourceScatterNd*, by index tuple."""
    shape = node.inputs[1].shape
    return tuple_sizes(shape if "Nd" in node.op else (*shape, 1), node.inputs[0].shape)


def has_scalar_update(node: KernelNode) -> bool:
    """Returns whether one element updates all of the rows of a ResourceScatter*."""
    variable, indices, updates = node.inputs
    return "Nd" not in node.op and not updates.shape and bool(indices.shape or variable.shape[1:])


def sorted_segment_ids(node: KernelNode) -> np.ndarray:
    """Returns the ids of a Segment*, checked."""
    from timberframe_ops.math.segments import check_sorted

    ids = node.const(1)
    assert ids is not None
    check_sorted(ids, node.inputs[0].shape[0])
    return ids


def unique_sizes(node: KernelNode) -> tuple[int, tuple[int, int, int]]:
    """Returns the axis of a Unique*, and sizes that see its input as [outer, count, inner] with `count` items."""
    shape, axis = node.inputs[0].shape, 0
    if len(node.inputs) > 1:
        value = node.const(1)
        assert value is not None
        axis = int(value[0]) % len(shape) if value.size else 0
    return axis, (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


def stitch_table(node: KernelNode) -> np.ndarray:
    """For each output row, the number of the data input it comes from (-1: none) and the row of that."""
    table = np.full((node.outputs[0].shape[0], 2), -1, np.int64)
    for i in range(node.attrs["N"]):
        indices = node.const(i)
        assert indices is not None
        flat = indices.ravel()
        # of equal indices the last wins: NumPy leaves that open, so only last occurrences are stored
        written, last = np.unique(flat[::-1], return_index=True)
        table[written, 0] = i
        table[written, 1] = flat.size - 1 - last
    return table
