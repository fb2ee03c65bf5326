"""The TensorArray*V3 and Stack*V2 ops, which the executor carries out: arrays and stacks live as long as one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType, resource
from timberframe_core.errors import ResourceExhaustedError, UnimplementedError
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.runtime import joins
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, is_static, merge

_FLOW: Located = (np.zeros((), np.float32), None)


MOST_ELEMENTS = 1 << 22
"""Of an array: half a gigabyte, before any element is written."""


class _Element:
    """One element: value None with `written` means zeros of `shape`."""

    __slots__ = ("cleared", "read", "shape", "value", "written")

    def __init__(self) -> None:
        self.value: Located | None = None
        self.shape: StaticShape | None = None
        self.written = self.read = self.cleared = False


def _new_elements(count: int) -> list[_Element]:
    if count > MOST_ELEMENTS:
        raise ResourceExhaustedError(f"an array is to have {count} further elements; it has at most {MOST_ELEMENTS}")
    return [_Element() for _ in range(count)]


class Array:
    """A TensorArray while a run is in flight. adds: writing twice to an element adds up (an array of gradients)."""

    def __init__(self, dtype: DType, shape: Shape, size: int, attrs: Mapping[str, Any], adds: bool = False) -> None:
        self.dtype = dtype
        self.shape = shape
        self.elements = _new_elements(size)
        self.dynamic = attrs.get("dynamic_size", False)
        self.clear_after_read = attrs.get("clear_after_read", False)
        self.identical = attrs.get("identical_element_shapes", False)
        self.adds = adds
        self.pieces: int | None = None
        """How many elements a split set, which may be fewer than there are in a dynamic array."""
        self.closed = False
        self.derived: dict[str, Array] = {}
        """Arrays of gradients, by the name of who wanted them."""

    def gradients(self, front: StaticShape) -> Array:
        """Returns an array for the gradients of the elements, which have the dimensions `front` in addition."""
        made = Array(self.dtype, None if self.shape is None else (*front, *self.shape), len(self.elements), {}, True)
        for mine, other in zip(made.elements, self.elements, strict=True):
            if other.written and other.shape is not None:
                mine.written, mine.shape = True, (*front, *other.shape)
        made.pieces, self.dynamic = self.pieces, False
        return made

    def write(self, call: HostCall, index: int, value: Located) -> None:
        """Sets an element."""
        if index >= 0 and self.dynamic:
            self.elements += _new_elements(index + 1 - len(self.elements))
        self._check_index(call, index)
        shape = tuple(value[0].shape)
        if not compatible(self.shape, shape):
            raise call.error(
                f"a value of shape {format_shape(shape)} for element {index}; the array takes elements of shape "
                f"{format_shape(self.shape)}",
            )
        if self.identical:
            self.shape = merge(self.shape, shape)
        element = self.elements[index]
        if element.read or (element.written and not self.adds):
            what = "read" if element.read else "written"
            raise call.error(f"element {index} has been {what} already; it can be written once, before it is read")
        if element.written and element.shape != shape:
            raise call.error(
                f"a gradient of shape {format_shape(shape)} is added to element {index} of shape "
                f"{format_shape(element.shape)}; shapes must be equal",
            )
        if element.value is not None:
            value = call.joins.add(element.value, value, self.dtype, call.device)
        element.value, element.shape, element.written = value, shape, True

    def read(self, call: HostCall, index: int, shape: Shape = None) -> Located:
        """Returns an element; zeros where nothing was written and the shape is known."""
        self._check_index(call, index)
        element = self.elements[index]
        if element.cleared:
            raise call.error(f"element {index} was read before, which cleared it; set clear_after_read to false")
        value = element.value
        if value is None:
            known = element.shape if element.shape is not None else merge(self.shape, shape)
            if known is None or None in known:
                raise call.error(
                    f"element {index} was never written and the shape of elements is {format_shape(known)}; it must be "
                    "written, or element_shape fully known",
                )
            value = joins.zeros(tuple(d for d in known if d is not None), self.dtype)
        element.read = True
        if self.clear_after_read:
            element.value, element.cleared = None, True
        return value

    def _check_index(self, call: HostCall, index: int) -> None:
        if not 0 <= index < len(self.elements):
            raise call.error(
                f"index {index} in an array of {len(self.elements)} elements; it must lie in "
                f"[0, {len(self.elements)})" + ("" if not self.dynamic else ", or beyond that for writing"),
            )


class Stack:
    """A stack while a run is in flight."""

    def __init__(self, dtype: DType, limit: int) -> None:
        self.dtype = dtype
        self.limit = limit
        self.items: list[Any] = []
        """Located values; of a stack of resources the arrays and stacks themselves."""
        self.closed = False


def _array(call: HostCall) -> Array:
    found = call.run_state.get(call.handle())
    if not isinstance(found, Array) or found.closed:
        what = "closed" if isinstance(found, Array) else "not made in this run"
        raise call.error(f"the array is {what}; it must be open")
    return found


def _stack_of(call: HostCall) -> Stack:
    found = call.run_state.get(call.handle())
    if not isinstance(found, Stack) or found.closed:
        what = "closed" if isinstance(found, Stack) else "not made in this run"
        raise call.error(f"the stack is {what}; it must be open")
    return found


@host_op("TensorArrayV3")
def _make(call: HostCall) -> list[Located]:
    size = int(call.inputs[0])
    if size < 0:
        raise call.error(f"size is {size}; it must not be negative")
    made = Array(call.attrs["dtype"], call.attrs["element_shape"], size, call.attrs)
    call.run_state[call.made] = made
    return [_FLOW]


@host_op("TensorArrayGradV3", "TensorArrayGradWithShape")
def _make_gradients(call: HostCall) -> list[Located]:
    state = call.run_state
    found = state.get(call.handle())
    if not isinstance(found, Array) or found.closed:
        raise call.error("the array whose gradients are wanted is closed or not made in this run")
    source = call.attrs["source"]
    if source not in found.derived:
        front = tuple(int(d) for d in call.inputs[1]) if len(call.inputs) > 1 else ()
        found.derived[source] = found.gradients(front)
    state[call.made] = found.derived[source]
    return [_FLOW]


@host_op("TensorArrayWriteV3", located=["value"])
def _write(call: HostCall) -> list[Located]:
    array = _array(call)
    _check_dtype(call, array)
    array.write(call, int(call.inputs[0]), call.inputs[1])
    return [_FLOW]


def _check_dtype(call: HostCall, array: Array) -> None:
    dtype = call.attrs.get("T") or call.attrs["dtype"]
    if dtype is not array.dtype:
        raise call.error(f"the array holds {array.dtype.name}; {dtype.name} is given, they must be equal")


@host_op("TensorArrayReadV3")
def _read(call: HostCall) -> list[Located]:
    array = _array(call)
    _check_dtype(call, array)
    return [array.read(call, int(call.inputs[0]))]


@host_op("TensorArrayGatherV3")
def _gather(call: HostCall) -> list[Located]:
    array, shape = _array(call), call.attrs["element_shape"]
    _check_dtype(call, array)
    rows = [array.read(call, int(i), shape) for i in call.inputs[0]]
    if not rows:
        known = merge(array.shape, shape) if compatible(array.shape, shape) else None
        return [joins.zeros((0, *_known_shape(call, known)), array.dtype)]
    shapes = [tuple(a.shape) for a, _ in rows]
    if len(set(shapes)) > 1:
        raise call.error(f"elements have shapes {', '.join(map(format_shape, shapes))}; they must be equal")
    return [call.joins.stack(rows, shapes[0], array.dtype)]


def _known_shape(call: HostCall, shape: Shape) -> StaticShape:
    if not is_static(shape):
        raise UnimplementedError(
            f"{call.op} '{call.name}': nothing is read and the shape of elements is {format_shape(shape)}; "
            "it must be fully known",
            call.name,
        )
    return tuple(d for d in shape or () if d is not None)


@host_op("TensorArrayScatterV3", located=["value"])
def _scatter(call: HostCall) -> list[Located]:
    array = _array(call)
    _check_dtype(call, array)
    indices, shape = call.inputs[0].ravel(), tuple(call.inputs[1][0].shape)
    if not shape or shape[0] != indices.size:
        raise call.error(f"a value of shape {format_shape(shape)} for {indices.size} indices; each needs one row")
    for index, row in zip(indices, call.joins.rows(call.inputs[1], array.dtype), strict=True):
        array.write(call, int(index), row)
    return [_FLOW]


@host_op("TensorArrayConcatV3")
def _concat(call: HostCall) -> list[Located]:
    array, rest = _array(call), call.attrs["element_shape_except0"]
    _check_dtype(call, array)
    if not array.elements:
        return [joins.zeros((0, *_known_shape(call, rest)), array.dtype), (np.zeros(0, np.int64), None)]
    count = array.pieces if array.adds and array.pieces is not None else len(array.elements)
    parts = [array.read(call, i) for i in range(count)]
    shapes = [tuple(a.shape) for a, _ in parts]
    if any(not s for s in shapes) or len({s[1:] for s in shapes}) > 1:
        raise call.error(
            f"elements have shapes {', '.join(map(format_shape, shapes))}; they must be equal but for the first size",
        )
    lengths = np.array([s[0] for s in shapes], np.int64)
    return [call.joins.concat(parts, array.dtype), (lengths, None)]


@host_op("TensorArraySplitV3", located=["value"])
def _split(call: HostCall) -> list[Located]:
    array = _array(call)
    _check_dtype(call, array)
    lengths, shape = call.inputs[1], tuple(call.inputs[0][0].shape)
    if lengths.ndim != 1 or not shape or int(lengths.sum()) != shape[0] or (lengths < 0).any():
        raise call.error(
            f"lengths {lengths.tolist()} for a value of shape {format_shape(shape)}; they must be a vector and add up "
            "to the first size",
        )
    if not array.dynamic and lengths.size != len(array.elements):
        raise call.error(f"{lengths.size} lengths for an array of {len(array.elements)}; each element needs one")
    if array.dynamic:
        array.pieces = lengths.size
    for i, piece in enumerate(call.joins.split(call.inputs[0], lengths.tolist(), array.dtype)):
        array.write(call, i, piece)
    return [_FLOW]


@host_op("TensorArraySizeV3")
def _size(call: HostCall) -> list[Located]:
    return [(np.array(len(_array(call).elements), np.int32), None)]


@host_op("StackCloseV2", "TensorArrayCloseV3")
def _close(call: HostCall) -> list[Located]:
    found = call.run_state.get(call.handle())
    if isinstance(found, Array):
        found.closed, found.elements = True, []
    elif isinstance(found, Stack):
        found.closed, found.items = True, []
    return []


@host_op("StackV2")
def _make_stack(call: HostCall) -> list[Located]:
    call.run_state[call.made] = Stack(call.attrs["elem_type"], int(call.inputs[0]))
    return []


@host_op("StackPushV2", located=["elem"])
def _push(call: HostCall) -> list[Located]:
    stack = _stack_of(call)
    if stack.dtype is not call.attrs["T"]:
        raise call.error(f"the stack holds {stack.dtype.name}; {call.attrs['T'].name} is given, they must be equal")
    if 0 <= stack.limit <= len(stack.items):
        raise call.error(f"the stack has {len(stack.items)} tensors; it may have {stack.limit} at most")
    if stack.dtype is resource:
        stack.items.append(call.run_state[call.handle(1)])
        return []
    stack.items.append(call.inputs[0])
    return [call.inputs[0]]


@host_op("StackPopV2")
def _pop(call: HostCall) -> list[Located]:
    stack = _stack_of(call)
    if not stack.items:
        raise call.error("the stack is empty; it must have a tensor to give")
    item = stack.items.pop()
    if stack.dtype is resource:
        call.run_state[call.made] = item
        return []
    return [item]
