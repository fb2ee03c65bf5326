"""Ops that few graphs use: computed by their references."""

from __future__ import annotations

from timberframe_sdk.reference import reference_kernels

_OPS = ("Dequantize",)

KERNELS = reference_kernels("CPU", _OPS, wide=False)
