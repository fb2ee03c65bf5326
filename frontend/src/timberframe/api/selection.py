"""`tf.*` functions that choose between values, clip them, and change their dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.api.framework import name_scope
from timberframe_core import dtypes
from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.operators import convert_pair
from timberframe_core.shapes import compatible, format_shape

__all__ = [
    "bitcast",
    "cast",
    "clip_by_value",
    "complex",
    "saturate_cast",
    "to_bfloat16",
    "to_complex64",
    "to_complex128",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
    "where",
    "where_v2",
]  # fmt: skip


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Returns elements of x where condition holds, else of y; without both, the indices at which it holds.

    x and y have one shape; condition has it too, or is a vector with one value for each row. `where_v2` broadcasts.
    """
    return _where("Select", condition, x, y, name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Returns elements of x where condition holds, else of y, all three broadcasting; without both, the indices."""
    return _where("SelectV2", condition, x, y, name)


def _where(op: str, condition: Any, x: Any, y: Any, name: str | None) -> Tensor:
    if (x is None) != (y is None):
        raise InvalidArgumentError("where: only one of x and y is given; it takes both or neither")
    inputs = [convert_to_tensor(condition, preferred_dtype=dtypes.bool_)] if x is None else [condition, x, y]
    result: Tensor = apply_op("Where" if x is None else op, inputs, name=name)
    return result


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """x, a tensor or IndexedSlices, in another dtype; x itself where it has that already."""
    wanted = as_dtype(dtype).base_dtype
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, wanted, name), x.indices, x.dense_shape)
    with name_scope(name, "Cast", [x] if isinstance(x, Tensor) else []) as scope:
        value = convert_to_tensor(x, name="x")
        if value.dtype.base_dtype is wanted:
            return value
        return apply_op("Cast", [value], {"DstT": wanted}, name=scope)


def _to(dtype: DType, default: str) -> Callable[..., Any]:
    def function(x: Any, name: str | None = default) -> Any:
        return cast(x, dtype, name)

    function.__name__ = function.__qualname__ = f"to_{dtype.name}"
    function.__doc__ = f"x as {dtype.name}."
    return function


to_float = _to(dtypes.float32, "ToFloat")
to_double = _to(dtypes.float64, "ToDouble")
to_int32 = _to(dtypes.int32, "ToInt32")
to_int64 = _to(dtypes.int64, "ToInt64")
to_bfloat16 = _to(dtypes.bfloat16, "ToBFloat16")
to_complex64 = _to(dtypes.complex64, "ToComplex64")
to_complex128 = _to(dtypes.complex128, "ToComplex128")


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` in another dtype; what lies outside its range becomes the nearest value in it.

    Real and imaginary parts are clipped separately; a real dtype takes the real part alone.
    """
    wanted = as_dtype(dtype).base_dtype
    with name_scope(name, "saturate_cast") as scope:
        x = convert_to_tensor(value, name="value")
        source = x.dtype.base_dtype
        if source is wanted:
            return x
        if source.is_complex:
            real = apply_op("Real", [x], {"Tout": source.real_dtype})
            if not wanted.is_complex:
                return saturate_cast(real, wanted, name=scope)
            imaginary = apply_op("Imag", [x], {"Tout": source.real_dtype})
            parts = wanted.real_dtype
            return complex(saturate_cast(real, parts), saturate_cast(imaginary, parts), name=scope)
        if source.is_integer:
            bounds = max(int(source.min), int(wanted.min)), min(int(source.max), int(wanted.max))
            x = clip_by_value(x, *bounds, name="clamp")
        else:
            x = clip_by_value(x, _inside(wanted.min, source), _inside(wanted.max, source), name="clamp")
        result: Tensor = apply_op("Cast", [x], {"DstT": wanted}, name=scope)
        return result


def _inside(limit: Any, dtype: DType) -> Any:
    """Returns the number of a floating dtype that is nearest to the limit and not beyond it; both are exact as ints."""
    kind = dtype.numpy.type
    bound = int(limit)
    if abs(bound) > int(dtype.max):
        return dtype.max if bound > 0 else dtype.min
    near = kind(bound)
    return near if abs(int(near)) <= abs(bound) else np.nextafter(near, kind(0))


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """t, a tensor or IndexedSlices, limited to clip_value_max and then to clip_value_min."""
    with name_scope(name, "clip_by_value") as scope:
        values = t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t, name="t")
        below = apply_op("Minimum", [values, clip_value_max])
        result = apply_op("Maximum", [below, convert_to_tensor(clip_value_min, values.dtype.base_dtype)], name=scope)
        _check_clip_shape(values, result)
        return IndexedSlices(result, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else result


def _check_clip_shape(values: Tensor, result: Tensor) -> None:
    if not compatible(values.static_shape, result.static_shape):
        raise InvalidArgumentError(
            f"clip_by_value: t has shape {format_shape(values.static_shape)}, its bounds broadcast it to "
            f"{format_shape(result.static_shape)}; bounds must not add to the shape"
        )


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """Returns the same bytes as another dtype; a narrower one adds a last dimension, a wider one takes it away."""
    result: Tensor = apply_op("Bitcast", [input], {"type": as_dtype(type)}, name)
    return result


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers of real and imaginary parts, which are both float32 or both float64 and broadcast."""
    with name_scope(name, "Complex") as scope:
        first, second = convert_pair(real, imag)
        wanted = {"float32": dtypes.complex64, "float64": dtypes.complex128}.get(first.dtype.base_dtype.name)
        if wanted is None or first.dtype.base_dtype is not second.dtype.base_dtype:
            raise InvalidArgumentError(
                f"complex: parts have dtypes {first.dtype.name} and {second.dtype.name}; "
                "they must both be float32 or both float64"
            )
        result: Tensor = apply_op("Complex", [first, second], {"Tout": wanted}, name=scope)
        return result
