"""Lists as dense tensors: what each op on a list does when the list is one tensor with a row for each element.

Used on copies of graphs made for the shapes of one set of feeds (`passes/dense/graph.py`). What does not fit raises
NotDenseError, and the executor then keeps the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import DType, int32, string, variant
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.opdef import OpDef, is_known
from timberframe_core.shapes import Shape, StaticShape, compatible, is_static, merge

if TYPE_CHECKING:
    from timberframe_ops.passes.dense.arrays import Array


class NotDenseError(Exception):
    """The lists of a graph cannot all be dense tensors."""


@dataclass(eq=False)
class ListVariable:
    """What is known of a list that is a loop variable.

    element: shape of its elements. capacity: rows of its tensor. change: by how much each iteration changes its length.
    constant: the value that all elements have, where that is known while the graph is copied (shapes, mostly); varies
    says that it is not. inner: of a list of lists, what is equal for all of these. again: one of these was found out
    while the body was copied, so it must be copied once more.
    """

    element: Shape
    capacity: int
    change: int = 0
    constant: np.ndarray | None = None
    varies: bool = False
    inner: Dense | None = None
    again: bool = False

    @classmethod
    def of(cls, x: Dense) -> ListVariable:
        """Of a list that goes into a loop; it has room for one element at least."""
        return cls(x.element, max(x.capacity, 1), constant=x.constant, inner=x.inner)


@dataclass(frozen=True, eq=False)
class Dense:
    """A list as the first rows of `tensor`, or, where that is None, zeros that nobody had to make yet.

    length: how many elements there are, an int where it is known; within a loop it may be what an iteration begins
    with, `length`, and `offset` more. single: (index, element) of the one row that is not zero, where tensor is None.
    constant: the value of every element, where tensor is None. variable: the loop variable that the list began as.
    inner: what the lists in a list of lists have in common. array: what is known of one of TensorFlow 1's arrays.
    written: which of its elements are, none, some or all.
    """

    dtype: DType
    element: Shape
    capacity: int
    length: int | Tensor
    tensor: Tensor | None = None
    offset: int = 0
    single: tuple[Tensor, Tensor] | None = None
    variable: ListVariable | None = None
    constant: np.ndarray | None = None
    inner: Dense | None = None
    array: Array | None = None
    written: str = "none"

    @property
    def storage(self) -> DType:
        """The dtype of the tensor: that of the elements, or of the elements of the lists in a list."""
        return self.dtype if self.inner is None else self.inner.storage

    @property
    def full(self) -> bool:
        """Whether every row is an element."""
        return isinstance(self.length, int) and self.length == self.capacity and not self.offset

    @property
    def start(self) -> tuple[Any, ...]:
        """All that a loop can know of the list that it begins with; a list of lists equals itself alone."""
        constant = None if self.constant is None else (self.constant.shape, self.constant.tobytes())
        length = self.length if isinstance(self.length, int) else None
        return (
            self.dtype,
            self.element,
            self.capacity,
            length,
            self.offset,
            constant,
            self.inner,
            self.array,
            self.written,
        )

    def with_element(self, shape: Shape) -> Dense:
        """Returns the list with the element shape of an element that is put in, whose shape must be fully known."""
        if not is_static(shape) or not compatible(self.element, shape) or self.dtype is string:
            raise NotDenseError("strings, or elements of unknown or different shapes")
        if is_static(self.element):
            return self
        if self.variable is not None:
            self.variable.element, self.variable.again = shape, True
        return replace(self, element=shape)


class Builder:
    """Adds nodes to a graph that is built."""

    def __init__(self, graph: Graph, name: str = "") -> None:
        self.graph = graph
        self.name = name

    def op(self, op: str, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> Tensor:
        """Returns one node; its only output."""
        return self.graph.apply(op, inputs, attrs, f"{self.name}/{op}").outputs[0]

    def constant(self, value: Any, dtype: DType = int32) -> Tensor:
        return self.op("Const", (), {"value": np.array(value, dtype.numpy), "dtype": dtype})

    def zeros(self, shape: StaticShape, dtype: DType) -> Tensor:
        given = [self.constant(np.array(shape, np.int32)), self.constant(0, dtype)]
        return self.op("Fill", given, {"T": dtype, "index_type": int32})

    def reshape(self, x: Tensor, shape: StaticShape) -> Tensor:
        if x.static_shape == shape:
            return x
        return self.op("Reshape", [x, self.constant(np.array(shape, np.int32))], {"T": x.dtype, "Tshape": int32})

    def gather(self, tensor: Tensor, indices: Tensor) -> Tensor:
        attrs = {"Tparams": tensor.dtype, "Tindices": indices.dtype, "Taxis": int32}
        return self.op("GatherV2", [tensor, indices, self.constant(0)], attrs)

    def put(self, tensor: Tensor, indices: Tensor, rows: Tensor) -> Tensor:
        """Returns the tensor with other rows at a vector of indices."""
        column = self.reshape(indices, (*static(indices.static_shape), 1))
        attrs = {"T": tensor.dtype, "Tindices": indices.dtype}
        return self.op("TensorScatterUpdate", [tensor, column, rows], attrs)

    def put_one(self, tensor: Tensor, index: Tensor, row: Tensor) -> Tensor:
        shape = tuple(d or 0 for d in row.static_shape or ())
        return self.put(tensor, self.reshape(index, (1,)), self.reshape(row, (1, *shape)))

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return self.op("AddV2", [a, b], {"T": a.dtype})


def static(shape: Shape) -> StaticShape:
    """Returns the shape, which must be known."""
    if not is_static(shape) or shape is None:
        raise NotDenseError("a shape is not known")
    return tuple(d or 0 for d in shape)


def host(tensor: Tensor) -> np.ndarray:
    """Returns the value of a tensor that must be known before running."""
    value = tensor.host_value
    if value is None or not is_known(value):
        raise NotDenseError(f"the value of '{tensor.name}' is known only by running")
    return value


def materialised(b: Builder, x: Dense) -> Tensor:
    """Returns the list's tensor."""
    if x.tensor is not None:
        return x.tensor
    if x.constant is not None:
        return b.constant(np.broadcast_to(x.constant, (x.capacity, *x.constant.shape)), x.storage)
    if x.variable is not None:  # its shape was found out just now
        attrs = {"dtype": x.storage, "shape": (x.capacity, *static(x.element))}
        return b.op("Placeholder", (), attrs)
    made = b.zeros((x.capacity, *static(x.element)), x.storage)
    return made if x.single is None else b.put_one(made, *x.single)


