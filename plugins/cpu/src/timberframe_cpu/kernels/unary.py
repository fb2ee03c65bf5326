"""Kernels of one input, element by element."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_cpu.kernels.movement import copy
from timberframe_cpu.native import native
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
IN_PLACE = ((0, 0),)
EITHER_IN_PLACE = ((0, 0), (0, 1))


def unary(op: str, name: str, types: Sequence[str], inplace: bool = True) -> KernelDef:
    """Returns the native kernel ``<name>_<dtype of the input>`` for each of `types`."""

    def build(node: KernelNode) -> Native:
        return native(f"{name}_{node.attrs['T'].name}")

    build.__qualname__ = f"unary({op})"
    return KernelDef(op, "CPU", build, {"T": tuple(types)}, inplace=IN_PLACE if inplace else ())


def logical_not(node: KernelNode) -> Native:
    """Returns one byte for each truth value."""
    return native("logical_not_bool")


def leaky_relu(node: KernelNode) -> Native:
    """Returns the slope for negative numbers is a parameter."""
    return native(f"leaky_relu_{node.attrs['T'].name}", node.attrs["alpha"])


def gradient(op: str, name: str, types: Sequence[str]) -> KernelDef:
    """Returns the native kernel ``<name>_<dtype>`` of a gradient op, which has two inputs of one shape."""

    def build(node: KernelNode) -> Native:
        return native(f"{name}_{node.attrs['T'].name}")

    build.__qualname__ = f"gradient({op})"
    return KernelDef(op, "CPU", build, {"T": tuple(types)}, inplace=EITHER_IN_PLACE)


def gradients(ops: Sequence[str], types: Sequence[str]) -> list[KernelDef]:
    """Returns the kernels of gradient ops ``<Function>Grad``, which are called ``<function>_grad``."""
    return [gradient(op, f"{op.removesuffix('Grad').lower()}_grad", types) for op in ops]


def complex_part(op: str, name: str) -> list[KernelDef]:
    """Returns the kernels of an op that takes complex numbers to real ones."""
    pairs = (("complex64", "float32"), ("complex128", "float64"))

    def build(node: KernelNode) -> Native:
        return native(f"{name}_{node.attrs['T'].name}")

    build.__qualname__ = f"complex_part({op})"
    return [KernelDef(op, "CPU", build, {"T": (t,), "Tout": (result,)}) for t, result in pairs]


_FUNCTIONS = (
    "Reciprocal", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh",
    "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sigmoid",
)  # fmt: skip
_REAL_FUNCTIONS = (
    "Softplus", "Elu", "Selu", "Floor", "Ceil", "Erf", "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma",
)  # fmt: skip

KERNELS: list[KernelDef] = [
    unary("Abs", "abs", (*FLOATS, *SIGNED)),
    unary("Neg", "neg", (*FLOATS, *SIGNED, *COMPLEX)),
    unary("Sign", "sign", (*FLOATS, *SIGNED, *COMPLEX)),
    unary("Square", "square", (*FLOATS, *INTEGERS, *COMPLEX)),
    *(unary(op, op.lower(), (*FLOATS, *COMPLEX)) for op in _FUNCTIONS),
    unary("Inv", "reciprocal", (*FLOATS, *COMPLEX)),
    *(unary(op, op.lower(), FLOATS) for op in _REAL_FUNCTIONS),
    unary("Relu", "relu", (*FLOATS, *INTEGERS)),
    unary("Relu6", "relu6", (*FLOATS, *INTEGERS)),
    KernelDef("LeakyRelu", "CPU", leaky_relu, {"T": FLOATS}, inplace=IN_PLACE),
    *gradients(("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad"), (*FLOATS, *COMPLEX)),
    gradient("InvGrad", "reciprocal_grad", (*FLOATS, *COMPLEX)),
    gradient("SoftplusGrad", "softplus_grad", FLOATS),
    *gradients(("ReluGrad", "Relu6Grad"), (*FLOATS, *INTEGERS)),
    unary("Round", "rint", FLOATS),
    KernelDef("Round", "CPU", copy, {"T": SIGNED}, inplace=IN_PLACE),
    unary("Rint", "rint", FLOATS),
    unary("IsNan", "is_nan", FLOATS, inplace=False),
    unary("IsInf", "is_inf", FLOATS, inplace=False),
    unary("IsFinite", "is_finite", FLOATS, inplace=False),
    unary("Invert", "invert", INTEGERS),
    KernelDef("LogicalNot", "CPU", logical_not, inplace=IN_PLACE),
    unary("Conj", "conj", COMPLEX),
    *complex_part("Real", "real"),
    *complex_part("Imag", "imag"),
    *complex_part("ComplexAbs", "complex_abs"),
    *complex_part("Angle", "angle"),
]
