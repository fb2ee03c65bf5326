"""Ops that few graphs use: computed by their references."""

from __future__ import annotations

from timberframe_sdk.reference import reference_kernels

OPS = (
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Dequantize", "DrawBoundingBoxes", "DrawBoundingBoxesV2",
    "EditDistance", "ExtractGlimpse", "ExtractGlimpseV2", "FractionalAvgPool", "FractionalAvgPoolGrad",
    "FractionalMaxPool", "FractionalMaxPoolGrad", "HistogramFixedWidth", "HSVToRGB", "InplaceAdd", "InplaceSub",
    "InplaceUpdate", "ResizeArea", "ResizeBicubic", "ResizeBicubicGrad", "RGBToHSV",
)  # fmt: skip

KERNELS = reference_kernels("CPU", OPS, wide=False)
