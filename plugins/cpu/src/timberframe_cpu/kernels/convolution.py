"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from timberframe_cpu.kernels.reduction import reduction_parameters
from timberframe_cpu.native import native
from timberframe_cpu.packing import (
    c_name,
    conv_shape,
    is_narrow,
    multiplies_pairs,
    panel,
    prepare_packed,
    region_offsets,
    variant,
)
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.convolution import Convolution

_PARTS = 16  # that the pixels are cut into, where the filter is small, so that threads share them
_PARTS_SIZE = 1 << 19  # elements that the sums of all parts may have
_PART_PIXELS = 512  # pixels worth a part
_TRIMMED_CHANNELS = 16  # from which on it pays to leave out taps in the padding
BLOCK_PIXELS = 96  # that a filter gradient adds up at a time: BLOCK_PIXELS of csrc/conv/conv2d_filter.c
_CACHE_LINE = 64
_PART_TERMS = 65536  # products worth a part
WIDEST_LANES = 16  # of a vector register: a panel of output channels is padded to whole registers


class CPUConvolution(Convolution):
    """A convolution of images as csrc/conv takes it."""

    @property
    def narrow(self) -> bool:
        """Whether the elements are 16-bit floats, which are computed as float32."""
        return is_narrow(self.x.dtype)

    @property
    def copied(self) -> bool:
        """Whether kernels work on NHWC copies in the computing type."""
        return self.narrow or self.channels_first

    @property
    def paired_size(self) -> int:
        """How many numbers of float32 an image of pairs takes that is made of the input."""
        return 0 if self.narrow else self.x.size // 2

    def native(self, kernel: str, sizes: Sequence[int], *more: float) -> Native:
        """Returns a kernel of csrc/conv; its parameters are struct conv_shape and `more`.

        sizes: elements of the regions of the workspace that conv_shape names: input, filter, output, packed, zeros.
        """
        offsets, total = region_offsets([n * (4 if self.narrow else self.x.dtype.itemsize) for n in sizes])
        self.node.workspace(total)
        return self.with_offsets(kernel, offsets, *more)

    def with_offsets(self, kernel: str, offsets: Sequence[int], *more: float) -> Native:
        """Returns a kernel whose workspace has the regions at these offsets."""
        y, x = self.windows
        shape = conv_shape(self.x.shape[0], y, x, self.groups, self.channels_first, offsets)
        return native(c_name(kernel, self.x.dtype), *shape, *more)


def _conv2d(node: KernelNode) -> Native:
    conv = CPUConvolution.forward(node)
    groups, depth, outside = conv.groups
    if prepares_pairs(conv):
        sizes = (conv.paired_size, 0, conv.narrow * conv.y.size, 0, conv.filter.shape[1] * depth)
        return conv.native("conv2d_packed_pairs", sizes)
    if prepares_filter(conv):
        zeros = conv.filter.shape[1] * depth
        return conv.native("conv2d_packed", (conv.copied * conv.x.size, 0, conv.copied * conv.y.size, 0, zeros))
    packed = conv.filter.shape[0] * conv.filter.shape[1] * depth * groups * (outside + WIDEST_LANES)
    zeros = conv.filter.shape[1] * depth
    filter = conv.narrow * conv.filter.size
    return conv.native("conv2d", (conv.copied * conv.x.size, filter, conv.copied * conv.y.size, packed, zeros))


def prepares_pairs(conv: CPUConvolution) -> bool:
    """Packs the filter once as pairs of bfloat16, where products are computed of such."""
    groups, depth, outside = conv.groups
    if conv.channels_first or not multiplies_pairs(conv.node, depth):
        return False
    pack = conv.with_offsets("conv2d_pack_pairs", [0] * 5)
    return prepare_packed(conv.node, 1, pack, outside, ("conv2d pairs", variant(pack), groups), pairs=True)


def prepares_filter(conv: CPUConvolution) -> bool:
    """Packs the filter once where it is a constant or a variable, unless packing would leave it as it is."""
    (groups, _, outside), (vector, vectors) = conv.groups, panel()
    lanes = vector // (4 if conv.narrow else conv.x.dtype.itemsize)
    if groups == 1 and outside % lanes == 0 and outside <= vectors * lanes and not conv.narrow:
        return False
    pack = conv.with_offsets("conv2d_pack", [0] * 5)
    return prepare_packed(conv.node, 1, pack, outside, ("conv2d", variant(pack), groups))


