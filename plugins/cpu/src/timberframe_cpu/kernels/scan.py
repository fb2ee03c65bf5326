"""Kernels of csrc/scan: running sums, products and logsumexps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from timberframe_cpu.native import native
from timberframe_sdk import FLOATING, NUMERIC, KernelDef, KernelNode
from timberframe_sdk.native import Native

_ALL = tuple(t.name for t in NUMERIC)


def _scan(prefix: str) -> Callable[[KernelNode], Native]:
    def build(node: KernelNode) -> Native:
        shape = node.inputs[0].shape
        axis = int(np.asarray(node.const(1))) % len(shape)
        dtype = str(node.inputs[0].dtype).removeprefix("u")  # wrapping arithmetic is the same for unsigned integers
        sizes = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        return native(f"{prefix}_{dtype}", *sizes, node.attrs["exclusive"], node.attrs["reverse"])

    return build


KERNELS = [
    KernelDef("Cumsum", "CPU", _scan("cumsum"), {"T": _ALL}, inplace=((0, 0),)),
    KernelDef("Cumprod", "CPU", _scan("cumprod"), {"T": _ALL}, inplace=((0, 0),)),
    KernelDef(
        "CumulativeLogsumexp",
        "CPU",
        _scan("cumulative_logsumexp"),
        {"T": tuple(t.name for t in FLOATING[:4])},
        inplace=((0, 0),),
    ),
]
