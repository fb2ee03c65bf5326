"""Pooling over windows of images."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.kernels.convolution import spatial_axes
from timberframe_cpu.native import native
from timberframe_sdk.native import Native


def _pool(kernel: str, node: KernelNode, ksize: Sequence[int], strides: Sequence[int]) -> Native:
    """Parameters: struct pool_shape of csrc/pool/pool.c."""
    x, y, attrs = node.inputs[0].shape, node.outputs[0].shape, node.attrs
    height, width = spatial_axes(node)
    channels = 1 if attrs["data_format"] == "NCHW" else 3
    before = []
    for axis in (height, width):
        total = max((y[axis] - 1) * strides[axis] + ksize[axis] - x[axis], 0)
        explicit = attrs["explicit_paddings"][2 * axis] if attrs["padding"] == "EXPLICIT" else 0
        before.append(total // 2 if attrs["padding"] == "SAME" else explicit)
    return native(
        f"{kernel}_{attrs['T'].name}",
        x[0], x[height], x[width], x[channels], y[height], y[width], ksize[height], ksize[width],
        strides[height], strides[width], *before, ksize[channels], channels == 1,
    )  # fmt: skip


def _max_pool(node: KernelNode) -> Native:
    return _pool("max_pool", node, node.attrs["ksize"], node.attrs["strides"])


def _max_pool_v2(node: KernelNode) -> Native:
    ksize, strides = node.const(1), node.const(2)
    assert ksize is not None
    assert strides is not None
    return _pool("max_pool", node, ksize.tolist(), strides.tolist())


def _avg_pool(node: KernelNode) -> Native:
    return _pool("avg_pool", node, node.attrs["ksize"], node.attrs["strides"])


_REALS = ("float16", "bfloat16", "float32", "float64")
_MAX_TYPES = {"T": (*_REALS, "int8", "int16", "int32", "int64", "uint8", "uint16")}

KERNELS = [
    KernelDef("MaxPool", "CPU", _max_pool, _MAX_TYPES),
    KernelDef("MaxPoolV2", "CPU", _max_pool_v2, _MAX_TYPES),
    KernelDef("AvgPool", "CPU", _avg_pool, {"T": _REALS}),
]
