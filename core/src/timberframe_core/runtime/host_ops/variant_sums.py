"""Zeros like a list or an optional value, and sums of these: what gradients of lists and branches add up."""

from __future__ import annotations

import math

from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType, as_dtype, variant
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.runtime import joins
from timberframe_core.runtime.host_ops.optional import OptionalValue
from timberframe_core.runtime.tensor_list import Element, TensorList
from timberframe_core.shapes import format_shape, is_static


@host_op("ZerosLike")
def _zeros_like(call: HostCall) -> list[Located]:
    return [_zeros((call.inputs[0], None))]


def _zeros(item: Located) -> Located:
    value = item[0]
    if isinstance(value, TensorList):
        return _zero_list(value), None
    if isinstance(value, OptionalValue):
        components = value.components
        return OptionalValue(None if components is None else tuple(map(_zeros, components))), None
    return joins.zeros(tuple(value.shape), _dtype(item))


def _zero_list(tensors: TensorList) -> TensorList:
    """Returns elements that were not set read as zeros; others are made where their shape is unknown."""
    items: list[Element] = [None] * len(tensors)
    if not is_static(tensors.element_shape) or tensors.dtype is variant:
        for i, item in tensors.numbered():
            items[i] = _zeros(item)
    made = TensorList(tensors.dtype, tensors.declared, items)
    made.seen = tensors.seen
    return made


@host_op("AddN", "AddV2")
def _add(call: HostCall) -> list[Located]:
    lists = [value for value in call.inputs if isinstance(value, TensorList)]
    if len(lists) == len(call.inputs):
        return [(_sum(call, lists), None)]
    total: Located = call.inputs[0], None
    for value in call.inputs[1:]:
        total = _add_items(call, "values", total, (value, None))
    return [total]


def _sum(call: HostCall, lists: list[TensorList]) -> TensorList:
    """Element by element. What was never set is zero, so only elements that were set cost anything."""
    if len({len(tensors) for tensors in lists}) > 1:
        raise call.error(f"lists of {[len(tensors) for tensors in lists]} elements are added; lengths must be equal")
    total, *rest = sorted(
        lists, key=lambda tensors: -math.inf if tensors.sparse_items is None else -len(tensors.sparse_items)
    )
    for tensors in rest:
        for i, item in tensors.numbered():
            before = total.get(i)
            added = item if before is None else _add_items(call, f"elements {i}", before, item)
            total = total.with_item(i, added)
    return total


def _add_items(call: HostCall, what: str, a: Located, b: Located) -> Located:
    x, y = a[0], b[0]
    if isinstance(x, TensorList) and isinstance(y, TensorList):
        return _sum(call, [x, y]), None
    if isinstance(x, OptionalValue) and isinstance(y, OptionalValue):
        if x.components is None or y.components is None:  # a value that is missing is zero
            return a if y.components is None else b
        if len(x.components) != len(y.components):
            counts = f"{len(x.components)} and {len(y.components)}"
            raise call.error(f"{what} have {counts} components; they must be as many")
        pairs = zip(x.components, y.components, strict=True)
        return OptionalValue(tuple(_add_items(call, what, c, d) for c, d in pairs)), None
    if isinstance(x, TensorList | OptionalValue) or isinstance(y, TensorList | OptionalValue):
        raise call.error(f"{what} are {type(x).__name__} and {type(y).__name__}; they must be of one kind")
    shapes = tuple(x.shape), tuple(y.shape)
    if shapes[0] != shapes[1]:
        found = f"{format_shape(shapes[0])} and {format_shape(shapes[1])}"
        raise call.error(f"{what} have shapes {found}; they must be equal")
    return call.joins.add(a, b, _dtype(a), call.device)


def _dtype(item: Located) -> DType:
    return as_dtype(item[0].dtype)
