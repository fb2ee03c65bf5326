"""Positions of elements, distinct elements, and the largest ones."""

from __future__ import annotations

from timberframe_cpu.native import native
from timberframe_cpu.strings import with_equal_strings
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.indexing import unique_sizes


def _table_size(count: int) -> int:
    """Slots of a hash table for `count` items: a power of two, at least half of them free."""
    return 1 << max(2 * count, 2).bit_length()


def _where(node: KernelNode) -> Native:
    return native("where")


@with_equal_strings
def _unique(node: KernelNode) -> Native:
    axis, (outer, count, inner) = unique_sizes(node)
    size = _table_size(count)
    node.workspace(8 * (size + 2 * count))
    return native("unique", outer, count, inner, node.inputs[0].dtype.itemsize, size, axis, len(node.outputs))


@with_equal_strings
def _list_diff(node: KernelNode) -> Native:
    size = _table_size(node.inputs[1].size)
    node.workspace(8 * size)
    return native("list_diff", node.inputs[0].dtype.itemsize, size)


def _entries(rows: int, k: int, size: int) -> int:
    """Returns bytes of the entries that the kernels of csrc/indexing/top.c keep: k + 1 a row,
    twice that for whole rows.
    """
    return 16 * max(rows, 1) * (k + 1) * (2 if k == size else 1)


def _top_k(node: KernelNode) -> Native:
    x, k = node.inputs[0], node.outputs[0].shape[-1]
    node.workspace(_entries(node.outputs[0].size // max(k, 1), k, x.shape[-1]))
    return native("top_k", x.shape[-1], k, x.dtype.itemsize, node.attrs["sorted"])


def _nth_element(node: KernelNode) -> Native:
    """Finds the element by a sort: the n-th smallest of a row is its (size - n)-th largest."""
    x, n = node.inputs[0], node.const(1)
    assert n is not None
    k = int(n) + 1 if node.attrs["reverse"] else x.shape[-1] - int(n)
    node.workspace(_entries(node.outputs[0].size, k, x.shape[-1]))
    return native("nth_element", x.shape[-1], k, x.dtype.itemsize, False)


def _in_top_k(node: KernelNode) -> Native:
    has_input = len(node.inputs) > 2
    return native("in_top_k", 0 if has_input else node.attrs["k"], has_input)


_FLOATS = ("float16", "bfloat16", "float32", "float64")
_REALS = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_UNIQUE_TYPES = {"T": (*_REALS, "bool", "string")}
_UNIQUE_OPS = ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")

KERNELS = [
    KernelDef("Where", "CPU", _where, {"T": (*_REALS, "bool", "complex64", "complex128")}),
    *(KernelDef(op, "CPU", _unique, _UNIQUE_TYPES) for op in _UNIQUE_OPS),
    KernelDef("ListDiff", "CPU", _list_diff, {"T": (*_REALS, "string")}),
    KernelDef("TopK", "CPU", _top_k, {"T": _REALS}),
    KernelDef("TopKV2", "CPU", _top_k, {"T": _REALS}),
    KernelDef("NthElement", "CPU", _nth_element, {"T": _REALS}),
    KernelDef("InTopK", "CPU", _in_top_k),
    KernelDef("InTopKV2", "CPU", _in_top_k),
]
