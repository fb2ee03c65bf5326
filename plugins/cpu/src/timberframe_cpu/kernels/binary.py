"""Kernels of two broadcasting operands: arithmetic, bits, powers; and sums of many tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.broadcast import CHEAP, COSTLY, broadcast_walk
from timberframe_cpu.native import native
from timberframe_sdk.native import Native

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ("complex64", "complex128")

ZERO_DIVISOR = "integer division by zero: element {0} of y is 0; divisors of integers must not be 0"
NEGATIVE_EXPONENT = "element {0} of y is {1}; the exponent of an integer power must be at least 0"


def unsigned(dtype: str) -> str:
    """The dtype whose kernel a signed integer shares where the bits of the result are the same."""
    return "u" + dtype if dtype in SIGNED else dtype


def elementwise(node: KernelNode, name: str, grain: int = CHEAP, reasons: Sequence[str] = ()) -> Native:
    """The native kernel of this name over the node's inputs, which broadcast to its output."""
    out = node.outputs[0]
    shapes = [v.shape for v in node.inputs]
    sizes = [v.dtype.itemsize for v in node.inputs]
    return native(name, *broadcast_walk(shapes, out.shape, sizes, out.dtype.itemsize, grain), reasons=reasons)


def _binary(
    op: str,
    kernel: str,
    types: Sequence[str],
    *,
    share: bool = False,
    grain: int = CHEAP,
    reasons: Sequence[str] = (),
    inplace: bool = True,
) -> KernelDef:
    """`kernel`_<dtype> for each dtype; `share` says that signed integers use the unsigned ones' kernels."""

    def build(node: KernelNode) -> Native:
        dtype = node.attrs["T"].name
        return elementwise(node, f"{kernel}_{unsigned(dtype) if share else dtype}", grain, reasons)

    build.__qualname__ = f"_binary({op})"
    pairs = ((0, 0), (0, 1)) if inplace else ()
    return KernelDef(op, "CPU", build, {"T": tuple(types)}, inplace=pairs)


_NUMBERS = (*FLOATS, *INTEGERS)

KERNELS: list[KernelDef] = [
    _binary("Add", "add", ("uint8", *SIGNED, *FLOATS), share=True),
    _binary("AddV2", "add", _NUMBERS, share=True),
    _binary("Sub", "subtract", _NUMBERS, share=True),
    _binary("Mul", "multiply", _NUMBERS, share=True),
    _binary("MulNoNan", "multiply_no_nan", FLOATS),
    _binary("SquaredDifference", "squared_difference", (*FLOATS, "int32", "int64"), share=True),
    _binary("Maximum", "maximum", _NUMBERS),
    _binary("Minimum", "minimum", _NUMBERS),
    _binary("Div", "divide", FLOATS),
    _binary("RealDiv", "divide", FLOATS),
    _binary("DivNoNan", "divide_no_nan", FLOATS),
    _binary("Xdivy", "xdivy", FLOATS),
    _binary("FloorDiv", "floor_div", FLOATS),
    _binary("TruncateDiv", "truncate_div", FLOATS),
]
