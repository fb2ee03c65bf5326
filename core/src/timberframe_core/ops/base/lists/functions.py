"""What the ops on lists share: shape functions, which know elements by the handles of lists, and gradient parts."""

from __future__ import annotations

from typing import Any

from timberframe_core.dtypes import variant
from timberframe_core.ops.definition.gradients import apply_op, constant, shape_of
from timberframe_core.ops.definition.opdef import UNKNOWN, InferenceContext, is_known
from timberframe_core.shapes import Shape, compatible, format_shape, is_static, merge

SHAPE_TYPE = "shape_type: {int32, int64}"
ELEMENT = "element_dtype: type"


def element_shape_value(c: InferenceContext, i: int) -> Shape:
    """Input i read as the shape of elements: a vector of sizes, or the scalar -1 for an unknown rank."""
    value = c.values[i]
    if value is None:
        length = c.shapes[i]
        return c.unknown_sizes(length[0] if length else None)
    if value.ndim == 0:
        return None
    return tuple(None if d is UNKNOWN or d < 0 else int(d) for d in value)


def list_handle(c: InferenceContext, i: int = 0) -> tuple[Any, Shape]:
    """Dtype and shape of the elements of the list at input i, as far as they are known."""
    handle = c.handles[i] if i < len(c.handles) else None
    return (None, None) if handle is None else handle


def element(c: InferenceContext, i: int | None = None) -> Shape:
    """Returns the shape of an element that is taken out: what the list and, at input i, the caller say of it."""
    shape = list_handle(c)[1]
    given = None if i is None else element_shape_value(c, i)
    if not compatible(shape, given):
        raise c.late_error(
            f"the list holds elements of shape {format_shape(shape)} and {format_shape(given)} is asked for; "
            "one tensor must be able to have both"
        )
    return merge(shape, given)


def taken(c: InferenceContext, i: int, output: int) -> Shape:
    """Returns the shape of an element that becomes an output; of a list of lists, nothing is known of the inner one."""
    if c.attrs["element_dtype"] is variant:
        c.output_handles[output] = (None, None)
    return element(c, i)


def same_list(c: InferenceContext) -> list[Shape]:
    handle = c.handles[0] if c.handles else None
    if handle is not None:
        c.output_handles[0] = handle
    return [()]


def with_item(item: int) -> Any:
    """Returns the list with one more tensor, or rows of one, at input `item`; their shapes must suit."""

    def shape(c: InferenceContext) -> list[Shape]:
        handle = c.handles[0] if c.handles else None
        if handle is not None:
            fits = compatible(handle[1], c.shapes[item])
            c.output_handles[0] = handle if fits else (handle[0], None)
        return [()]

    return shape


def new_list(i: int) -> Any:
    """Returns a new list whose element shape is at input i."""

    def shape(c: InferenceContext) -> list[Shape]:
        c.output_handles[0] = (c.attrs["element_dtype"], element_shape_value(c, i))
        return [()]

    return shape


def rows_shape(c: InferenceContext, i: int, rows: Shape) -> list[Shape]:
    given = element_shape_value(c, i)
    c.output_handles[0] = (c.attrs["element_dtype"], merge(given, rows) if compatible(given, rows) else given)
    return [()]


def tail(shape: Shape) -> Shape:
    return None if not shape else shape[1:]


def rows(count: int | None, shape: Shape) -> Shape:
    return None if shape is None else (count, *shape)


def first_size(shape: Shape) -> int | None:
    return shape[0] if shape else None


def shape_of_elements(handle: Any) -> Any:
    """Returns what is known of the shape of all elements, as list ops take it."""
    known = None if handle.handle is None else handle.handle[1]
    if known is not None and is_static(known):
        return constant(list(known), "int32")
    return apply_op("TensorListElementShape", [handle], {"shape_type": "int32"})


def length_of(handle: Any) -> Any:
    return apply_op("TensorListLength", [handle])


def row_shape(tensor: Any) -> Any:
    """Returns the shape of the rows of a tensor as a vector."""
    shape = tensor.static_shape
    if shape and is_static(shape[1:]):
        return constant(list(shape[1:]), "int32")
    return apply_op("StridedSlice", [shape_of(tensor), [1], [0], [1]], {"end_mask": 1})


def are_unique(indices: Any) -> bool:
    """Returns whether it is known that no index comes twice."""
    value = indices.host_value
    return value is not None and is_known(value) and len(set(value.ravel().tolist())) == value.size


def scattered_rows(handle: Any, indices: Any, tensor: Any, grad: Any) -> Any:
    """Returns the gradient of a tensor whose rows became the elements `indices` of the list
    `handle`, given that of the list.

    Where an index came twice, the list has the last of the rows, and the others have no gradient.
    """
    rows = apply_op("TensorListGather", [grad, indices, row_shape(tensor)], {"element_dtype": tensor.dtype})
    if are_unique(indices):
        return rows
    order = apply_op("Range", [0, apply_op("Size", [indices]), 1])
    last = apply_op("UnsortedSegmentMax", [order, indices, length_of(handle)])
    written = apply_op("Equal", [apply_op("GatherV2", [last, indices, 0]), order])
    return apply_op("Select", [written, rows, apply_op("ZerosLike", [rows])])


def reserve_like(handle: Any, dtype: Any) -> Any:
    """Returns a list of as many elements, all zero; of lists that are as long."""
    if dtype is variant:
        return apply_op("ZerosLike", [handle])
    attrs = {"element_dtype": dtype, "shape_type": "int32"}
    return apply_op("TensorListReserve", [shape_of_elements(handle), length_of(handle)], attrs)


def joined(c: InferenceContext, added: Shape) -> list[Shape]:
    handle = c.handles[0] if c.handles else None
    if handle is not None:
        c.output_handles[0] = handle if compatible(handle[1], added) else (handle[0], None)
    return [()]
