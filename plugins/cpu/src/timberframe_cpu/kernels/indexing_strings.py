"""Indexing of strings, which are Python objects: the kernels of `indexing` and `search` on object arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.array.gather import INDEX_OUTSIDE
from timberframe_core.ops.array.indexing import LENGTH_OUTSIDE
from timberframe_core.ops.array.partition import PARTITION_OUTSIDE
from timberframe_core.ops.definition.value_checks import ROW_OUTSIDE, TUPLE_OUTSIDE
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, row_major_strides
from timberframe_sdk.plans import indexing
from timberframe_sdk.plans.values import reverse_sequence_sizes

_Launcher = Callable[..., Any]


def _check(node: KernelNode, bad: np.ndarray, reason: str, values: np.ndarray, limit: int) -> None:
    """Raises with the first position at which `bad` holds, the value there and the limit."""
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        message = reason.format(int(values.reshape(-1)[at]), at, limit)
        raise InvalidArgumentError(f"{node.op} '{node.name}': {message}", node.name)


def _gather(node: KernelNode) -> _Launcher:
    rows, outer, limit, count, _ = indexing.gather_sizes(node)

    def launch(params: np.ndarray, indices: np.ndarray, out: np.ndarray) -> None:
        if not out.size:
            return
        flat = indices.reshape(rows, count).astype(np.int64)
        _check(node, ((flat < 0) | (flat >= limit)).reshape(-1), INDEX_OUTSIDE, flat, limit)
        blocks = params.reshape(rows, outer, limit, -1)
        result = blocks[np.arange(rows)[:, None, None], np.arange(outer)[None, :, None], flat[:, None, :]]
        out.reshape(result.shape)[...] = result

    return launch


def _rows(node: KernelNode, indices: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The row that each index tuple names in an array of these leading sizes; -1 where policy IGNORE drops it."""
    depth = len(sizes)
    at = indices.astype(np.int64).reshape(math.prod(indices.shape[:-1]), depth)
    bad = (at < 0) | (at >= np.array(sizes, np.int64))
    if bad.any() and node.attrs.get("bad_indices_policy") != "IGNORE":
        number, d = (int(i) for i in np.argwhere(bad)[0])
        message = TUPLE_OUTSIDE.format(number, int(at[number, d]), d, sizes[d])
        raise InvalidArgumentError(f"{node.op} '{node.name}': {message}", node.name)
    result: np.ndarray = np.where(bad.any(axis=1), -1, at @ np.array(row_major_strides(tuple(sizes)), np.int64))
    return result


def _slices(a: np.ndarray, depth: int) -> np.ndarray:
    """A view with the first `depth` dimensions as one, the others as another."""
    return a.reshape(math.prod(a.shape[:depth]), math.prod(a.shape[depth:]))


def _gather_nd(node: KernelNode) -> _Launcher:
    depth = node.inputs[1].shape[-1]

    def launch(params: np.ndarray, indices: np.ndarray, out: np.ndarray) -> None:
        sizes = params.shape[:depth]
        rows = _rows(node, indices, sizes)
        slices, to = _slices(params, depth), _slices(out, indices.ndim - 1)
        for i, row in enumerate(rows):
            to[i] = b"" if row < 0 else slices[row]

    return launch


def _scatter_nd(node: KernelNode) -> _Launcher:
    """Strings that meet are joined."""
    depth = node.inputs[0].shape[-1]

    def launch(indices: np.ndarray, updates: np.ndarray, out: np.ndarray) -> None:
        sizes = out.shape[:depth]
        rows = _rows(node, indices, sizes)
        out.fill(b"")
        slices = _slices(out, depth)
        for row, value in zip(rows, _slices(updates, indices.ndim - 1), strict=True):
            if row >= 0:
                slices[row] += value

    return launch


def _scatter_update(node: KernelNode) -> _Launcher:
    depth = node.inputs[1].shape[-1]

    def launch(tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray, out: np.ndarray) -> None:
        sizes = out.shape[:depth]
        rows = _rows(node, indices, sizes)
        out[...] = tensor
        slices = _slices(out, depth)
        for row, value in zip(rows, _slices(updates, indices.ndim - 1), strict=True):
            if row >= 0:
                slices[row] = value

    return launch


def _update_rows(node: KernelNode) -> _Launcher:
    def launch(variable: np.ndarray, indices: np.ndarray, updates: np.ndarray, out: np.ndarray) -> None:
        flat, limit = indices.reshape(-1).astype(np.int64), variable.shape[0]
        _check(node, (flat < 0) | (flat >= limit), ROW_OUTSIDE, flat, limit)
        out[...] = variable
        values = updates.reshape(flat.size, *variable.shape[1:]) if updates.ndim else [updates[()]] * flat.size
        for row, value in zip(flat, values, strict=True):
            out[row] = value

    return launch


def _one_hot(node: KernelNode) -> _Launcher:
    rank, axis = len(node.inputs[0].shape), node.attrs["axis"]
    at = rank if axis == -1 else axis

    def launch(indices: np.ndarray, on: np.ndarray, off: np.ndarray, out: np.ndarray) -> None:
        classes = np.arange(out.shape[at]).reshape([-1 if i == at else 1 for i in range(rank + 1)])
        out[...] = np.where(np.expand_dims(indices.astype(np.int64), at) == classes, on, off)

    return launch


