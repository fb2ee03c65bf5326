"""Kernels that convert between dtypes, or look at the same bytes as another one."""

from __future__ import annotations

import numpy as np

from timberframe_cpu.broadcast import CHEAP
from timberframe_cpu.kernels.binary import COMPLEX, FLOATS, INTEGERS, SIGNED, unsigned
from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native

_BITS = {name: 8 * np.dtype(name).itemsize for name in ("bool", *INTEGERS)}
_WIDER = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}  # bits of the fraction


def _kernel_name(source: str, target: str) -> str:
    """Returns the kernel for a pair of dtypes; "" where the bytes stay as they are."""
    if target in _BITS and source in _BITS and target != "bool":
        if _BITS[source] == _BITS[target]:
            return ""
        extends = source in SIGNED and _BITS[source] < _BITS[target]
        return f"{source if extends else _plain(source)}_{unsigned(target)}"
    if target == "bool":
        return f"{_plain(source)}_bool"
    if target in ("int8", "int16"):
        target = unsigned(target)
    return f"{'uint8' if source == 'bool' else source}_{target}"


def _plain(name: str) -> str:
    return "uint8" if name == "bool" else unsigned(name)


def _cast(node: KernelNode) -> Native:
    source, target = node.attrs["SrcT"].name, node.attrs["DstT"].name
    name = "" if source == target else _kernel_name(source, target)
    if not name:
        return native("copy", node.outputs[0].nbytes)
    narrows = source in ("float32", "float64") and _WIDER.get(target, 99) < _WIDER[source]
    prefix = "truncate_" if node.attrs["Truncate"] and narrows else ""
    return native(f"cast_{prefix}{name}", CHEAP, node.inputs[0].dtype.itemsize, node.outputs[0].dtype.itemsize)


def _bitcast(node: KernelNode) -> Native:
    return native("copy", node.outputs[0].nbytes)


_EVERYTHING = ("bool", *FLOATS, *INTEGERS, *COMPLEX)
_QUANTIZED = ("qint8", "quint8", "qint16", "quint16", "qint32")
_NUMBERS = (*FLOATS, *INTEGERS, *COMPLEX, *_QUANTIZED)

KERNELS: list[KernelDef] = [
    KernelDef("Cast", "CPU", _cast, {"SrcT": _EVERYTHING, "DstT": _EVERYTHING}, inplace=((0, 0),)),
    KernelDef("Bitcast", "CPU", _bitcast, {"T": _NUMBERS, "type": _NUMBERS}, inplace=((0, 0),)),
]
