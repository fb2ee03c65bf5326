"""Numbers rounded to those that quantized integers stand for."""

from __future__ import annotations

import math

from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native

_DOUBLE, _FLOAT = 8, 4
_RANGES = 5
"""Numbers that csrc/quantize keeps of each channel's range."""


def _fake_quant(node: KernelNode) -> Native:
    attrs, with_gradient = node.attrs, node.op.endswith("Gradient")
    shape, tensors = node.inputs[int(with_gradient)].shape, "min" not in attrs
    channels = shape[-1] if "PerChannel" in node.op else 1
    node.workspace(channels * (_RANGES * _FLOAT + with_gradient * 2 * _DOUBLE))
    rows = math.prod(shape[:-1]) if "PerChannel" in node.op else math.prod(shape)
    return native(
        "fake_quant_gradient" if with_gradient else "fake_quant",
        rows, channels, attrs["num_bits"], attrs["narrow_range"], tensors, len(node.outputs),
        *(float(0 if tensors else attrs[end]) for end in ("min", "max")),
    )  # fmt: skip


_OPS = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")

KERNELS = [KernelDef(f"{op}{kind}", "CPU", _fake_quant, {}) for op in _OPS for kind in ("", "Gradient")]
