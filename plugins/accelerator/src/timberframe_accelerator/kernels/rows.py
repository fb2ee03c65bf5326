"""Accelerator kernels that work on each row by itself: softmax and the cross entropies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.reduction import FLOATS
from timberframe_accelerator.launches import GROUP, Source, failing, index_name, index_type, spread
from timberframe_ops.nn.cross_entropy import LABEL_OUTSIDE
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_SHORT = 32  # classes of a row that one work-item takes by itself
_HELD_BYTES = 128  # of a row, in the registers of each of the work-items that take it together
_HELD_BYTES_CPU = 64  # where a group is a thread of a CPU: a driver for one compiles more than that for a second
_LABEL = InvalidArgumentError, LABEL_OUTSIDE


def row_function(device: Any, file: str, name: str, rows: int, classes: int, **defines: Any) -> Any:
    """Returns a kernel of a source that includes rows.h, to be called with its arguments alone.

    Its last arguments begin with the numbers of rows and classes, which the caller leaves out.
    """
    lanes = row_lanes(device, classes)
    each = {"EACH": 1} if lanes == 1 else {}
    precision = 64 if defines.get("T") == "float64" else 32
    index = index_name(rows * classes, rows * GROUP)
    source = Source.file(file, INDEX=index, PRECISION=precision, **defines, **each)
    function = device.function(source, name)
    items, groups = spread(rows) if each else ((rows * lanes,), (lanes,))
    return lambda *arguments: function(items, groups, *arguments)


def row_lanes(device: Any, classes: int) -> int:
    """Returns the work-items that take a row together."""
    if classes <= _SHORT:
        return 1
    lanes: int = device.limits.reduction_group_size
    while lanes > 32 and lanes * 2 > classes:
        lanes //= 2
    return lanes


def _logits_function(device: Any, file: str, name: str, rows: int, classes: int, **defines: Any) -> Any:
    """`row_function` of a source that includes logits.h."""
    lanes = row_lanes(device, classes)
    held = 1 << (max(-(-classes // lanes), 1) - 1).bit_length()
    is_gpu = device.limits.reduction_group_size == GROUP
    if held * (8 if defines["T"] == "float64" else 4) <= (_HELD_BYTES if is_gpu else _HELD_BYTES_CPU):
        defines["HELD"] = held
    elif is_gpu:
        defines["ONLINE"] = 1
    return row_function(device, file, name, rows, classes, **defines)


@kernel(KERNELS, ("Softmax", "LogSoftmax"), "", types={"T": FLOATS}, inplace=((0, 0),))
def softmax(node: KernelNode) -> Launcher:
    """Softmax, or its logarithm, of each row."""
    shape = node.inputs[0].shape
    rows, classes = math.prod(shape[:-1]), shape[-1]
    defines = {"LOGARITHM": 1} if node.op == "LogSoftmax" else {}
    function = _logits_function(
        node.device, "softmax.h", "tf_softmax", rows, classes, T=node.attrs["T"].name, **defines
    )
    index = index_type(rows * classes, rows * GROUP)
    sizes = index(rows), index(classes)
    return lambda x, out: function(x, out, *sizes) if rows * classes else None


@kernel(KERNELS, "SoftmaxCrossEntropyWithLogits", "", types={"T": FLOATS})
def cross_entropy(node: KernelNode) -> Launcher:
    """Cross entropy of two matrices that broadcast, and its gradient."""
    rows, classes = node.outputs[1].shape
    function = _logits_function(
        node.device, "cross_entropy.h", "tf_cross_entropy", rows, classes, T=node.attrs["T"].name
    )
    sizes = [rows, classes]
    for height, width in (v.shape for v in node.inputs):
        sizes += [width if height > 1 else 0, 1 if width > 1 else 0]
    numbers = [index_type(rows * classes, rows * GROUP)(n) for n in sizes]
    return lambda *arrays: function(*arrays, *numbers) if rows else None


@kernel(KERNELS, "SparseSoftmaxCrossEntropyWithLogits", "", types={"T": FLOATS}, status=True)
def sparse_cross_entropy(node: KernelNode) -> Launcher:
    """Cross entropy of each row and the number of its class, and its gradient."""
    rows, classes = node.outputs[1].shape
    types = {"T": node.attrs["T"].name, "TLABELS": node.attrs["Tlabels"].name}
    function = _logits_function(node.device, "cross_entropy.h", "tf_cross_entropy", rows, classes, **types)
    index = index_type(rows * classes, rows * GROUP)
    numbers = node.number, index(rows), index(classes)
    return failing(lambda *arrays: function(*arrays, *numbers) if rows else None, _LABEL)


@kernel(KERNELS, ("InTopK", "InTopKV2"), "")
def in_top_k(node: KernelNode) -> Launcher:
    """Whether fewer than k elements of each row are above that of its target."""
    rows, classes = node.inputs[0].shape
    types = {"TTARGETS": node.attrs["T"].name} | ({"HAS_K": 1} if node.op == "InTopKV2" else {})
    function = row_function(node.device, "in_top_k.h", "tf_in_top_k", rows, classes, **types)
    index = index_type(rows * classes, rows * GROUP)
    numbers = np.int64(node.attrs.get("k", 0)), index(rows), index(classes)
    return lambda *arrays: function(*arrays, *numbers) if rows else None
