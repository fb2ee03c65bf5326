"""Kernels that put tensors together, take them apart, and put borders around them."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.kernels.movement import host_integers, itemsize, source, target
from timberframe_cpu.moves import dense, element, plan
from timberframe_cpu.reference import or_reference
from timberframe_sdk.native import Native


def _joined(node: KernelNode, shapes: Sequence[tuple[int, ...]], axis: int) -> Native:
    """The kernel's inputs, in these shapes, one behind the other along an axis of the output."""
    whole, moves, at = target(node), [], 0
    for number, shape in enumerate(shapes):
        moves.append((dense(shape, itemsize(node), number), whole.along(axis, at, shape[axis])))
        at += shape[axis]
    return plan(moves, itemsize(node))


@or_reference
def concat_v2(node: KernelNode) -> Native:
    shapes = [v.shape for v in node.inputs[:-1]]
    return _joined(node, shapes, host_integers(node, len(shapes))[0] % len(shapes[0]))


@or_reference
def concat(node: KernelNode) -> Native:
    shapes = [v.shape for v in node.inputs[1:]]
    return _joined(node, shapes, host_integers(node, 0)[0] % len(shapes[0]))


@or_reference
def pack(node: KernelNode) -> Native:
    axis = node.attrs["axis"] % len(node.outputs[0].shape)
    return _joined(node, [(*v.shape[:axis], 1, *v.shape[axis:]) for v in node.inputs], axis)


@or_reference
def parallel_concat(node: KernelNode) -> Native:
    return _joined(node, [v.shape for v in node.inputs], 0)


def _parted(node: KernelNode, value: int, axis: int, sizes: Sequence[int]) -> Native:
    """Parts of an input (the only one that the kernel gets), of these sizes along an axis, one for each output."""
    shape, bytes_each = node.inputs[value].shape, node.inputs[value].dtype.itemsize
    whole, moves, at = dense(shape, bytes_each), [], 0
    for number, size in enumerate(sizes):
        part = whole.along(axis, at, size)
        moves.append((part, dense(part.shape, bytes_each, number)))
        at += size
    return plan(moves, bytes_each)


@or_reference
def split(node: KernelNode) -> Native:
    value = node.inputs[1]
    axis = host_integers(node, 0)[0] % len(value.shape)
    return _parted(node, 1, axis, [v.shape[axis] for v in node.outputs])


@or_reference
def split_v(node: KernelNode) -> Native:
    axis = host_integers(node, 2)[0] % len(node.inputs[0].shape)
    return _parted(node, 0, axis, [v.shape[axis] for v in node.outputs])


@or_reference
def unpack(node: KernelNode) -> Native:
    axis = node.attrs["axis"] % len(node.inputs[0].shape)
    return _parted(node, 0, axis, [1] * len(node.outputs))


def _paddings(node: KernelNode) -> list[tuple[int, int]]:
    flat = host_integers(node, 1)
    return list(zip(flat[::2], flat[1::2], strict=True))


def _bordered(node: KernelNode, fill: int | None) -> Native:
    """The input inside, and borders filled with an input's element (None: with zeros)."""
    whole, shape, pairs = target(node), node.inputs[0].shape, _paddings(node)
    moves = []
    for axis, (before, after) in enumerate(pairs):
        for start, size in ((0, before), (before + shape[axis], after)):
            border = whole.along(axis, start, size)
            moves.append((element(border.shape) if fill is None else element(border.shape, fill), border))
        whole = whole.along(axis, before, shape[axis])  # the next borders lie within this one's
    return plan([*moves, (source(node), whole)], itemsize(node))


@or_reference
def pad(node: KernelNode) -> Native:
    return _bordered(node, None)


@or_reference
def pad_v2(node: KernelNode) -> Native:
    return _bordered(node, 1)  # paddings are not passed to the kernel, so the constant is its second input


@or_reference
def mirror_pad(node: KernelNode) -> Native:
    """The input inside; then, from the last dimension on, the borders as mirror images of what is there."""
    edge = 1 if node.attrs["mode"] == "REFLECT" else 0
    shape, pairs = node.inputs[0].shape, _paddings(node)
    inside = target(node)
    starts = [before for before, _ in pairs]
    moves = [(source(node), inside.window(starts, shape))]
    for axis in reversed(range(len(shape))):
        before, after = pairs[axis]
        # Dimensions behind this one are complete; those before it are not begun, but for the input's own part.
        part = inside.window(
            [*starts[: axis + 1], *[0] * (len(shape) - axis - 1)], [*shape[: axis + 1], *inside.shape[axis + 1 :]]
        )
        rows = part.along(axis, -before, before + shape[axis] + after)
        size = shape[axis]
        for first, mirror, count in (
            (0, 2 * before - 1 + edge, before),
            (before + size, before + size - 1 - edge, after),
        ):
            moves.append((rows.along(axis, mirror, count, -1).output(), rows.along(axis, first, count)))
    return plan(moves, itemsize(node))


KERNELS: list[KernelDef] = [
    KernelDef("ConcatV2", "CPU", concat_v2),
    KernelDef("Concat", "CPU", concat),
    KernelDef("Pack", "CPU", pack),
    KernelDef("ParallelConcat", "CPU", parallel_concat),
    KernelDef("Split", "CPU", split),
    KernelDef("SplitV", "CPU", split_v),
    KernelDef("Unpack", "CPU", unpack),
    KernelDef("Pad", "CPU", pad),
    KernelDef("PadV2", "CPU", pad_v2),
    KernelDef("MirrorPad", "CPU", mirror_pad),
]
