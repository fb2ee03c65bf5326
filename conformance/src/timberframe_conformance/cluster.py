"""Drives a device through its contract alone: a cluster of one node, without graph or session."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import UnsupportedError
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import NoKernelError
from timberframe_core.graph.inference import arg_dtypes, value_positions
from timberframe_core.ops.definition.opdef import InferenceContext, OpDef
from timberframe_core.plugin.contracts import Cluster, KernelNode, RandomStream, RunContext, Value
from timberframe_core.shapes import StaticShape, is_static
from timberframe_sdk.testing.guard import fenced

if TYPE_CHECKING:
    from timberframe_core.plugin.contracts import Array, Device


_NUMBERS = itertools.count()
"""Of random streams: those of one name go on, where another process has them."""


def output_shapes(op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[tuple[StaticShape, bool]]:
    """Returns shapes of the outputs for these inputs, and for each whether it is only a bound."""
    planned = set(value_positions(op, attrs))
    context = InferenceContext(
        op, "case", attrs, [x.shape for x in arrays], [x if i in planned else None for i, x in enumerate(arrays)],
        [as_dtype(x.dtype) for x in arrays],
    )  # fmt: skip
    shapes = list(op.shape(context))
    if all(is_static(s) for s in shapes):
        return [(tuple(d or 0 for d in s or ()), False) for s in shapes]
    if op.bound is None:
        raise UnsupportedError(f"{op.name} has no static shape here")
    bounds = op.bound(context)
    return [(tuple(b), not is_static(s)) for s, b in zip(shapes, bounds, strict=True)]


def one_node(
    device: Device, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[np.ndarray]
) -> tuple[Cluster, list[np.ndarray]]:
    """Returns a cluster of one node, and the arrays to run it on; inputs whose values
    shapes depend on are constants.
    """
    planned = set(value_positions(op, attrs))
    inputs = [
        Value(i, x.dtype, x.shape, "const" if i in planned else "input", x if i in planned else None)
        for i, x in enumerate(arrays)
    ]
    shapes = output_shapes(op, attrs, arrays)
    outputs = [
        Value(len(arrays) + i, t.numpy, shape, dynamic=dynamic)
        for i, (t, (shape, dynamic)) in enumerate(zip(arg_dtypes(op.outputs, attrs), shapes, strict=True))
    ]
    node = KernelNode(op.name, "case", attrs, inputs, outputs, device)
    node.stream = None if op.stream is None else RandomStream(f"case {next(_NUMBERS)}")
    fed = [v for v in inputs if v.kind == "input"]
    return Cluster(device, [node], fed, outputs), [arrays[v.id] for v in fed]


def run_cluster(
    device: Device,
    cluster: Cluster,
    arrays: Sequence[np.ndarray],
    mode: str,
    fence: str = "",
    synchronize: bool = False,
) -> list[np.ndarray]:
    """Compiles and runs a cluster on host arrays; see `run_on_tensors`."""
    return run_on_tensors(device, cluster, copied_in(device, arrays), mode, fence, synchronize)


def copied_in(device: Device, arrays: Sequence[np.ndarray]) -> list[Array]:
    """Host arrays as tensors of the device, of the same shapes."""
    return [device.copy_in(np.ascontiguousarray(x).reshape(x.shape)) for x in arrays]


def run_on_tensors(
    device: Device,
    cluster: Cluster,
    tensors: Sequence[Array],
    mode: str,
    fence: str = "",
    synchronize: bool = False,
) -> list[np.ndarray]:
    """Compiles and runs a cluster on the device's tensors in a mode, see RunContext; brings its outputs to the host.

    synchronize: wait for the device before that. NoKernelError where the device declines one of its nodes.
    """
    for node in cluster.nodes:
        why = device.supports(node)
        if isinstance(why, str):
            raise NoKernelError(f"{node.op} '{node.name}': {device.spec} declines it ({why})", node.name)
    executable = device.compile(cluster)
    results = executable.run(tensors, RunContext(mode=mode, fence=fence))
    if synchronize:
        device.synchronize()
    return [device.copy_out(a) for a in results]


def fenced_input(device: Device, x: np.ndarray, fence: str) -> np.ndarray:
    """Returns a copy of x with one end against an inaccessible page, for a device that borrows host arrays.

    It lies as close to the page as the device's `copy_in` allows without a copy: at an element's alignment, or at that
    of the allocator. A device that copies both gets x itself.
    """
    for alignment in (x.dtype.alignment, device.allocator.alignment):
        moved = fenced(x, fence, alignment)
        taken = device.copy_in(moved)
        if isinstance(taken, np.ndarray) and taken.ctypes.data == moved.ctypes.data:
            return moved
    return x
