"""Numbers and the integers that stand for them, and numbers rounded to those that integers stand for."""

from __future__ import annotations

import math

import numpy as np

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


def _slices(node: KernelNode, shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns how many slices have a range of their own, and how many elements of one lie side by side."""
    axis = node.attrs["axis"]
    return (1, max(math.prod(shape), 1)) if axis < 0 else (shape[axis], max(math.prod(shape[axis + 1 :]), 1))


def _quantize(node: KernelNode) -> Native:
    attrs, slices = node.attrs, _slices(node, node.inputs[0].shape)
    node.workspace(slices[0] * _FLOAT)
    return native(
        f"quantize_{node.outputs[0].dtype.name}", *slices, _MODES.index(attrs["mode"]),
        attrs["round_mode"] == "HALF_TO_EVEN", attrs["narrow_range"], float(attrs["ensure_minimum_range"]),
        reasons=("min_range is {0:double} and max_range {1:double}; max_range must be at least min_range",),
    )  # fmt: skip


def _dequantize(node: KernelNode) -> Native:
    slices = _slices(node, node.inputs[0].shape)
    node.workspace(slices[0] * 2 * _FLOAT)
    half = "_bfloat16" if node.outputs[0].dtype.name == "bfloat16" else ""
    name = f"dequantize_{node.inputs[0].dtype.name}{half}"
    return native(name, *slices, _MODES.index(node.attrs["mode"]), node.attrs["narrow_range"])


def _round_trip(node: KernelNode) -> Native:
    attrs, slices = node.attrs, _slices(node, node.inputs[0].shape)
    bits = attrs["num_bits"] if "num_bits" in attrs else int(np.asarray(node.const(3)))
    node.workspace(slices[0] * 4 * _DOUBLE)
    return native(
        f"round_trip_{node.inputs[0].dtype.name}", *slices, bits, attrs["signed_input"],
        attrs["narrow_range"], attrs["range_given"], attrs.get("round_mode") == "HALF_UP",
        reasons=("input_min is {0:double} and input_max {1:double}; input_min must be at most input_max",),
    )  # fmt: skip


def _round_trip_gradient(node: KernelNode) -> Native:
    slices = _slices(node, node.inputs[1].shape)
    return native(f"round_trip_gradient_{node.inputs[0].dtype.name}", *slices, 0, 0, 0, 0, 0)


_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
_OPS = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")

KERNELS = [KernelDef(f"{op}{kind}", "CPU", _fake_quant, {}) for op in _OPS for kind in ("", "Gradient")]
KERNELS += [
    KernelDef("QuantizeV2", "CPU", _quantize, {}),
    KernelDef("Dequantize", "CPU", _dequantize, {}),
    *(KernelDef(f"QuantizeAndDequantizeV{version}", "CPU", _round_trip, {}) for version in (2, 3, 4)),
    KernelDef("QuantizeAndDequantizeV4Grad", "CPU", _round_trip_gradient, {}),
]
