"""Plans of ops that move elements within one tensor or make a tensor of one element: transposes, reversals, copies."""

from __future__ import annotations

from itertools import product

from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.plans.moves.slices import selected
from timberframe_sdk.plans.moves.views import Stages, dense, element, host_integers, itemsize, source, target


def transpose(node: KernelNode) -> Stages:
    """Returns the input's dimensions in the order of the second input."""
    perm = [d % max(len(node.inputs[0].shape), 1) for d in host_integers(node, 1)]
    return [[(source(node).permuted(perm), target(node))]]


def _flipped(node: KernelNode, axes: set[int]) -> Stages:
    view, shape = source(node), node.inputs[0].shape
    starts = [n - 1 if i in axes else 0 for i, n in enumerate(shape)]
    steps = [-1 if i in axes else 1 for i in range(len(shape))]
    return [[(view.window(starts, shape, steps), target(node))]]


def _reverse_v2(node: KernelNode) -> Stages:
    return _flipped(node, {a % len(node.inputs[0].shape) for a in host_integers(node, 1)})


def _reverse(node: KernelNode) -> Stages:
    return _flipped(node, {i for i, flag in enumerate(host_integers(node, 1)) if flag})


def _roll(node: KernelNode) -> Stages:
    """Returns the stages: each rolled dimension is two parts, which change places."""
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
    return [moves]


def _rolled_parts(size: int, shift: int) -> list[tuple[int, int, int]]:
    """(from, to, size) of the parts of one dimension."""
    if not shift:
        return [(0, 0, size)]
    return [(0, shift, size - shift), (size - shift, 0, shift)]


def _tile(node: KernelNode) -> Stages:
    """Returns the output's dimensions split into (copy, element); the copies repeat the input."""
    shape, multiples = node.inputs[0].shape, host_integers(node, 1)
    whole = [x for pair in zip(multiples, shape, strict=True) for x in pair]
    once = [x for n in shape for x in (1, n)]
    return [[(source(node, once).broadcast(whole), target(node, whole))]]


def _broadcast_to(node: KernelNode) -> Stages:
    return [[(source(node).broadcast(node.outputs[0].shape), target(node))]]


def _fill(node: KernelNode) -> Stages:
    """dims is not passed to the kernel, so the value is its first input."""
    return [[(element(node.outputs[0].shape, 0), target(node))]]


def _constant(node: KernelNode) -> Stages:
    return [[(element(node.outputs[0].shape), target(node))]]


def _assign_slice(node: KernelNode) -> Stages:
    """Returns the stages: all of the old value is moved, then the new one, number 1 of the inputs that the
    kernel gets, over its part.
    """
    stages: Stages = [[(source(node), target(node))]]
    if node.inputs[4].size:
        part, _ = selected(node, target(node), node.inputs[4].shape, 1)
        stages.append([(dense(part.shape, itemsize(node), 1), part)])
    return stages


PLANS = {
    "Transpose": transpose,
    "ConjugateTranspose": transpose,
    "ReverseV2": _reverse_v2,
    "Reverse": _reverse,
    "Roll": _roll,
    "Tile": _tile,
    "BroadcastTo": _broadcast_to,
    "Fill": _fill,
    "Empty": _constant,
    "ZerosLike": _constant,
    "OnesLike": _constant,
    "TensorStridedSliceUpdate": _assign_slice,
    "ResourceStridedSliceAssign": _assign_slice,
}
