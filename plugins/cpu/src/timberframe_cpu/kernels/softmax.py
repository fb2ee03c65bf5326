"""Kernels of csrc/softmax."""

from __future__ import annotations

from collections.abc import Callable

from timberframe_cpu.native import native
from timberframe_sdk import FLOATING, KernelDef, KernelNode
from timberframe_sdk.native import Native

_FLOATING = {"T": tuple(t.name for t in FLOATING[:4])}


def _softmax(prefix: str) -> Callable[[KernelNode], Native]:
    def build(node: KernelNode) -> Native:
        value = node.inputs[0]
        length = value.shape[-1]
        return native(f"{prefix}_{value.dtype}", value.size // length if length else 0, length)

    return build


KERNELS = [
    KernelDef("Softmax", "CPU", _softmax("softmax"), _FLOATING, inplace=((0, 0),)),
    KernelDef("LogSoftmax", "CPU", _softmax("log_softmax"), _FLOATING, inplace=((0, 0),)),
]
