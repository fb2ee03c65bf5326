"""Kernels of csrc/optimizer: the updates of optimizers; and of csrc/indexing/update_rows.c: scattered updates."""

from __future__ import annotations

import re

from timberframe.ops import registry
from timberframe.plugin.contracts import KernelDef, KernelNode
from timberframe_cpu.native import native
from timberframe_sdk.indexing import (
    DIVISOR_REASON,
    INDEX_REASON,
    NUMBER_REASON,
    TUPLE_REASON,
    has_scalar_update,
    update_sizes,
)
from timberframe_sdk.native import Native

_REALS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*_REALS, "complex64", "complex128")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_INDICES = ("int32", "int64")
_FLAGS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")
_ROW_REASON = INDEX_REASON.replace("params", "the variable")

_RULES = {
    "GradientDescent": ("gradient_descent", _NUMBERS),
    "Momentum": ("momentum", _NUMBERS),
    "KerasMomentum": ("keras_momentum", _NUMBERS),
    "Adagrad": ("adagrad", _NUMBERS),
    "AdagradV2": ("adagrad_v2", _NUMBERS),
    "AdagradDA": ("adagrad_da", _REALS[2:]),
    "Adadelta": ("adadelta", _NUMBERS),
    "RMSProp": ("rmsprop", _NUMBERS),
    "CenteredRMSProp": ("centered_rmsprop", _NUMBERS),
    "Adam": ("adam", _NUMBERS),
    "AdamWithAmsgrad": ("adam_with_amsgrad", _REALS),
    "AdaMax": ("adamax", _REALS),
    "Ftrl": ("ftrl", _REALS),
    "FtrlV2": ("ftrl_v2", _REALS),
    "AddSign": ("add_sign", _REALS),
    "PowerSign": ("power_sign", _REALS),
    "ProximalGradientDescent": ("proximal_gradient_descent", _REALS[2:]),
    "ProximalAdagrad": ("proximal_adagrad", _REALS[2:]),
}
"""For each ending of ResourceApply* and ResourceSparseApply* the C rule and its dtypes."""


def _apply(node: KernelNode) -> Native:
    """Parameters: struct update_shape of csrc/optimizer/drive.h."""
    op = registry.get(node.op)
    names = [a.name for a in op.inputs]
    gradient = names.index("delta" if "delta" in names else "grad")
    indices = names.index("indices") if "indices" in names else -1
    flag = any(node.attrs.get(name, False) for name in _FLAGS)
    rule = _RULES[re.sub("^Resource(Sparse)?Apply", "", node.op)][0]
    name = f"{rule}_{node.attrs['T'].name}"
    return native(name, len(op.updates), len(names), gradient, indices, flag, reasons=(_ROW_REASON,))


def _update_rows(node: KernelNode) -> Native:
    """Parameters: struct rows_shape of csrc/indexing/update_rows.c."""
    variable = node.inputs[0]
    by_tuple = "Nd" in node.op
    kind = node.op.removeprefix("ResourceScatter").removeprefix("Nd").lower()
    dtype = node.attrs["T" if by_tuple else "dtype"]
    count, depth, inner, _ = update_sizes(node)
    scalar = has_scalar_update(node)
    ignore = node.attrs.get("bad_indices_policy") == "IGNORE"
    node.workspace(8 * max(count, 1))
    reasons = (TUPLE_REASON if by_tuple else NUMBER_REASON, DIVISOR_REASON)
    if kind == "update":
        size = variable.dtype.itemsize
        return native("update_rows", count, inner * size, depth, scalar, ignore, size, reasons=reasons)
    return native(f"update_{kind}_{dtype.name}", count, inner, depth, scalar, ignore, reasons=reasons)


def _applies(sparse: bool) -> list[KernelDef]:
    found = []
    for ending, (_, types) in _RULES.items():
        name = f"Resource{'Sparse' if sparse else ''}Apply{ending}"
        op = registry.find(name)
        if op is not None:
            in_place = tuple((i, i) for i in range(len(op.updates)))
            chosen = {"T": types, "Tindices": _INDICES} if sparse else {"T": types}
            found.append(KernelDef(name, "CPU", _apply, chosen, inplace=in_place))
    return found


def _scatters() -> list[KernelDef]:
    reals, numbers = (*_REALS, *_INTEGERS), (*_NUMBERS, *_INTEGERS)
    rows = {"Add": numbers, "Sub": numbers, "Mul": numbers, "Div": numbers, "Min": reals, "Max": reals}
    tuples = {"NdAdd": (*numbers, "bool"), "NdSub": (*numbers, "bool"), "NdMin": reals, "NdMax": reals}
    fixed = (*numbers, "bool")
    types = {n: {"dtype": t} for n, t in {**rows, "Update": fixed}.items()}
    types |= {n: {"T": t} for n, t in {**tuples, "NdUpdate": fixed}.items()}
    return [
        KernelDef(f"ResourceScatter{n}", "CPU", _update_rows, {**t, "Tindices": _INDICES}, inplace=((0, 0),))
        for n, t in types.items()
    ]


KERNELS = [*_applies(sparse=False), *_applies(sparse=True), *_scatters()]
