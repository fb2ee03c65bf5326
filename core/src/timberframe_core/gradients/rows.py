"""Gradients of some rows as results of functions: values and indices, from each function that may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from timberframe_core.dtypes import DType, int64, resource
from timberframe_core.gradients.reverse import Gradient
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import Shape, is_static


def index_dtype(found: Iterable[Gradient | None]) -> DType | None:
    """Returns the dtype of the indices where any of the gradients has some rows, None where all are whole."""
    dtypes = {g.indices.dtype for g in found if isinstance(g, IndexedSlices)}
    if not dtypes:
        return None
    return dtypes.pop() if len(dtypes) == 1 else int64


def taken_apart(gradient: Gradient, indices: DType | None) -> list[Tensor]:
    """Returns the gradient; where indices have a dtype its values and these, of a whole one those of all rows."""
    if indices is None:
        return [convert_to_tensor(gradient)]
    if not isinstance(gradient, IndexedSlices):
        return [gradient, _all_rows(gradient, indices)]
    at = gradient.indices
    return [gradient.values, at if at.dtype is indices else apply_op("Cast", [at], {"DstT": indices})]


def put_together(results: Iterator[Tensor], indices: DType | None, x: Tensor) -> Gradient:
    """Returns the gradient of x, of which the next of the results are the parts."""
    first = next(results)
    return first if indices is None else IndexedSlices(first, next(results), _shape_of(x, indices))


def _all_rows(x: Tensor, dtype: DType) -> Tensor:
    rows = x.static_shape[0] if x.static_shape else None
    if rows is not None:
        return convert_to_tensor(np.arange(rows), dtype)
    count = apply_op("StridedSlice", [_shape_of(x, dtype), [0], [1], [1]], {"shrink_axis_mask": 1})
    made: Tensor = apply_op("Range", [convert_to_tensor(v, dtype) for v in (0, count, 1)])
    return made


def _shape_of(x: Tensor, dtype: DType) -> Tensor:
    """Returns the shape of x, of a handle that of its variable."""
    known: Shape = x.static_shape
    if x.dtype is resource:
        known = None if x.handle is None else x.handle[1]
    if is_static(known):
        return convert_to_tensor(list(known or ()), dtype)
    found: Tensor = apply_op("VariableShape" if x.dtype is resource else "Shape", [x], {"out_type": dtype})
    return found
