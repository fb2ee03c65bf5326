"""Weights that csrc/conv packs: filters, and matrices, a product with which is a convolution of 1 x 1."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from timberframe_cpu.allocator import ALIGNMENT
from timberframe_cpu.native import call, find, isa, multiplies_bfloat16, native
from timberframe_sdk import KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.convolution import Window

if TYPE_CHECKING:
    from timberframe_cpu.device import CpuDevice

_NAMES = {"float32": "float", "float64": "double"}


class MatrixKey(NamedTuple):
    """How a matrix was packed. A product with one that is not packed gives other bits, and takes less than packing."""

    variant: str
    transposed: bool
    pairs: bool


def c_name(kernel: str, dtype: np.dtype[Any]) -> str:
    """Returns the name of a kernel of csrc/conv for elements of this dtype."""
    return f"{kernel}_{_NAMES.get(dtype.name, dtype.name)}"


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Returns whether the elements are 16-bit floats, which are computed as float32."""
    return dtype.itemsize == 2


def multiplies_pairs(node: KernelNode, channels: int) -> bool:
    """Returns whether the node's products are computed of pairs of bfloat16, whose filter is packed as such.

    They are where the elements are bfloat16, or float32 and the device was asked for it; with an even number of input
    channels of a group.
    """
    dtype, device = node.inputs[1].dtype.name, cast("CpuDevice", node.device)
    wanted = dtype == "bfloat16" or (dtype == "float32" and device.matmul_precision == "bfloat16")
    return wanted and channels % 2 == 0 and multiplies_bfloat16(isa())


def conv_shape(
    batch: int,
    y: Window,
    x: Window,
    groups: Sequence[int],
    channels_first: bool = False,
    offsets: Sequence[int] = (0,) * 5,
) -> list[int]:
    """Returns the parameters that kernels of csrc/conv take: struct conv_shape.

    groups: their number, and of each the channels of the input and of the output. offsets: of the regions of the
    workspace; the kernels that pack read none.
    """
    return [
        batch, y.size, x.size, y.out_size, x.out_size, y.kernel, x.kernel,
        y.stride, x.stride, y.dilation, x.dilation, y.before, x.before,
        *groups, channels_first, *offsets,
    ]  # fmt: skip


def region_offsets(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Byte offsets of aligned regions that follow each other, and their total size."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, at


@cache
def _panel_of(isa: str) -> tuple[int, int]:
    del isa  # `native` finds the variant by it
    sizes = np.zeros(2, np.int64)
    call(native("conv2d_panel"), [], [sizes])
    return int(sizes[0]), int(sizes[1])


def panel() -> tuple[int, int]:
    """Returns bytes of a register, and registers of a panel of the filter, in the variant
    that kernels are chosen for.
    """
    return _panel_of(isa())


def prepare_packed(
    node: KernelNode,
    input: int,
    pack: Native,
    outside: int,
    key: Hashable,
    rows_of: Callable[[np.ndarray], np.ndarray] = np.ascontiguousarray,
    pairs: bool = False,
) -> bool:
    """Packs an input once by the kernel `pack`, where it is a constant or a variable.

    outside: output channels of a group. rows_of: gives the filter in the order in which `pack` takes it. pairs: `pack`
    makes pairs of bfloat16 of the elements. A further row says whether all of it is finite.
    """
    value, narrow = node.inputs[input], is_narrow(node.inputs[input].dtype)
    dtype = np.dtype(np.float32) if narrow or pairs else value.dtype
    lanes = panel()[0] // dtype.itemsize
    rows, padded = value.size // outside // (1 + pairs) + 1, -(-outside // lanes) * lanes
    device: Any = node.device

    def make(filter: np.ndarray) -> np.ndarray:
        packed: np.ndarray = device.allocator.aligned(dtype, (rows, padded))
        workspace = np.empty(max(1, filter.size * (2 if pairs else 4 * narrow)), np.uint8)
        call(pack, [rows_of(filter)], [packed], workspace, device.threads)
        return packed

    return node.prepared(input, key, make, (rows, padded), dtype)


def variant(kernel: Native) -> str:
    """Returns the instruction set that a kernel was compiled for."""
    return find(kernel.name, isa())[1]
