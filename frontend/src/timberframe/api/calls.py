"""Operations as expressions: what functions made of several ops add their operations by."""

from __future__ import annotations

from typing import Any

from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor


def call_op(op: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Tensor:
    """Adds an operation that has one output, and returns that."""
    result: Tensor = apply_op(op, list(inputs), attrs, name)
    return result
