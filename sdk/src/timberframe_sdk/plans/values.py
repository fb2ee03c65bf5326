"""Parameters of kernels that make, check and rearrange numbers."""

from __future__ import annotations

import math

import numpy as np

from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import evaluate
from timberframe_core.plugin.contracts import KernelNode


def planned_values(node: KernelNode) -> list[np.ndarray]:
    """Returns the outputs of an op all of whose inputs, or their shapes, are known when planning."""
    op = registry.get(node.op)
    given: list[np.ndarray | None]
    if op.shape_only:
        given = [np.broadcast_to(np.zeros((), v.dtype), v.shape) for v in node.inputs]
    else:
        given = [node.const(i) for i in range(len(node.inputs))]
    results = evaluate(op, node.attrs, given)
    return [x.astype(v.dtype) for x, v in zip(results, node.outputs, strict=True)]


def range_numbers(node: KernelNode) -> tuple[int | float, int | float]:
    """Start and step of Range."""
    start, delta = (node.const(i) for i in (0, 2))
    assert start is not None
    assert delta is not None
    first, step = start.reshape(-1)[0], delta.reshape(-1)[0]
    return (int(first), int(step)) if start.dtype.kind in "iu" else (float(first), float(step))


def one_hot_sizes(node: KernelNode) -> tuple[int, int, int]:
    """Returns elements of the indices before the new dimension, after it, and its size."""
    shape, axis = node.inputs[0].shape, node.attrs["axis"]
    at = len(shape) if axis == -1 else axis
    return math.prod(shape[:at]), math.prod(shape[at:]), node.outputs[0].shape[at]


def reverse_sequence_sizes(node: KernelNode) -> tuple[int, int, int, int, int, bool]:
    """Returns sizes that see x as [outer, first, middle, second, inner], and whether `first` is the
    batch and not the sequence.

    Raises InvalidArgumentError where one dimension is both.
    """
    from timberframe_ops.array.indexing import check_reversed

    shape, batch, seq = node.inputs[0].shape, node.attrs["batch_dim"], node.attrs["seq_dim"]
    check_reversed(node.attrs)
    first, second = sorted((batch, seq))
    middle, inner = math.prod(shape[first + 1 : second]), math.prod(shape[second + 1 :])
    return math.prod(shape[:first]), shape[first], middle, shape[second], inner, batch == first
