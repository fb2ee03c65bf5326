"""`tf.contrib.staging`: an area where elements wait between two runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from timberframe.api.framework import name_scope
from timberframe.api.queues import FIFOQueue
from timberframe.boundary import guard
from timberframe_core.errors import InvalidArgumentError

_UNLIMITED = 2**31 - 1

__all__ = ["StagingArea"]


class StagingArea:
    """Elements that some runs put in and others get, the first first; it lives in a session, as a queue does.

    dtypes, shapes, names: of the components of an element. capacity: how many elements it holds, after which `put`
    waits; 0 for any number. memory_limit: TensorFlow's bound in bytes, which changes nothing.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if capacity < 0 or memory_limit < 0:
            raise InvalidArgumentError(
                f"StagingArea: capacity is {capacity} and memory_limit {memory_limit}; neither may be negative"
            )
        self.capacity, self.memory_limit = capacity, memory_limit
        self._queue = FIFOQueue(
            capacity or _UNLIMITED, list(dtypes), shapes, None if names is None else list(names), shared_name,
            name="StagingArea",
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Name of the operation that makes it."""
        return self._queue.name

    @property
    def dtypes(self) -> list[Any]:
        """Dtypes of the components."""
        return self._queue.dtypes

    @property
    def shapes(self) -> list[Any]:
        """Shapes of the components."""
        return self._queue.shapes

    @property
    def names(self) -> list[str] | None:
        """Names of the components, None if they have none."""
        return self._queue.names

    def put(self, values: Any, name: str | None = None) -> Any:
        """Returns the operation that puts an element in: a tensor, a list of components, or a dict by their names."""
        with name_scope(name, "StagingArea_put"):
            return self._queue.enqueue(values)

    def get(self, name: str | None = None) -> Any:
        """Returns the tensors of the first element, which is taken; it waits until there is one."""
        with name_scope(name, "StagingArea_get"):
            return self._queue.dequeue()

    def size(self, name: str | None = None) -> Any:
        """Returns a tensor, how many elements there are."""
        with name_scope(name, "StagingArea_size"):
            return self._queue.size()

    def clear(self, name: str | None = None) -> Any:
        """Returns the operation that takes all elements out."""
        with name_scope(name, "StagingArea_clear"):
            taken = self._queue.dequeue_up_to(self._queue.size())
        first = next(iter(taken.values())) if isinstance(taken, dict) else taken
        return (first[0] if isinstance(first, list) else first).op


guard([sys.modules[__name__]])