def _pack(b: Builder, x: Dense, item: Any) -> tuple[Dense, Tensor]:
    """Returns an element as a tensor, which a list must fill, and the list that it goes to, which then knows such."""
    if not isinstance(item, Dense):
        return x, item
    if not item.full:
        raise NotDenseError("a list of changing length is an element")
    tensor = materialised(b, item)
    if x.inner is None:
        common = replace(item, tensor=None, single=None, constant=None, variable=None)
        if x.variable is not None:
            x.variable.inner, x.variable.again = common, True
        x = replace(x, inner=common, tensor=None)
    return x, tensor


def _unpack(x: Dense, tensor: Tensor) -> Any:
    """Returns an element as it was put in."""
    if x.inner is None:
        return tensor
    value = tensor.host_value
    if value is not None and is_known(value) and len(value) and (value == value[:1]).all():
        return replace(x.inner, constant=value[0])
    return replace(x.inner, tensor=tensor)


def _element_value(x: Dense | DType, tensor: Tensor) -> Shape:
    """Returns the shape of elements that an input gives; unknown for lists in a list."""
    dtype = x.dtype if isinstance(x, Dense) else x
    return None if dtype is variant else _shape_value(tensor)


def _shape_value(tensor: Tensor) -> Shape:
    value = host(tensor)
    return None if value.ndim == 0 else tuple(None if d < 0 else int(d) for d in value)


Inputs = list[Any]  # tensors, and Dense for lists
Rule = Callable[[Builder, Operation, Inputs], "list[Any]"]


