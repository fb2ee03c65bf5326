"""`tf.*` functions that compare operands, and combine truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.operators import logical_xor

__all__ = [
    "approximate_equal", "equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or",
    "logical_xor", "not_equal",
]  # fmt: skip

NAMESPACES = {
    "math": (
        "equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor",
        "not_equal",
    ),
}  # fmt: skip


def _function(op: str, name: str, doc: str) -> Callable[..., Tensor]:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(op, [x, y], name=name)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


equal = _function("Equal", "equal", "Whether x equals y, by element.")
not_equal = _function("NotEqual", "not_equal", "Whether x differs from y, by element.")
less = _function("Less", "less", "Whether x < y, by element.")
less_equal = _function("LessEqual", "less_equal", "Whether x <= y, by element.")
greater = _function("Greater", "greater", "Whether x > y, by element.")
greater_equal = _function("GreaterEqual", "greater_equal", "Whether x >= y, by element.")
logical_and = _function("LogicalAnd", "logical_and", "x and y, by element.")
logical_or = _function("LogicalOr", "logical_or", "x or y, by element.")


def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """Returns whether x and y, of one shape, differ by less than `tolerance`, by element."""
    result: Tensor = apply_op("ApproximateEqual", [x, y], {"tolerance": tolerance}, name)
    return result