def _conv2d_input(node: KernelNode) -> Native:
    conv = CPUConvolution.by_input(node)
    groups, depth, outside = conv.groups
    pack, (y, x) = conv.with_offsets("conv2d_input_pack", [0] * 5), conv.windows
    key = "conv2d_input", variant(pack), groups, y.stride, x.stride, y.dilation, x.dilation
    if prepare_packed(conv.node, 1, pack, depth, key):
        zeros = conv.filter.shape[1] * outside
        return conv.native("conv2d_input_packed", (conv.copied * conv.x.size, 0, conv.copied * conv.y.size, 0, zeros))
    packed = conv.filter.shape[0] * conv.filter.shape[1] * outside * groups * (depth + WIDEST_LANES)
    zeros = conv.filter.shape[1] * outside
    filter = conv.narrow * conv.filter.size
    return conv.native("conv2d_input", (conv.copied * conv.x.size, filter, conv.copied * conv.y.size, packed, zeros))


def _padded(conv: CPUConvolution) -> tuple[int, int, bool]:
    """Height and width of an image that holds every window, and whether it must be made of the input."""
    y, x = conv.windows
    if not conv.copied and not y.before and not x.before and y.span <= y.size and x.span <= x.size:
        return y.size, x.size, False
    return y.span, x.span, True


def filter_parts(size: int, pixels: int) -> int:
    """Parts in which a filter gradient of this size adds up its pixels."""
    return max(1, min(_PARTS, _PARTS_SIZE // max(size, 1), pixels // _PART_PIXELS))


def _images_of_block(conv: CPUConvolution) -> int:
    """Returns images whose pixels at one place are added up together: they have the same taps in the padding."""
    if conv.groups[1] < _TRIMMED_CHANNELS:
        return 1
    batch = max(conv.x.shape[0], 1)
    return -(-batch // -(-batch // BLOCK_PIXELS))


def _odd_lines(size: int, itemsize: int) -> int:
    """At least `size` elements that fill an odd number of cache lines: what is so far apart does not share sets."""
    return (-(-size * itemsize // _CACHE_LINE) | 1) * _CACHE_LINE // itemsize


def _conv2d_filter(node: KernelNode) -> Native:
    conv = CPUConvolution.by_filter(node)
    (groups, depth, outside), (height, width, copied) = conv.groups, _padded(conv)
    (y, x), batch = conv.windows, conv.x.shape[0]
    area, images, step = y.out_size * x.out_size, 1, height * width * groups * depth
    if copied:
        images = _images_of_block(conv)
        step = _odd_lines(step, 4 if conv.narrow else conv.x.dtype.itemsize)
    parts = filter_parts(conv.filter.size, batch * area)
    sums = parts * conv.filter.shape[0] * conv.filter.shape[1] * depth * groups * (outside + WIDEST_LANES)
    sizes = (copied * batch * step, conv.narrow * conv.filter.size, conv.copied * conv.y.size, sums, 0)
    blocks = (parts, images, max(1, min(BLOCK_PIXELS // images, area)))
    return conv.native("conv2d_filter", sizes, height, width, copied, step, *blocks)


def _depthwise(node: KernelNode) -> Native:
    conv = CPUConvolution.forward(node, depthwise=True)
    sizes = (conv.copied * conv.x.size, conv.narrow * conv.filter.size, conv.copied * conv.y.size, 0, conv.groups[0])
    return conv.native("depthwise", sizes)


def _depthwise_input(node: KernelNode) -> Native:
    conv = CPUConvolution.by_input(node, depthwise=True)
    filter, channels = conv.filter.size, conv.filter.shape[2] * conv.filter.shape[3]
    sizes = (conv.copied * conv.x.size, conv.narrow * filter, conv.copied * conv.y.size, filter, channels)
    return conv.native("depthwise_input", sizes)


def _depthwise_filter(node: KernelNode) -> Native:
    conv = CPUConvolution.by_filter(node, depthwise=True)
    (height, width, copied), filter = _padded(conv), conv.filter.size
    y, x = conv.windows
    rows = conv.x.shape[0] * y.out_size
    parts = max(1, min(_PARTS, rows * x.out_size * filter // _PART_TERMS, rows))
    step = height * width * conv.filter.shape[2]
    sizes = (copied * conv.x.shape[0] * step, conv.narrow * filter, conv.copied * conv.y.size, parts * filter, 0)
    return conv.native("depthwise_filter", sizes, height, width, copied, step, parts, 1, 1)


def _bias_add(node: KernelNode) -> Native:
    """Parameters: channels, and elements after each channel. Two's complement makes signed sums unsigned ones."""
    shape = node.inputs[0].shape
    axis = 1 if node.attrs.get("data_format") == "NCHW" else len(shape) - 1
    name = node.attrs["T"].name
    return native(f"bias_{name if name[:3] != 'int' else 'u' + name}", shape[axis], math.prod(shape[axis + 1 :]))


def _bias_add_grad(node: KernelNode) -> Native:
    """Returns the reduction of all dimensions but that of the channels."""
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
