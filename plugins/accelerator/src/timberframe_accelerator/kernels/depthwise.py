"""Accelerator kernels of depthwise convolutions and of grayscale dilations, and of their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.launches import Source
from timberframe_accelerator.product import add_parts, cut_depth, part_type, written_type
from timberframe_accelerator.stages import Argument, BufferView, Stages, nothing
from timberframe_sdk import KernelDef, KernelNode, Launcher, Value
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.convolution import Convolution, Window, dilation_windows

KERNELS: list[KernelDef] = []

_LANES, _LINES = 16, 8
_MOST_LINES = 65535 * _LINES  # in the second dimension of a launch, for CUDA
_MOST_LANES = 1 << 16
_PART_PIXELS = 256  # worth a part of a gradient by the filter

Items = tuple[tuple[int, int, int], tuple[int, int, int]]


class _Taps:
    """What kernels on taps.h have in common: the words of their sizes, launches, and the stages around them."""

    def __init__(self, node: KernelNode, windows: Sequence[Window], channels: int, multiplier: int = 1) -> None:
        self.stages = Stages(node)
        self.device = self.stages.device
        self.dtype = node.outputs[0].dtype
        self.taps = math.prod(w.kernel for w in windows)
        self.width = channels * multiplier
        fields = ("size", "out_size", "kernel", "stride", "dilation", "before")
        words = [getattr(w, name) for name in fields for w in windows]
        self.sizes = self.device.table(np.array([*words, channels, multiplier], np.int32))

    def items(self, lines: int, width: int, parts: int = 1) -> Items:
        """Work-items and groups for so many lines of so many channels."""
        across = min(-(-width // _LANES) * _LANES, _MOST_LANES)
        return (across, min(-(-lines // _LINES) * _LINES, _MOST_LINES), parts), (_LANES, _LINES, 1)

    def cut(self, pixels: int) -> tuple[int, int]:
        """Parts of the pixels in a gradient by the filter, and the length of each."""
        groups = -(-self.width // _LANES) * -(-self.taps // _LINES)
        return cut_depth(pixels, groups, 1, _PART_PIXELS)

    def parts_room(self, parts: int) -> tuple[BufferView, str]:
        """Returns where the sums of parts lie, and their dtype; the result itself where there is one part."""
        part = part_type(self.dtype)
        if parts == 1:
            return BufferView(self.stages.result), written_type(self.dtype)
        return self.stages.room(parts * self.taps * self.width, np.dtype(part).itemsize), part

    def add_parts(self, parts: int, sums: BufferView) -> None:
        """Adds the last step of a gradient by the filter."""
        if parts > 1:
            add_parts(self.stages, sums, BufferView(self.stages.result), self.dtype, self.taps * self.width, parts)


class _Depthwise(_Taps):
    """A depthwise convolution or a gradient of one."""

    def __init__(self, conv: Convolution) -> None:
        self.conv = conv
        channels, _, multiplier = conv.groups
        super().__init__(conv.node, conv.windows, channels, multiplier)
        single = int(multiplier == 1)
        self.macros: dict[str, Any] = {"PART": part_type(self.dtype), "SINGLE": single, "LANES": _LANES}

    def function(self, name: str, written: str = "") -> Any:
        types = {"T": self.dtype.name, "TZ": written or self.dtype.name}
        return self.device.function(Source.file("depthwise.h", **types, **self.macros), name)

    def channels_last(self, view: BufferView, value: Value) -> BufferView:
        """Returns a tensor in this layout, transposed where it is not."""
        shape = value.shape
        if not self.conv.channels_first:
            return view
        return self.stages.swap(view, None, value.dtype, shape[0], shape[1], math.prod(shape[2:]))

    def run(self, name: str, value: Value, arguments: Callable[[BufferView], Sequence[Any]], channels: int) -> Launcher:
        """Kernel `name`, whose lines are the pixels of its result `value`; arguments(result) are its tensors."""
        if not value.size:
            return nothing
        pixels, swapped, result = value.size // channels, self.conv.channels_first, BufferView(self.stages.result)
        out = self.stages.room(value.size, value.dtype.itemsize) if swapped else result
        items, group = self.items(pixels, channels)
        self.stages.call(self.function(name), items, group, *arguments(out), self.sizes, np.int32(pixels))
        if swapped:
            self.stages.swap(
                out, BufferView(self.stages.result), value.dtype, value.shape[0], math.prod(value.shape[2:]), channels
            )
        return self.stages.launcher()


_FLOATS = {"T": ("float16", "bfloat16", "float32", "float64")}


@kernel(KERNELS, "DepthwiseConv2dNative", "", types=_FLOATS)
def depthwise(node: KernelNode) -> Launcher:
    """Each channel convolved with its own filters."""
    plan = _Depthwise(Convolution.forward(node, depthwise=True))
    x = plan.channels_last(BufferView(0), plan.conv.x)
    return plan.run("tf_depthwise", plan.conv.y, lambda y: (x, Argument(1), y), plan.width)


@kernel(KERNELS, "DepthwiseConv2dNativeBackpropInput", "", types=_FLOATS)
def depthwise_by_input(node: KernelNode) -> Launcher:
    """The gradient by the images."""
    plan = _Depthwise(Convolution.by_input(node, depthwise=True))
    dy = plan.channels_last(BufferView(1), plan.conv.y)
    return plan.run("tf_depthwise_input", plan.conv.x, lambda x: (Argument(0), dy, x), plan.conv.groups[0])


@kernel(KERNELS, "DepthwiseConv2dNativeBackpropFilter", "", types=_FLOATS)
def depthwise_by_filter(node: KernelNode) -> Launcher:
    """The gradient by the filter."""
    plan = _Depthwise(Convolution.by_filter(node, depthwise=True))
    conv = plan.conv
    if not conv.filter.size:
        return nothing
    x, dy = plan.channels_last(BufferView(0), conv.x), plan.channels_last(BufferView(1), conv.y)
    pixels = conv.y.size // plan.width
    parts, length = plan.cut(pixels)
    sums, written = plan.parts_room(parts)
    function = plan.function("tf_depthwise_filter", written)
    items, group = plan.items(plan.taps, plan.width, parts)
    plan.stages.call(function, items, group, x, dy, sums, plan.sizes, np.int32(pixels), np.int32(length))
    plan.add_parts(parts, sums)
    return plan.stages.launcher()


_NUMBERS = {"T": (*_FLOATS["T"], *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))}


class _Dilation(_Taps):
    """A dilation or a gradient of one. out: shape of the dilation's result."""

    def __init__(self, node: KernelNode, out: tuple[int, ...]) -> None:
        super().__init__(node, dilation_windows(node, out), node.inputs[0].shape[3])
        self.x = node.inputs[0]
        self.pixels = math.prod(out[:3])

    def function(self, name: str, written: str = "") -> Any:
        types = {"T": self.dtype.name, "TZ": written or self.dtype.name, "PART": part_type(self.dtype)}
        return self.device.function(Source.file("dilation.h", LANES=_LANES, **types), name)

    def taps_of_outputs(self) -> BufferView:
        """Returns the step that finds the tap of each output, and where it writes them."""
        taps = self.stages.room(self.pixels * self.width, 4)
        items, group = self.items(self.pixels, self.width)
        function = self.function("tf_dilation_taps")
        self.stages.call(function, items, group, Argument(0), Argument(1), taps, self.sizes, np.int32(self.pixels))
        return taps


