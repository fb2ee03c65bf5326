"""Pooling over windows of images."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.kernels.convolution import spatial_axes
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

Sizes = Sequence[int]
_PLACE_REASON = "argmax has {0} in image {1}; it must lie in [0, {2})"


def _window_values(node: KernelNode) -> tuple[Sizes, Sizes]:
    """ksize and strides: attrs, or the last two inputs."""
    if "ksize" in node.attrs:
        return node.attrs["ksize"], node.attrs["strides"]
    ksize, strides = (node.const(len(node.inputs) - i) for i in (2, 1))
    assert ksize is not None
    assert strides is not None
    return ksize.tolist(), strides.tolist()


def _before(node: KernelNode, x: Sizes, y: Sizes) -> list[int]:
    """Padding above and to the left of images of shape x that are pooled to y."""
    ksize, strides = _window_values(node)
    before = []
    for axis in spatial_axes(node):
        total = max((y[axis] - 1) * strides[axis] + ksize[axis] - x[axis], 0)
        explicit = node.attrs["explicit_paddings"][2 * axis] if node.attrs["padding"] == "EXPLICIT" else 0
        before.append(total // 2 if node.attrs["padding"] == "SAME" else explicit)
    return before


def _pool(kernel: str, node: KernelNode) -> Native:
    """Parameters: struct pool_shape of csrc/pool/shape.h."""
    x, y = node.inputs[0].shape, node.outputs[0].shape
    (ksize, strides), (height, width) = _window_values(node), spatial_axes(node)
    channels = 1 if node.attrs["data_format"] == "NCHW" else 3
    return native(
        f"{kernel}_{node.attrs['T'].name}",
        x[0], x[height], x[width], x[channels], y[height], y[width], ksize[height], ksize[width],
        strides[height], strides[width], *_before(node, x, y), ksize[channels], channels == 1,
    )  # fmt: skip


def _max_pool(node: KernelNode) -> Native:
    return _pool("max_pool", node)


def _avg_pool(node: KernelNode) -> Native:
    return _pool("avg_pool", node)


def _channels_last(kernel: str, node: KernelNode, x: Sizes, y: Sizes, *more: int, reason: str = "") -> Native:
    """A kernel of struct pool_shape that takes channels last and windows in space.

    Where channels come first, each is an image with one. A window of channels is one of rows of an image that has a row
    for each channel; its pixels are images where channels come last, else channels.
    """
    (ksize, strides), (height, width) = _window_values(node), spatial_axes(node)
    first = node.attrs.get("data_format") == "NCHW"
    depth, channels = (ksize[1], x[1]) if first else (ksize[3], x[3])
    pixels = x[height] * x[width]
    shape: Sizes
    if depth > 1:
        images, inner = (x[0], pixels) if first else (x[0] * pixels, 1)
        shape = (images, channels, 1, inner, channels // depth, 1, depth, 1, depth, 1, 0, 0)
    else:
        images, inner = (x[0] * channels, 1) if first else (x[0], channels)
        shape = (
            images, x[height], x[width], inner, y[height], y[width], ksize[height], ksize[width],
            strides[height], strides[width], *_before(node, x, y),
        )  # fmt: skip
    name = f"{kernel}_{node.attrs['T'].name}"
    return native(name, *shape, 1, False, *more, reasons=(reason,) if reason else ())


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
    x, y = node.inputs[:2]
    if x.dtype.name in ("float16", "bfloat16"):
        node.workspace(x.size * 4)
    whole_batch = node.attrs["include_batch_in_index"]
    return _channels_last("max_pool_grad_argmax", node, x.shape, y.shape, whole_batch, reason=_PLACE_REASON)


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
