"""Ops that few graphs use: launchers in Python that call the op's own reference."""

from __future__ import annotations

from timberframe_core.plugin.contracts import KernelDef
from timberframe_cpu.reference import reference_launcher

OPS = (
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Dequantize", "DrawBoundingBoxes", "DrawBoundingBoxesV2",
    "EditDistance", "ExtractGlimpse", "ExtractGlimpseV2", "FractionalAvgPool", "FractionalAvgPoolGrad",
    "FractionalMaxPool", "FractionalMaxPoolGrad", "HistogramFixedWidth", "HSVToRGB", "InplaceAdd", "InplaceSub",
    "InplaceUpdate", "ResizeArea", "ResizeBicubic", "ResizeBicubicGrad", "RGBToHSV",
)  # fmt: skip

KERNELS = [KernelDef(op, "CPU", reference_launcher) for op in OPS]
