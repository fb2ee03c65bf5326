"""Slices whose position may be known only at each launch, when begin and end are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.plans.moves.views import View, dense, host_integers, itemsize, source, target


class Selection(NamedTuple):
    """What StridedSlice does with one dimension, to be found out at each launch.

    position: in begin and end. size, stride (in bytes): of the dimension. step: between elements. taken: elements, as
    planned. shrink: one index is taken. begin_masked, end_masked: the bound is left out.
    """

    position: int
    dimension: int
    size: int
    stride: int
    step: int
    taken: int
    shrink: bool
    begin_masked: bool
    end_masked: bool


def slice_limits(node: KernelNode) -> list[tuple[int, int]]:
    """For each dimension of Slice's input, the largest begin and the stride in bytes."""
    sizes = node.outputs[0].shape
    return [(n - m, s) for n, m, s in zip(node.inputs[0].shape, sizes, source(node).strides, strict=True)]


def slice_move(node: KernelNode) -> tuple[View, View]:
    """Returns the move of a Slice that begins at the input's first element."""
    sizes = node.outputs[0].shape
    return source(node).window([0] * len(sizes), sizes), target(node)


def selected(node: KernelNode, whole: View, taken: Sequence[int], first: int) -> tuple[View, list[Selection]]:
    """Returns the part of `whole` that StridedSlice takes, of sizes `taken`, and what to find out at each launch.

    first: number of the input begin; end and strides follow. The list is empty where begin and end are constants: the
    part is where they say; else its first element is that of the whole.
    """
    from timberframe_core.ops.base.array.strided_slice import Entry, interval, selections

    shape, attrs = whole.shape, node.attrs
    begin, end, strides = node.const(first), node.const(first + 1), host_integers(node, first + 2)
    known = begin is not None and end is not None
    starts, sizes, steps = [0] * len(shape), list(shape), [1] * len(shape)
    late: list[Selection] = []
    planned = iter(taken)
    for s in selections(len(shape), len(strides), attrs):
        count = 1 if s.shrink else next(planned)
        if s.source is None or s.entry is None:
            continue
        i, at = s.entry, s.source
        no_first, no_last = (bool(attrs[name] >> i & 1) for name in ("begin_mask", "end_mask"))
        sizes[at], steps[at] = count, 1 if s.shrink else strides[i]
        if known:
            low, high = (None if bound is None else int(bound[i]) for bound in (begin, end))
            starts[at] = interval(shape[at], Entry(low, high, strides[i], no_first, no_last), at, s.shrink)[0]
        else:
            late.append(Selection(i, at, shape[at], whole.strides[at], steps[at], count, s.shrink, no_first, no_last))
    return whole.window(starts, sizes, steps), late


def strided_slice_move(node: KernelNode) -> tuple[View, View, list[Selection]]:
    """Returns the move of a StridedSlice, and what is left to find out."""
    part, late = selected(node, source(node), node.outputs[0].shape, 1)
    return part, target(node, part.shape), late


def strided_slice_grad_move(node: KernelNode) -> tuple[View, View, list[Selection]]:
    """Returns the move of dy, number 2 of the inputs that the kernel gets, into zeros; and what is left to find out."""
    part, late = selected(node, target(node), node.inputs[4].shape, 1)
    return dense(part.shape, itemsize(node), 2), part, late