def _reverse_sequence(node: KernelNode) -> _Launcher:
    batch, seq = node.attrs["batch_dim"], node.attrs["seq_dim"]
    reverse_sequence_sizes(node)  # checks them

    def launch(x: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
        limit, counts = x.shape[seq], lengths.astype(np.int64)
        _check(node, (counts < 0) | (counts > limit), LENGTH_OUTSIDE, counts, limit)
        out[...] = x
        source, target = np.moveaxis(x, (batch, seq), (0, 1)), np.moveaxis(out, (batch, seq), (0, 1))
        for i, count in enumerate(counts):
            target[i, :count] = source[i, :count][::-1]

    return launch


def _dynamic_partition(node: KernelNode) -> _Launcher:
    count = node.attrs["num_partitions"]

    def launch(data: np.ndarray, partitions: np.ndarray, *outs: np.ndarray) -> list[tuple[int, ...]]:
        flat = partitions.reshape(-1)
        _check(node, (flat < 0) | (flat >= count), PARTITION_OUTSIDE, flat, count)
        rows = data.reshape(flat.size, *data.shape[partitions.ndim :])
        return _dynamic(node, [_put(rows[flat == i], out) for i, out in enumerate(outs)])

    return launch


def _dynamic(node: KernelNode, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The true shapes of those outputs whose size only the launcher knows."""
    return [shape for shape, value in zip(shapes, node.outputs, strict=True) if value.dynamic]


def _put(result: np.ndarray, out: np.ndarray) -> tuple[int, ...]:
    """Stores the true part of an output of bound size; returns its shape."""
    out.reshape(-1)[: result.size] = result.reshape(-1)
    return result.shape


def _dynamic_stitch(node: KernelNode) -> _Launcher:
    table, ranks = indexing.stitch_table(node), [len(v.shape) for v in node.inputs[: node.attrs["N"]]]

    def launch(*arrays: np.ndarray) -> None:
        out, inner = arrays[-1], arrays[-1].shape[1:]
        rows = [a.reshape(math.prod(a.shape[:rank]), *inner) for a, rank in zip(arrays[:-1], ranks, strict=True)]
        for i, (source, row) in enumerate(table):
            out[i] = b"" if source < 0 else rows[source][row]

    return launch


def _unique(node: KernelNode) -> _Launcher:
    axis = 0
    if len(node.inputs) > 1:
        value = node.const(1)
        assert value is not None
        axis = int(value[0]) if value.size else 0

    def launch(x: np.ndarray, y: np.ndarray, idx: np.ndarray, *count: np.ndarray) -> list[tuple[int, ...]]:
        moved = np.moveaxis(x, axis, 0)
        numbers: dict[tuple[bytes, ...], int] = {}
        first: list[int] = []
        counts: list[int] = []
        for i, item in enumerate(moved):
            key = tuple(item.ravel()) if isinstance(item, np.ndarray) else (item,)
            number = numbers.setdefault(key, len(numbers))
            if number == len(first):
                first.append(i)
                counts.append(0)
            counts[number] += 1
            idx[i] = number
        shapes = [_put(np.moveaxis(moved[np.array(first, np.int64)], 0, axis), y), idx.shape]
        return _dynamic(node, [*shapes, *(_put(np.array(counts, c.dtype), c) for c in count)])

    return launch


def _list_diff(node: KernelNode) -> _Launcher:
    def launch(x: np.ndarray, y: np.ndarray, out: np.ndarray, idx: np.ndarray) -> list[tuple[int, ...]]:
        missing = set(y.tolist())
        kept = np.array([i for i, item in enumerate(x) if item not in missing], np.int64)
        return _dynamic(node, [_put(x[kept], out), _put(kept, idx)])

    return launch


_STRING = ("string",)
_T, _PARAMS = {"T": _STRING}, {"Tparams": _STRING}
_SCATTERED = {"T": _STRING, "Tindices": ("int32", "int64")}

KERNELS = [
    KernelDef("Gather", "CPU", _gather, _PARAMS),
    KernelDef("GatherV2", "CPU", _gather, _PARAMS),
    KernelDef("GatherNd", "CPU", _gather_nd, _PARAMS),
    KernelDef("ResourceGather", "CPU", _gather, {"dtype": _STRING}),
    KernelDef("ResourceGatherNd", "CPU", _gather_nd, {"dtype": _STRING}),
    KernelDef("ScatterNd", "CPU", _scatter_nd, _SCATTERED),
    KernelDef("TensorScatterUpdate", "CPU", _scatter_update, _SCATTERED),
    KernelDef("ResourceScatterNdUpdate", "CPU", _scatter_update, _SCATTERED),
    KernelDef("ResourceScatterUpdate", "CPU", _update_rows, {"dtype": _STRING, "Tindices": ("int32", "int64")}),
    KernelDef("OneHot", "CPU", _one_hot, _T),
    KernelDef("ReverseSequence", "CPU", _reverse_sequence, _T),
    KernelDef("DynamicPartition", "CPU", _dynamic_partition, _T),
    KernelDef("DynamicStitch", "CPU", _dynamic_stitch, _T),
    KernelDef("ParallelDynamicStitch", "CPU", _dynamic_stitch, _T),
    *(KernelDef(op, "CPU", _unique, _T) for op in ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")),
    KernelDef("ListDiff", "CPU", _list_diff, _T),
]
