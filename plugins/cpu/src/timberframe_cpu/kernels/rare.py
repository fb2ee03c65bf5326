"""Ops that few graphs use: launchers in Python that call the op's own reference."""

from __future__ import annotations

from timberframe.plugin.contracts import KernelDef
from timberframe_cpu.reference import reference_launcher

OPS = ("EditDistance", "HistogramFixedWidth", "InplaceAdd", "InplaceSub", "InplaceUpdate")

KERNELS = [KernelDef(op, "CPU", reference_launcher) for op in OPS]
