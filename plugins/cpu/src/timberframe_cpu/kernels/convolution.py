"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

_ALIGNMENT = 64
_WIDEST_LANES = 16  # of a vector register: a panel of output channels is padded to whole registers


@dataclass(frozen=True)
class Window:
    """One spatial dimension: its size, the output's, and how the window moves."""

    size: int
    out_size: int
    kernel: int
    stride: int
    dilation: int
    before: int  # padding in front


def window(node: KernelNode, axis: int, kernel: int) -> Window:
    """The window of a node's dimension `axis`; strides, dilations and padding are the node's attrs."""
    size, out_size = node.inputs[0].shape[axis], node.outputs[0].shape[axis]
    stride, dilation = node.attrs["strides"][axis], node.attrs.get("dilations", (1,) * 4)[axis]
    before = 0
    if node.attrs["padding"] == "SAME":
        before = max((out_size - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2
    elif node.attrs["padding"] == "EXPLICIT":
        before = node.attrs["explicit_paddings"][2 * axis]
    return Window(size, out_size, kernel, stride, dilation, before)


def spatial_axes(node: KernelNode) -> tuple[int, int]:
    """Height's and width's dimension in the node's layout."""
    return (2, 3) if node.attrs["data_format"] == "NCHW" else (1, 2)


def _offsets(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Byte offsets of aligned regions that follow each other, and their total size."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-size // _ALIGNMENT) * _ALIGNMENT
    return offsets, at


_C_NAMES = {"float32": "float", "float64": "double"}


def _convolution(kernel: str, node: KernelNode, groups: int, per_group: int, outside: int, packed: int) -> Native:
    """A kernel of csrc/conv; its parameters are struct conv_shape, its workspace the regions that this names."""
    filter, output = node.inputs[1], node.outputs[0]
    y, x = (window(node, axis, filter.shape[i]) for i, axis in enumerate(spatial_axes(node)))
    channels_first, narrow = node.attrs["data_format"] == "NCHW", output.dtype.itemsize == 2
    item, copied = (4 if narrow else output.dtype.itemsize), narrow or channels_first
    zeros = max(x.kernel * per_group, groups)
    sizes = (copied * node.inputs[0].size, narrow * filter.size, copied * output.size, packed, zeros)
    offsets, total = _offsets([n * item for n in sizes])
    node.workspace(total)
    dtype = node.attrs["T"].name
    return native(
        f"{kernel}_{_C_NAMES.get(dtype, dtype)}",
        node.inputs[0].shape[0], y.size, x.size, y.out_size, x.out_size, y.kernel, x.kernel,
        y.stride, x.stride, y.dilation, x.dilation, y.before, x.before,
        groups, per_group, outside, channels_first, *offsets,
    )  # fmt: skip


def _conv2d(node: KernelNode) -> Native:
    filter = node.inputs[1]
    channels = node.inputs[0].shape[1 if node.attrs["data_format"] == "NCHW" else 3]
    per_group, outside = filter.shape[2:]
    groups = channels // per_group
    packed = filter.size // outside * (outside + groups * _WIDEST_LANES)
    return _convolution("conv2d", node, groups, per_group, outside // max(groups, 1), packed)


def _depthwise(node: KernelNode) -> Native:
    channels, multiplier = node.inputs[1].shape[2:]
    return _convolution("depthwise", node, channels, 1, multiplier, 0)


def _bias_add(node: KernelNode) -> Native:
    """Parameters: channels, and elements behind each channel. Two's complement makes signed sums unsigned ones."""
    shape = node.inputs[0].shape
    axis = 1 if node.attrs.get("data_format") == "NCHW" else len(shape) - 1
    name = node.attrs["T"].name
    return native(f"bias_{name if name[:3] != 'int' else 'u' + name}", shape[axis], math.prod(shape[axis + 1 :]))


_HALVES_AND_REALS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_BIAS_TYPES = {"T": (*_HALVES_AND_REALS, *_INTEGERS, "complex64", "complex128")}

KERNELS = [
    KernelDef("Conv2D", "CPU", _conv2d, {"T": (*_HALVES_AND_REALS, "int32")}),
    KernelDef("DepthwiseConv2dNative", "CPU", _depthwise, {"T": _HALVES_AND_REALS}),
    KernelDef("BiasAdd", "CPU", _bias_add, _BIAS_TYPES, inplace=((0, 0),)),
    KernelDef("BiasAddV1", "CPU", _bias_add, _BIAS_TYPES, inplace=((0, 0),)),
]
