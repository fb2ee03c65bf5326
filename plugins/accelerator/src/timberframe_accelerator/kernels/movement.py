"""Accelerator kernels of ops that only move elements, from the plans that all devices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source, failing
from timberframe_accelerator.moving import Step, launcher, steps
from timberframe_core.ops.base.array.slicing import BEGIN_OUTSIDE
from timberframe_core.ops.base.array.strided_slice import COUNTS_DIFFER, INDEX_OUTSIDE
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.moves import COPIES, PLANS, element, itemsize, target
from timberframe_sdk.plans.moves.slices import (
    Selection,
    slice_limits,
    slice_move,
    strided_slice_grad_move,
    strided_slice_move,
)

KERNELS: list[KernelDef] = []

_BEGIN = InvalidArgumentError, BEGIN_OUTSIDE
_SELECTION = tuple((InvalidArgumentError, message) for message in (INDEX_OUTSIDE, COUNTS_DIFFER))
_SOURCE, _TARGET = 1, 2


@kernel(
    KERNELS, [*(op for op in COPIES if op != "Identity"), "PlaceholderWithDefault", "Bitcast"], "", inplace=((0, 0),)
)
@kernel(KERNELS, ("Snapshot", "DeepCopy"), "")
def copy(node: KernelNode) -> Launcher:
    """Returns what copies: the output has the input's bytes, and may be in its memory."""
    device: Any = node.device
    return lambda x, y: None if x.begins_where(y) else device.copy(x, y)


@kernel(KERNELS, "IdentityN", "")
def copy_each(node: KernelNode) -> Launcher:
    """Returns what copies: each output has the bytes of the input at its index."""
    device: Any = node.device
    count = len(node.outputs)

    def launch(*arrays: Any) -> None:
        for x, y in zip(arrays[:count], arrays[count:], strict=True):
            if not x.begins_where(y):
                device.copy(x, y)

    return launch


@kernel(KERNELS, tuple(PLANS), "")
def moved(node: KernelNode) -> Launcher:
    """What the op's plan says."""
    return launcher(steps(node, PLANS[node.op](node)))


@kernel(KERNELS, "Slice", "", status=True)
def slice_block(node: KernelNode) -> Launcher:
    """A move where begin is a constant that fits; else begin is read at each launch, and checked."""
    begin, limits = node.const(1), slice_limits(node)
    part, whole = slice_move(node)
    if begin is not None and all(0 <= b <= most for b, (most, _) in zip(begin.tolist(), limits, strict=True)):
        part = part._replace(offset=sum(b * stride for b, (_, stride) in zip(begin.tolist(), limits, strict=True)))
        return launcher(steps(node, [[(part, whole)]]))
    bytes_each = itemsize(node)
    words = [x for most, stride in limits for x in (most, stride // bytes_each)]
    find = _offset(node, "tf_slice_offset", (1,), words, len(limits))
    return failing(launcher([find, *steps(node, [[(part, whole)]], _SOURCE)]), _BEGIN)


@kernel(KERNELS, "StridedSlice", "", status=True)
def strided_slice(node: KernelNode) -> Launcher:
    """A move where begin and end are constants; else they are read at each launch, and held against the plan."""
    part, whole, late = strided_slice_move(node)
    if not late:
        return launcher(steps(node, [[(part, whole)]]))
    find = _selection_offset(node, late, (1, 2))
    return failing(launcher([find, *steps(node, [[(part, whole)]], _SOURCE)]), *_SELECTION)


@kernel(KERNELS, "StridedSliceGrad", "", status=True)
def strided_slice_grad(node: KernelNode) -> Launcher:
    """Zeros, then a move into them."""
    whole, part, late = strided_slice_grad_move(node)
    zeros = [(element(node.outputs[0].shape), target(node))]
    if not late:
        return launcher(steps(node, [zeros, [(whole, part)]]))
    found = [_selection_offset(node, late, (0, 1)), *steps(node, [zeros]), *steps(node, [[(whole, part)]], _TARGET)]
    return failing(launcher(found), *_SELECTION)


def _selection_offset(node: KernelNode, late: Sequence[Selection], bounds: tuple[int, int]) -> Step:
    bytes_each = itemsize(node)
    words = [x for s in late for x in s._replace(stride=s.stride // bytes_each)]
    return _offset(node, "tf_selection_offset", bounds, words, len(late))


def _offset(node: KernelNode, name: str, bounds: Sequence[int], words: Sequence[int], count: int) -> Step:
    """Leaves in the workspace where the slice begins. bounds: where begin and end are among a launcher's arrays."""
    device: Any = node.device
    node.workspace(8)
    begin = node.inputs[1]
    function: Callable[..., None] = device.function(Source.file("slice.h", TINDEX=begin.dtype.name), name)
    table, number, rank = device.table(np.array(words or [0], np.int64)), node.number, np.int32(count)

    def launch(arrays: Sequence[Any]) -> None:
        *_, offset, status = arrays
        function((1,), (1,), *(arrays[i] for i in bounds), offset, table, rank, status, number)

    return launch
