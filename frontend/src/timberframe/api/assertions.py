"""Assertions on values: operations that fail when the run finds what they forbid.

Each returns the operation; other operations wait for it through `tf.control_dependencies`. What is known to be wrong
while the graph is built raises InvalidArgumentError at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.api.framework import get_static_value, name_scope
from timberframe.api.reduction import reduction_axes
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Operation
from timberframe_core.shapes import format_shape

__all__ = [
    "assert_equal", "assert_greater", "assert_greater_equal", "assert_less", "assert_less_equal", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive", "assert_rank",
]  # fmt: skip

Compare = Callable[[Any, Any], Any]


def _check(
    op: str,
    sign: str,
    compare: Compare,
    x: Any,
    y: Any,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str,
) -> Operation:
    with name_scope(name, values=[x, y]):
        first = convert_to_tensor(x)
        second = convert_to_tensor(y, first.dtype)
        known = [get_static_value(t) for t in (first, second)]
        holds = apply_op(op, [first, second])
        if known[0] is not None and known[1] is not None and not np.all(compare(*known)):
            raise InvalidArgumentError(
                f"{name}: {message + '; ' if message else ''}x {sign} y is false for x = {known[0]} and y = {known[1]}"
            )
        every = apply_op("All", [holds, reduction_axes(holds)])
        if data is None:
            data = [message or "", f"x {sign} y must hold everywhere; x and y are", first, second]
        made: Operation = apply_op("Assert", [every, data], {"summarize": summarize})
        return made


def assert_equal(
    x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless x == y everywhere, with broadcasting.

    x, y: tensors of one dtype that broadcast. data: what the error shows, by default x and y; summarize: how many
    elements of each; message: how it begins. Returns the operation that checks, to be run or made a control dependency.
    Raises InvalidArgumentError at once where both are known.
    """
    return _check("Equal", "==", np.equal, x, y, data, summarize, message, name or "assert_equal")


def assert_none_equal(
    x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless x != y everywhere; arguments, result and errors are those of `assert_equal`."""
    return _check("NotEqual", "!=", np.not_equal, x, y, data, summarize, message, name or "assert_none_equal")


def assert_less(
    x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless x < y everywhere; arguments, result and errors are those of `assert_equal`."""
    return _check("Less", "<", np.less, x, y, data, summarize, message, name or "assert_less")


def assert_less_equal(
    x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless x <= y everywhere; arguments, result and errors are those of `assert_equal`."""
    return _check("LessEqual", "<=", np.less_equal, x, y, data, summarize, message, name or "assert_less_equal")


def assert_greater(
    x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless x > y everywhere; arguments, result and errors are those of `assert_equal`."""
    return _check("Greater", ">", np.greater, x, y, data, summarize, message, name or "assert_greater")


def assert_greater_equal(
    x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless x >= y everywhere; arguments, result and errors are those of `assert_equal`."""
    return _check(
        "GreaterEqual", ">=", np.greater_equal, x, y, data, summarize, message, name or "assert_greater_equal"
    )


def assert_positive(
    x: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless all elements are above zero.

    x: a tensor of numbers. data: what the error shows, by default x; summarize: how many elements of each; message: how
    it begins. Returns the operation that checks, to be run or made a control dependency. Raises InvalidArgumentError at
    once where x is known.
    """
    return assert_greater(x, 0, data, summarize, message, name or "assert_positive")


def assert_negative(
    x: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless all elements are below zero; arguments, result and errors are those of `assert_positive`."""
    return assert_less(x, 0, data, summarize, message, name or "assert_negative")


def assert_non_negative(
    x: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless all elements are zero or above; arguments, result and errors are those of `assert_positive`."""
    return assert_greater_equal(x, 0, data, summarize, message, name or "assert_non_negative")


def assert_non_positive(
    x: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless all elements are zero or below; arguments, result and errors are those of `assert_positive`."""
    return assert_less_equal(x, 0, data, summarize, message, name or "assert_non_positive")


def assert_rank(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails unless the tensor has this rank.

    data, summarize, message: as in `assert_equal`. Returns the operation that checks. Raises InvalidArgumentError at
    once where the rank is known.
    """
    tensor = convert_to_tensor(x)
    shape, wanted = tensor.static_shape, get_static_value(rank)
    if shape is not None and wanted is not None and len(shape) != int(wanted):
        raise InvalidArgumentError(
            f"{name or 'assert_rank'}: '{tensor.name}' has shape {format_shape(shape)}; it must have rank {int(wanted)}"
        )
    return assert_equal(apply_op("Rank", [tensor]), rank, data, summarize, message, name or "assert_rank")
