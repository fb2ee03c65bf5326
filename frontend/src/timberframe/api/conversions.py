"""Conversions that leave sparse values as they are, and sizes of shapes."""

from __future__ import annotations

from typing import Any

from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue
from timberframe_core.graph.tensor_shape import TensorShape

__all__ = [
    "convert_to_tensor_or_indexed_slices", "convert_to_tensor_or_sparse_tensor", "dimension_at_index",
    "is_symbolic_tensor",
]  # fmt: skip


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Returns the value as a tensor; IndexedSlices stay, and must be of `dtype` where it is given."""
    return _of_dtype(value, dtype) if isinstance(value, IndexedSlices) else convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Returns the value as a tensor; a SparseTensor stays, and must be of `dtype` where it is given."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    return _of_dtype(value, dtype) if isinstance(value, SparseTensor) else convert_to_tensor(value, dtype, name)


def _of_dtype(value: Any, dtype: Any) -> Any:
    if dtype is not None and value.dtype != dtype:
        raise InvalidTypeError(f"{value!r} is of dtype {value.dtype.name}; {dtype} is required")
    return value


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Returns the size at a position of a shape, an unknown one where the rank is unknown."""
    known = instance(shape, TensorShape, "tf.dimension_at_index: shape", "a tf.TensorShape")
    return Dimension(None) if known.ndims is None else known.dims[index]


def is_symbolic_tensor(tensor: Any) -> bool:
    """Returns whether it is a tensor of a graph, without a value of its own."""
    return isinstance(tensor, Tensor | SparseTensor | IndexedSlices) and not getattr(tensor, "eager", False)
