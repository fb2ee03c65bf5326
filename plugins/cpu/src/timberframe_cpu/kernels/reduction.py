"""Kernels of csrc/reduce: sums, products, extremes, norms and the places of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from timberframe_cpu.broadcast import check_rank
from timberframe_cpu.native import native
from timberframe_sdk import FLOATING, INTEGER, NUMERIC, KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.reduction import reduction_runs

_REAL = tuple(t.name for t in (*INTEGER, *FLOATING[:4]))
_ALL = tuple(t.name for t in NUMERIC)
_FLOATING = tuple(t.name for t in FLOATING[:4])

_TILE = 1024  # TILE of reducer.h
_SEGMENT = 1 << 16  # elements: a part of a sum smaller than this is not worth a thread
_PIECES = 32  # that a large reduction is cut into, whatever the number of threads, so that its result is the same
_ACCUMULATOR_BYTES = 16


def reduction_parameters(node: KernelNode, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """Returns the parameters of csrc/reduce/driver.c; asks for a workspace where the reduction is cut into segments."""
    count = math.prod(shape[a] for a in axes)
    if math.prod(shape) == 0:
        return [node.outputs[0].size, 0, 0, 0, count, 1, 1, 1]
    runs = reduction_runs(shape, axes)
    width = runs.pop()[1] if runs and not runs[-1][0] else 1
    rows = runs.pop()[1] if runs else 1
    sizes: dict[bool, list[int]] = {True: [], False: []}
    strides: dict[bool, list[int]] = {True: [], False: []}
    step = rows * width
    for reduced, size in reversed(runs):
        sizes[reduced].insert(0, size)
        strides[reduced].insert(0, step)
        step *= size
    check_rank(max(map(len, sizes.values())))
    kept, outer_rows = math.prod(sizes[False]), math.prod(sizes[True])
    pieces = kept * -(-width // _TILE)
    segments = 1
    if pieces < _PIECES:
        per_piece = outer_rows * rows * min(width, _TILE)
        segments = max(1, min(-(-_PIECES // pieces), per_piece // _SEGMENT, outer_rows * rows))
    if segments > 1:
        node.workspace(pieces * segments * min(width, _TILE) * _ACCUMULATOR_BYTES)
    runs_above = [*sizes[False], *strides[False], *sizes[True], *strides[True]]
    return [width, rows, len(sizes[False]), len(sizes[True]), count, segments, outer_rows, kept, *runs_above]


def _reduction(prefix: str, same_for_unsigned: bool = False) -> Callable[[KernelNode], Native]:
    """Returns a builder for kernels named ``<prefix>_<dtype>``; wrapping sums and products need no unsigned variant."""

    def build(node: KernelNode) -> Native:
        indices = node.const(1)
        shape = node.inputs[0].shape
        axes = tuple(int(a) % len(shape) for a in np.ravel(np.asarray(indices)))
        dtype = str(node.inputs[0].dtype)
        if same_for_unsigned:
            dtype = dtype.removeprefix("u")
        return native(f"{prefix}_{dtype}", *reduction_parameters(node, shape, axes))

    return build


def _l2_loss(node: KernelNode) -> Native:
    shape = node.inputs[0].shape
    return native(f"l2_loss_{node.inputs[0].dtype}", *reduction_parameters(node, shape, tuple(range(len(shape)))))


def _argument(prefix: str) -> Callable[[KernelNode], Native]:
    def build(node: KernelNode) -> Native:
        shape = node.inputs[0].shape
        axis = int(np.asarray(node.const(1))) % len(shape)
        dtype = str(node.inputs[0].dtype).replace("bool", "uint8")
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        return native(f"{prefix}_{dtype}", outer, shape[axis], inner, node.outputs[0].dtype.itemsize)

    return build


_ARGUMENT_TYPES = (*_REAL, "bool")

KERNELS = [
    KernelDef("Sum", "CPU", _reduction("sum", same_for_unsigned=True), {"T": _ALL}),
    KernelDef("Mean", "CPU", _reduction("mean"), {"T": _ALL}),
    KernelDef("Prod", "CPU", _reduction("prod", same_for_unsigned=True), {"T": _ALL}),
    KernelDef("Max", "CPU", _reduction("max"), {"T": _REAL}),
    KernelDef("Min", "CPU", _reduction("min"), {"T": _REAL}),
    KernelDef("EuclideanNorm", "CPU", _reduction("euclidean_norm"), {"T": _ALL}),
    KernelDef("All", "CPU", _reduction("all")),
    KernelDef("Any", "CPU", _reduction("any")),
    KernelDef("L2Loss", "CPU", _l2_loss, {"T": _FLOATING}),
    KernelDef("ArgMax", "CPU", _argument("argmax"), {"T": _ARGUMENT_TYPES}),
    KernelDef("ArgMin", "CPU", _argument("argmin"), {"T": _ARGUMENT_TYPES}),
]
