"""Parts of tensors whose place may be known when a program runs alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from timberframe_core.ops.base.array.slicing import BEGIN_OUTSIDE
from timberframe_core.ops.base.array.strided_slice import COUNTS_DIFFER, INDEX_OUTSIDE, Entry, interval, selections
from timberframe_pjrt.checks import WIDTH, Check, row_of
from timberframe_pjrt.translations.table import ALL, integers, translation
from timberframe_sdk import KernelNode

_T = {"T": ALL}


def _begin_row(node: KernelNode, x: Any, begin: Any, size: Any) -> Any:
    """Returns the row of Slice: an axis on which the block would not be inside, and where it begins."""
    if not len(x.shape):
        return jnp.zeros(WIDTH, jnp.int64)
    first = jnp.asarray(begin, jnp.int64)
    outside = (first < 0) | (first > jnp.asarray(_most(node), jnp.int64))
    axis = jnp.argmax(outside)
    return row_of(jnp.any(outside), axis, first[axis])


def _most(node: KernelNode) -> list[int]:
    """Returns the last place on each axis where the block of Slice may begin."""
    return [n - taken for n, taken in zip(node.inputs[0].shape, node.outputs[0].shape, strict=True)]


def _begin_message(node: KernelNode, axis: int, begin: int) -> str:
    return BEGIN_OUTSIDE.format(axis, begin, _most(node)[axis])


@translation("Slice", _T, check=Check(_begin_row, _begin_message))
def slice_block(node: KernelNode, x: Any, begin: Any, size: Any) -> Any:
    """Returns a block."""
    sizes = node.outputs[0].shape
    if node.const(1) is None:
        return lax.dynamic_slice(jnp.asarray(x), [begin[i] for i in range(len(sizes))], sizes)
    first = integers(node, 1)
    return lax.slice(jnp.asarray(x), first, [b + n for b, n in zip(first, sizes, strict=True)])


@dataclass(frozen=True)
class _Cut:
    """The cut of StridedSlice along an axis. place: of its numbers in begin and end. wanted: the number of elements.

    is_index: whether it takes one, and the axis disappears.
    """

    axis: int
    place: int
    size: int
    entry: Entry
    wanted: int
    is_index: bool

    @property
    def stride(self) -> int:
        """The distance of elements."""
        return 1 if self.is_index else self.entry.stride or 1


def _cuts(node: KernelNode, shape: Sequence[int], taken: Sequence[int]) -> list[_Cut]:
    """Returns what a node takes of each axis that is cut, of a tensor of this shape."""
    strides, attrs = integers(node, 3), node.attrs
    begin, end = (None if node.const(i) is None else integers(node, i) for i in (1, 2))
    found, planned = [], iter(taken)
    for s in selections(len(shape), len(strides), attrs):
        wanted = 1 if s.shrink else next(planned)
        if s.source is None or s.entry is None:
            continue
        masked = [bool(attrs[name] >> s.entry & 1) for name in ("begin_mask", "end_mask")]
        known = [None if v is None else v[s.entry] for v in (begin, end)]
        entry = Entry(known[0], known[1], strides[s.entry], masked[0], masked[1])
        found.append(_Cut(s.source, s.entry, shape[s.source], entry, wanted, s.shrink))
    return found


def _begin_and_count(cut: _Cut, begin: Any, end: Any) -> tuple[Any, Any]:
    """Returns the first index of a cut and how many there are, of traced numbers; as `interval` has them."""
    n, stride = cut.size, cut.stride
    if cut.is_index:
        return jnp.where(begin < 0, begin + n, begin), jnp.ones((), jnp.int64)
    low, high = (0, n) if stride > 0 else (-1, n - 1)

    def clamped(value: Any, masked: bool, default: int) -> Any:
        if masked:
            return jnp.full((), default, jnp.int64)
        return jnp.clip(jnp.where(value < 0, value + n, value), low, high)

    first = clamped(begin, cut.entry.begin_masked, low if stride > 0 else high)
    last = clamped(end, cut.entry.end_masked, high if stride > 0 else low)
    length = (last - first) * (1 if stride > 0 else -1)
    return first, jnp.maximum(0, -(-length // abs(stride)))


def _places(cuts: Sequence[_Cut], begin: Any, end: Any) -> list[Any]:
    """Returns the first index and the number of elements of each cut, as traced numbers."""
    first, last = jnp.asarray(begin, jnp.int64), jnp.asarray(end, jnp.int64)
    return [_begin_and_count(cut, first[cut.place], last[cut.place]) for cut in cuts]


def _strided_row(node: KernelNode, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Returns the row of StridedSlice: a cut that has no such index or another number of elements, and which."""
    return _row(node, _cuts(node, node.inputs[0].shape, node.outputs[0].shape), begin, end)


