"""Kernels that move elements within one tensor: copies, transposes, slices, reversals, repetitions, blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from timberframe.dtypes import NUMERIC
from timberframe.ops.blocks import depth_to_space_axes, space_to_depth_axes
from timberframe.ops.strided_slice import Entry, interval, selections
from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.moves import View, dense, element, plan
from timberframe_cpu.native import native
from timberframe_cpu.reference import or_reference
from timberframe_sdk.native import Native


def host_integers(node: KernelNode, i: int) -> list[int]:
    """The elements of a `shape` input."""
    value = node.const(i)
    assert value is not None
    return [int(x) for x in value.reshape(-1)]


def source(node: KernelNode, shape: Sequence[int] | None = None, i: int = 0) -> View:
    """Input i, which is number i of those that the kernel gets, seen in a shape."""
    value = node.inputs[i]
    return dense(value.shape if shape is None else shape, value.dtype.itemsize, i)


def target(node: KernelNode, shape: Sequence[int] | None = None) -> View:
    """The output, seen in a shape."""
    value = node.outputs[0]
    return dense(value.shape if shape is None else shape, value.dtype.itemsize)


def itemsize(node: KernelNode) -> int:
    """Bytes of one element of the output."""
    return node.outputs[0].dtype.itemsize


@or_reference
def copy(node: KernelNode) -> Native:
    """The output has the input's bytes."""
    return native("copy", node.outputs[0].nbytes)


@or_reference
def copy_each(node: KernelNode) -> Native:
    """Each output has the bytes of the input at its place."""
    pairs = [(dense((x.nbytes,), 1, i), dense((x.nbytes,), 1, i)) for i, x in enumerate(node.outputs)]
    return plan(pairs, 1)


def _transposed(node: KernelNode, kernel: str = "move") -> Native:
    perm = [d % max(len(node.inputs[0].shape), 1) for d in host_integers(node, 1)]
    return plan([(source(node).permuted(perm), target(node))], itemsize(node), kernel=kernel)


@or_reference
def transpose(node: KernelNode) -> Native:
    return _transposed(node)


@or_reference
def conjugate_transpose(node: KernelNode) -> Native:
    dtype = node.outputs[0].dtype
    return _transposed(node, f"move_conjugate_{dtype.name}" if dtype.kind == "c" else "move")


def _flipped(node: KernelNode, axes: set[int]) -> Native:
    view, shape = source(node), node.inputs[0].shape
    starts = [n - 1 if i in axes else 0 for i, n in enumerate(shape)]
    steps = [-1 if i in axes else 1 for i in range(len(shape))]
    return plan([(view.window(starts, shape, steps), target(node))], itemsize(node))


@or_reference
def reverse_v2(node: KernelNode) -> Native:
    return _flipped(node, {a % len(node.inputs[0].shape) for a in host_integers(node, 1)})


@or_reference
def reverse(node: KernelNode) -> Native:
    return _flipped(node, {i for i, flag in enumerate(host_integers(node, 1)) if flag})


@or_reference
def roll(node: KernelNode) -> Native:
    """Each rolled dimension is two parts, which change places."""
    shape = node.inputs[0].shape
    shifts = [0] * len(shape)
    for shift, axis in zip(host_integers(node, 1), host_integers(node, 2), strict=True):
        shifts[axis % len(shape)] += shift
    parts = [_rolled_parts(n, shift % n if n else 0) for n, shift in zip(shape, shifts, strict=True)]
    moves = []
    for chosen in product(*parts):
        sizes = [size for _, _, size in chosen]
        moves.append(
            (
                source(node).window([a for a, _, _ in chosen], sizes),
                target(node).window([b for _, b, _ in chosen], sizes),
            )
        )
    return plan(moves, itemsize(node))


def _rolled_parts(size: int, shift: int) -> list[tuple[int, int, int]]:
    """(from, to, size) of the parts of one dimension."""
    if not shift:
        return [(0, 0, size)]
    return [(0, shift, size - shift), (size - shift, 0, shift)]


@or_reference
def tile(node: KernelNode) -> Native:
    """The output's dimensions split into (copy, element); the copies repeat the input."""
    shape, multiples = node.inputs[0].shape, host_integers(node, 1)
    whole = [x for pair in zip(multiples, shape, strict=True) for x in pair]
    once = [x for n in shape for x in (1, n)]
    return plan([(source(node, once).broadcast(whole), target(node, whole))], itemsize(node))


@or_reference
def broadcast_to(node: KernelNode) -> Native:
    shape = node.outputs[0].shape
    return plan([(source(node).broadcast(shape), target(node))], itemsize(node))


