"""Kernels of two broadcasting operands: arithmetic, bits, powers; and sums of many tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from timberframe_cpu.broadcast import CHEAP, COSTLY, broadcast_walk
from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.elementwise.expressions import refusal_messages
from timberframe_sdk.native import Native

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ("complex64", "complex128")


def unsigned(dtype: str) -> str:
    """Returns the dtype whose kernel a signed integer shares where the bits of the result are the same."""
    return "u" + dtype if dtype in SIGNED else dtype


def elementwise(
    node: KernelNode, name: str, grain: int = CHEAP, reasons: Sequence[str] = (), more: Sequence[float] = ()
) -> Native:
    """Returns the native kernel of this name over the node's inputs, which broadcast to its output.

    more: more parameters.
    """
    out = node.outputs[0]
    shapes = [v.shape for v in node.inputs]
    sizes = [v.dtype.itemsize for v in node.inputs]
    walk = broadcast_walk(shapes, out.shape, sizes, out.dtype.itemsize, grain)
    return native(name, *walk, *more, reasons=reasons)


def _binary(
    op: str,
    kernel: str,
    types: Sequence[str],
    *,
    share: bool = False,
    grain: int = CHEAP,
) -> KernelDef:
    """`kernel`_<dtype> for each dtype; `share` says that signed integers use the unsigned ones' kernels."""

    def build(node: KernelNode) -> Native:
        dtype = node.attrs["T"].name
        return elementwise(node, f"{kernel}_{unsigned(dtype) if share else dtype}", grain, refusal_messages(op))

    build.__qualname__ = f"_binary({op})"
    return KernelDef(op, "CPU", build, {"T": tuple(types)}, inplace=((0, 0), (0, 1)))


def _strings(op: str) -> KernelDef:
    """Strings are Python objects, so NumPy joins them."""

    def build(node: KernelNode) -> Callable[..., None]:
        def join(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
            np.add(x, y, out=out)

        return join

    return KernelDef(op, "CPU", build, {"T": ("string",)})


def _add_n(types: Sequence[str]) -> KernelDef:
    def build(node: KernelNode) -> Native:
        dtype = unsigned(node.attrs["T"].name)
        return native(f"add_n_{dtype}", len(node.inputs), CHEAP // 4)

    return KernelDef("AddN", "CPU", build, {"T": tuple(types)}, inplace=((0, 0),))


def _broadcast_args(node: KernelNode) -> Native:
    from timberframe_core.ops.base.math.arithmetic import SIZES_DIFFER

    return native(f"broadcast_args_{node.attrs['T'].name}", reasons=(SIZES_DIFFER,))


def _complex(node: KernelNode) -> Native:
    return elementwise(node, f"complex_{node.attrs['T'].name}")


_INEXACT = (*FLOATS, *COMPLEX)
_NUMBERS = (*_INEXACT, *INTEGERS)
_REAL = (*FLOATS, *INTEGERS)
_BITS = ("BitwiseAnd", "bitwise_and"), ("BitwiseOr", "bitwise_or"), ("BitwiseXor", "bitwise_xor")

KERNELS: list[KernelDef] = [
    _binary("Add", "add", ("uint8", *SIGNED, *_INEXACT), share=True),
    _strings("Add"),
    _binary("AddV2", "add", _NUMBERS, share=True),
    _binary("Sub", "subtract", _NUMBERS, share=True),
    _binary("Mul", "multiply", _NUMBERS, share=True),
    _binary("MulNoNan", "multiply_no_nan", _INEXACT),
    _binary("SquaredDifference", "squared_difference", (*_INEXACT, "int32", "int64"), share=True),
    _binary("Maximum", "maximum", _REAL),
    _binary("Minimum", "minimum", _REAL),
    _binary("Div", "divide", _INEXACT),
    _binary("Div", "truncate_div", INTEGERS),
    _binary("RealDiv", "divide", _INEXACT),
    _binary("DivNoNan", "divide_no_nan", _INEXACT),
    _binary("Xdivy", "xdivy", _INEXACT),
    _binary("FloorDiv", "floor_div", (*FLOATS, *SIGNED)),
    _binary("FloorDiv", "truncate_div", UNSIGNED),
    _binary("TruncateDiv", "truncate_div", _REAL),
    _binary("FloorMod", "floor_mod", (*FLOATS, *SIGNED)),
    _binary("FloorMod", "truncate_mod", UNSIGNED),
    _binary("Mod", "truncate_mod", ("int32", "int64", "float32", "float64")),
    _binary("TruncateMod", "truncate_mod", ("int32", "int64", "float32", "float64")),
    _binary("Pow", "power", (*_INEXACT, *SIGNED), grain=COSTLY),
    _binary("Atan2", "atan2", FLOATS, grain=COSTLY),
    _binary("Xlogy", "xlogy", _INEXACT, grain=COSTLY),
    _binary("Xlog1py", "xlog1py", _INEXACT, grain=COSTLY),
    _binary("NextAfter", "next_after", ("float32", "float64")),
    *(_binary(op, name, INTEGERS, share=True) for op, name in _BITS),
    _binary("LeftShift", "left_shift", INTEGERS),
    _binary("RightShift", "right_shift", INTEGERS),
    _add_n((*FLOATS, *COMPLEX, *INTEGERS)),
    KernelDef("BroadcastArgs", "CPU", _broadcast_args, {"T": ("int32", "int64")}),
    KernelDef("Complex", "CPU", _complex, {"T": ("float32",), "Tout": ("complex64",)}),
    KernelDef("Complex", "CPU", _complex, {"T": ("float64",), "Tout": ("complex128",)}),
]