def _empty(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    if int(host(inputs[1])) >= 0:
        raise NotDenseError("a list of limited size")
    dtype = op.attrs["element_dtype"]
    return [Dense(dtype, _element_value(dtype, inputs[0]), 0, 0)]


def _reserve(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    size = int(host(inputs[1]))
    if size < 0:
        raise NotDenseError("a negative size")
    dtype = op.attrs["element_dtype"]
    return [Dense(dtype, _element_value(dtype, inputs[0]), size, size)]


def _from_tensor(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    shape = static(inputs[0].static_shape)
    if not shape or not compatible(_shape_value(inputs[1]), shape[1:]):
        raise NotDenseError("rows of another shape")
    return [Dense(inputs[0].dtype, shape[1:], shape[0], shape[0], inputs[0])]


def _scatter(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    tensor, indices, element = inputs[:3]
    rows = static(tensor.static_shape)
    size = int(host(inputs[3])) if len(inputs) > 3 else -1
    if size < 0 or not rows or not compatible(_shape_value(element), rows[1:]):
        raise NotDenseError("a size that depends on the indices")
    made = b.put(b.zeros((size, *rows[1:]), tensor.dtype), indices, tensor)
    return [Dense(tensor.dtype, rows[1:], size, size, made)]


def _scatter_into(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    x, tensor, indices = inputs
    rows = static(tensor.static_shape)
    if not rows or not x.full or int(host(indices).max(initial=-1)) >= x.capacity:
        raise NotDenseError("rows that may make the list longer")
    x = x.with_element(rows[1:])
    return [replace(x, tensor=b.put(materialised(b, x), indices, tensor), single=None, constant=None)]


def _set_item(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    x, index, item = inputs
    if op.attrs["resize_if_index_out_of_bounds"] or not x.full:
        raise NotDenseError("an array of changing size")
    x, item = _pack(b, x, item)
    x = x.with_element(item.static_shape)
    if x.tensor is None and x.single is None and x.constant is None and x.variable is None:
        return [replace(x, single=(index, item))]
    return [replace(x, tensor=b.put_one(materialised(b, x), index, item), single=None, constant=None)]


def _end(b: Builder, x: Dense, offset: int) -> Tensor:
    """Returns the position `offset` after the list's end."""
    by = x.offset + offset
    if isinstance(x.length, int):
        return b.constant(x.length + by)
    return b.add(x.length, b.constant(by)) if by else x.length


def _push(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    x, item = _pack(b, *inputs)
    x = x.with_element(item.static_shape)
    if x.variable is not None:
        x = _as_constant(x, x.variable, item)
        if x.constant is not None:
            return [replace(x, offset=x.offset + 1)]
    if x.variable is None:
        if not x.full:
            raise NotDenseError("a push to a list of unknown length outside loops")
        row = b.reshape(item, (1, *static(item.static_shape)))
        if x.capacity:
            attrs = {"T": x.storage, "Tidx": int32, "N": 2}
            row = b.op("ConcatV2", [materialised(b, x), row, b.constant(0)], attrs)
        return [replace(x, tensor=row, capacity=x.capacity + 1, length=x.capacity + 1, single=None, constant=None)]
    made = b.put_one(materialised(b, x), _end(b, x, 0), item)
    return [replace(x, tensor=made, offset=x.offset + 1, single=None, constant=None)]


def _as_constant(x: Dense, variable: ListVariable, item: Tensor) -> Dense:
    """Returns the list that an element is pushed to; a constant one if, with this one too, all have one known value."""
    value = item.host_value
    if value is not None and not is_known(value):
        value = None
    if variable.constant is not None:
        if value is not None and np.array_equal(value, variable.constant):
            return replace(x, constant=value)
        variable.constant, variable.varies, variable.again = None, True, True
        return replace(x, constant=None)
    if value is not None and not variable.varies and isinstance(x.length, int) and x.length == 0:
        variable.constant, variable.again = value, True
        return replace(x, constant=value)
    return x


def _pop(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    x, element = inputs
    given = _element_value(x, element)
    x = x.with_element(merge(x.element, given) if compatible(x.element, given) else None)
    if x.constant is not None and x.variable is not None:
        return [replace(x, offset=x.offset - 1), _unpack(x, b.constant(x.constant, x.storage))]
    tensor = materialised(b, x)
    taken = b.gather(tensor, _end(b, x, -1))
    if x.variable is not None:
        return [replace(x, tensor=tensor, offset=x.offset - 1), _unpack(x, taken)]
    if not isinstance(x.length, int) or not x.length:
        raise NotDenseError("a pop from a list of unknown length outside loops")
    rest = b.op("Slice", [tensor, _zeros_vector(b, tensor), _first_rows(b, tensor, x.length - 1)], _slice_attrs(tensor))
    return [replace(x, tensor=rest, capacity=x.length - 1, length=x.length - 1), _unpack(x, taken)]


def _slice_attrs(tensor: Tensor) -> dict[str, Any]:
    return {"T": tensor.dtype, "Index": int32}


def _zeros_vector(b: Builder, tensor: Tensor) -> Tensor:
    return b.constant(np.zeros(len(tensor.static_shape or ()), np.int32))


def _first_rows(b: Builder, tensor: Tensor, count: int) -> Tensor:
    return b.constant(np.array([count, *(tensor.static_shape or (0,))[1:]], np.int32))


def _get_item(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    x, index, element = inputs
    given = _element_value(x, element)
    if not x.full or not compatible(x.element, given):
        raise NotDenseError("an element of a list of unknown length")
    x = x.with_element(merge(x.element, given))
    return [_unpack(x, b.gather(materialised(b, x), index))]


def _gather(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    if inputs[0].dtype is variant:
        raise NotDenseError("lists are gathered")
    return _get_item(b, op, inputs)


def _stack(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    x, element = inputs
    given, count = _shape_value(element), op.attrs["num_elements"]
    if not isinstance(x.length, int) or x.offset or not compatible(x.element, given) or count not in (-1, x.length):
        raise NotDenseError("a list of unknown or other length")
    x = x.with_element(merge(x.element, given))
    tensor = materialised(b, x)
    if x.length == x.capacity:
        return [tensor]
    size = _first_rows(b, tensor, x.length)
    return [b.op("Slice", [tensor, _zeros_vector(b, tensor), size], _slice_attrs(tensor))]


def _length(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    return [_end(b, inputs[0], 0)]


def _element_shape(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    if inputs[0].dtype is variant:
        return [b.constant(-1, op.attrs["shape_type"])]
    return [b.constant(np.array(static(inputs[0].element)), op.attrs["shape_type"])]


def _resize(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    if not inputs[0].full or int(host(inputs[1])) != inputs[0].capacity:
        raise NotDenseError("a list that changes its size")
    return [inputs[0]]


def _zeros_like(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    return [replace(inputs[0], tensor=None, single=None, constant=None, variable=None)]


def _same(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    return list(inputs)


def _add(b: Builder, op: Operation, inputs: Inputs) -> list[Any]:
    """Adds rows that are alone at their index; zeros add nothing."""
    first = next((x for x in inputs if x.variable is not None), inputs[0])
    for x in inputs:
        same_length = x.length is first.length or (isinstance(x.length, int) and x.length == first.length)
        if not same_length or x.offset != first.offset or x.capacity != first.capacity:
            raise NotDenseError("lists of different lengths are added")
        if is_static(x.element):
            first = first.with_element(x.element)
    inputs = [x if x.constant is None else replace(x, tensor=materialised(b, x)) for x in inputs]
    dense = [x.tensor for x in inputs if x.tensor is not None]
    rows = [x.single for x in inputs if x.tensor is None and x.single is not None]
    if not dense and not rows:
        return [first]
    if not dense and len(rows) == 1:
        return [replace(first, single=rows[0])]
    first = replace(first, inner=next((x.inner for x in inputs if x.inner is not None), None))
    total = dense[0] if dense else b.zeros((first.capacity, *static(first.element)), first.storage)
    for other in dense[1:]:
        total = b.add(total, other)
    for index, item in rows:
        total = b.put_one(total, index, b.add(b.gather(total, index), item))
    return [replace(first, tensor=total, single=None, constant=None)]


RULES: dict[str, Rule] = {
    "AddN": _add,
    "AddV2": _add,
    "EmptyTensorList": _empty,
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
    "TensorListStack": _stack,
    "ZerosLike": _zeros_like,
}
"""What replaces each op."""


def rule_of(op: OpDef) -> Rule | None:
    """Returns what replaces an op that works on lists; None where nothing does."""
    return _same if op.passes_through else RULES.get(op.name)
