"""Accelerator kernels that pool windows of images and volumes, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.launches import Function, Source, failing, index_name, index_type, spread, spread_rows
from timberframe_accelerator.moving import quotient_words
from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.pooling import Sizes, windows

KERNELS: list[KernelDef] = []

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_MAX_TYPES = {"T": (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16")}
_NUMBERS = {"T": (*_MAX_TYPES["T"], "uint32", "uint64")}
_WIDE = 16  # values of a pixel from which neighbouring work-items take those of one pixel
_LOWEST = {
    "float16": "-65504.0f", "bfloat16": "-3.3895313892515355e38f", "float32": "-3.4028234663852886e38f",
    "float64": "-1.7976931348623157e308", "int8": "-128", "int16": "-32768", "int32": "(-2147483647 - 1)",
    "int64": "(-0x7fffffffffffffff - 1)", "uint8": "0", "uint16": "0",
}  # fmt: skip
_VOLUME_TYPES = {"T": ("float32", "float16", "bfloat16")}


class _Pooling:
    """What the kernels of a node share: the table of its windows, counts, and the type of indices."""

    def __init__(self, node: KernelNode, x: Sizes, y: Sizes) -> None:
        device: Any = node.device
        self.device = device
        self.dtype = node.attrs["T"].name
        w = windows(node, x, y)
        self.elements = w.batch * w.inner * int(np.prod(w.size))
        self.windows = w.batch * w.inner * int(np.prod(w.out))
        counts = self.elements, self.windows
        self.index, self.index_name = index_type(*counts), index_name(*counts)
        size, out, window, stride = ((1,) * (3 - len(v)) + v for v in (w.size, w.out, w.window, w.stride))
        before = (0,) * (3 - len(w.before)) + w.before
        divisors = w.inner, *out[::-1], *size[::-1], *stride
        wide = self.index is np.int64
        quotients = [x for d in divisors for x in ((0, 0) if wide or d < 1 else quotient_words(d))]
        words = [w.inner, *size, *out, *window, *stride, *before, *quotients]
        self.table = device.table(np.array(words, self.index))
        self.wide = int(w.inner >= _WIDE)
        rows, out_rows = (w.batch * math.prod(v[: 2 + self.wide]) for v in (size, out))
        lanes, out_lanes = (w.inner * (1 if self.wide else v[2]) for v in (size, out))
        most = device.limits.reduction_group_size
        self.over_elements = *spread_rows(lanes, rows, most), self.index(rows)
        self.over_windows = *spread_rows(out_lanes, out_rows, most), self.index(out_rows)

    def function(self, header: str, name: str, dtype: str, **defines: str | int) -> Function:
        """Returns a kernel for this node's counts."""
        source = Source.file(header, T=dtype, INDEX=self.index_name, WIDE=self.wide, **defines)
        found: Function = self.device.function(source, name)
        return found

    @property
    def sums(self) -> str:
        """The dtype that gradients are added in: that of unsigned integers wraps."""
        return f"u{self.dtype}" if self.dtype.startswith("int") else self.dtype


def _forward(node: KernelNode, name: str) -> Launcher:
    p = _Pooling(node, node.inputs[0].shape, node.outputs[0].shape)
    function = p.function("pooling.h", name, p.dtype, LOWEST=_LOWEST[p.dtype])
    items, group, count = p.over_windows

    def launch(x: Any, y: Any) -> None:
        if p.windows:
            function(items, group, x, y, count, p.table)

    return launch


@kernel(KERNELS, ("MaxPool", "MaxPoolV2"), "", types=_MAX_TYPES)
@kernel(KERNELS, "MaxPool3D", "", types=_VOLUME_TYPES)
def max_pool(node: KernelNode) -> Launcher:
    """The largest element of each window; NaN does not count."""
    return _forward(node, "tf_max_pool")


@kernel(KERNELS, "AvgPool", "", types={"T": _FLOATS})
@kernel(KERNELS, "AvgPool3D", "", types={"T": _FLOATS})
def avg_pool(node: KernelNode) -> Launcher:
    """The mean of the elements of each window that lie inside."""
    return _forward(node, "tf_avg_pool")


@kernel(KERNELS, ("MaxPoolGrad", "MaxPoolGradV2"), "", types=_NUMBERS)
def max_pool_grad(node: KernelNode) -> Launcher:
    """Finds the tap of each maximum, then gathers for each element what the windows over it have for it."""
    p = _Pooling(node, node.inputs[0].shape, node.inputs[1].shape)
    node.workspace(4 * max(p.windows, 1))
    find = p.function("pooling_gradients.h", "tf_max_taps", p.dtype)
    add = p.function("pooling_gradients.h", "tf_max_pool_grad", p.sums)
    (some, group, rows), (all_, other, all_rows) = p.over_windows, p.over_elements

    def launch(x: Any, _: Any, gradient: Any, out: Any, taps: Any) -> None:
        if p.windows:
            find(some, group, x, taps, rows, p.table)
        if p.elements:
            add(all_, other, gradient, taps, out, all_rows, p.table)

    return launch


