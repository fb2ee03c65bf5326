"""Which values of a graph runs may replace, and which they may return."""

from __future__ import annotations

from typing import Any

from timberframe_core.graph.operation import Operation, Tensor


class FeedsAndFetches:
    """The part of a graph that knows them."""

    _not_fed: set[Tensor]
    _not_fetched: set[Tensor | Operation]

    def is_feedable(self, tensor: Any) -> bool:
        """Returns whether a run may replace this value."""
        return tensor.graph is self and not is_handle(tensor) and tensor not in self._not_fed

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Returns whether a run can return this value, or run this operation."""
        if isinstance(tensor_or_op, Tensor) and is_handle(tensor_or_op):
            return False
        return tensor_or_op.graph is self and tensor_or_op not in self._not_fetched

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Makes runs refuse a value for this tensor."""
        self._not_fed.add(tensor)

    def prevent_fetching(self, op: Operation) -> None:
        """Makes runs refuse to run this operation for its own sake, or to return what it makes."""
        self._not_fetched.update((op, *op.outputs))


def is_handle(tensor: Tensor) -> bool:
    """Returns whether it stands for a resource or a list, and has no value that a caller could give or get."""
    return tensor.dtype.name in ("resource", "variant")
