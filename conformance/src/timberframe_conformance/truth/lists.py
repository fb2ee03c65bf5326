"""TensorList and Optional ops on the host: plain Python sequences, and no sharing of memory.

A list's elements are arrays or lists, None where one was never set and so reads as zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, variant
from timberframe_core.shapes import Shape, merge


@dataclass(frozen=True, eq=False)
class HostList:
    """The value of a TensorList. declared: the shape that all elements are compatible with, None if unknown."""

    dtype: DType
    declared: Shape
    items: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def element_shape(self) -> Shape:
        """What is known of each element's shape."""
        shapes = {np.shape(x) for x in self.items if x is not None and not isinstance(x, HostList)}
        return merge(self.declared, shapes.pop()) if len(shapes) == 1 else self.declared

    def of(self, items: Sequence[Any]) -> HostList:
        return replace(self, items=tuple(items))

    def zeros(self, *known: Shape) -> np.ndarray:
        """Returns an element that was never set."""
        shape = self.element_shape
        for other in known:
            shape = merge(shape, other)
        if shape is None or None in shape:
            raise ValueError(f"zeros of shape {shape}; it must be known wholly")
        return np.zeros([d for d in shape if d is not None], _wide(self.dtype))

    def tensors(self, *known: Shape) -> list[np.ndarray]:
        """Returns all elements as arrays."""
        return [self.zeros(*known) if x is None else x for x in self.items]


def _wide(dtype: DType) -> np.dtype:
    if dtype.is_complex:
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtype.is_floating else dtype.numpy


def _shape(value: Any) -> Shape:
    return None if np.ndim(value) == 0 else tuple(None if d < 0 else int(d) for d in value)


def _stack(rows: Sequence[np.ndarray], tensors: HostList, shape: Shape) -> np.ndarray:
    if rows:
        return np.stack(rows)
    return np.zeros((0, *tensors.zeros(shape).shape), _wide(tensors.dtype))


def _concat(op: Any, tensors: HostList, *rest: Any) -> tuple[Any, ...]:
    given = _shape(rest[0]) if rest else op.attrs["element_shape"]
    leading = list(rest[1]) if len(rest) > 1 else []
    parts = []
    for i, x in enumerate(tensors.items):
        if x is None:
            known = merge(given, tensors.element_shape)
            lead = (int(leading[i]),) if i < len(leading) else (known or (None,))[:1]
            x = tensors.of([]).zeros(None if known is None else (*lead, *known[1:]))
        parts.append(x)
    if not parts:
        sizes = [0, *(d for d in (merge(given, tensors.declared) or (0,))[1:] if d is not None)]
        return np.zeros(sizes, _wide(tensors.dtype)), np.zeros(0, np.int64)
    return np.concatenate(parts), np.array([len(p) for p in parts], np.int64)


def _scattered(tensors: HostList, rows: Any, indices: Any) -> tuple[Any, ...]:
    items = list(tensors.items)
    for i, row in zip(indices, rows, strict=True):
        items[i] = row
    return (tensors.of(items),)


def _scatter(op: Any, rows: Any, indices: Any, shape: Any, count: Any = -1) -> tuple[Any, ...]:
    size = int(count) if count >= 0 else int(max(indices, default=-1)) + 1
    return _scattered(HostList(op.attrs["element_dtype"], _shape(shape), (None,) * size), rows, indices)


def _scatter_into(op: Any, tensors: HostList, rows: Any, indices: Any) -> tuple[Any, ...]:
    size = max(len(tensors.items), int(max(indices, default=-1)) + 1)
    return _scattered(_resized(tensors, size), rows, indices)


def _resized(tensors: HostList, size: int) -> HostList:
    return tensors.of([*tensors.items[:size], *[None] * (size - len(tensors.items))])


def _set_item(op: Any, tensors: HostList, index: Any, item: Any) -> tuple[Any, ...]:
    if op.attrs["resize_if_index_out_of_bounds"] and index >= len(tensors.items):
        tensors = _resized(tensors, int(index) + 1)
    items = list(tensors.items)
    items[_checked(index, items)] = item
    return (tensors.of(items),)


def _checked(index: Any, items: Sequence[Any]) -> int:
    if not 0 <= index < len(items):
        raise ValueError(f"index {index} in a list of {len(items)} elements")
    return int(index)