def _row(node: KernelNode, cuts: Sequence[_Cut], begin: Any, end: Any) -> Any:
    if not cuts or _is_known(node):
        return jnp.zeros(WIDTH, jnp.int64)
    refused, shown = [], []
    given = jnp.asarray(begin, jnp.int64)
    for cut, (first, count) in zip(cuts, _places(cuts, begin, end), strict=True):
        refused.append((first < 0) | (first >= cut.size) if cut.is_index else count != cut.wanted)
        shown.append(given[cut.place] if cut.is_index else count)
    at = jnp.argmax(jnp.stack(refused))
    return row_of(jnp.any(jnp.stack(refused)), at, jnp.stack(shown)[at])


def _strided_message(node: KernelNode, at: int, value: int) -> str:
    is_gradient = node.op == "StridedSliceGrad"
    shape = node.outputs[0].shape if is_gradient else node.inputs[0].shape
    cut = _cuts(node, shape, (node.inputs[4] if is_gradient else node.outputs[0]).shape)[at]
    if cut.is_index:
        return INDEX_OUTSIDE.format(value, cut.axis, cut.size)
    return COUNTS_DIFFER.format(value, cut.axis, cut.wanted)


def _is_known(node: KernelNode) -> bool:
    return node.const(1) is not None and node.const(2) is not None


@translation("StridedSlice", _T, check=Check(_strided_row, _strided_message))
def strided_slice(node: KernelNode, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Returns elements at equal distances along each axis."""
    x, shape = jnp.asarray(x), node.outputs[0].shape
    cuts = _cuts(node, node.inputs[0].shape, shape)
    if _is_known(node):
        return jnp.reshape(_known_part(x, cuts), shape)
    for cut, (first, _) in zip(cuts, _places(cuts, begin, end), strict=True):
        at = first + jnp.arange(cut.wanted) * cut.stride
        x = jnp.take(x, at, cut.axis, mode="clip")
    return jnp.reshape(x, shape)


def _known_part(x: Any, cuts: Sequence[_Cut]) -> Any:
    for cut in cuts:
        first, count, stride = interval(cut.size, cut.entry, cut.axis, cut.is_index)
        last = first + ((count or 0) - 1) * stride
        low, high = (first, last + 1) if stride > 0 else (last, first + 1)
        x = lax.slice_in_dim(x, low if count else 0, high if count else 0, abs(stride), cut.axis)
        x = lax.rev(x, [cut.axis]) if stride < 0 else x
    return x


def _gradient_row(node: KernelNode, shape: Any, begin: Any, end: Any, strides: Any, gradient: Any) -> Any:
    whole = node.outputs[0].shape
    return _row(node, _cuts(node, whole, node.inputs[4].shape), begin, end)


@translation("StridedSliceGrad", _T, check=Check(_gradient_row, _strided_message))
def strided_slice_grad(node: KernelNode, shape: Any, begin: Any, end: Any, strides: Any, gradient: Any) -> Any:
    """Returns zeros, with the gradient where StridedSlice takes its elements from."""
    whole = node.outputs[0].shape
    cuts = _cuts(node, whole, node.inputs[4].shape)
    taken = list(whole)
    for cut in cuts:
        taken[cut.axis] = cut.wanted
    part = jnp.reshape(gradient, taken)
    if _is_known(node):
        return _known_whole(part, cuts)
    places = [jnp.arange(n) for n in whole]
    for cut, (first, _) in zip(cuts, _places(cuts, begin, end), strict=True):
        places[cut.axis] = first + jnp.arange(cut.wanted) * cut.stride
    return jnp.zeros(whole, part.dtype).at[jnp.ix_(*places)].set(part, mode="drop") if whole else part


def _known_whole(part: Any, cuts: Sequence[_Cut]) -> Any:
    for cut in cuts:
        first, count, stride = interval(cut.size, cut.entry, cut.axis, cut.is_index)
        if not count:
            shape = list(part.shape)
            shape[cut.axis] = cut.size
            part = jnp.zeros(shape, part.dtype)
            continue
        part = lax.rev(part, [cut.axis]) if stride < 0 else part
        low, high = sorted((first, first + (count - 1) * stride))
        edges = [(0, 0, 0)] * part.ndim
        edges[cut.axis] = (low, cut.size - 1 - high, abs(stride) - 1)
        part = lax.pad(part, np.zeros((), part.dtype), edges)
    return part
