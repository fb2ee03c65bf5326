"""Kernels that choose between operands and clip to a range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from timberframe_cpu.broadcast import CHEAP, broadcast_walk
from timberframe_cpu.kernels.binary import COMPLEX, FLOATS, INTEGERS, SIGNED, elementwise
from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native


def _condition_shape(node: KernelNode) -> tuple[int, ...]:
    """Returns the condition's shape as it broadcasts: Select's vector stands for rows, so it is a column of them."""
    condition, t = node.inputs[0].shape, node.inputs[1].shape
    return condition + (1,) * (len(t) - 1) if node.op == "Select" and len(condition) == 1 else condition


def _select(node: KernelNode) -> Native:
    out = node.outputs[0]
    shapes = [_condition_shape(node), node.inputs[1].shape, node.inputs[2].shape]
    size = out.dtype.itemsize
    return native(f"select_{size}", *broadcast_walk(shapes, out.shape, (1, size, size), size, CHEAP))


def _select_strings(node: KernelNode) -> Callable[..., None]:
    shape = _condition_shape(node)

    def launch(condition: np.ndarray, t: np.ndarray, e: np.ndarray, out: np.ndarray) -> None:
        out[...] = np.where(condition.reshape(shape), t, e)

    return launch


def _clip(node: KernelNode) -> Native:
    return elementwise(node, f"clip_{node.attrs['T'].name}")


_PLAIN = ("bool", *FLOATS, *INTEGERS, *COMPLEX)
_CLIPPED = (*FLOATS, *SIGNED, "uint8", "uint16", *COMPLEX)

KERNELS: list[KernelDef] = [
    *(KernelDef(op, "CPU", _select, {"T": _PLAIN}, inplace=((0, 1), (0, 2))) for op in ("Select", "SelectV2")),
    *(KernelDef(op, "CPU", _select_strings, {"T": ("string",)}) for op in ("Select", "SelectV2")),
    KernelDef("ClipByValue", "CPU", _clip, {"T": _CLIPPED}, inplace=((0, 0), (0, 1), (0, 2))),
]
