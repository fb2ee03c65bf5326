"""The time of a run."""

from __future__ import annotations

from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Tensor

__all__ = ["timestamp"]


def timestamp(name: str | None = None) -> Tensor:
    """Returns seconds since 1970-01-01 00:00 UTC when it is run, a float64 scalar."""
    made: Tensor = apply_op("Timestamp", name=name)
    return made
