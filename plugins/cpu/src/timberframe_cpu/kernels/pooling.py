"""Pooling over windows of images."""

from __future__ import annotations

from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.pooling import Sizes, padding_before, window_values, windows


def _pool(kernel: str, node: KernelNode) -> Native:
    """Parameters: struct pool_shape of csrc/pool/shape.h."""
    from timberframe_ops.nn.windows import spatial_axes

    x, y = node.inputs[0].shape, node.outputs[0].shape
    (ksize, strides), (height, width) = window_values(node), spatial_axes(node.attrs["data_format"])
    channels = 1 if node.attrs["data_format"] == "NCHW" else 3
    return native(
        f"{kernel}_{node.attrs['T'].name}",
        x[0], x[height], x[width], x[channels], y[height], y[width], ksize[height], ksize[width],
        strides[height], strides[width], *padding_before(node, x, y), ksize[channels], channels == 1,
    )  # fmt: skip


def _max_pool(node: KernelNode) -> Native:
    return _pool("max_pool", node)


def _avg_pool(node: KernelNode) -> Native:
    return _pool("avg_pool", node)


def _channels_last(kernel: str, node: KernelNode, x: Sizes, y: Sizes, *more: int, reason: str = "") -> Native:
    """Returns a kernel of struct pool_shape that takes channels last and windows in space."""
    w = windows(node, x, y)
    shape = w.batch, *w.size, w.inner, *w.out, *w.window, *w.stride, *w.before
    return native(f"{kernel}_{node.attrs['T'].name}", *shape, 1, False, *more, reasons=(reason,) if reason else ())


def _max_pool_grad(node: KernelNode) -> Native:
    node.workspace(node.inputs[1].size * 4)
    return _channels_last("max_pool_grad", node, node.inputs[0].shape, node.inputs[1].shape)


def _max_pool_grad_grad(node: KernelNode) -> Native:
    return _channels_last("max_pool_grad_grad", node, node.inputs[0].shape, node.inputs[1].shape)


def _avg_pool_grad(node: KernelNode) -> Native:
    return _channels_last("avg_pool_grad", node, node.outputs[0].shape, node.inputs[1].shape)


def _max_pool_argmax(node: KernelNode) -> Native:
    y = node.outputs[0]
    node.workspace(y.size * 4)
    whole_batch = node.attrs["include_batch_in_index"]
    return _channels_last("max_pool_argmax", node, node.inputs[0].shape, y.shape, whole_batch)


def _max_pool_grad_argmax(node: KernelNode) -> Native:
    from timberframe_ops.nn.pooling_argmax import ARGMAX_OUTSIDE

    x, y = node.inputs[:2]
    if x.dtype.name in ("float16", "bfloat16"):
        node.workspace(x.size * 4)
    whole_batch = node.attrs["include_batch_in_index"]
    return _channels_last("max_pool_grad_argmax", node, x.shape, y.shape, whole_batch, reason=ARGMAX_OUTSIDE)


_REALS = ("float16", "bfloat16", "float32", "float64")
_MAX_TYPES = {"T": (*_REALS, "int8", "int16", "int32", "int64", "uint8", "uint16")}
_NUMBERS = {"T": (*_MAX_TYPES["T"], "uint32", "uint64")}

KERNELS = [
    KernelDef("MaxPool", "CPU", _max_pool, _MAX_TYPES),
    KernelDef("MaxPoolV2", "CPU", _max_pool, _MAX_TYPES),
    KernelDef("MaxPoolGrad", "CPU", _max_pool_grad, _NUMBERS),
    KernelDef("MaxPoolGradV2", "CPU", _max_pool_grad, _NUMBERS),
    KernelDef("MaxPoolGradGrad", "CPU", _max_pool_grad_grad, _NUMBERS),
    KernelDef("MaxPoolGradGradV2", "CPU", _max_pool_grad_grad, _NUMBERS),
    KernelDef("MaxPoolWithArgmax", "CPU", _max_pool_argmax, _NUMBERS),
    KernelDef("MaxPoolGradWithArgmax", "CPU", _max_pool_grad_argmax, _NUMBERS),
    KernelDef("AvgPool", "CPU", _avg_pool, {"T": _REALS}),
    KernelDef("AvgPoolGrad", "CPU", _avg_pool_grad, {"T": _REALS}),
]
