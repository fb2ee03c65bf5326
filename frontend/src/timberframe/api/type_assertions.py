"""Assertions on dtypes, ranks, order and closeness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from timberframe.api.arrays import reshape
from timberframe.api.assertions import assert_less_equal
from timberframe.api.framework import get_static_value, group, name_scope
from timberframe_core.dtypes import NUMERIC, DType, as_dtype, float32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import apply_op, convert_to_tensor, is_tensor
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor
from timberframe_core.shapes import format_shape

__all__ = [
    "assert_integer", "assert_near", "assert_proper_iterable", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_type", "is_non_decreasing", "is_numeric_tensor",
    "is_strictly_increasing", "verify_tensor_all_finite",
]  # fmt: skip

NAMESPACES = {"math": ("is_non_decreasing", "is_strictly_increasing")}


def _said(message: str | None) -> str:
    return f"{message}; " if message else ""


def _check_dtype(x: Any, fits: bool, wanted: str, function: str, message: str | None, name: str | None) -> Operation:
    if not fits:
        raise InvalidTypeError(
            f"{name or function}: {_said(message)}'{x.name}' has dtype {x.dtype.name}; {wanted} is required"
        )
    return group(name=name or function)


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises InvalidTypeError unless the tensor has an integer dtype; the operation that it returns does nothing."""
    given = convert_to_tensor(x)
    return _check_dtype(given, given.dtype.base_dtype.is_integer, "an integer dtype", "assert_integer", message, name)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises InvalidTypeError unless the tensor has this dtype; the operation that it returns does nothing."""
    given = tensor if isinstance(tensor, SparseTensor) else convert_to_tensor(tensor)
    wanted = as_dtype(tf_type)
    found = given.values if isinstance(given, SparseTensor) else given
    return _check_dtype(found, found.dtype == wanted, wanted.name, "assert_type", message, name)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """Returns the tensor; InvalidArgumentError unless its rank is 0."""
    with name_scope(name, "assert_scalar", [tensor]):
        given = convert_to_tensor(tensor)
        if given.shape.ndims != 0:
            raise InvalidArgumentError(
                f"{name or 'assert_scalar'}: {_said(message)}'{given.name}' has shape "
                f"{format_shape(given.static_shape)}; a scalar is required"
            )
        return given


def assert_rank_in(
    x: Any, ranks: Sequence[Any], data: Any = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless the tensor has one of these ranks."""
    wanted = [get_static_value(convert_to_tensor(r)) for r in ranks]
    known = None if None in wanted else [int(r) for r in wanted]
    with name_scope(name, "assert_rank_in", [x]):
        given = convert_to_tensor(x)
        found = apply_op("Rank", [given])
        same = apply_op("Equal", [apply_op("Pack", [[convert_to_tensor(r) for r in ranks]]), found])
        fits = None if known is None or given.shape.ndims is None else given.shape.ndims in known
        return _assert_rank(given, fits, apply_op("Any", [same, 0]), f"one of {known or 'ranks'}", data, summarize,
                            message, name or "assert_rank_in")  # fmt: skip


def assert_rank_at_least(
    x: Any, rank: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless the tensor has this rank or a higher one."""
    least = get_static_value(convert_to_tensor(rank))
    with name_scope(name, "assert_rank_at_least", [x]):
        given = convert_to_tensor(x)
        fits = None if least is None or given.shape.ndims is None else given.shape.ndims >= int(least)
        holds = apply_op("GreaterEqual", [apply_op("Rank", [given]), rank])
        return _assert_rank(given, fits, holds, f"{least} or more", data, summarize, message,
                            name or "assert_rank_at_least")  # fmt: skip


def _assert_rank(
    x: Tensor, fits: bool | None, holds: Tensor, wanted: str, data: Any, summarize: int | None, message: str | None,
    name: str,
) -> Operation:  # fmt: skip
    if fits is False:
        raise InvalidArgumentError(
            f"{name}: {_said(message)}'{x.name}' has shape {format_shape(x.static_shape)}; its rank must be {wanted}"
        )
    shown = [message or "", f"'{x.name}' must have rank {wanted}; its shape is", apply_op("Shape", [x])]
    made: Operation = apply_op("Assert", [holds, shown if data is None else data], {"summarize": summarize})
    return made


def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, data: Any = None, summarize: int | None = None,
    message: str | None = None, name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless |x - y| <= atol + rtol |y| everywhere; both are 10 times the dtype's epsilon if None."""
    with name_scope(name, "assert_near", [x, y]):
        first: Any = convert_to_tensor(x)
        second: Any = convert_to_tensor(y, first.dtype)
        kind = first.dtype.real_dtype
        small = 10 * float(np.finfo(kind.as_numpy_dtype).eps) if kind.size > 2 or kind.name == "float16" else 0.0781
        relative, absolute = (convert_to_tensor(small if t is None else t, kind) for t in (rtol, atol))
        limit: Any = relative * apply_op("Abs", [second])
        said = _said(message) + "x and y must be equal within rtol and atol"
        return assert_less_equal(apply_op("Abs", [first - second]), absolute + limit, data, summarize, said)


def assert_proper_iterable(values: Any) -> None:
    """Raises InvalidTypeError for tensors, arrays, strings, and what cannot be iterated over."""
    if is_tensor(values) or isinstance(values, SparseTensor | np.ndarray | bytes | str):
        raise InvalidTypeError(f"assert_proper_iterable: values is {values!r}; a list or tuple is required")
    if not isinstance(values, Iterable):
        raise InvalidTypeError(f"assert_proper_iterable: values is {values!r}; something to iterate over is required")


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """Returns the floating dtype that all tensors have, or `dtype`; float32 where none is given.

    Raises InvalidArgumentError where they differ or it is no floating dtype.
    """
    found = None if dtype is None else as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        if tensor is None:
            continue
        kind = tensor.dtype.base_dtype
        found = found or kind
        if kind is not found:
            raise InvalidArgumentError(
                f"assert_same_float_dtype: '{tensor.name}' has dtype {kind.name}; {found.name} is required"
            )
    found = found or float32
    if not found.is_floating:
        raise InvalidArgumentError(f"assert_same_float_dtype: the dtype is {found.name}; a floating one is required")
    return found


def is_numeric_tensor(tensor: Any) -> bool:
    """Returns whether it is a tensor, or sparse tensor, of numbers."""
    return (is_tensor(tensor) or isinstance(tensor, SparseTensor)) and tensor.dtype.base_dtype in NUMERIC


def _ordered(op: str, x: Any, name: str | None, default: str) -> Tensor:
    with name_scope(name, default, [x]):
        flat = reshape(x, [-1])
        made: Tensor = apply_op("All", [apply_op(op, [flat[:-1], flat[1:]]), 0])
        return made


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Returns whether no element, in row-major order, is less than the one before: a bool scalar."""
    return _ordered("LessEqual", x, name, "is_non_decreasing")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Returns whether each element, in row-major order, is greater than the one before: a bool scalar."""
    return _ordered("Less", x, name, "is_strictly_increasing")


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """Returns the tensor; running it raises InvalidArgumentError where an element is infinite or not a number.

    x and message are newer names of t and msg.
    """
    given, said = (t if x is None else x), (msg if message is None else message)
    made: Tensor = apply_op("CheckNumerics", [given], {"message": said or ""}, name)
    return made
