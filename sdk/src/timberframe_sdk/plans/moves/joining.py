"""Plans of ops that put tensors together, take them apart, and put borders around them."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.plans.moves.views import Stages, dense, element, host_integers, itemsize, source, target


def _joined(node: KernelNode, shapes: Sequence[tuple[int, ...]], axis: int) -> Stages:
    """Returns the kernel's inputs, in these shapes, one after the other along an axis of the output."""
    whole, moves, at = target(node), [], 0
    for number, shape in enumerate(shapes):
        moves.append((dense(shape, itemsize(node), number), whole.along(axis, at, shape[axis])))
        at += shape[axis]
    return [moves]


def _concat_v2(node: KernelNode) -> Stages:
    shapes = [v.shape for v in node.inputs[:-1]]
    return _joined(node, shapes, host_integers(node, len(shapes))[0] % len(shapes[0]))


def _concat(node: KernelNode) -> Stages:
    shapes = [v.shape for v in node.inputs[1:]]
    return _joined(node, shapes, host_integers(node, 0)[0] % len(shapes[0]))


def _pack(node: KernelNode) -> Stages:
    axis = node.attrs["axis"] % len(node.outputs[0].shape)
    return _joined(node, [(*v.shape[:axis], 1, *v.shape[axis:]) for v in node.inputs], axis)


def _parallel_concat(node: KernelNode) -> Stages:
    return _joined(node, [v.shape for v in node.inputs], 0)


def _parted(node: KernelNode, value: int, axis: int, sizes: Sequence[int]) -> Stages:
    """Parts of an input (the only one that the kernel gets), of these sizes along an axis, one for each output."""
    shape, bytes_each = node.inputs[value].shape, node.inputs[value].dtype.itemsize
    whole, moves, at = dense(shape, bytes_each), [], 0
    for number, size in enumerate(sizes):
        part = whole.along(axis, at, size)
        moves.append((part, dense(part.shape, bytes_each, number)))
        at += size
    return [moves]


def _split(node: KernelNode) -> Stages:
    value = node.inputs[1]
    axis = host_integers(node, 0)[0] % len(value.shape)
    return _parted(node, 1, axis, [v.shape[axis] for v in node.outputs])


def _split_v(node: KernelNode) -> Stages:
    axis = host_integers(node, 2)[0] % len(node.inputs[0].shape)
    return _parted(node, 0, axis, [v.shape[axis] for v in node.outputs])


def _unpack(node: KernelNode) -> Stages:
    axis = node.attrs["axis"] % len(node.inputs[0].shape)
    return _parted(node, 0, axis, [1] * len(node.outputs))


def _paddings(node: KernelNode) -> list[tuple[int, int]]:
    flat = host_integers(node, 1)
    return list(zip(flat[::2], flat[1::2], strict=True))


def _bordered(node: KernelNode, fill: int | None) -> Stages:
    """Returns the input inside, and borders filled with an input's element (None: with zeros)."""
    whole, shape, pairs = target(node), node.inputs[0].shape, _paddings(node)
    moves = []
    for axis, (before, after) in enumerate(pairs):
        for start, size in ((0, before), (before + shape[axis], after)):
            border = whole.along(axis, start, size)
            moves.append((element(border.shape) if fill is None else element(border.shape, fill), border))
        whole = whole.along(axis, before, shape[axis])  # the next borders lie within this one's
    return [[*moves, (source(node), whole)]]


def _pad(node: KernelNode) -> Stages:
    return _bordered(node, None)


def _pad_v2(node: KernelNode) -> Stages:
    return _bordered(node, 1)  # paddings are not passed to the kernel, so the constant is its second input


def _mirror_pad(node: KernelNode) -> Stages:
    """Returns the input inside; then, from the last dimension on, the borders as mirror images of what is there."""
    edge = 1 if node.attrs["mode"] == "REFLECT" else 0
    shape, pairs = node.inputs[0].shape, _paddings(node)
    inside = target(node)
    starts = [before for before, _ in pairs]
    stages: Stages = [[(source(node), inside.window(starts, shape))]]
    for axis in reversed(range(len(shape))):
        before, after = pairs[axis]
        # Dimensions after this one are complete; those before it are not begun, but for the input's own part.
        part = inside.window(
            [*starts[: axis + 1], *[0] * (len(shape) - axis - 1)], [*shape[: axis + 1], *inside.shape[axis + 1 :]]
        )
        size = shape[axis]
        rows = part.along(axis, -before, before + size + after)
        stages.append(
            [
                (rows.along(axis, mirror, count, -1).output(), rows.along(axis, first, count))
                for first, mirror, count in (
                    (0, 2 * before - 1 + edge, before),
                    (before + size, before + size - 1 - edge, after),
                )
            ]
        )
    return stages


PLANS = {
    "ConcatV2": _concat_v2,
    "Concat": _concat,
    "Pack": _pack,
    "ParallelConcat": _parallel_concat,
    "Split": _split,
    "SplitV": _split_v,
    "Unpack": _unpack,
    "Pad": _pad,
    "PadV2": _pad_v2,
    "MirrorPad": _mirror_pad,
}
