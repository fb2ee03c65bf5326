"""The TensorList ops, which the executor carries out: lists are host-side values whose elements stay on devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timberframe_core.compiler.ir import Node
from timberframe_core.compiler.plan import Located, host_array
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime import joins
from timberframe_core.runtime.tensor_list import Element, TensorList, without_values
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, is_static, merge

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

Driver = Callable[[Node, Sequence[Located], Device, "Run"], list[Located]]


def _error(node: Node, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{node.op.name} '{node.name}': {message}", node.name)


def _list(node: Node, located: Located) -> TensorList:
    value = located[0]
    if not isinstance(value, TensorList):
        raise _error(node, f"input is {type(value).__name__}; it must be a list of tensors")
    wanted: DType | None = node.attrs.get("element_dtype")
    if wanted is not None and wanted is not value.dtype:
        raise _error(node, f"the list holds {value.dtype.name}; element_dtype is {wanted.name}, they must be equal")
    return value


def _integer(located: Located) -> int:
    value = host_array(located)
    if value.ndim:
        raise InvalidArgumentError(f"a number has shape {format_shape(value.shape)}; it must be a scalar")
    return int(value)


def _integers(located: Located) -> list[int]:
    return [int(i) for i in host_array(located).ravel()]


def _shape(node: Node, located: Located) -> Shape:
    """An element shape: a vector of sizes with -1 for unknown ones, or the scalar -1 for an unknown rank."""
    value = host_array(located)
    if value.ndim == 0:
        if int(value) != -1:
            raise _error(node, f"element_shape is the scalar {int(value)}; it must be a vector of sizes, or -1")
        return None
    if value.ndim > 1:
        raise _error(node, f"element_shape has shape {format_shape(value.shape)}; it must be a vector of sizes, or -1")
    return tuple(None if d < 0 else int(d) for d in value)


def _merged(node: Node, *shapes: Shape) -> Shape:
    known: Shape = None
    for shape in shapes:
        if not compatible(known, shape):
            raise _error(
                node, f"elements of shape {format_shape(known)} and {format_shape(shape)} meet; shapes must suit"
            )
        known = merge(known, shape)
    return known


def _check_item(node: Node, tensors: TensorList, item: Located) -> None:
    shape = tuple(item[0].shape)
    if not compatible(tensors.declared, shape):
        raise _error(
            node,
            f"the tensor has shape {format_shape(shape)}; the list takes elements of shape "
            f"{format_shape(tensors.declared)}",
        )


def _check_index(node: Node, tensors: TensorList, index: int) -> None:
    if not 0 <= index < len(tensors):
        raise _error(node, f"index {index} in a list of {len(tensors)} elements; it must lie in [0, {len(tensors)})")


def _read(node: Node, tensors: TensorList, item: Element, shape: Shape) -> Located:
    """An element, or zeros in place of one that was never set."""
    if item is not None:
        found = tuple(item[0].shape)
        if not compatible(shape, found):
            raise _error(node, f"the element has shape {format_shape(found)}; {format_shape(shape)} is asked for")
        return item
    return joins.zeros(_zeros_shape(node, tensors, shape), tensors.dtype)


def _zeros_shape(node: Node, tensors: TensorList, shape: Shape) -> StaticShape:
    """The shape of an element that was never set: what is asked for, else that of the other elements."""
    known = _merged(node, shape, tensors.declared)
    if not is_static(known):
        known = _merged(node, known, tensors.element_shape)
    if known is None or None in known:
        raise _error(
            node,
            f"an element that was never set is read as zeros, and of its shape {format_shape(known)} is known; "
            "it must be fully known",
        )
    return tuple(d for d in known if d is not None)


# Making lists


def _empty(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    limit = _integer(inputs[1])
    return [(TensorList(node.attrs["element_dtype"], _shape(node, inputs[0]), [], limit), None)]


def _reserve(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    count = _integer(inputs[1])
    if count < 0:
        raise _error(node, f"num_elements is {count}; it must not be negative")
    return [(TensorList(node.attrs["element_dtype"], _shape(node, inputs[0]), without_values(count)), None)]


def _from_tensor(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    dtype = node.attrs["element_dtype"]
    shape = tuple(inputs[0][0].shape)
    if not shape:
        raise _error(node, "the tensor is a scalar; it must have rows")
    declared = _merged(node, _shape(node, inputs[1]), shape[1:])
    return [(TensorList(dtype, declared, list(run.runtime.joins.rows(inputs[0], dtype))), None)]


def _split(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    dtype, shape, lengths = node.attrs["element_dtype"], tuple(inputs[0][0].shape), _integers(inputs[2])
    if not shape:
        raise _error(node, "the tensor is a scalar; it must have rows")
    if any(n < 0 for n in lengths) or sum(lengths) != shape[0]:
        raise _error(node, f"lengths {lengths} for {shape[0]} rows; they must not be negative and add up to all rows")
    declared = _shape(node, inputs[1])
    pieces = run.runtime.joins.split(inputs[0], lengths, dtype) if lengths else []
    made = TensorList(dtype, declared, list(pieces))
    for piece in pieces:
        _check_item(node, made, piece)
    return [(made, None)]


def _scatter(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    dtype, shape = node.attrs["element_dtype"], tuple(inputs[0][0].shape)
    indices = _integers(inputs[1])
    declared = _merged(node, _shape(node, inputs[2]), shape[1:])
    count = _integer(inputs[3]) if len(inputs) > 3 else -1
    size = max(indices, default=-1) + 1 if count < 0 else count
    return [(_scattered(node, TensorList(dtype, declared, without_values(size)), inputs[0], indices, run), None)]


def _scatter_into(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, indices = _list(node, inputs[0]), _integers(inputs[2])
    size = max(indices, default=-1) + 1
    if size > len(tensors):
        tensors = tensors.resized(size)
    return [(_scattered(node, tensors, inputs[1], indices, run), None)]


def _scattered(node: Node, tensors: TensorList, tensor: Located, indices: list[int], run: Run) -> TensorList:
    shape = tuple(tensor[0].shape)
    if not shape or shape[0] != len(indices):
        raise _error(node, f"a tensor of shape {format_shape(shape)} for {len(indices)} indices; each needs one row")
    items = tensors.items()
    for index, row in zip(indices, run.runtime.joins.rows(tensor, tensors.dtype), strict=True):
        _check_index(node, tensors, index)
        _check_item(node, tensors, row)
        items[index] = row
    return tensors.of(items)


# Changing lists


def _set_item(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, index = _list(node, inputs[0]), _integer(inputs[1])
    if node.attrs["resize_if_index_out_of_bounds"] and index >= len(tensors):
        tensors = tensors.resized(index) if index > len(tensors) else tensors
    else:
        _check_index(node, tensors, index)
    _check_item(node, tensors, inputs[2])
    return [(tensors.with_item(index, inputs[2]), None)]


def _push(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors = _list(node, inputs[0])
    _check_item(node, tensors, inputs[1])
    if 0 <= tensors.limit <= len(tensors):
        raise _error(node, f"the list has {len(tensors)} elements; it may have {tensors.limit} at most")
    return [(tensors.with_item(len(tensors), inputs[1]), None)]


def _pop(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, shape = _list(node, inputs[0]), _shape(node, inputs[1])
    if not len(tensors):
        raise _error(node, "the list is empty; it must have an element to give")
    item = _read(node, tensors, tensors.get(len(tensors) - 1), shape)
    return [(tensors.popped(), None), item]


def _resize(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, size = _list(node, inputs[0]), _integer(inputs[1])
    if size < 0:
        raise _error(node, f"size is {size}; it must not be negative")
    return [(tensors if size == len(tensors) else tensors.resized(size), None)]


def _concat_lists(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    first, second = (_list(node, x) for x in inputs)
    declared = _merged(node, first.declared, second.declared)
    return [(TensorList(first.dtype, declared, [*first.items(), *second.items()]), None)]


# Reading lists


def _get_item(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, index = _list(node, inputs[0]), _integer(inputs[1])
    _check_index(node, tensors, index)
    return [_read(node, tensors, tensors.get(index), _shape(node, inputs[2]))]


def _stack(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, count = _list(node, inputs[0]), node.attrs["num_elements"]
    if count >= 0 and count != len(tensors):
        raise _error(node, f"the list has {len(tensors)} elements; num_elements is {count}, they must be equal")
    return [_joined(node, tensors, tensors.items(), _shape(node, inputs[1]), run)]


def _gather(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors, indices = _list(node, inputs[0]), _integers(inputs[1])
    for index in indices:
        _check_index(node, tensors, index)
    items = tensors.items()
    return [_joined(node, tensors, [items[i] for i in indices], _shape(node, inputs[2]), run)]


def _joined(node: Node, tensors: TensorList, items: list[Element], shape: Shape, run: Run) -> Located:
    """Elements of one shape as the rows of one tensor."""
    known = _merged(node, shape, tensors.declared)
    for item in items:
        known = _merged(node, known, None if item is None else tuple(item[0].shape))
    if not is_static(known):
        if all(item is None for item in items):
            known = _merged(node, known, tensors.element_shape)
        if not is_static(known):
            raise _error(
                node,
                f"there is no element whose shape is known, and all that is known is {format_shape(known)}; "
                "the shape must be fully known",
            )
    assert known is not None
    exact = tuple(d for d in known if d is not None)
    if not items:
        return joins.zeros((0, *exact), tensors.dtype)
    filler = joins.zeros(exact, tensors.dtype) if any(item is None for item in items) else None
    rows = [filler if item is None else item for item in items]
    return run.runtime.joins.stack([r for r in rows if r is not None], exact, tensors.dtype)


def _concat(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    tensors = _list(node, inputs[0])
    given = node.attrs["element_shape"] if len(inputs) == 1 else _shape(node, inputs[1])
    leading = _integers(inputs[2]) if len(inputs) > 2 else []
    items = tensors.items()
    tail = _merged(node, *(_tail(s) for s in (given, tensors.declared)))
    for item in items:
        if item is not None:
            if not item[0].shape:
                raise _error(node, "an element is a scalar; concatenated elements must have rows")
            tail = _merged(node, tail, _tail(tuple(item[0].shape)))
    parts: list[Located] = []
    for i, item in enumerate(items):
        if item is None:
            lead = leading[i] if i < len(leading) else _first(given, tensors.element_shape)
            item = joins.zeros(_zeros_shape(node, tensors, None if tail is None else (lead, *tail)), tensors.dtype)
        parts.append(item)
    if not parts and not is_static(tail):
        raise _error(node, f"the list is empty and its elements' shape is {format_shape(given)}; it must be known")
    empty = joins.zeros((0, *(d for d in tail or () if d is not None)), tensors.dtype)
    lengths = np.array([p[0].shape[0] for p in parts], np.int64)
    return [run.runtime.joins.concat(parts, tensors.dtype) if parts else empty, (lengths, None)]


def _tail(shape: Shape) -> Shape:
    return None if shape is None else shape[1:]


def _first(*shapes: Shape) -> int | None:
    return next((s[0] for s in shapes if s and s[0] is not None), None)


def _length(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [(np.array(len(_list(node, inputs[0])), np.int32), None)]


def _element_shape(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    shape = _list(node, inputs[0]).declared
    sizes = -1 if shape is None else [-1 if d is None else d for d in shape]
    return [(np.array(sizes, node.outputs[0].dtype.numpy), None)]


LISTS: dict[str, Driver] = {
    "EmptyTensorList": _empty,
    "TensorListConcat": _concat,
    "TensorListConcatLists": _concat_lists,
    "TensorListConcatV2": _concat,
    "TensorListElementShape": _element_shape,
    "TensorListFromTensor": _from_tensor,
    "TensorListGather": _gather,
    "TensorListGetItem": _get_item,
    "TensorListLength": _length,
    "TensorListPopBack": _pop,
    "TensorListPushBack": _push,
    "TensorListReserve": _reserve,
    "TensorListResize": _resize,
    "TensorListScatter": _scatter,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListScatterV2": _scatter,
    "TensorListSetItem": _set_item,
    "TensorListSplit": _split,
    "TensorListStack": _stack,
}
"""How each op runs when a list is among its inputs or outputs."""
