"""Plans of ops that exchange blocks of space for depth or batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.plans.moves.views import Stages, View, element, host_integers, source, target


def _depth_blocks(node: KernelNode) -> Stages:
    from timberframe_ops.array.blocks import depth_to_space_axes, space_to_depth_axes

    axes = space_to_depth_axes if node.op == "SpaceToDepth" else depth_to_space_axes
    split, order = axes(node.inputs[0].shape, node.attrs["block_size"], node.attrs["data_format"])
    moved = source(node, split).permuted(order)
    return [[(moved, target(node, moved.shape))]]


def _block_and_margins(node: KernelNode) -> tuple[list[int], list[tuple[int, int]]]:
    block = [node.attrs["block_size"]] * 2 if "block_size" in node.attrs else host_integers(node, 1)
    flat = host_integers(node, len(node.inputs) - 1)
    return block, list(zip(flat[::2], flat[1::2], strict=True))


def _phases(
    block: Sequence[int], margins: Sequence[tuple[int, int]], space: Sequence[int], cells: Sequence[int]
) -> Iterator[tuple[int, list[int], list[int], list[int]]]:
    """For each position in the block: its number, first position in space, first cell and number of cells.

    A cell is what one block becomes; `space` has the sizes without, `cells` those of the tensor whose batch is larger.
    """
    for number, position in enumerate(product(*(range(b) for b in block))):
        positions, firsts, counts = [], [], []
        for p, b, (before, _), size, cell in zip(position, block, margins, space, cells, strict=True):
            first = max(0, -(-(before - p) // b))
            last = min(cell, -(-(before + size - p) // b))
            positions.append(first * b + p - before)
            firsts.append(first)
            counts.append(max(0, last - first))
        yield number, positions, firsts, counts


def _space_to_batch(node: KernelNode) -> Stages:
    block, margins = _block_and_margins(node)
    m, shape, batch = len(block), node.inputs[0].shape, node.inputs[0].shape[0]
    space, cells, rest = shape[1 : m + 1], node.outputs[0].shape[1 : m + 1], shape[m + 1 :]
    split = target(node, (math.prod(block), batch, *cells, *rest))
    none, moves = [0] * (1 + len(rest)), []
    for number, positions, firsts, counts in _phases(block, margins, space, cells):
        from_ = source(node).window([0, *positions, *none[1:]], [batch, *counts, *rest], [1, *block, *[1] * len(rest)])
        to = split.window([number, 0, *firsts, *none[1:]], [1, batch, *counts, *rest])
        moves.append((View(to.shape, (0, *from_.strides), from_.offset), to))
    if any(a or b for a, b in margins):
        return [[(element(node.outputs[0].shape), target(node))], moves]
    return [moves]


def _batch_to_space(node: KernelNode) -> Stages:
    block, margins = _block_and_margins(node)
    m, shape, out = len(block), node.inputs[0].shape, node.outputs[0].shape
    batch, cells, rest = out[0], shape[1 : m + 1], shape[m + 1 :]
    split = source(node, (math.prod(block), batch, *cells, *rest))
    none, moves = [0] * len(rest), []
    for number, positions, firsts, counts in _phases(block, margins, out[1 : m + 1], cells):
        from_ = split.window([number, 0, *firsts, *none], [1, batch, *counts, *rest])
        to = target(node).window([0, *positions, *none], [batch, *counts, *rest], [1, *block, *[1] * len(rest)])
        moves.append((from_, View(from_.shape, (0, *to.strides), to.offset)))
    return [moves]


PLANS = {
    "SpaceToDepth": _depth_blocks,
    "DepthToSpace": _depth_blocks,
    "SpaceToBatchND": _space_to_batch,
    "SpaceToBatch": _space_to_batch,
    "BatchToSpaceND": _batch_to_space,
    "BatchToSpace": _batch_to_space,
}
