"""A queue that the run chooses from a list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from timberframe.api.control_flow import switch_case
from timberframe.api.queues import QueueBase
from timberframe.api.selection import cast
from timberframe_core.arguments import brief
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidTypeError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.tensor_shape import TensorShape


class SelectedQueue(QueueBase):
    """``queues[index]``: an operation of it is a choice among those of the queues, as a handle cannot be computed."""

    def __init__(self, index: Any, queues: Sequence[QueueBase]) -> None:
        first = queues[0]
        shapes = [reduce(_in_common, each) for each in zip(*(q.shapes for q in queues), strict=True)]
        numbers = convert_to_tensor(list(range(len(queues))))
        selected: Tensor = apply_op(
            "GatherV2", [numbers, index, 0], name="selected_queue"
        )  # an error where out of range
        super().__init__(first.dtypes, shapes, first.names, selected)
        self._queues = queues

    @property
    def queue_ref(self) -> Tensor:
        """Raises UnimplementedError: there is no handle."""
        raise UnimplementedError(
            f"queue '{self.name}': it is chosen in the run and has no handle; use its methods, or those of the queues"
        )

    def _apply(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None, name: str) -> Any:
        branches = [partial(queue._apply, op, inputs, attrs, name) for queue in self._queues]
        return switch_case(cast(self._queue_ref, int32), branches, name=name.rstrip("/").rpartition("/")[2])


def select_queue(index: Any, queues: Any) -> SelectedQueue:
    """What `QueueBase.from_list` returns; raises InvalidTypeError for what is no list of queues that go together."""
    if not isinstance(queues, list) or not queues or not all(isinstance(q, QueueBase) for q in queues):
        raise InvalidTypeError(f"QueueBase.from_list: queues is {brief(queues)}; a list of queues is required")
    first = queues[0]
    for queue in queues:
        for what, own, wanted in (
            ("dtypes", [d.name for d in queue.dtypes], [d.name for d in first.dtypes]),
            ("names", queue.names, first.names),
        ):
            if own != wanted:
                raise InvalidTypeError(
                    f"QueueBase.from_list: the {what} of queue '{queue.name}' are {own} and those of '{first.name}' "
                    f"{wanted}; they must be equal"
                )
    return SelectedQueue(index, queues)


def _in_common(a: TensorShape, b: TensorShape) -> TensorShape:
    """The sizes in which two shapes agree."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list(), strict=True)])
