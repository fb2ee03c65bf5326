"""`tf.*` functions that make tensors of one value or of a sequence of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe.api.arrays import shape as shape_of
from timberframe.api.framework import is_tensor, name_scope
from timberframe_core.dtypes import DType, as_dtype, bfloat16, float16, float32, float64, int32, int64, string, variant
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, constant_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import as_shape
from timberframe_core.shapes import MAX_ARRAY_RANK, is_static, num_elements

__all__ = ["fill", "lin_space", "linspace", "ones", "ones_like", "range", "zeros", "zeros_like"]

NAMESPACES = {"linalg": ("linspace",)}

_SMALL = 1000  # elements up to which a constant is stored instead of filled, as in TensorFlow
_HIERARCHY = (int32, int64, float16, bfloat16, float32, float64)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """Returns a tensor of the sizes `dims` with every element `value`."""
    result: Tensor = apply_op("Fill", [dims, value], None, name)
    return result


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Returns a tensor of zeros (false, empty strings)."""
    return filled(shape, as_dtype(dtype), 0, name or "zeros")


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Returns a tensor of ones (true)."""
    return filled(shape, as_dtype(dtype), 1, name or "ones")


def filled(shape: Any, dtype: DType, value: Any, name: str | None, stored: int = _SMALL) -> Tensor:
    """Returns a tensor of one value.

    stored: the number of elements up to which it is a constant, else the run fills it.
    """
    element = b"" if dtype is string and value in (0, 1) else value
    sizes = None if _holds_tensor(shape) else as_shape(shape)
    if sizes is not None and None not in sizes:
        known = tuple(d for d in sizes if d is not None)
        if len(known) <= MAX_ARRAY_RANK and num_elements(tuple(d for d in known if d)) <= stored:
            return constant_op(np.full(known, element, dtype.numpy), dtype, name)
    if sizes is None and not _holds_tensor(shape):
        raise InvalidArgumentError(f"shape {shape!r} given; it must have known sizes")
    with name_scope(name) as scope:
        if sizes is not None:
            dims = convert_to_tensor(list(sizes), dtype_hint=int32, name="shape_as_tensor")
        else:
            dims = convert_to_tensor(shape, dtype_hint=int32, name="packed")
        scalar = convert_to_tensor(np.array(element, dtype.numpy), dtype)
        result: Tensor = apply_op("Fill", [dims, scalar], None, scope)
    return result


def _holds_tensor(shape: Any) -> bool:
    parts = shape if isinstance(shape, list | tuple) else (shape,)
    return any(map(is_tensor, parts))


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Returns zeros in the shape of a tensor, and in its dtype unless another is given."""
    return _like("ZerosLike", tensor, dtype, 0, name, optimize)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones in the shape of a tensor, and in its dtype unless another is given."""
    return _like("OnesLike", tensor, dtype, 1, name, optimize)


def _like(op: str, tensor: Any, dtype: Any, value: int, name: str | None, optimize: bool) -> Tensor:
    x = convert_to_tensor(tensor)
    wanted = x.dtype.base_dtype if dtype is None else as_dtype(dtype)
    if optimize and is_static(x.static_shape) and wanted is not variant:
        return filled(x.static_shape, wanted, value, name or op)
    if wanted is x.dtype.base_dtype:
        result: Tensor = apply_op(op, [x], None, name)
        return result
    return filled(shape_of(x), wanted, value, name or op)


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range") -> Tensor:
    """start, start + delta, ... before limit; with one argument, 0, 1, ... before it.

    dtype: by default the widest of the arguments' dtypes.
    """
    if limit is None:
        start, limit = 0, start
    arguments = [start, limit, delta]
    if dtype is None:
        tensors = [convert_to_tensor(x) for x in arguments]
        found = [t.dtype for t in tensors if t.dtype in _HIERARCHY]
        if len(found) < len(tensors):
            odd = next(t.dtype.name for t in tensors if t.dtype not in _HIERARCHY)
            raise InvalidTypeError(
                f"tf.range: an argument is {odd}; it must be {', '.join(t.name for t in _HIERARCHY)}"
            )
        wanted = max(found, key=_HIERARCHY.index)
    else:
        wanted = as_dtype(dtype)
    result: Tensor = apply_op("Range", [_as(x, wanted) for x in arguments], None, name)
    return result


def _as(value: Any, dtype: DType) -> Tensor:
    if not is_tensor(value):
        return convert_to_tensor(value, dtype)
    x = convert_to_tensor(value)
    if x.dtype is dtype:
        return x
    result: Tensor = apply_op("Cast", [x], {"DstT": dtype})
    return result


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` values at equal distances from start to stop, both included."""
    result: Tensor = apply_op("LinSpace", [start, stop, num], None, name or "linspace")
    return result


lin_space = linspace
