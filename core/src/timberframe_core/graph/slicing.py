"""`x[...]` on tensors, and `tf.strided_slice` and `tf.boolean_mask`, of which it is made."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, bool_, int16, int32, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor, is_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.scopes import name_scope
from timberframe_core.shapes import is_static

newaxis = None


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns what `input_[begin:end:strides, ...]` selects; see the op StridedSlice for the masks.

    var: accepted for TensorFlow's signature; slices of variables cannot be assigned to.
    """
    attrs: dict[str, Any] = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    dtype = index_dtype([begin, end, strides])
    vectors = [begin, end, strides]
    if strides is None or not get_default_graph().eager:  # where constants have names
        first = convert_to_tensor(begin, dtype)
        if strides is None:
            strides = apply_op("OnesLike", [first]) if first.static_shape in (None, (None,)) else [1] * _length(first)
        vectors = [first, convert_to_tensor(end, dtype), convert_to_tensor(strides, dtype)]
    else:
        attrs["Index"] = dtype
    result: Tensor = apply_op("StridedSlice", [input_, *vectors], attrs, name)
    return result


def _length(vector: Tensor) -> int:
    shape = vector.static_shape
    return shape[0] or 0 if shape else 0


def index_dtype(values: list[Any]) -> DType:
    """int64 if a tensor among the values, also in a list, is or an integer needs it; int16 if all are; else int32."""
    found: set[DType] = set()
    for value in values:
        items = value if isinstance(value, list | tuple) else [value]
        for x in items:
            if is_tensor(x):
                found.add(convert_to_tensor(x).dtype)
            elif isinstance(x, np.ndarray | np.generic):
                found.add(int64 if x.dtype == np.int64 else int32)
            elif isinstance(x, int) and not -(2**31) <= x < 2**31:
                found.add(int64)
    if int64 in found:
        return int64
    return int16 if found == {int16} else int32


def boolean_mask(tensor: Any, mask: Any, name: str | None = "boolean_mask", axis: int | None = None) -> Tensor:
    """Returns the slices of tensor at which mask holds; mask's shape is that of tensor from dimension `axis` on.

    mask: bools, or numbers, of which those hold that are not 0.
    """
    with name_scope(name, "boolean_mask"):
        value, chosen = convert_to_tensor(tensor), convert_to_tensor(mask, preferred_dtype=bool_)
        sizes, known = value.static_shape, chosen.static_shape
        if not known:
            raise InvalidArgumentError(
                "tf.boolean_mask: mask has unknown rank or rank 0; it must have a known rank above 0"
            )
        at = int(axis or 0)
        if len(known) > 1 or sizes is None:
            parts = _sizes(value)
            sizes_after = apply_op("ConcatV2", [[parts[:at], [-1], parts[at + len(known) :]], 0], name="concat")
            value = apply_op("Reshape", [value, sizes_after])
        found = apply_op("Squeeze", [apply_op("Where", [apply_op("Reshape", [chosen, [-1]])])], {"squeeze_dims": (1,)})
        result: Tensor = apply_op("GatherV2", [value, found, at])
        return result


def _sizes(x: Tensor) -> Tensor:
    """Returns the shape of x as a vector."""
    if is_static(x.static_shape):
        return convert_to_tensor(list(x.static_shape or ()), int32, "Shape")
    sizes: Tensor = apply_op("Shape", [x])
    return sizes


def getitem(tensor: Tensor, key: Any) -> Tensor:
    """`tensor[key]`: integers, slices, `...` and `tf.newaxis`, alone or in a tuple; bounds may be tensors.

    A key of bools, a tensor or an array, selects as `tf.boolean_mask` does.
    """
    if _is_mask(key):
        return boolean_mask(tensor, key)
    items = key if isinstance(key, tuple) else (key,)
    if _mixes_late_indices_with_ranges(items):
        return getitem(getitem(tensor, _indices(items)), tuple(x for x in items if not _is_index(x)))
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for i, item in enumerate(items):
        first, last, step = 0, 0, 1
        if isinstance(item, slice):
            step = 1 if item.step is None else _bound(tensor, item.step)
            masks["begin_mask"] |= (item.start is None) << i
            masks["end_mask"] |= (item.stop is None) << i
            first = 0 if item.start is None else _bound(tensor, item.start)
            last = 0 if item.stop is None else _bound(tensor, item.stop)
        elif item is Ellipsis:
            masks["ellipsis_mask"] |= 1 << i
        elif item is newaxis:
            masks["new_axis_mask"] |= 1 << i
        else:
            masks["shrink_axis_mask"] |= 1 << i
            first = _bound(tensor, item)
            last = first + 1 if isinstance(first, int) else first  # a single index has no end
        begin.append(first)
        end.append(last)
        strides.append(step)
    return strided_slice(tensor, begin, end, strides, **masks, name="strided_slice")


def _is_index(item: Any) -> bool:
    return not (item is newaxis or item is Ellipsis or isinstance(item, slice))


def _mixes_late_indices_with_ranges(items: tuple[Any, ...]) -> bool:
    """Returns whether single indices that are tensors occur with ranges with bounds that are numbers.

    One node for both would need its begin, and so the indices, before its output's size is known; two nodes, first the
    indices and then the ranges, do not, so that a loop over rows is planned once.
    """
    ranges = [x for x in items if isinstance(x, slice) and (x.start, x.stop, x.step) != (None, None, None)]
    late = any(_is_index(x) and not isinstance(x, int | np.integer) for x in items)
    bounds = [b for x in ranges for b in (x.start, x.stop, x.step)]
    return late and bool(ranges) and all(b is None or isinstance(b, int | np.integer) for b in bounds)


def _indices(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the key with its ranges opened to whole dimensions and without new dimensions."""
    return tuple(slice(None) if isinstance(x, slice) else x for x in items if x is not newaxis)


def _is_mask(key: Any) -> bool:
    if isinstance(key, Tensor):
        return key.dtype.base_dtype is bool_
    return isinstance(key, np.ndarray) and key.dtype == np.bool_


def _bound(tensor: Tensor, value: Any) -> Any:
    """Returns a Python integer, or a scalar integer tensor."""
    if is_tensor(value):
        bound = convert_to_tensor(value)
        if not bound.dtype.is_integer or bound.static_shape not in (None, ()):
            raise InvalidTypeError(
                f"'{tensor.name}' is indexed with '{bound.name}', {bound.dtype.name} of shape {bound.shape}; "
                "an index must be an integer scalar"
            )
        return bound
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError  # NumPy's mask of the whole, not the index 0 or 1
        return operator.index(value)
    except TypeError:
        raise InvalidTypeError(
            f"'{tensor.name}' is indexed with {value!r}; "
            "an index must be an integer, a slice, ..., tf.newaxis or a tensor"
        ) from None


setattr(Tensor, "__getitem__", getitem)  # noqa: B010 - mypy takes an assignment for indexing the class
