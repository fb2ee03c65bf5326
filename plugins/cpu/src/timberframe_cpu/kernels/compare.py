"""Kernels of comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_cpu.broadcast import CHEAP
from timberframe_cpu.kernels.binary import COMPLEX, FLOATS, INTEGERS, elementwise, unsigned
from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native

_REAL = (*FLOATS, *INTEGERS)


def _broadcast(node: KernelNode) -> bool:
    """Returns whether the operands do: Equal and NotEqual may be asked about shapes that do not."""
    try:
        np.broadcast_shapes(*(v.shape for v in node.inputs))
    except ValueError:
        return False
    return True


def _comparison(op: str, kernel: str, types: Sequence[str], share: bool = False) -> KernelDef:
    """`kernel`_<dtype>; `share`: only bits matter, so signed integers and bool use the unsigned kernels."""

    def build(node: KernelNode) -> Native:
        dtype = node.attrs["T"].name
        if share and not _broadcast(node):
            return native("truth", kernel == "not_equal")
        bits = "uint8" if dtype == "bool" else unsigned(dtype)
        return elementwise(node, f"{kernel}_{bits if share else dtype}")

    return KernelDef(op, "CPU", build, {"T": tuple(types)})


def _strings(op: str, compare: Callable[..., Any]) -> KernelDef:
    """Strings are Python objects, so NumPy compares them."""

    def build(node: KernelNode) -> Callable[..., None]:
        meets = _broadcast(node)

        def launch(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
            out[...] = compare(x, y) if meets else compare is np.not_equal

        return launch

    return KernelDef(op, "CPU", build, {"T": ("string",)})


def _logical(node: KernelNode) -> Native:
    return elementwise(node, "logical_and_bool" if node.op == "LogicalAnd" else "logical_or_bool")


def _approximate_equal(node: KernelNode) -> Native:
    return native(f"approximate_equal_{node.attrs['T'].name}", float(node.attrs["tolerance"]), CHEAP)


_EVERYTHING = ("bool", *_REAL, *COMPLEX)

KERNELS: list[KernelDef] = [
    _comparison("Equal", "equal", _EVERYTHING, share=True),
    _comparison("NotEqual", "not_equal", _EVERYTHING, share=True),
    _strings("Equal", np.equal),
    _strings("NotEqual", np.not_equal),
    _comparison("Less", "less", _REAL),
    _comparison("LessEqual", "less_equal", _REAL),
    _comparison("Greater", "greater", _REAL),
    _comparison("GreaterEqual", "greater_equal", _REAL),
    KernelDef("ApproximateEqual", "CPU", _approximate_equal, {"T": ("float32", "float64")}),
    KernelDef("LogicalAnd", "CPU", _logical, inplace=((0, 0), (0, 1))),
    KernelDef("LogicalOr", "CPU", _logical, inplace=((0, 0), (0, 1))),
]