def max_pool3d_grad(node: KernelNode) -> Launcher:
    """Gathers for each element the gradients of the windows whose maximum it equals."""
    p = _Pooling(node, node.inputs[0].shape, node.inputs[1].shape)
    function = p.function("pooling_gradients.h", "tf_max_pool3d_grad", p.dtype)
    items, group, count = p.over_elements

    def launch(x: Any, y: Any, gradient: Any, out: Any) -> None:
        if p.elements:
            function(items, group, x, y, gradient, out, count, p.table)

    return launch


for _dtype in _VOLUME_TYPES["T"]:
    kernel(KERNELS, "MaxPool3DGrad", "", types={"T": (_dtype,), "TInput": (_dtype,)})(max_pool3d_grad)


@kernel(KERNELS, ("MaxPoolGradGrad", "MaxPoolGradGradV2"), "", types=_NUMBERS)
@kernel(KERNELS, "MaxPool3DGradGrad", "", types=_VOLUME_TYPES)
def max_pool_grad_grad(node: KernelNode) -> Launcher:
    """The gradient where each window's maximum is."""
    p = _Pooling(node, node.inputs[0].shape, node.inputs[1].shape)
    function = p.function("pooling_gradients.h", "tf_max_pool_grad_grad", p.dtype)
    items, group, count = p.over_windows

    def launch(x: Any, y: Any, gradient: Any, out: Any) -> None:
        if p.windows:
            function(items, group, x, y, gradient, out, count, p.table)

    return launch


@kernel(KERNELS, ("AvgPoolGrad", "AvgPool3DGrad"), "", types={"T": _FLOATS})
def avg_pool_grad(node: KernelNode) -> Launcher:
    """For each element its share of the gradients of the windows over it."""
    p = _Pooling(node, node.outputs[0].shape, node.inputs[1].shape)
    function = p.function("pooling_gradients.h", "tf_avg_pool_grad", p.dtype)
    items, group, count = p.over_elements

    def launch(gradient: Any, out: Any) -> None:
        if p.elements:
            function(items, group, gradient, out, count, p.table)

    return launch


@kernel(KERNELS, "MaxPoolWithArgmax", "", types=_NUMBERS)
def max_pool_argmax(node: KernelNode) -> Launcher:
    """Each window's maximum, and where it is."""
    p = _Pooling(node, node.inputs[0].shape, node.outputs[0].shape)
    name = node.outputs[1].dtype.name
    function = p.function("pooling_argmax.h", "tf_max_pool_argmax", p.dtype, TINDEX=name)
    items, group, count = p.over_windows
    whole = np.int32(node.attrs["include_batch_in_index"])

    def launch(x: Any, y: Any, arguments: Any) -> None:
        if p.windows:
            function(items, group, x, y, arguments, count, p.table, whole)

    return launch


@kernel(KERNELS, "MaxPoolGradWithArgmax", "", types=_NUMBERS, status=True)
def max_pool_grad_argmax(node: KernelNode) -> Launcher:
    """Gathers where all indices lie in their windows, as those of MaxPoolWithArgmax do; else adds one by one."""
    from timberframe_ops.nn.pooling_argmax import ARGMAX_OUTSIDE

    x = node.inputs[0]
    p = _Pooling(node, x.shape, node.inputs[1].shape)
    whole = node.attrs["include_batch_in_index"]
    units = 1 if whole else x.shape[0]
    unit, each = p.elements // max(units, 1), p.windows // max(units, 1)
    node.workspace(8 + max(x.dtype.itemsize, 4) * p.elements)
    names = "tf_clear_outside_flag", "tf_check_argmax", "tf_gather_argmax", "tf_add_argmax"
    dtype = node.inputs[2].dtype.name
    clear, check, gather, add = (p.function("pooling_argmax.h", n, p.sums, TINDEX=dtype) for n in names)
    *window_items, window_rows = p.over_windows
    *element_items, element_rows = p.over_elements
    unit_items = spread(units)
    sizes = [p.index(k) for k in (units, unit, each)]
    flag, number = np.int32(whole), node.number

    def launch(_: Any, gradient: Any, arguments: Any, out: Any, scratch: Any, status: Any) -> None:
        if not p.elements:
            return
        clear((1,), (1,), scratch)
        check(*window_items, arguments, scratch, window_rows, p.table, sizes[1], flag, status, number)
        gather(*element_items, gradient, arguments, out, scratch, element_rows, p.table, sizes[1], flag)
        add(*unit_items, gradient, arguments, out, scratch, status, *sizes)

    return failing(launch, (InvalidArgumentError, ARGMAX_OUTSIDE))
