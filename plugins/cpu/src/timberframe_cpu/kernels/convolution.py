"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timberframe.plugin.contracts import KernelDef, KernelNode, Value
from timberframe_cpu.kernels.reduction import reduction_parameters
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

ALIGNMENT = 64
_PARTS = 16  # that the pixels are cut into for a filter too small to be shared by threads
_PIECE = 3072  # elements of a filter that are work for a thread
_PART_PIXELS = 2048  # pixels worth a part
_PART_TERMS = 65536  # products worth a part
WIDEST_LANES = 16  # of a vector register: a panel of output channels is padded to whole registers


@dataclass(frozen=True)
class Window:
    """One spatial dimension: its size, the output's, and how the window moves."""

    size: int
    out_size: int
    kernel: int
    stride: int
    dilation: int
    before: int  # padding in front

    @property
    def span(self) -> int:
        """Positions of a padded input from the first window's first to the last one's last tap."""
        return (self.out_size - 1) * self.stride + (self.kernel - 1) * self.dilation + 1


def window(node: KernelNode, axis: int, size: int, out_size: int, kernel: int) -> Window:
    """The window of a node's dimension `axis`; strides, dilations and padding are the node's attrs."""
    stride, dilation = node.attrs["strides"][axis], node.attrs.get("dilations", (1,) * 5)[axis]
    before = 0
    if node.attrs["padding"] == "SAME":
        before = max((out_size - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2
    elif node.attrs["padding"] == "EXPLICIT":
        before = node.attrs["explicit_paddings"][2 * axis]
    return Window(size, out_size, kernel, stride, dilation, before)


def spatial_axes(node: KernelNode) -> tuple[int, int]:
    """Height's and width's dimension in the node's layout."""
    return (2, 3) if node.attrs.get("data_format") == "NCHW" else (1, 2)


def region_offsets(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Byte offsets of aligned regions that follow each other, and their total size."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, at


@dataclass(frozen=True)
class Convolution:
    """A convolution of x by filter into y, whichever of them the node computes."""

    node: KernelNode
    x: Value
    filter: Value
    y: Value
    depthwise: bool

    @property
    def channels_first(self) -> bool:
        return bool(self.node.attrs["data_format"] == "NCHW")

    @property
    def narrow(self) -> bool:
        """Whether the elements are 16-bit floats, which are computed as float32."""
        return self.x.dtype.itemsize == 2

    @property
    def copied(self) -> bool:
        """Whether kernels work on NHWC copies in the computing type."""
        return self.narrow or self.channels_first

    @property
    def groups(self) -> tuple[int, int, int]:
        """Groups, and input and output channels of each; the channels of a depthwise convolution are its groups."""
        depth, outside = self.filter.shape[2:]
        if self.depthwise:
            return depth, 1, outside
        groups = self.x.shape[1 if self.channels_first else 3] // depth
        return groups, depth, outside // max(groups, 1)

    @property
    def windows(self) -> tuple[Window, Window]:
        y, x = (
            window(self.node, axis, self.x.shape[axis], self.y.shape[axis], self.filter.shape[i])
            for i, axis in enumerate(spatial_axes(self.node))
        )
        return y, x

    def native(self, kernel: str, sizes: Sequence[int], *more: int) -> Native:
        """A kernel of csrc/conv; its parameters are struct conv_shape and `more`.

        sizes: elements of the regions of the workspace that conv_shape names: input, filter, output, packed, zeros.
        """
        y, x = self.windows
        offsets, total = region_offsets([n * (4 if self.narrow else self.x.dtype.itemsize) for n in sizes])
        self.node.workspace(total)
        dtype = self.x.dtype.name
        return native(
            f"{kernel}_{C_NAMES.get(dtype, dtype)}",
            self.x.shape[0], y.size, x.size, y.out_size, x.out_size, y.kernel, x.kernel,
            y.stride, x.stride, y.dilation, x.dilation, y.before, x.before,
            *self.groups, self.channels_first, *offsets, *more,
        )  # fmt: skip


C_NAMES = {"float32": "float", "float64": "double"}


def _forward(node: KernelNode, depthwise: bool) -> Convolution:
    return Convolution(node, node.inputs[0], node.inputs[1], node.outputs[0], depthwise)


def _by_input(node: KernelNode, depthwise: bool) -> Convolution:
    return Convolution(node, node.outputs[0], node.inputs[1], node.inputs[2], depthwise)


def _by_filter(node: KernelNode, depthwise: bool) -> Convolution:
    return Convolution(node, node.inputs[0], node.outputs[0], node.inputs[2], depthwise)


def _conv2d(node: KernelNode) -> Native:
    conv = _forward(node, depthwise=False)
    groups, depth, outside = conv.groups
    packed = conv.filter.shape[0] * conv.filter.shape[1] * depth * groups * (outside + WIDEST_LANES)
    zeros = conv.filter.shape[1] * depth
    filter = conv.narrow * conv.filter.size
    return conv.native("conv2d", (conv.copied * conv.x.size, filter, conv.copied * conv.y.size, packed, zeros))


def _conv2d_input(node: KernelNode) -> Native:
    conv = _by_input(node, depthwise=False)
    groups, depth, outside = conv.groups
    packed = conv.filter.shape[0] * conv.filter.shape[1] * outside * groups * (depth + WIDEST_LANES)
    zeros = conv.filter.shape[1] * outside
    filter = conv.narrow * conv.filter.size
    return conv.native("conv2d_input", (conv.copied * conv.x.size, filter, conv.copied * conv.y.size, packed, zeros))


def _padded(conv: Convolution) -> tuple[int, int, bool]:
    """Height and width of an image that holds every window, and whether it must be made of the input."""
    y, x = conv.windows
    if not conv.copied and not y.before and not x.before and y.span <= y.size and x.span <= x.size:
        return y.size, x.size, False
    return y.span, x.span, True


def filter_parts(size: int, pixels: int) -> int:
    """Parts in which a filter gradient of this size adds up its pixels."""
    return max(1, min(_PARTS // max(-(-size // _PIECE), 1), pixels // _PART_PIXELS))


def _conv2d_filter(node: KernelNode) -> Native:
    conv = _by_filter(node, depthwise=False)
    (groups, depth, outside), (height, width, copied) = conv.groups, _padded(conv)
    y, x = conv.windows
    parts = filter_parts(conv.filter.size, conv.x.shape[0] * y.out_size * x.out_size)
    image = copied * conv.x.shape[0] * height * width * groups * depth
    sums = parts * conv.filter.shape[0] * conv.filter.shape[1] * depth * groups * (outside + WIDEST_LANES)
    sizes = (image, conv.narrow * conv.filter.size, conv.copied * conv.y.size, sums, 0)
    return conv.native("conv2d_filter", sizes, height, width, copied, parts)


def _depthwise(node: KernelNode) -> Native:
    conv = _forward(node, depthwise=True)
    sizes = (conv.copied * conv.x.size, conv.narrow * conv.filter.size, conv.copied * conv.y.size, 0, conv.groups[0])
    return conv.native("depthwise", sizes)


def _depthwise_input(node: KernelNode) -> Native:
    conv = _by_input(node, depthwise=True)
    filter, channels = conv.filter.size, conv.filter.shape[2] * conv.filter.shape[3]
    sizes = (conv.copied * conv.x.size, conv.narrow * filter, conv.copied * conv.y.size, filter, channels)
    return conv.native("depthwise_input", sizes)


def _depthwise_filter(node: KernelNode) -> Native:
    conv = _by_filter(node, depthwise=True)
    (height, width, copied), filter = _padded(conv), conv.filter.size
    y, x = conv.windows
    rows = conv.x.shape[0] * y.out_size
    parts = max(1, min(_PARTS, rows * x.out_size * filter // _PART_TERMS, rows))
    image = copied * conv.x.shape[0] * height * width * conv.filter.shape[2]
    sizes = (image, conv.narrow * filter, conv.copied * conv.y.size, parts * filter, 0)
    return conv.native("depthwise_filter", sizes, height, width, copied, parts)


def _bias_add(node: KernelNode) -> Native:
    """Parameters: channels, and elements behind each channel. Two's complement makes signed sums unsigned ones."""
    shape = node.inputs[0].shape
    axis = 1 if node.attrs.get("data_format") == "NCHW" else len(shape) - 1
    name = node.attrs["T"].name
    return native(f"bias_{name if name[:3] != 'int' else 'u' + name}", shape[axis], math.prod(shape[axis + 1 :]))


def _bias_add_grad(node: KernelNode) -> Native:
    """The reduction of all dimensions but that of the channels."""
    shape = node.inputs[0].shape
    channels = 1 if node.attrs["data_format"] == "NCHW" else len(shape) - 1
    axes = tuple(i for i in range(len(shape)) if i != channels)
    return native(f"sum_{node.attrs['T'].name.removeprefix('u')}", *reduction_parameters(node, shape, axes))


_HALVES_AND_REALS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_BIAS_TYPES = {"T": (*_HALVES_AND_REALS, *_INTEGERS, "complex64", "complex128")}

KERNELS = [
    KernelDef("Conv2D", "CPU", _conv2d, {"T": (*_HALVES_AND_REALS, "int32")}),
    KernelDef("Conv2DBackpropInput", "CPU", _conv2d_input, {"T": (*_HALVES_AND_REALS, "int32")}),
    KernelDef("Conv2DBackpropFilter", "CPU", _conv2d_filter, {"T": _HALVES_AND_REALS}),
    KernelDef("DepthwiseConv2dNative", "CPU", _depthwise, {"T": _HALVES_AND_REALS}),
    KernelDef("DepthwiseConv2dNativeBackpropInput", "CPU", _depthwise_input, {"T": _HALVES_AND_REALS}),
    KernelDef("DepthwiseConv2dNativeBackpropFilter", "CPU", _depthwise_filter, {"T": _HALVES_AND_REALS}),
    KernelDef("BiasAdd", "CPU", _bias_add, _BIAS_TYPES, inplace=((0, 0),)),
    KernelDef("BiasAddV1", "CPU", _bias_add, _BIAS_TYPES, inplace=((0, 0),)),
    KernelDef("BiasAddGrad", "CPU", _bias_add_grad, _BIAS_TYPES),
]
