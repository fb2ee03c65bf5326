"""Gathering and scattering slices, segment reductions, and moving rows by number."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from timberframe_core.ops.definition.value_checks import TUPLE_OUTSIDE
from timberframe_cpu.native import native
from timberframe_cpu.strings import scatter_sums, with_strings
from timberframe_sdk import KernelDef, KernelNode, Launcher, OutOfRangeError
from timberframe_sdk.native import Native
from timberframe_sdk.plans.indexing import (
    MODES,
    gather_sizes,
    sorted_segment_ids,
    stitch_table,
    tuple_sizes,
)
from timberframe_sdk.plans.values import one_hot_sizes, reverse_sequence_sizes

_KINDS = {"ScatterNd": 0, "TensorScatter": 1, "UnsortedSegment": 2, "Segment": 3}  # enum kind of indexing/accumulate.c


@with_strings
def _gather(node: KernelNode) -> Native:
    """Parameters: struct gather_shape of csrc/indexing/gather.c."""
    from timberframe_core.ops.base.array.gather import INDEX_OUTSIDE

    *sizes, inner = gather_sizes(node)
    return native("gather", *sizes, inner * node.inputs[0].dtype.itemsize, reasons=(INDEX_OUTSIDE,))


@with_strings
def _gather_nd(node: KernelNode) -> Native:
    params, indices = node.inputs
    count, depth, inner, _ = tuple_sizes(indices.shape, params.shape)
    ignore = node.attrs.get("bad_indices_policy") == "IGNORE"
    return native("gather_nd", count, depth, inner * params.dtype.itemsize, ignore, reasons=(TUPLE_OUTSIDE,))


@with_strings
def _scatter(node: KernelNode) -> Native:
    """Parameters: struct accumulate_shape of csrc/indexing/accumulate.c."""
    indices = node.inputs[0 if node.op == "ScatterNd" else 1]
    output = node.outputs[0]
    count, depth, inner, rows = tuple_sizes(indices.shape, output.shape)
    ignore = node.attrs["bad_indices_policy"] == "IGNORE"
    kind = _KINDS["ScatterNd" if node.op == "ScatterNd" else "TensorScatter"]
    if node.op == "TensorScatterUpdate":
        node.workspace(8 * max(count, 1))
        nbytes = inner * output.dtype.itemsize
        return native("scatter_update", kind, count, nbytes, depth, ignore, rows, 0, 0, reasons=(TUPLE_OUTSIDE,))
    node.workspace(8 * max(count, 1) + 4 * output.size)
    mode = MODES[node.op.removeprefix("Tensor").removeprefix("Scatter")]
    name = f"accumulate_{mode}_{node.attrs['T'].name}"
    return native(name, kind, count, inner, depth, ignore, rows, 0, 8 * max(count, 1), reasons=(TUPLE_OUTSIDE,))


def _scatter_strings(node: KernelNode) -> Launcher:
    return scatter_sums(node, _gather_nd)


def _unsorted_segments(node: KernelNode) -> Native:
    from timberframe_ops.math.unsorted_segments import SEGMENT_OUTSIDE

    ids, output = node.inputs[1], node.outputs[0]
    count, rows = math.prod(ids.shape), output.shape[0]
    inner = math.prod(output.shape[1:])
    node.workspace(8 * max(count, 1) + 4 * output.size)
    name = f"accumulate_{MODES[node.op.removeprefix('UnsortedSegment')]}_{node.attrs['T'].name}"
    return native(name, 2, count, inner, 0, 0, rows, 0, 8 * max(count, 1), reasons=("", SEGMENT_OUTSIDE))


def _sorted_segments(node: KernelNode) -> Native:
    ids, output = sorted_segment_ids(node), node.outputs[0]
    inner, rows = math.prod(output.shape[1:]), output.shape[0]
    node.workspace(max(4 * output.size, 8))
    kind = node.op.removeprefix("Segment")
    name = f"accumulate_{MODES[kind]}_{node.attrs['T'].name}"
    return native(name, 3, ids.size, inner, 0, 0, rows, kind == "Mean", 0, *ids.tolist())


def _count_up_to(node: KernelNode) -> Callable[..., None]:
    from timberframe_core.ops.base.state.resource_gather import LIMIT_REACHED

    limit = node.attrs["limit"]

    def launch(counter: np.ndarray, following: np.ndarray, output: np.ndarray) -> None:
        if counter >= limit:
            raise OutOfRangeError(f"{node.op} '{node.name}': {LIMIT_REACHED.format(limit)}", node.name)
        output[...] = counter
        following[...] = counter + 1

    return launch


@with_strings
def _one_hot(node: KernelNode) -> Native:
    return native("one_hot", *one_hot_sizes(node), node.outputs[0].dtype.itemsize)


@with_strings
def _reverse_sequence(node: KernelNode) -> Native:
    """Parameters: struct reverse_shape of csrc/indexing/rows.c."""
    from timberframe_ops.array.indexing import LENGTH_OUTSIDE

    *sizes, inner, batch_first = reverse_sequence_sizes(node)
    inner *= node.inputs[0].dtype.itemsize
    return native("reverse_sequence", *sizes, inner, batch_first, reasons=(LENGTH_OUTSIDE,))


@with_strings
def _dynamic_partition(node: KernelNode) -> Native:
    from timberframe_ops.array.partition import PARTITION_OUTSIDE

    data, partitions = node.inputs
    inner = math.prod(data.shape[len(partitions.shape) :]) * data.dtype.itemsize
    return native("dynamic_partition", node.attrs["num_partitions"], inner, reasons=(PARTITION_OUTSIDE,))


@with_strings
def _dynamic_stitch(node: KernelNode) -> Native:
    output = node.outputs[0]
    inner = math.prod(output.shape[1:]) * output.dtype.itemsize
    return native("dynamic_stitch", output.shape[0], inner, *stitch_table(node).ravel().tolist())


_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_NUMBERS = (*_FLOATS, *_INTEGERS, *_COMPLEX)
_FIXED_SIZE = (*_NUMBERS, "bool")
_ALL = (*_FIXED_SIZE, "string")
_INDICES = ("int32", "int64")


def _segments(
    prefix: str, kinds: str, build: Callable[[KernelNode], Native], indices: tuple[str, ...]
) -> list[KernelDef]:
    numbers, reals = {"T": _NUMBERS, "Tindices": indices}, {"T": (*_FLOATS, *_INTEGERS), "Tindices": indices}
    return [KernelDef(prefix + k, "CPU", build, reals if k in ("Min", "Max") else numbers) for k in kinds.split()]


def _scatters() -> list[KernelDef]:
    in_place = ((0, 0),)
    reals = (*_FLOATS, *_INTEGERS)
    types = {"Add": _NUMBERS, "Sub": _NUMBERS, "Min": reals, "Max": reals, "Update": _ALL}
    return [
        KernelDef(f"TensorScatter{name}", "CPU", _scatter, {"T": t, "Tindices": _INDICES}, inplace=in_place)
        for name, t in types.items()
    ]


KERNELS = [
    KernelDef("Gather", "CPU", _gather, {"Tparams": _ALL}),
    KernelDef("GatherV2", "CPU", _gather, {"Tparams": _ALL}),
    KernelDef("GatherNd", "CPU", _gather_nd, {"Tparams": _ALL}),
    KernelDef("ResourceGather", "CPU", _gather, {"dtype": _ALL}),
    KernelDef("ResourceGatherNd", "CPU", _gather_nd, {"dtype": _ALL}),
    KernelDef("ResourceCountUpTo", "CPU", _count_up_to, {"T": ("int32", "int64")}),
    KernelDef("ScatterNd", "CPU", _scatter, {"T": _FIXED_SIZE, "Tindices": _INDICES}),
    KernelDef("ScatterNd", "CPU", _scatter_strings, {"T": ("string",)}),
    *_scatters(),
    KernelDef("ScatterNdNonAliasingAdd", "CPU", _scatter, {"T": _FIXED_SIZE, "Tindices": _INDICES}, inplace=((0, 0),)),
    *_segments("Segment", "Sum Mean Prod Min Max", _sorted_segments, _INDICES),
    *_segments("UnsortedSegment", "Sum Prod Min Max", _unsorted_segments, ("int16", *_INDICES)),
    KernelDef("OneHot", "CPU", _one_hot, {"T": _ALL}),
    KernelDef("ReverseSequence", "CPU", _reverse_sequence, {"T": _ALL}),
    KernelDef("DynamicPartition", "CPU", _dynamic_partition, {"T": _ALL}),
    KernelDef("DynamicStitch", "CPU", _dynamic_stitch, {"T": _ALL}),
    KernelDef("ParallelDynamicStitch", "CPU", _dynamic_stitch, {"T": _ALL}),
]
