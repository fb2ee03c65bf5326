"""Accelerator kernels that change the colours of images."""

from __future__ import annotations

import math
from typing import Any

from timberframe_accelerator.kernels.indexing import FLOATS
from timberframe_accelerator.launches import GROUP, Source, index_name, index_type, spread
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel

KERNELS: list[KernelDef] = []

_NAMES = {
    "RGBToHSV": "tf_rgb_to_hsv", "HSVToRGB": "tf_hsv_to_rgb", "AdjustSaturation": "tf_adjust_saturation",
    "AdjustHue": "tf_adjust_hue",
}  # fmt: skip
_SOME = {"T": ("float16", "float32")}


@kernel(KERNELS, ("RGBToHSV", "HSVToRGB"), "", types={"T": FLOATS})
@kernel(KERNELS, ("AdjustSaturation", "AdjustHue"), "", types=_SOME)
def pixels(node: KernelNode) -> Launcher:
    """Each pixel's three values changed, by a number of the second input or none."""
    device: Any = node.device
    out = node.outputs[0]
    real, floor = ("double", "tf_floor_f64") if out.dtype.name == "float64" else ("float", "tf_floor_f32")
    source = Source.file("colors.h", T=out.dtype.name, REAL=real, FLOOR=floor, INDEX=index_name(out.size))
    function, count = device.function(source, _NAMES[node.op]), out.size // 3
    (items, group), size = spread(count), index_type(out.size)(count)
    return lambda x, *rest: function(items, group, x, rest[-1], size, *rest[:-1]) if count else None


@kernel(KERNELS, "AdjustContrastv2", "", types=_SOME)
def contrast(node: KernelNode) -> Launcher:
    """The mean of each channel, then what lies above and below it times a factor."""
    device: Any = node.device
    x = node.inputs[0]
    each, channels, index = math.prod(x.shape[-3:-1]), x.shape[-1], index_type(x.size)
    source = Source.file("contrast.h", T=x.dtype.name, GROUP=GROUP, INDEX=index_name(x.size))
    mean, adjust = (device.function(source, name) for name in ("tf_channel_means", "tf_adjust_contrast"))
    rows, (items, group) = math.prod(x.shape[:-3]) * channels, spread(x.size)
    count, pixels_, channels_ = index(x.size), index(each), index(channels)
    node.workspace(4 * max(rows, 1))

    def launch(x: Any, factor: Any, out: Any, means: Any) -> None:
        if count:
            mean((rows * GROUP,), (GROUP,), x, means, pixels_, channels_)
            adjust(items, group, x, factor, out, means, count, pixels_, channels_)

    return launch