def _get_item(op: Any, tensors: HostList, index: Any, shape: Any) -> tuple[Any, ...]:
    item = tensors.items[_checked(index, tensors.items)]
    return (tensors.zeros(_shape(shape)) if item is None else item,)


def _pop(op: Any, tensors: HostList, shape: Any) -> tuple[Any, ...]:
    last = tensors.items[_checked(len(tensors.items) - 1, tensors.items)]
    return tensors.of(tensors.items[:-1]), tensors.zeros(_shape(shape)) if last is None else last


def _split(op: Any, tensor: Any, shape: Any, lengths: Any) -> tuple[Any, ...]:
    if sum(lengths) != len(tensor):
        raise ValueError(f"lengths {lengths} for {len(tensor)} rows")
    ends = np.cumsum(lengths)
    pieces = tuple(tensor[e - n : e] for e, n in zip(ends, lengths, strict=True))
    return (HostList(op.attrs["element_dtype"], _shape(shape), pieces),)


def _element_shape(op: Any, tensors: HostList) -> tuple[Any, ...]:
    shape = tensors.element_shape
    sizes: Any = -1 if shape is None else [-1 if d is None else d for d in shape]
    return (np.array(sizes, op.outputs[0].dtype.numpy),)


def _reserve(op: Any, shape: Any, count: Any) -> tuple[Any, ...]:
    size = int(count) if op.type == "TensorListReserve" else 0
    return (HostList(op.attrs["element_dtype"], _shape(shape), (None,) * size),)


def _from_tensor(op: Any, tensor: Any, shape: Any) -> tuple[Any, ...]:
    return (HostList(op.attrs["element_dtype"], merge(_shape(shape), tensor.shape[1:]), tuple(tensor)),)


LISTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "EmptyTensorList": _reserve,
    "TensorListReserve": _reserve,
    "TensorListFromTensor": _from_tensor,
    "TensorListSplit": _split,
    "TensorListScatter": _scatter,
    "TensorListScatterV2": _scatter,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListSetItem": _set_item,
    "TensorListPushBack": lambda op, tensors, item: (tensors.of([*tensors.items, item]),),
    "TensorListPopBack": _pop,
    "TensorListGetItem": _get_item,
    "TensorListResize": lambda op, tensors, size: (_resized(tensors, int(size)),),
    "TensorListStack": lambda op, tensors, shape: (_stack(tensors.tensors(_shape(shape)), tensors, _shape(shape)),),
    "TensorListGather": lambda op, tensors, indices, shape: (
        _stack([tensors.tensors(_shape(shape))[_checked(i, tensors.items)] for i in indices], tensors, _shape(shape)),
    ),
    "TensorListConcat": _concat,
    "TensorListConcatV2": _concat,
    "TensorListConcatLists": lambda op, a, b: (a.of([*a.items, *b.items]),),
    "TensorListLength": lambda op, tensors: (np.array(len(tensors.items), np.int32),),
    "TensorListElementShape": _element_shape,
    "OptionalNone": lambda op: (None,),
    "OptionalFromValue": lambda op, *values: (values,),
    "OptionalGetValue": lambda op, value: value,
    "OptionalHasValue": lambda op, value: (np.array(value is not None),),
}
"""Each takes the operation and its inputs' values."""


def zeros_like(value: Any) -> Any:
    """Returns the zero of what a tensor of dtype variant holds."""
    if not isinstance(value, HostList):
        return None if value is None else tuple(map(zeros_like, value))
    shape = value.element_shape
    if value.dtype is not variant and shape is not None and None not in shape:
        return replace(value, declared=shape, items=(None,) * len(value.items))
    return value.of([None if x is None else zeros_like(x) if isinstance(x, HostList) else x * 0 for x in value.items])


def add(values: Sequence[Any]) -> Any:
    """Returns the sum of values of dtype variant, element by element."""
    if not isinstance(values[0], HostList):
        return None if values[0] is None else tuple(_sum(parts) for parts in zip(*values, strict=True))
    columns = zip(*(v.items for v in values), strict=True)
    return values[0].of([_sum(present) if (present := [x for x in c if x is not None]) else None for c in columns])


def _sum(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], HostList):
        return add(parts)
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return total
