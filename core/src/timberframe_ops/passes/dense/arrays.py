"""TensorFlow 1's arrays as dense tensors: what each op on one does when it is a tensor with a row for each element.

An array is not a value, but all that is done to it hands on `flow`: the Dense of a flow is the array as it is then. An
array also raises errors where an element is written or read twice, or read before it was written with no shape known.
So one is dense only where it can be seen that no element is written twice, all together or in the iterations of one
loop, or read twice, and that those which are read are written, or have a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from timberframe_core.compiler.trips import counter_step, original
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import Shape, compatible, is_static, merge
from timberframe_ops.passes.dense.lists import Builder, Dense, NotDenseError, Rule, host, materialised, static


@dataclass(eq=False)
class Array:
    """What is known of an array. once: an element may be read once only. shape: of elements that were not written.

    alike: writing one element says the shape of all.
    writer, reader: the operations that write and read it. indices: in the copy of a loop's body, which element an
    operation uses.
    """

    once: bool
    shape: Shape
    alike: bool
    writer: Operation | None = None
    reader: Operation | None = None
    indices: dict[Operation, Tensor] = field(default_factory=dict)

    def write_by(self, op: Operation) -> None:
        """Notes who writes it; NotDenseError where others do, too."""
        if self.writer not in (None, op):
            raise NotDenseError("elements of an array may be written twice")
        self.writer = op

    def read_by(self, op: Operation) -> None:
        """Notes who reads it; NotDenseError where others do, too, and must not."""
        if self.once and self.reader not in (None, op):
            raise NotDenseError("elements of an array may be read twice")
        self.reader = op


def _array(op: Operation, x: Any, *written: str) -> tuple[Dense, Array]:
    """Returns the array of a flow, of whose elements so many must be written."""
    if not isinstance(x, Dense) or x.array is None:
        raise NotDenseError("a flow is not that of an array")
    if op.attrs.get("T", op.attrs.get("dtype", x.dtype)) is not x.dtype:
        raise NotDenseError("elements of another dtype")
    if x.written not in written:
        raise NotDenseError("elements of an array may be written twice, or not at all")
    return x, x.array


def _make(b: Builder, op: Operation, inputs: list[Any]) -> list[Any]:
    size = int(host(inputs[0]))
    if size < 1 or op.attrs["dynamic_size"]:
        raise NotDenseError("an array without elements, or of changing size")
    shape = op.attrs["element_shape"]
    array = Array(op.attrs["clear_after_read"], shape, op.attrs["identical_element_shapes"])
    return [None, Dense(op.attrs["dtype"], shape, size, size, array=array)]


def _is_in_loop(b: Builder) -> bool:
    return isinstance(b.graph, FuncGraph)


def _all_rows(b: Builder, x: Dense, indices: Tensor) -> bool:
    """Returns whether indices are those of all elements in their order; they must be those of all, in some order."""
    found = host(indices).ravel()
    if _is_in_loop(b) or not np.array_equal(np.sort(found), np.arange(x.capacity)):
        raise NotDenseError("some elements of an array, or in a loop all of them")
    return np.array_equal(found, np.arange(x.capacity))


def _scatter(b: Builder, op: Operation, inputs: list[Any]) -> list[Any]:
    _, indices, rows, flow = inputs
    x, array = _array(op, flow, "none")
    array.write_by(op)
    shape = static(rows.static_shape)
    if shape[:1] != (x.capacity,):
        raise NotDenseError("rows that are not as many as elements")
    x = x.with_element(shape[1:])
    tensor = rows if _all_rows(b, x, indices) else b.put(materialised(b, x), indices, rows)
    return [replace(x, tensor=tensor, written="all")]


def _gather(b: Builder, op: Operation, inputs: list[Any]) -> list[Any]:
    _, indices, flow = inputs
    x, array = _array(op, flow, "some", "all")
    array.read_by(op)
    shape = op.attrs["element_shape"]
    if not compatible(x.element, shape) or not compatible(array.shape, shape):
        raise NotDenseError("elements of another shape")
    if x.written == "some" and not is_static(merge(array.shape, shape)):
        raise NotDenseError("elements that may not be written have no known shape")
    x = x.with_element(merge(x.element, shape))
    tensor = materialised(b, x)
    return [tensor if _all_rows(b, x, indices) else b.gather(tensor, indices)]


def _write(b: Builder, op: Operation, inputs: list[Any]) -> list[Any]:
    _, index, item, flow = inputs
    x, array = _array(op, flow, "none")
    array.write_by(op)
    if x.variable is None or not is_static(item.static_shape):
        raise NotDenseError("an element of an array is written outside of loops, or has no known shape")
    x = x.with_element(item.static_shape)
    array.indices[op] = index
    return [replace(x, tensor=b.put_one(materialised(b, x), index, item), written="some")]


def _read(b: Builder, op: Operation, inputs: list[Any]) -> list[Any]:
    _, index, flow = inputs
    x, array = _array(op, flow, "all")
    array.read_by(op)
    if x.variable is None:
        raise NotDenseError("an element of an array is read outside of loops")
    array.indices[op] = index
    return [b.gather(materialised(b, x), index)]


def _size(b: Builder, op: Operation, inputs: list[Any]) -> list[Any]:
    if not isinstance(inputs[1], Dense):
        raise NotDenseError("a flow is not that of an array")
    return [b.constant(inputs[1].capacity)]


RULES: dict[str, Rule] = {
    "TensorArrayGatherV3": _gather,
    "TensorArrayReadV3": _read,
    "TensorArrayScatterV3": _scatter,
    "TensorArraySizeV3": _size,
    "TensorArrayV3": _make,
    "TensorArrayWriteV3": _write,
}
"""What replaces each op."""


def used_elements(
    array: Array, body: FuncGraph, inputs: Sequence[Any], following: Callable[[int], Tensor | None], iterations: int
) -> list[range]:
    """Returns which elements of an array so many iterations of a loop read or write, each one.

    body: the copy of the loop's body, of the loop variables `inputs`, which become following(i). NotDenseError where
    iterations may use the same element, or others than can be seen.
    """
    found = []
    for index in array.indices.values():
        if index.graph is not body:
            continue  # of a loop before
        tensor = original(index)
        position = next((i for i, t in enumerate(body.inputs) if t is tensor), None)
        after = None if position is None or position >= len(inputs) else following(position)
        step = None if after is None else counter_step(tensor, after)
        if position is None or not step or not isinstance(inputs[position], Tensor):
            raise NotDenseError("iterations may use the same element of an array")
        start = int(host(inputs[position]))
        found.append(range(start, start + step * iterations, step))
    return found
