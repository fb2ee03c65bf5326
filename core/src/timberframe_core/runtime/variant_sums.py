"""Zeros like a list or an optional value, and sums of these: what gradients of lists and branches add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from timberframe_core.compiler.ir import Node
from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType, as_dtype, variant
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime import joins
from timberframe_core.runtime.lists import Driver
from timberframe_core.runtime.optional import OptionalValue
from timberframe_core.runtime.tensor_list import Element, TensorList
from timberframe_core.shapes import format_shape, is_static

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run


def _error(node: Node, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{node.op.name} '{node.name}': {message}", node.name)


def _zeros_like(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [_zeros(inputs[0])]


def _zeros(item: Located) -> Located:
    value = item[0]
    if isinstance(value, TensorList):
        return _zero_list(value), None
    if isinstance(value, OptionalValue):
        components = value.components
        return OptionalValue(None if components is None else tuple(map(_zeros, components))), None
    return joins.zeros(tuple(value.shape), _dtype(item))


def _zero_list(tensors: TensorList) -> TensorList:
    """Elements that were not set read as zeros; others are made where their shape is unknown."""
    items: list[Element] = [None] * len(tensors)
    if not is_static(tensors.element_shape) or tensors.dtype is variant:
        for i, item in tensors.numbered():
            items[i] = _zeros(item)
    made = TensorList(tensors.dtype, tensors.declared, items)
    made.seen = tensors.seen
    return made


def _add(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    lists = [value for value, _ in inputs if isinstance(value, TensorList)]
    if len(lists) == len(inputs):
        return [(_sum(node, lists, device, run), None)]
    total = inputs[0]
    for item in inputs[1:]:
        total = _add_items(node, "values", total, item, device, run)
    return [total]


def _sum(node: Node, lists: list[TensorList], device: Device, run: Run) -> TensorList:
    """Element by element. What was never set is zero, so only elements that were set cost anything."""
    if len({len(tensors) for tensors in lists}) > 1:
        raise _error(node, f"lists of {[len(tensors) for tensors in lists]} elements are added; lengths must be equal")
    total, *rest = sorted(
        lists, key=lambda tensors: -math.inf if tensors.sparse_items is None else -len(tensors.sparse_items)
    )
    for tensors in rest:
        for i, item in tensors.numbered():
            before = total.get(i)
            added = item if before is None else _add_items(node, f"elements {i}", before, item, device, run)
            total = total.with_item(i, added)
    return total


def _add_items(node: Node, what: str, a: Located, b: Located, device: Device, run: Run) -> Located:
    x, y = a[0], b[0]
    if isinstance(x, TensorList) and isinstance(y, TensorList):
        return _sum(node, [x, y], device, run), None
    if isinstance(x, OptionalValue) and isinstance(y, OptionalValue):
        if x.components is None or y.components is None:  # a value that is missing is zero
            return a if y.components is None else b
        if len(x.components) != len(y.components):
            counts = f"{len(x.components)} and {len(y.components)}"
            raise _error(node, f"{what} have {counts} components; they must be as many")
        pairs = zip(x.components, y.components, strict=True)
        return OptionalValue(tuple(_add_items(node, what, c, d, device, run) for c, d in pairs)), None
    if isinstance(x, TensorList | OptionalValue) or isinstance(y, TensorList | OptionalValue):
        raise _error(node, f"{what} are {type(x).__name__} and {type(y).__name__}; they must be of one kind")
    shapes = tuple(x.shape), tuple(y.shape)
    if shapes[0] != shapes[1]:
        raise _error(
            node, f"{what} have shapes {format_shape(shapes[0])} and {format_shape(shapes[1])}; they must be equal"
        )
    return run.runtime.joins.add(a, b, _dtype(a), device)


def _dtype(item: Located) -> DType:
    return as_dtype(item[0].dtype)


VARIANT_SUMS: dict[str, Driver] = {"AddN": _add, "AddV2": _add, "ZerosLike": _zeros_like}
"""How each op runs when what it is given is no tensor."""