@or_reference
def slice_block(node: KernelNode) -> Native:
    """Which block is decided at each launch: begin is read then, and checked."""
    shape, sizes = node.inputs[0].shape, node.outputs[0].shape
    view = source(node).window([0] * len(shape), sizes)
    moves = plan([(view, target(node))], itemsize(node)).parameters
    limits = [x for n, size, stride in zip(shape, sizes, view.strides, strict=True) for x in (n - size, stride)]
    reason = "begin[{0}] is {1}; with this size it must lie in [0, {2}]"
    return native("slice", len(shape), *limits, *moves, reasons=(reason,))


def selected(node: KernelNode, whole: View, taken: Sequence[int], first: int) -> tuple[View, list[int]]:
    """The part of `whole` that StridedSlice takes, of sizes `taken`, and what to find out at each launch.

    first: number of the input begin; end and strides follow. The list is empty where begin and end are constants: the
    part is where they say; else its first element is that of the whole, and each 9 words are a selection of move.c.
    """
    shape, attrs = whole.shape, node.attrs
    begin, end, strides = node.const(first), node.const(first + 1), host_integers(node, first + 2)
    known = begin is not None and end is not None
    starts, sizes, steps = [0] * len(shape), list(shape), [1] * len(shape)
    late: list[int] = []
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
            late += [i, at, shape[at], whole.strides[at], steps[at], count, s.shrink, no_first, no_last]
    return whole.window(starts, sizes, steps), late


