"""The TensorList ops, which the executor carries out: lists are host-side values whose elements stay on devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.runtime import joins
from timberframe_core.runtime.tensor_list import Element, TensorList, without_values
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, is_static, merge


def _list(call: HostCall, value: Any) -> TensorList:
    if not isinstance(value, TensorList):
        raise call.error(f"input is {type(value).__name__}; it must be a list of tensors")
    wanted: DType | None = call.attrs.get("element_dtype")
    if wanted is not None and wanted is not value.dtype:
        raise call.error(f"the list holds {value.dtype.name}; element_dtype is {wanted.name}, they must be equal")
    return value


def _integer(value: np.ndarray) -> int:
    if value.ndim:
        raise InvalidArgumentError(f"a number has shape {format_shape(value.shape)}; it must be a scalar")
    return int(value)


def _integers(value: np.ndarray) -> list[int]:
    return [int(i) for i in value.ravel()]


def _shape(call: HostCall, value: np.ndarray) -> Shape:
    """Returns an element shape: a vector of sizes with -1 for unknown ones, or the scalar -1 for an unknown rank."""
    if value.ndim == 0:
        if int(value) != -1:
            raise call.error(f"element_shape is the scalar {int(value)}; it must be a vector of sizes, or -1")
        return None
    if value.ndim > 1:
        raise call.error(f"element_shape has shape {format_shape(value.shape)}; it must be a vector of sizes, or -1")
    return tuple(None if d < 0 else int(d) for d in value)


def _merged(call: HostCall, *shapes: Shape) -> Shape:
    known: Shape = None
    for shape in shapes:
        if not compatible(known, shape):
            raise call.error(
                f"elements of shape {format_shape(known)} and {format_shape(shape)} meet; shapes must suit"
            )
        known = merge(known, shape)
    return known


def _check_item(call: HostCall, tensors: TensorList, item: Located) -> None:
    shape = tuple(item[0].shape)
    if not compatible(tensors.declared, shape):
        raise call.error(
            f"the tensor has shape {format_shape(shape)}; the list takes elements of shape "
            f"{format_shape(tensors.declared)}",
        )


def _check_index(call: HostCall, tensors: TensorList, index: int) -> None:
    if not 0 <= index < len(tensors):
        raise call.error(f"index {index} in a list of {len(tensors)} elements; it must lie in [0, {len(tensors)})")


def _read(call: HostCall, tensors: TensorList, item: Element, shape: Shape) -> Located:
    """Returns an element, or zeros in place of one that was never set."""
    if item is not None:
        found = tuple(item[0].shape)
        if not compatible(shape, found):
            raise call.error(f"the element has shape {format_shape(found)}; {format_shape(shape)} is asked for")
        return item
    return joins.zeros(_zeros_shape(call, tensors, shape), tensors.dtype)


def _zeros_shape(call: HostCall, tensors: TensorList, shape: Shape) -> StaticShape:
    """Returns the shape of an element that was never set: what is asked for, else that of the other elements."""
    known = _merged(call, shape, tensors.declared)
    if not is_static(known):
        known = _merged(call, known, tensors.element_shape)
    if known is None or None in known:
        raise call.error(
            f"an element that was never set is read as zeros, and of its shape {format_shape(known)} is known; "
            "it must be fully known",
        )
    return tuple(d for d in known if d is not None)


# Making lists


@host_op("EmptyTensorList")
def _empty(call: HostCall) -> list[Located]:
    limit = _integer(call.inputs[1])
    return [(TensorList(call.attrs["element_dtype"], _shape(call, call.inputs[0]), [], limit), None)]


@host_op("TensorListReserve")
def _reserve(call: HostCall) -> list[Located]:
    count = _integer(call.inputs[1])
    if count < 0:
        raise call.error(f"num_elements is {count}; it must not be negative")
    return [(TensorList(call.attrs["element_dtype"], _shape(call, call.inputs[0]), without_values(count)), None)]


@host_op("TensorListFromTensor", located=["tensor"])
def _from_tensor(call: HostCall) -> list[Located]:
    dtype = call.attrs["element_dtype"]
    shape = tuple(call.inputs[0][0].shape)
    if not shape:
        raise call.error("the tensor is a scalar; it must have rows")
    declared = _merged(call, _shape(call, call.inputs[1]), shape[1:])
    return [(TensorList(dtype, declared, list(call.joins.rows(call.inputs[0], dtype))), None)]


@host_op("TensorListSplit", located=["tensor"])
def _split(call: HostCall) -> list[Located]:
    dtype, shape, lengths = call.attrs["element_dtype"], tuple(call.inputs[0][0].shape), _integers(call.inputs[2])
    if not shape:
        raise call.error("the tensor is a scalar; it must have rows")
    if any(n < 0 for n in lengths) or sum(lengths) != shape[0]:
        raise call.error(f"lengths {lengths} for {shape[0]} rows; they must not be negative and add up to all rows")
    declared = _shape(call, call.inputs[1])
    pieces = call.joins.split(call.inputs[0], lengths, dtype) if lengths else []
    made = TensorList(dtype, declared, list(pieces))
    for piece in pieces:
        _check_item(call, made, piece)
    return [(made, None)]


@host_op("TensorListScatter", "TensorListScatterV2", located=["tensor"])
def _scatter(call: HostCall) -> list[Located]:
    dtype, shape = call.attrs["element_dtype"], tuple(call.inputs[0][0].shape)
    indices = _integers(call.inputs[1])
    declared = _merged(call, _shape(call, call.inputs[2]), shape[1:])
    count = _integer(call.inputs[3]) if len(call.inputs) > 3 else -1
    size = max(indices, default=-1) + 1 if count < 0 else count
    return [(_scattered(call, TensorList(dtype, declared, without_values(size)), call.inputs[0], indices), None)]


@host_op("TensorListScatterIntoExistingList", located=["tensor"])
def _scatter_into(call: HostCall) -> list[Located]:
    tensors, indices = _list(call, call.inputs[0]), _integers(call.inputs[2])
    size = max(indices, default=-1) + 1
    if size > len(tensors):
        tensors = tensors.resized(size)
    return [(_scattered(call, tensors, call.inputs[1], indices), None)]


def _scattered(call: HostCall, tensors: TensorList, tensor: Located, indices: list[int]) -> TensorList:
    shape = tuple(tensor[0].shape)
    if not shape or shape[0] != len(indices):
        raise call.error(f"a tensor of shape {format_shape(shape)} for {len(indices)} indices; each needs one row")
    items = tensors.items()
    for index, row in zip(indices, call.joins.rows(tensor, tensors.dtype), strict=True):
        _check_index(call, tensors, index)
        _check_item(call, tensors, row)
        items[index] = row
    return tensors.of(items)


# Changing lists


@host_op("TensorListSetItem", located=["item"])
def _set_item(call: HostCall) -> list[Located]:
    tensors, index = _list(call, call.inputs[0]), _integer(call.inputs[1])
    if call.attrs["resize_if_index_out_of_bounds"] and index >= len(tensors):
        tensors = tensors.resized(index) if index > len(tensors) else tensors
    else:
        _check_index(call, tensors, index)
    _check_item(call, tensors, call.inputs[2])
    return [(tensors.with_item(index, call.inputs[2]), None)]


@host_op("TensorListPushBack", located=["tensor"])
def _push(call: HostCall) -> list[Located]:
    tensors = _list(call, call.inputs[0])
    _check_item(call, tensors, call.inputs[1])
    if 0 <= tensors.limit <= len(tensors):
        raise call.error(f"the list has {len(tensors)} elements; it may have {tensors.limit} at most")
    return [(tensors.with_item(len(tensors), call.inputs[1]), None)]


@host_op("TensorListPopBack")
def _pop(call: HostCall) -> list[Located]:
    tensors, shape = _list(call, call.inputs[0]), _shape(call, call.inputs[1])
    if not len(tensors):
        raise call.error("the list is empty; it must have an element to give")
    item = _read(call, tensors, tensors.get(len(tensors) - 1), shape)
    return [(tensors.popped(), None), item]


@host_op("TensorListResize")
def _resize(call: HostCall) -> list[Located]:
    tensors, size = _list(call, call.inputs[0]), _integer(call.inputs[1])
    if size < 0:
        raise call.error(f"size is {size}; it must not be negative")
    return [(tensors if size == len(tensors) else tensors.resized(size), None)]


@host_op("TensorListConcatLists")
def _concat_lists(call: HostCall) -> list[Located]:
    first, second = (_list(call, x) for x in call.inputs)
    declared = _merged(call, first.declared, second.declared)
    return [(TensorList(first.dtype, declared, [*first.items(), *second.items()]), None)]


# Reading lists


@host_op("TensorListGetItem")
def _get_item(call: HostCall) -> list[Located]:
    tensors, index = _list(call, call.inputs[0]), _integer(call.inputs[1])
    _check_index(call, tensors, index)
    return [_read(call, tensors, tensors.get(index), _shape(call, call.inputs[2]))]


@host_op("TensorListStack")
def _stack(call: HostCall) -> list[Located]:
    tensors, count = _list(call, call.inputs[0]), call.attrs["num_elements"]
    if count >= 0 and count != len(tensors):
        raise call.error(f"the list has {len(tensors)} elements; num_elements is {count}, they must be equal")
    return [_joined(call, tensors, tensors.items(), _shape(call, call.inputs[1]))]


@host_op("TensorListGather")
def _gather(call: HostCall) -> list[Located]:
    tensors, indices = _list(call, call.inputs[0]), _integers(call.inputs[1])
    for index in indices:
        _check_index(call, tensors, index)
    items = tensors.items()
    return [_joined(call, tensors, [items[i] for i in indices], _shape(call, call.inputs[2]))]


def _joined(call: HostCall, tensors: TensorList, items: list[Element], shape: Shape) -> Located:
    """Returns elements of one shape as the rows of one tensor."""
    known = _merged(call, shape, tensors.declared)
    for item in items:
        known = _merged(call, known, None if item is None else tuple(item[0].shape))
    if not is_static(known):
        if all(item is None for item in items):
            known = _merged(call, known, tensors.element_shape)
        if not is_static(known):
            raise call.error(
                f"there is no element whose shape is known, and all that is known is {format_shape(known)}; "
                "the shape must be fully known",
            )
    assert known is not None
    exact = tuple(d for d in known if d is not None)
    if not items:
        return joins.zeros((0, *exact), tensors.dtype)
    filler = joins.zeros(exact, tensors.dtype) if any(item is None for item in items) else None
    rows = [filler if item is None else item for item in items]
    return call.joins.stack([r for r in rows if r is not None], exact, tensors.dtype)


@host_op("TensorListConcat", "TensorListConcatV2")
def _concat(call: HostCall) -> list[Located]:
    tensors = _list(call, call.inputs[0])
    given = call.attrs["element_shape"] if len(call.inputs) == 1 else _shape(call, call.inputs[1])
    leading = _integers(call.inputs[2]) if len(call.inputs) > 2 else []
    items = tensors.items()
    tail = _merged(call, *(_tail(s) for s in (given, tensors.declared)))
    for item in items:
        if item is not None:
            if not item[0].shape:
                raise call.error("an element is a scalar; concatenated elements must have rows")
            tail = _merged(call, tail, _tail(tuple(item[0].shape)))
    parts: list[Located] = []
    for i, item in enumerate(items):
        if item is None:
            lead = leading[i] if i < len(leading) else _first(given, tensors.element_shape)
            item = joins.zeros(_zeros_shape(call, tensors, None if tail is None else (lead, *tail)), tensors.dtype)
        parts.append(item)
    if not parts and not is_static(tail):
        raise call.error(f"the list is empty and its elements' shape is {format_shape(given)}; it must be known")
    empty = joins.zeros((0, *(d for d in tail or () if d is not None)), tensors.dtype)
    lengths = np.array([p[0].shape[0] for p in parts], np.int64)
    return [call.joins.concat(parts, tensors.dtype) if parts else empty, (lengths, None)]


def _tail(shape: Shape) -> Shape:
    return None if shape is None else shape[1:]


def _first(*shapes: Shape) -> int | None:
    return next((s[0] for s in shapes if s and s[0] is not None), None)


@host_op("TensorListLength")
def _length(call: HostCall) -> list[Located]:
    return [(np.array(len(_list(call, call.inputs[0])), np.int32), None)]


@host_op("TensorListElementShape")
def _element_shape(call: HostCall) -> list[Located]:
    shape = _list(call, call.inputs[0]).declared
    sizes = -1 if shape is None else [-1 if d is None else d for d in shape]
    return [(np.array(sizes, call.dtypes[0].numpy), None)]
