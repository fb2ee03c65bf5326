"""Accelerator kernels that put elements where indices say, mirror borders back, and multiply vectors across."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.constants import unsigned
from timberframe_accelerator.kernels.indexing import FIXED_SIZE, NUMBERS, bits_name
from timberframe_accelerator.launches import Source, failing, index_name, index_type, spread, spread_rows
from timberframe_accelerator.moving import quotient_words
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.moves.mirror import mirrored_dimensions
from timberframe_sdk.plans.values import one_hot_sizes, reverse_sequence_sizes

KERNELS: list[KernelDef] = []

_MODES = {"InplaceUpdate": 0, "InplaceAdd": 1, "InplaceSub": 2}


@kernel(KERNELS, "OneHot", "", types={"T": FIXED_SIZE})
def one_hot(node: KernelNode) -> Launcher:
    """One value where the index is, another elsewhere."""
    device: Any = node.device
    out, indices = node.outputs[0], node.inputs[0].dtype.name
    source = Source.file("rearrange.h", T=bits_name(out.dtype), TINDEX=indices, INDEX=index_name(out.size))
    function = device.function(source, "tf_one_hot")
    outer, inner, depth = one_hot_sizes(node)
    words = outer, depth, inner, *quotient_words(max(inner, 1))
    (items, group), sizes = spread_rows(depth * inner, outer), [index_type(out.size)(n) for n in words]
    return lambda *arrays: function(items, group, *arrays, *sizes) if out.size else None


@kernel(KERNELS, "ReverseSequence", "", types={"T": FIXED_SIZE}, status=True)
def reverse_sequence(node: KernelNode) -> Launcher:
    """The first elements of each sequence, as many as its length, in reverse order."""
    from timberframe_ops.array.indexing import LENGTH_OUTSIDE

    device: Any = node.device
    x, lengths = node.inputs
    outer, first, middle, second, inner, batch_first = reverse_sequence_sizes(node)
    index = index_type(x.size, lengths.size)
    types = {"T": bits_name(x.dtype), "TINDEX": lengths.dtype.name, "INDEX": index_name(x.size, lengths.size)}
    function = device.function(Source.file("rearrange.h", **types), "tf_reverse_sequence")
    rows = outer * first * middle
    items, group = spread_rows(second * inner, rows)
    sizes = [index(n) for n in (rows, first, middle, second, inner)]
    quotient = [index(n) for n in quotient_words(max(inner, 1))]
    rest = node.number, *sizes, np.int32(batch_first), *quotient
    return failing(lambda *arrays: function(items, group, *arrays, *rest), (InvalidArgumentError, LENGTH_OUTSIDE))


@kernel(KERNELS, "MirrorPadGrad", "", types={"T": NUMBERS})
def mirror_pad_grad(node: KernelNode) -> Launcher:
    """Each element's gradient and those of its mirror images."""
    device: Any = node.device
    out, reach = node.outputs[0], node.inputs[0].size
    reflect, unit, dimensions = mirrored_dimensions(node)
    rows, stride = [], unit
    for size, before, after in reversed(dimensions):
        rows.append((size, before, after, stride))
        stride *= before + size + after
    index = index_type(reach)
    source = Source.file("mirror.h", T=unsigned(out.dtype.name), INDEX=index_name(reach))
    function, table = device.function(source, "tf_mirror_pad_grad"), device.table(np.array(rows[::-1], index))
    (items, group), rest = spread(out.size), (np.int32(len(rows)), index(unit), index(reflect))
    return lambda x, y: function(items, group, x, y, index(out.size), table, *rest) if out.size else None


@kernel(KERNELS, "Cross", "", types={"T": NUMBERS})
def cross(node: KernelNode) -> Launcher:
    """Products of vectors in three dimensions."""
    device: Any = node.device
    out = node.outputs[0]
    dtype = unsigned(out.dtype.name)
    wide = {"u": "uint64_t" if dtype == "uint64" else "uint32_t"}.get(dtype[0], f"TF_VALUE({dtype})")
    source = Source.file("cross.h", T=dtype, WIDE=wide, INDEX=index_name(out.size))
    function = device.function(source, "tf_cross")
    (items, group), count = spread(out.size), index_type(out.size)(out.size)
    return lambda *arrays: function(items, group, *arrays, count) if out.size else None


@kernel(KERNELS, tuple(_MODES), "", types={"T": FIXED_SIZE})
def change_rows(node: KernelNode) -> Launcher:
    """Rows changed by number, one after the other."""
    device: Any = node.device
    out, numbers, values = node.outputs[0], node.inputs[1], node.inputs[2]
    inner, index = math.prod(out.shape[1:]), index_type(out.size, values.size)
    mode, dtype = _MODES[node.op], unsigned(out.dtype.name)
    source = Source.file("inplace.h", T=dtype, MODE=mode, INDEX=index_name(out.size, values.size))
    function = device.function(source, "tf_change_rows")
    (items, group), rows = spread(out.size), np.int32(out.shape[0])
    sizes = index(out.size), index(inner), rows, index(numbers.size)
    return lambda *arrays: function(items, group, *arrays, *sizes) if out.size else None
