"""The TensorArray*V3 and Stack*V2 ops, which the executor carries out: arrays and stacks live as long as one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.compiler.ir import Node
from timberframe_core.compiler.plan import Located, host_array
from timberframe_core.compiler.state import variable_name
from timberframe_core.dtypes import DType, resource
from timberframe_core.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from timberframe_core.plugin.contracts import Device
from timberframe_core.runtime import joins
from timberframe_core.runtime.lists import Driver
from timberframe_core.shapes import Shape, StaticShape, compatible, format_shape, is_static, merge

if TYPE_CHECKING:
    from timberframe_core.runtime.executor import Run

_HANDLE: Located = (np.empty((), object), None)
_FLOW: Located = (np.zeros((), np.float32), None)


def _error(node: Node, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{node.op.name} '{node.name}': {message}", node.name)


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

    def __init__(self, dtype: DType, shape: Shape, size: int, attrs: dict[str, bool], adds: bool = False) -> None:
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
        """An array for the gradients of the elements, which have the dimensions `front` in addition."""
        made = Array(self.dtype, None if self.shape is None else (*front, *self.shape), len(self.elements), {}, True)
        for mine, other in zip(made.elements, self.elements, strict=True):
            if other.written and other.shape is not None:
                mine.written, mine.shape = True, (*front, *other.shape)
        made.pieces, self.dynamic = self.pieces, False
        return made

    def write(self, node: Node, index: int, value: Located, device: Device, run: Run) -> None:
        """Sets an element."""
        if index >= 0 and self.dynamic:
            self.elements += _new_elements(index + 1 - len(self.elements))
        self._check_index(node, index)
        shape = tuple(value[0].shape)
        if not compatible(self.shape, shape):
            raise _error(
                node,
                f"a value of shape {format_shape(shape)} for element {index}; the array takes elements of shape "
                f"{format_shape(self.shape)}",
            )
        if self.identical:
            self.shape = merge(self.shape, shape)
        element = self.elements[index]
        if element.read or (element.written and not self.adds):
            what = "read" if element.read else "written"
            raise _error(node, f"element {index} has been {what} already; it can be written once, before it is read")
        if element.written and element.shape != shape:
            raise _error(
                node,
                f"a gradient of shape {format_shape(shape)} is added to element {index} of shape "
                f"{format_shape(element.shape)}; shapes must be equal",
            )
        if element.value is not None:
            value = run.runtime.joins.add(element.value, value, self.dtype, device)
        element.value, element.shape, element.written = value, shape, True

    def read(self, node: Node, index: int, shape: Shape = None) -> Located:
        """An element; zeros where nothing was written and the shape is known."""
        self._check_index(node, index)
        element = self.elements[index]
        if element.cleared:
            raise _error(node, f"element {index} was read before, which cleared it; set clear_after_read to false")
        value = element.value
        if value is None:
            known = element.shape if element.shape is not None else merge(self.shape, shape)
            if known is None or None in known:
                raise _error(
                    node,
                    f"element {index} was never written and the shape of elements is {format_shape(known)}; it must be "
                    "written, or element_shape fully known",
                )
            value = joins.zeros(tuple(d for d in known if d is not None), self.dtype)
        element.read = True
        if self.clear_after_read:
            element.value, element.cleared = None, True
        return value

    def _check_index(self, node: Node, index: int) -> None:
        if not 0 <= index < len(self.elements):
            raise _error(
                node,
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


def _array(node: Node, run: Run) -> Array:
    found = run.state.get(node.variable)
    if not isinstance(found, Array) or found.closed:
        what = "closed" if isinstance(found, Array) else "not made in this run"
        raise _error(node, f"the array is {what}; it must be open")
    return found


def _stack_of(node: Node, run: Run) -> Stack:
    found = run.state.get(node.variable)
    if not isinstance(found, Stack) or found.closed:
        what = "closed" if isinstance(found, Stack) else "not made in this run"
        raise _error(node, f"the stack is {what}; it must be open")
    return found


def _make(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    size = int(host_array(inputs[0]))
    if size < 0:
        raise _error(node, f"size is {size}; it must not be negative")
    made = Array(node.attrs["dtype"], node.attrs["element_shape"], size, node.attrs)
    run.state[node.variable] = made
    return [_HANDLE, _FLOW]


def _make_gradients(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    state = run.state
    found = state.get(variable_name(node.inputs[0]))
    if not isinstance(found, Array) or found.closed:
        raise _error(node, "the array whose gradients are wanted is closed or not made in this run")
    source = node.attrs["source"]
    if source not in found.derived:
        front = tuple(int(d) for d in host_array(inputs[1])) if len(inputs) > 1 else ()
        found.derived[source] = found.gradients(front)
    state[node.variable] = found.derived[source]
    return [_HANDLE, _FLOW]


def _write(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    array = _array(node, run)
    _check_dtype(node, array)
    array.write(node, int(host_array(inputs[0])), inputs[1], device, run)
    return [_FLOW]


def _check_dtype(node: Node, array: Array) -> None:
    dtype = node.attrs.get("T") or node.attrs["dtype"]
    if dtype is not array.dtype:
        raise _error(node, f"the array holds {array.dtype.name}; {dtype.name} is given, they must be equal")


def _read(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    array = _array(node, run)
    _check_dtype(node, array)
    return [array.read(node, int(host_array(inputs[0])))]


def _gather(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    array, shape = _array(node, run), node.attrs["element_shape"]
    _check_dtype(node, array)
    rows = [array.read(node, int(i), shape) for i in host_array(inputs[0])]
    if not rows:
        known = merge(array.shape, shape) if compatible(array.shape, shape) else None
        return [joins.zeros((0, *_known_shape(node, known)), array.dtype)]
    shapes = [tuple(a.shape) for a, _ in rows]
    if len(set(shapes)) > 1:
        raise _error(node, f"elements have shapes {', '.join(map(format_shape, shapes))}; they must be equal")
    return [run.runtime.joins.stack(rows, shapes[0], array.dtype)]


def _known_shape(node: Node, shape: Shape) -> StaticShape:
    if not is_static(shape):
        raise UnimplementedError(
            f"{node.op.name} '{node.name}': nothing is read and the shape of elements is {format_shape(shape)}; "
            "it must be fully known",
            node.name,
        )
    return tuple(d for d in shape or () if d is not None)


def _scatter(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    array = _array(node, run)
    _check_dtype(node, array)
    indices, shape = host_array(inputs[0]).ravel(), tuple(inputs[1][0].shape)
    if not shape or shape[0] != indices.size:
        raise _error(node, f"a value of shape {format_shape(shape)} for {indices.size} indices; each needs one row")
    for index, row in zip(indices, run.runtime.joins.rows(inputs[1], array.dtype), strict=True):
        array.write(node, int(index), row, device, run)
    return [_FLOW]


def _concat(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    array, rest = _array(node, run), node.attrs["element_shape_except0"]
    _check_dtype(node, array)
    if not array.elements:
        return [joins.zeros((0, *_known_shape(node, rest)), array.dtype), (np.zeros(0, np.int64), None)]
    count = array.pieces if array.adds and array.pieces is not None else len(array.elements)
    parts = [array.read(node, i) for i in range(count)]
    shapes = [tuple(a.shape) for a, _ in parts]
    if any(not s for s in shapes) or len({s[1:] for s in shapes}) > 1:
        raise _error(
            node,
            f"elements have shapes {', '.join(map(format_shape, shapes))}; they must be equal but for the first size",
        )
    lengths = np.array([s[0] for s in shapes], np.int64)
    return [run.runtime.joins.concat(parts, array.dtype), (lengths, None)]


def _split(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    array = _array(node, run)
    _check_dtype(node, array)
    lengths, shape = host_array(inputs[1]), tuple(inputs[0][0].shape)
    if lengths.ndim != 1 or not shape or int(lengths.sum()) != shape[0] or (lengths < 0).any():
        raise _error(
            node,
            f"lengths {lengths.tolist()} for a value of shape {format_shape(shape)}; they must be a vector and add up "
            "to the first size",
        )
    if not array.dynamic and lengths.size != len(array.elements):
        raise _error(node, f"{lengths.size} lengths for an array of {len(array.elements)}; each element needs one")
    if array.dynamic:
        array.pieces = lengths.size
    for i, piece in enumerate(run.runtime.joins.split(inputs[0], lengths.tolist(), array.dtype)):
        array.write(node, i, piece, device, run)
    return [_FLOW]


def _size(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    return [(np.array(len(_array(node, run).elements), np.int32), None)]


def _close(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    found = run.state.get(node.variable)
    if isinstance(found, Array):
        found.closed, found.elements = True, []
    elif isinstance(found, Stack):
        found.closed, found.items = True, []
    return []


def _make_stack(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    run.state[node.variable] = Stack(node.attrs["elem_type"], int(host_array(inputs[0])))
    return [_HANDLE]


def _push(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    stack = _stack_of(node, run)
    if stack.dtype is not node.attrs["T"]:
        raise _error(node, f"the stack holds {stack.dtype.name}; {node.attrs['T'].name} is given, they must be equal")
    if 0 <= stack.limit <= len(stack.items):
        raise _error(node, f"the stack has {len(stack.items)} tensors; it may have {stack.limit} at most")
    if stack.dtype is resource:
        stack.items.append(run.state[variable_name(node.inputs[1])])
        return [_HANDLE]
    stack.items.append(inputs[0])
    return [inputs[0]]


def _pop(node: Node, inputs: Sequence[Located], device: Device, run: Run) -> list[Located]:
    stack = _stack_of(node, run)
    if not stack.items:
        raise _error(node, "the stack is empty; it must have a tensor to give")
    item = stack.items.pop()
    if stack.dtype is resource:
        run.state[variable_name(node.outputs[0])] = item
        return [_HANDLE]
    return [item]


ARRAYS: dict[str, Driver] = {
    "StackCloseV2": _close,
    "StackPopV2": _pop,
    "StackPushV2": _push,
    "StackV2": _make_stack,
    "TensorArrayCloseV3": _close,
    "TensorArrayConcatV3": _concat,
    "TensorArrayGatherV3": _gather,
    "TensorArrayGradV3": _make_gradients,
    "TensorArrayGradWithShape": _make_gradients,
    "TensorArrayReadV3": _read,
    "TensorArrayScatterV3": _scatter,
    "TensorArraySizeV3": _size,
    "TensorArraySplitV3": _split,
    "TensorArrayV3": _make,
    "TensorArrayWriteV3": _write,
}
"""How each op runs. Inputs are those that are not handles."""
