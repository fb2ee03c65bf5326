"""Ops that move elements, and compute none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.base.array.slicing import BEGIN_OUTSIDE
from timberframe_core.ops.base.array.strided_slice import COUNTS_DIFFER, Entry, interval, selections
from timberframe_sdk import KernelDef, KernelNode
from timberframe_torch import lazy as torch
from timberframe_torch.launches import ALL, Function, torch_kernel

KERNELS: list[KernelDef] = []
_T = {"T": ALL}


def _integers(node: KernelNode, i: int) -> list[int]:
    return [int(v) for v in np.ravel(np.asarray(node.const(i)))]


@torch_kernel(KERNELS, ("Reshape", "ExpandDims", "Squeeze"), _T)
def reshape(node: KernelNode) -> Function:
    """The same elements in another shape."""
    shape = node.outputs[0].shape
    return lambda x, *_: torch.reshape(x, shape)


@torch_kernel(KERNELS, "Transpose", _T)
def transpose(node: KernelNode) -> Function:
    """Axes in another order."""
    order = _integers(node, 1)
    return lambda x: x.permute(order)


@torch_kernel(KERNELS, ("BroadcastTo", "Fill"))
def broadcast(node: KernelNode) -> Function:
    """The elements again and again along axes that grow."""
    shape = node.outputs[0].shape
    return lambda x: x.expand(shape)


@torch_kernel(KERNELS, "Tile", _T)
def tile(node: KernelNode) -> Function:
    """The whole several times along each axis."""
    multiples = _integers(node, 1)
    return lambda x: x.repeat(multiples) if multiples else x


@torch_kernel(KERNELS, "ReverseV2", _T)
def reverse(node: KernelNode) -> Function:
    """Axes from their end to their beginning."""
    axes = _integers(node, 1)
    return lambda x: x.flip(axes)


@torch_kernel(KERNELS, "ConcatV2", _T)
def concatenate(node: KernelNode) -> Function:
    """Tensors one after the other along an axis."""
    axis = _integers(node, len(node.inputs) - 1)[0]
    return lambda *xs: torch.cat(xs, axis)


@torch_kernel(KERNELS, "Pack", _T)
def pack(node: KernelNode) -> Function:
    """Tensors one after the other along a new axis."""
    return lambda *xs: torch.stack(xs, node.attrs["axis"])


@torch_kernel(KERNELS, "Unpack", _T)
def unpack(node: KernelNode) -> Function:
    """A tensor for each place of an axis."""
    return lambda x: list(torch.unbind(x, node.attrs["axis"]))


@torch_kernel(KERNELS, ("Split", "SplitV"), _T)
def split(node: KernelNode) -> Function:
    """Parts along an axis."""
    data = node.inputs[1 if node.op == "Split" else 0]
    axis = _integers(node, 0 if node.op == "Split" else 2)[0] % len(data.shape)
    sizes = [v.shape[axis] for v in node.outputs]
    return lambda x: list(torch.split(x, sizes, axis))


@torch_kernel(KERNELS, ("Pad", "PadV2"), _T)
def pad(node: KernelNode) -> Function:
    """Elements of one value, zero by default, around a tensor."""
    pairs = np.asarray(node.const(1)).reshape(-1, 2)
    amounts = [int(v) for pair in pairs[::-1] for v in pair]

    def run(x: Any, value: Any = None) -> Any:
        if not amounts:
            return x
        return torch.nn.functional.pad(x, amounts, value=0 if value is None else value.item())

    return run


@torch_kernel(KERNELS, "Slice", _T)
def slice_block(node: KernelNode) -> Function:
    """A block; where it begins may be known at the launch alone."""
    sizes, whole = node.outputs[0].shape, node.inputs[0].shape

    def run(x: Any, begin: Any) -> Any:
        for axis, (first, size) in enumerate(zip(begin.tolist(), sizes, strict=True)):
            most = whole[axis] - size
            if not 0 <= first <= most:
                raise InvalidArgumentError(BEGIN_OUTSIDE.format(axis, first, most))
            x = x.narrow(axis, first, size)
        return x

    return run


class _Part:
    """What StridedSlice takes of a tensor. first: number of the input begin; end and strides follow."""

    def __init__(self, node: KernelNode, shape: Sequence[int], taken: Sequence[int], first: int) -> None:
        self.attrs, self.shape, self.taken = node.attrs, shape, taken
        self.strides = _integers(node, first + 2)

    def axes(self, begin: Sequence[int], end: Sequence[int]) -> list[tuple[int, int, int, int]]:
        """Returns for each axis that is cut: its number, the first index, how many, and the stride."""
        found = []
        planned = iter(self.taken)
        for s in selections(len(self.shape), len(self.strides), self.attrs):
            wanted = 1 if s.shrink else next(planned)
            if s.source is None or s.entry is None:
                continue
            masked = [bool(self.attrs[name] >> s.entry & 1) for name in ("begin_mask", "end_mask")]
            entry = Entry(begin[s.entry], end[s.entry], self.strides[s.entry], masked[0], masked[1])
            try:
                at, count, stride = interval(self.shape[s.source], entry, s.source, s.shrink)
            except ValueError as e:
                raise InvalidArgumentError(str(e)) from None
            if count != wanted:
                raise InvalidArgumentError(COUNTS_DIFFER.format(count, s.source, wanted))
            found.append((s.source, at, wanted, stride))
        return found

    def of(self, x: Any, begin: Any, end: Any) -> tuple[Any, list[int]]:
        """Returns the part as a view, and its axes that are from the end to the beginning: no view of torch is so."""
        turned = []
        for axis, first, count, stride in self.axes(begin.tolist(), end.tolist()):
            last = first + (count - 1) * stride
            low, high = (first, last + 1) if stride > 0 else (last, first + 1)
            x = x[(slice(None),) * axis + (slice(low, high, abs(stride)),)] if count else x.narrow(axis, 0, 0)
            turned += [axis] if stride < 0 else []
        return x, turned


@torch_kernel(KERNELS, "StridedSlice", _T)
def strided_slice(node: KernelNode) -> Function:
    """Elements at equal distances along each axis."""
    part, shape = _Part(node, node.inputs[0].shape, node.outputs[0].shape, 1), node.outputs[0].shape

    def run(x: Any, begin: Any, end: Any) -> Any:
        view, turned = part.of(x, begin, end)
        return (view.flip(turned) if turned else view).reshape(shape)

    return run


@torch_kernel(KERNELS, "StridedSliceGrad", _T)
def strided_slice_grad(node: KernelNode) -> Function:
    """Zeros, with the gradient where StridedSlice takes its elements from."""
    shape, taken = node.outputs[0].shape, node.inputs[4].shape
    part = _Part(node, shape, taken, 1)

    def run(begin: Any, end: Any, gradient: Any) -> Any:
        whole = gradient.new_zeros(shape)
        view, turned = part.of(whole, begin, end)
        view.copy_(gradient.reshape(view.shape).flip(turned) if turned else gradient.reshape(view.shape))
        return whole

    return run


@torch_kernel(KERNELS, "Roll", _T)
def roll(node: KernelNode) -> Function:
    """Elements moved along axes, those beyond the end to the beginning."""
    shifts, axes = _integers(node, 1), _integers(node, 2)
    return lambda x, *_: torch.roll(x, shifts, axes)
