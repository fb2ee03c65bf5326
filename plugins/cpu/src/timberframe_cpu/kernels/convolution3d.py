"""Convolutions of volumes, which csrc/conv/volumes.h makes convolutions of images."""

from __future__ import annotations

import math

import numpy as np

from timberframe_cpu.kernels.convolution import BLOCK_PIXELS, WIDEST_LANES, filter_parts
from timberframe_cpu.native import native
from timberframe_cpu.packing import c_name, conv_shape, is_narrow, prepare_packed, region_offsets, variant
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.convolution import Convolution


class VolumeConvolution(Convolution):
    """A convolution of volumes as csrc/conv takes it."""

    def native(
        self, kernel: str, packed: int, zeros: int, image: tuple[int, int] | None = None, parts: int = 1
    ) -> Native:
        """Returns a kernel; its parameters are struct volume_conv.

        packed, zeros: elements that the convolution of images asks for. image: height and width of padded images.
        """
        z, y, x = self.windows
        first, narrow = self.channels_first, is_narrow(self.x.dtype)
        channels, outside = self.filter.shape[3:]
        batch, wide, copied = self.x.shape[0], z.kernel * channels, first or narrow
        planes = batch * z.out_size
        height, width = image or (y.size, x.size)
        regions = (
            narrow * self.filter.size, packed, zeros, copied * self.x.size, copied * self.y.size, self.filter.size,
            planes * height * width * wide,
        )  # fmt: skip
        offsets, total = region_offsets([n * (4 if narrow else self.x.dtype.itemsize) for n in regions])
        self.node.workspace(total)
        return native(
            c_name(kernel, self.x.dtype),
            *conv_shape(planes, y, x, (1, wide, outside), False, (0, offsets[0], 0, offsets[1], offsets[2])),
            height, width, image is not None, height * width * wide,
            parts, 1, max(1, min(BLOCK_PIXELS, y.out_size * x.out_size)),
            batch, z.size, z.out_size, z.kernel, z.stride, z.dilation, z.before, channels, y.size, x.size, first,
            *offsets[3:],
        )  # fmt: skip


def _conv3d(node: KernelNode) -> Native:
    conv = VolumeConvolution.forward(node)
    (depth, height, width, channels, outside), (_, y, x) = conv.filter.shape, conv.windows
    # Of the convolution of images, whose channels are the taps along the depth, too.
    pack = native(c_name("conv2d_pack", conv.x.dtype), *conv_shape(0, y, x, (1, depth * channels, outside)))
    if prepare_packed(node, 1, pack, outside, ("conv3d", variant(pack)), _depth_beside_channels):
        return conv.native("conv3d_packed", 0, width * depth * channels)
    packed = depth * height * width * channels * (outside + WIDEST_LANES)
    return conv.native("conv3d", packed, width * depth * channels)


def _depth_beside_channels(filter: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(filter.transpose(1, 2, 0, 3, 4))


def _conv3d_input(node: KernelNode) -> Native:
    conv = VolumeConvolution.by_input(node)
    depth, height, width, channels, outside = conv.filter.shape
    packed = height * width * outside * (depth * channels + WIDEST_LANES)
    return conv.native("conv3d_input", packed, width * outside)


def _conv3d_filter(node: KernelNode) -> Native:
    conv = VolumeConvolution.by_filter(node)
    z, y, x = conv.windows
    parts = filter_parts(conv.filter.size, conv.x.shape[0] * z.out_size * y.out_size * x.out_size)
    sums = parts * math.prod(conv.filter.shape[:4]) * (conv.filter.shape[4] + WIDEST_LANES)
    return conv.native("conv3d_filter", sums, 0, (y.span, x.span), parts)


_FLOATS = ("float16", "bfloat16", "float32", "float64")

KERNELS = [
    KernelDef("Conv3D", "CPU", _conv3d, {"T": _FLOATS}),
    KernelDef("Conv3DBackpropInputV2", "CPU", _conv3d_input, {"T": _FLOATS}),
    KernelDef("Conv3DBackpropFilterV2", "CPU", _conv3d_filter, {"T": _FLOATS}),
]
