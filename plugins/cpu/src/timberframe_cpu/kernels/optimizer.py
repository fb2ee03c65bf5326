"""Kernels of csrc/optimizer: the updates of optimizers; and of csrc/indexing/update_rows.c: scattered updates."""

from __future__ import annotations

from timberframe_core.ops.definition.value_checks import ROW_OUTSIDE, TUPLE_OUTSIDE
from timberframe_cpu.native import native
from timberframe_cpu.strings import with_strings
from timberframe_sdk import KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.indexing import (
    has_scalar_update,
    in_tuple_order,
    update_sizes,
)
from timberframe_sdk.plans.updates import update_inputs, updating_ops

_REALS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*_REALS, "complex64", "complex128")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_INDICES = ("int32", "int64")


def _apply(node: KernelNode) -> Native:
    """Parameters: struct update_shape of csrc/optimizer/drive.h."""
    given = update_inputs(node)
    indices = -1 if given.indices is None else given.indices
    name = f"{given.rule}_{node.attrs['T'].name}"
    return native(name, given.states, given.count, given.gradient, indices, given.flag, reasons=(ROW_OUTSIDE,))


@with_strings
def _update_rows(node: KernelNode) -> Native:
    """Parameters: struct rows_shape of csrc/indexing/update_rows.c."""
    from timberframe_ops.state.resource_scatter import ZERO_UPDATE

    variable = node.inputs[0]
    by_tuple = "Nd" in node.op
    kind = node.op.removeprefix("ResourceScatter").removeprefix("Nd").lower()
    dtype = node.attrs["T" if by_tuple else "dtype"]
    count, depth, inner, _ = update_sizes(node)
    scalar = has_scalar_update(node)
    ignore = node.attrs.get("bad_indices_policy") == "IGNORE"
    node.workspace(8 * max(count, 1))
    reasons = (TUPLE_OUTSIDE if by_tuple else in_tuple_order(ROW_OUTSIDE), ZERO_UPDATE)
    if kind == "update":
        size = variable.dtype.itemsize
        return native("update_rows", count, inner * size, depth, scalar, ignore, size, reasons=reasons)
    return native(f"update_{kind}_{dtype.name}", count, inner, depth, scalar, ignore, reasons=reasons)


def _applies(sparse: bool) -> list[KernelDef]:
    found = []
    for name, types, states in updating_ops(sparse):
        in_place = tuple((i, i) for i in range(states))
        chosen = {"T": types, "Tindices": _INDICES} if sparse else {"T": types}
        found.append(KernelDef(name, "CPU", _apply, chosen, inplace=in_place))
    return found


def _scatters() -> list[KernelDef]:
    reals, numbers = (*_REALS, *_INTEGERS), (*_NUMBERS, *_INTEGERS)
    rows = {"Add": numbers, "Sub": numbers, "Mul": numbers, "Div": numbers, "Min": reals, "Max": reals}
    tuples = {"NdAdd": (*numbers, "bool"), "NdSub": (*numbers, "bool"), "NdMin": reals, "NdMax": reals}
    fixed = (*numbers, "bool", "string")
    types = {n: {"dtype": t} for n, t in {**rows, "Update": fixed}.items()}
    types |= {n: {"T": t} for n, t in {**tuples, "NdUpdate": fixed}.items()}
    return [
        KernelDef(f"ResourceScatter{n}", "CPU", _update_rows, {**t, "Tindices": _INDICES}, inplace=((0, 0),))
        for n, t in types.items()
    ]


KERNELS = [*_applies(sparse=False), *_applies(sparse=True), *_scatters()]