@or_reference
def strided_slice(node: KernelNode) -> Native:
    """A move where begin and end are constants; else they are read at each launch, and held against the plan."""
    part, late = selected(node, source(node), node.outputs[0].shape, 1)
    moved = plan([(part, target(node, part.shape))], itemsize(node))
    if not late:
        return moved
    return native("strided_slice", len(late) // 9, *late, *moved.parameters, reasons=_SELECTION_ERRORS)


@or_reference
def strided_slice_grad(node: KernelNode) -> Native:
    """Zeros, then a move into them; dy is number 2 of the inputs that the kernel gets."""
    part, late = selected(node, target(node), node.inputs[4].shape, 1)
    moved = plan([(dense(part.shape, itemsize(node), 2), part)], itemsize(node))
    late_count = len(late) // 9
    nbytes = node.outputs[0].nbytes
    return native("strided_slice_grad", nbytes, late_count, *late, *moved.parameters, reasons=_SELECTION_ERRORS)


_SELECTION_ERRORS = (
    "index {0} of dimension {1} is outside its size {2}; it must lie in [-{2}, {2})",
    "begin and end select {0} elements of dimension {1}; the {2} that were planned are required",
)


def mirror_pad_grad(node: KernelNode) -> Native:
    """Parameters: see csrc/movement/mirror.c. Dimensions without paddings become one with the one before them."""
    dtype = str(node.inputs[0].dtype).removeprefix("u")  # wrapping sums are the same for unsigned integers
    pairs = host_integers(node, 1)
    merged: list[tuple[int, int, int]] = []
    unit = 1
    for size, before, after in zip(node.outputs[0].shape[::-1], pairs[-2::-2], pairs[::-2], strict=True):
        if not merged and not before and not after:
            unit *= size
        elif merged and not before and not after and merged[-1][1:] == (0, 0):
            merged[-1] = (merged[-1][0] * size, 0, 0)
        else:
            merged.append((size, before, after))
    dimensions = [x for dimension in (merged[::-1] or [(1, 0, 0)]) for x in dimension]
    reflect = node.attrs["mode"] == "REFLECT"
    return native(f"mirror_pad_grad_{dtype}", len(dimensions) // 3, reflect, unit, *dimensions)


def _depth_blocks(axes: Callable[[tuple[int, ...], int, str], tuple[tuple[int, ...], tuple[int, ...]]]) -> Any:
    @or_reference
    def build(node: KernelNode) -> Native:
        block, data_format = node.attrs["block_size"], node.attrs["data_format"]
        split, order = axes(node.inputs[0].shape, block, data_format)
        moved = source(node, split).permuted(order)
        return plan([(moved, target(node, moved.shape))], itemsize(node))

    return build


def _block_and_margins(node: KernelNode) -> tuple[list[int], list[tuple[int, int]]]:
    block = [node.attrs["block_size"]] * 2 if "block_size" in node.attrs else host_integers(node, 1)
    flat = host_integers(node, len(node.inputs) - 1)
    return block, list(zip(flat[::2], flat[1::2], strict=True))


def _phases(
    block: Sequence[int], margins: Sequence[tuple[int, int]], space: Sequence[int], cells: Sequence[int]
) -> Iterator[tuple[int, list[int], list[int], list[int]]]:
    """For each place in the block: its number, first position in space, first cell and number of cells.

    A cell is what one block becomes; `space` has the sizes without, `cells` those of the tensor whose batch is larger.
    """
    for number, place in enumerate(product(*(range(b) for b in block))):
        positions, firsts, counts = [], [], []
        for p, b, (before, _), size, cell in zip(place, block, margins, space, cells, strict=True):
            first = max(0, -(-(before - p) // b))
            last = min(cell, -(-(before + size - p) // b))
            positions.append(first * b + p - before)
            firsts.append(first)
            counts.append(max(0, last - first))
        yield number, positions, firsts, counts


@or_reference
def space_to_batch(node: KernelNode) -> Native:
    block, margins = _block_and_margins(node)
    m, shape, batch = len(block), node.inputs[0].shape, node.inputs[0].shape[0]
    space, cells, rest = shape[1 : m + 1], node.outputs[0].shape[1 : m + 1], shape[m + 1 :]
    moves = [(element(node.outputs[0].shape), target(node))] if any(a or b for a, b in margins) else []
    split = target(node, (int(np.prod(block, dtype=int)), batch, *cells, *rest))
    none = [0] * (1 + len(rest))
    for number, positions, firsts, counts in _phases(block, margins, space, cells):
        from_ = source(node).window([0, *positions, *none[1:]], [batch, *counts, *rest], [1, *block, *[1] * len(rest)])
        to = split.window([number, 0, *firsts, *none[1:]], [1, batch, *counts, *rest])
        moves.append((View(to.shape, (0, *from_.strides), from_.offset), to))
    return plan(moves, itemsize(node))


@or_reference
def batch_to_space(node: KernelNode) -> Native:
    block, margins = _block_and_margins(node)
    m, shape, out = len(block), node.inputs[0].shape, node.outputs[0].shape
    batch, cells, rest = out[0], shape[1 : m + 1], shape[m + 1 :]
    split = source(node, (int(np.prod(block, dtype=int)), batch, *cells, *rest))
    none, moves = [0] * len(rest), []
    for number, positions, firsts, counts in _phases(block, margins, out[1 : m + 1], cells):
        from_ = split.window([number, 0, *firsts, *none], [1, batch, *counts, *rest])
        to = target(node).window([0, *positions, *none], [batch, *counts, *rest], [1, *block, *[1] * len(rest)])
        moves.append((from_, View(from_.shape, (0, *to.strides), to.offset)))
    return plan(moves, itemsize(node))


_COPIES = ("Identity", "StopGradient", "PreventGradient", "Reshape", "ExpandDims", "Squeeze", "EnsureShape")

KERNELS: list[KernelDef] = [
    *(KernelDef(op, "CPU", copy, inplace=((0, 0),)) for op in _COPIES),
    KernelDef("PlaceholderWithDefault", "CPU", copy, inplace=((0, 0),)),
    KernelDef("Snapshot", "CPU", copy),
    KernelDef("DeepCopy", "CPU", copy),
    KernelDef("IdentityN", "CPU", copy_each),
    KernelDef("Transpose", "CPU", transpose),
    KernelDef("ConjugateTranspose", "CPU", conjugate_transpose),
    KernelDef("ReverseV2", "CPU", reverse_v2),
    KernelDef("Reverse", "CPU", reverse),
    KernelDef("Roll", "CPU", roll),
    KernelDef("Tile", "CPU", tile),
    KernelDef("BroadcastTo", "CPU", broadcast_to),
    KernelDef("Slice", "CPU", slice_block),
    KernelDef("StridedSlice", "CPU", strided_slice),
    KernelDef("StridedSliceGrad", "CPU", strided_slice_grad),
    KernelDef("MirrorPadGrad", "CPU", mirror_pad_grad, {"T": tuple(t.name for t in NUMERIC)}),
    KernelDef("SpaceToDepth", "CPU", _depth_blocks(space_to_depth_axes)),
    KernelDef("DepthToSpace", "CPU", _depth_blocks(depth_to_space_axes)),
    KernelDef("SpaceToBatchND", "CPU", space_to_batch),
    KernelDef("SpaceToBatch", "CPU", space_to_batch),
    KernelDef("BatchToSpaceND", "CPU", batch_to_space),
    KernelDef("BatchToSpace", "CPU", batch_to_space),
]