@kernel(KERNELS, "Dilation2D", "", types=_NUMBERS)
def dilate(node: KernelNode) -> Launcher:
    """The largest sums of pixels and the filter's values."""
    plan = _Dilation(node, node.outputs[0].shape)
    items, group = plan.items(plan.pixels, plan.width)
    tensors, pixels = map(Argument, (0, 1, 2)), np.int32(plan.pixels)
    plan.stages.call(plan.function("tf_dilation"), items, group, *tensors, plan.sizes, pixels)
    return plan.stages.launcher()


@kernel(KERNELS, "Dilation2DBackpropInput", "", types=_NUMBERS)
def dilate_by_input(node: KernelNode) -> Launcher:
    """Each value of the gradient goes to the pixel of the largest sum."""
    plan = _Dilation(node, node.inputs[2].shape)
    if not node.outputs[0].size:
        return nothing
    taps, pixels = plan.taps_of_outputs(), math.prod(plan.x.shape[:3])
    items, group = plan.items(pixels, plan.width)
    function = plan.function("tf_dilation_input")
    plan.stages.call(function, items, group, taps, Argument(2), Argument(3), plan.sizes, np.int32(pixels))
    return plan.stages.launcher()


@kernel(KERNELS, "Dilation2DBackpropFilter", "", types=_NUMBERS)
def dilate_by_filter(node: KernelNode) -> Launcher:
    """Each value of the gradient goes to the tap of the largest sum."""
    plan = _Dilation(node, node.inputs[2].shape)
    if not node.outputs[0].size:
        return nothing
    taps = plan.taps_of_outputs()
    parts, length = plan.cut(plan.pixels)
    sums, written = plan.parts_room(parts)
    items, group = plan.items(plan.taps, plan.width, parts)
    function, sizes = plan.function("tf_dilation_filter", written), (np.int32(plan.pixels), np.int32(length))
    plan.stages.call(function, items, group, taps, Argument(2), sums, plan.sizes, *sizes)
    plan.add_parts(parts, sums)
    return plan.stages.launcher()
