"""Views of tensors: boxes of elements with shape, strides and offset of one's own, as NumPy's are.

A move copies one view to another of the same shape. All strides and offsets are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from timberframe_core.plugin.contracts import KernelNode

LITERAL = -1
"""As the tensor of a source: the plan's literal element."""

Dim = tuple[int, int, int]
"""Size, source stride and target stride of one dimension."""


class View(NamedTuple):
    """A box of elements of one tensor.

    tensor: number of an input as a source (of those that a launcher gets), of an output as a target; `element` and
    `output` make other sources.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    tensor: int = 0

    def window(self, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> View:
        """Returns the part that begins at `starts` and takes `sizes` elements, every steps[i]-th."""
        strides = self.strides if steps is None else tuple([s * n for s, n in zip(self.strides, steps, strict=True)])
        offset = self.offset + sum([a * s for a, s in zip(starts, self.strides, strict=True)])
        return View(tuple(sizes), strides, offset, self.tensor)

    def along(self, axis: int, start: int, size: int, step: int = 1) -> View:
        """Returns the part that takes `size` elements of one dimension, every step-th from `start` on."""
        shape, strides = self.shape, self.strides
        stride = strides[axis]
        if step != 1:
            strides = (*strides[:axis], stride * step, *strides[axis + 1 :])
        return View((*shape[:axis], size, *shape[axis + 1 :]), strides, self.offset + start * stride, self.tensor)

    def permuted(self, order: Sequence[int]) -> View:
        """Returns the dimensions in another order."""
        shape, strides = self.shape, self.strides
        return View(tuple([shape[i] for i in order]), tuple([strides[i] for i in order]), self.offset, self.tensor)

    def broadcast(self, shape: Sequence[int]) -> View:
        """Dimensions of one, and new leading ones, repeated up to `shape`."""
        new = (0,) * (len(shape) - len(self.shape))
        strides = [0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)]
        return View(tuple(shape), (*new, *strides), self.offset, self.tensor)

    def output(self) -> View:
        """As a source: this part of the output, which earlier stages of the plan have written."""
        return View(self.shape, self.strides, self.offset, -2 - self.tensor)


Stages = list[list[tuple[View, View]]]
"""A plan: moves from the first view to the second, in stages."""


def dense(shape: Sequence[int], itemsize: int, tensor: int = 0) -> View:
    """Returns a whole row-major tensor, or a view of its elements in another shape."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return View(tuple(shape), tuple(strides[::-1]), 0, tensor)


def element(shape: Sequence[int], tensor: int = LITERAL) -> View:
    """Returns the first element of an input (of the plan's literal, if none is named), repeated in a shape."""
    return View(tuple(shape), (0,) * len(shape), 0, tensor)


def merged(source: View, target: View) -> list[Dim]:
    """Returns the dimensions of a move in the order of the target's memory, neighbours made one where they can be."""
    return _merged(zip(target.shape, source.strides, target.strides, strict=True))


def _merged(dims: Iterable[Dim]) -> list[Dim]:
    kept = [d for d in dims if d[0] != 1]
    if len(kept) > 1:
        kept.sort(key=_target_stride)
    found: list[Dim] = []
    for dim in kept:
        size, source, target = dim
        if found and found[-1][1] == source * size and found[-1][2] == target * size:
            found[-1] = (found[-1][0] * size, source, target)
        else:
            found.append(dim)
    return found


def _target_stride(dim: Dim) -> int:
    return -abs(dim[2])


# What plans of nodes are made of


def host_integers(node: KernelNode, i: int) -> list[int]:
    """Returns the elements of a `shape` input."""
    value = node.const(i)
    assert value is not None
    return [int(x) for x in value.reshape(-1)]


def source(node: KernelNode, shape: Sequence[int] | None = None, i: int = 0) -> View:
    """Input i, which is number i of those that the kernel gets, seen in a shape."""
    value = node.inputs[i]
    return dense(value.shape if shape is None else shape, value.dtype.itemsize, i)


def target(node: KernelNode, shape: Sequence[int] | None = None) -> View:
    """Returns the output, seen in a shape."""
    value = node.outputs[0]
    return dense(value.shape if shape is None else shape, value.dtype.itemsize)


def itemsize(node: KernelNode) -> int:
    """Returns bytes of one element of the output (of the input, where there is no output)."""
    return (node.outputs or node.inputs)[0].dtype.itemsize
