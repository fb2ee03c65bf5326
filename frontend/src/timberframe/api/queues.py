"""Queues: elements that one run adds and another one takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

from timberframe.api.control_flow import switch_case
from timberframe.api.framework import name_scope
from timberframe.api.random_seeds import seed_attrs
from timberframe.api.selection import cast
from timberframe_core.arguments import brief
from timberframe_core.dtypes import DType, as_dtype, int32, int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.dimension import Dimension
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape, as_shape

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]


class QueueBase:
    """A queue of tuples of tensors; it lives in a session, as a variable does.

    Use one of its subclasses. dtypes, shapes, names: of the components of an element; shapes and names may be None. An
    operation that adds waits while the queue is full, one that takes waits until there is something; a time limit of
    the run, `close` from another run or the closing of the session ends the waiting.
    """

    def __init__(
        self, dtypes: Sequence[DType], shapes: Sequence[TensorShape], names: list[str] | None, queue_ref: Tensor
    ) -> None:
        self._dtypes = list(dtypes)
        self._shapes = list(shapes)
        self._names = names
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """Returns the queue ``queues[index]``, chosen whenever one of its operations runs.

        index: an integer scalar. queues: with equal dtypes and names of their components; a size in which their shapes
        differ is unknown. Raises InvalidTypeError for what is no list of such queues.
        """
        return _select_queue(index, queues)

    @property
    def queue_ref(self) -> Tensor:
        """The handle."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """Name of the operation that makes the queue."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        """Dtypes of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """Shapes of the components, unknown ones if none were given."""
        return self._shapes or [TensorShape(None)] * len(self._dtypes)

    @property
    def names(self) -> list[str] | None:
        """Names of the components, None if they have none."""
        return self._names

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Adds an element: a tensor, a list of components, or a dict of them if they have names.

        Running it raises CancelledError where the queue is closed.
        """
        with name_scope(name, f"{self._name}_enqueue") as scope:
            components = self._components(vals)
            for x, shape in zip(components, self.shapes, strict=True):
                _check_shape(self, x.get_shape(), shape)
            made: Operation = self._apply("QueueEnqueueV2", [components], None, scope)
            return made

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Adds an element for each row of the components."""
        with name_scope(name, f"{self._name}_EnqueueMany") as scope:
            components = self._components(vals)
            rows = TensorShape([None])
            for x, shape in zip(components, self.shapes, strict=True):
                found = x.get_shape().with_rank_at_least(1)
                _check_shape(self, found[1:], shape)
                rows = rows.merge_with(found[:1])
            made: Operation = self._apply("QueueEnqueueManyV2", [components], None, scope)
            return made

    def dequeue(self, name: str | None = None) -> Any:
        """Takes an element: a tensor if it has one component, a list of several, a dict if they have names.

        Running it raises OutOfRangeError where the queue is closed and empty.
        """
        made = self._apply("QueueDequeueV2", [], self._types(), name or f"{self._name}_Dequeue")
        return self._returned(made, self.shapes)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Takes n elements as the rows of one tensor for each component.

        Running it raises OutOfRangeError where the queue is closed and has fewer.
        """
        return self._dequeue_batch("QueueDequeueManyV2", n, name or f"{self._name}_DequeueMany")

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Takes n elements, or what is left once the queue is closed; OutOfRangeError where nothing is."""
        return self._dequeue_batch("QueueDequeueUpToV2", n, name or f"{self._name}_DequeueUpTo")

    def _dequeue_batch(self, op: str, n: Any, name: str) -> Any:
        with name_scope(name) as scope:
            made = self._apply(op, [convert_to_tensor(n, int32, name="n")], self._types(), scope)
            n = n.value if isinstance(n, Dimension) else n
            count = n if isinstance(n, int) and op == "QueueDequeueManyV2" else None
            return self._returned(made, [TensorShape([count]).concatenate(s) for s in self.shapes])

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Closes the queue: nothing more can be added, and what is left can be taken.

        Waits until what waits to be added has been; with cancel_pending_enqueues that ends with CancelledError instead.
        """
        attrs = {"cancel_pending_enqueues": cancel_pending_enqueues}
        made: Operation = self._apply("QueueCloseV2", [], attrs, name or f"{self._name}_Close")
        return made

    def is_closed(self, name: str | None = None) -> Tensor:
        """Returns whether the queue is closed."""
        made: Tensor = self._apply("QueueIsClosedV2", [], None, name or f"{self._name}_Is_Closed")
        return made

    def size(self, name: str | None = None) -> Tensor:
        """Returns how many elements the queue has."""
        made: Tensor = self._apply("QueueSizeV2", [], None, name or f"{self._name}_Size")
        return made

    def _apply(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None, name: str) -> Any:
        """Returns an operation on the queue."""
        return apply_op(op, [self._queue_ref, *inputs], attrs, name)

    def _components(self, vals: Any) -> list[Tensor]:
        if isinstance(vals, Mapping):
            if self._names is None or sorted(vals) != sorted(self._names):
                raise InvalidArgumentError(
                    f"queue '{self.name}': values for {sorted(vals)} are given; its components are {self._names}"
                )
            vals = [vals[n] for n in self._names]
        elif self._names is not None:
            raise InvalidArgumentError(f"queue '{self.name}': its components have names {self._names}; give a dict")
        elif not isinstance(vals, list | tuple):
            vals = [vals]
        if len(vals) != len(self._dtypes):
            raise InvalidArgumentError(f"queue '{self.name}': {len(vals)} values; {len(self._dtypes)} are required")
        return [
            convert_to_tensor(x, d, name=f"component_{i}")
            for i, (x, d) in enumerate(zip(vals, self._dtypes, strict=True))
        ]

    def _types(self) -> dict[str, Any]:
        return {"component_types": self._dtypes}

    def _returned(self, made: list[Tensor], shapes: Sequence[TensorShape]) -> Any:
        for x, shape in zip(made, shapes, strict=True):
            x.set_shape(shape)
        if self._names is not None:
            return dict(zip(self._names, made, strict=True))
        return made[0] if len(made) == 1 else made


class FIFOQueue(QueueBase):
    """A queue that gives its elements in the order in which they came. See `QueueBase`.

    capacity: how many elements it holds at most, -1 for any number. shared_name: by which several nodes, and sessions
    of a cluster, know one queue.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        types, known, labels = _signature(dtypes, shapes, names)
        super().__init__(types, known, labels, _make("FIFOQueueV2", capacity, types, known, shared_name, name))


class PaddingFIFOQueue(QueueBase):
    """A FIFO queue whose shapes may leave sizes open; elements taken together are padded with zeros to one size.

    shapes: one for each dtype, None where a size is open. The others are those of `FIFOQueue`.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types, known, labels = _signature(dtypes, shapes, names)
        if len(known) != len(types):
            raise InvalidArgumentError(f"PaddingFIFOQueue: {len(known)} shapes for {len(types)} dtypes; each needs one")
        super().__init__(types, known, labels, _make("PaddingFIFOQueueV2", capacity, types, known, shared_name, name))


class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in random order, drawn from more than min_after_dequeue until it is closed.

    seed: with one the order is the same in each session.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types, known, labels = _signature(dtypes, shapes, names)
        more = {"min_after_dequeue": min_after_dequeue, **seed_attrs(seed)}
        handle = _make("RandomShuffleQueueV2", capacity, types, known, shared_name, name, more)
        super().__init__(types, known, labels, handle)


class PriorityQueue(QueueBase):
    """A queue that gives the element with the least priority first: an int64 that precedes its other components.

    types, shapes: of the components after the priority. The others are those of `FIFOQueue`.
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        dtypes, known, _ = _signature(types, shapes, None)
        handle = _make("PriorityQueueV2", capacity, dtypes, known, shared_name, name)
        every, all_known, labels = _signature([int64, *dtypes], [(), *known] if known else None, names)
        super().__init__(every, all_known, labels, handle)


class _SelectedQueue(QueueBase):
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


def _select_queue(index: Any, queues: Any) -> _SelectedQueue:
    """Returns what `QueueBase.from_list` returns; raises InvalidTypeError for what is no list
    of queues that go together.
    """
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
    return _SelectedQueue(index, queues)


def _in_common(a: TensorShape, b: TensorShape) -> TensorShape:
    """Returns the sizes in which two shapes agree."""
    if a.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list(), strict=True)])


def _signature(dtypes: Any, shapes: Any, names: Any) -> tuple[list[DType], list[TensorShape], list[str] | None]:
    """Returns dtypes, shapes and names of components; a single one need not be in a list."""
    types = [as_dtype(d) for d in (dtypes if isinstance(dtypes, list | tuple) else [dtypes])]
    if shapes is None:
        known = []
    elif isinstance(shapes, list | tuple) and all(isinstance(s, list | tuple | TensorShape) for s in shapes) and shapes:
        known = [TensorShape(as_shape(s)) for s in shapes]
    else:
        known = [TensorShape(as_shape(shapes))]
    if known and len(known) != len(types):
        raise InvalidArgumentError(f"queue: {len(known)} shapes for {len(types)} dtypes; each component needs one")
    if names is None:
        return types, known, None
    labels = [names] if isinstance(names, str) else list(names)
    if len(labels) != len(types) or not all(isinstance(n, str) for n in labels):
        raise InvalidTypeError(f"queue: names {names!r} for {len(types)} dtypes; each component needs a str")
    return types, known, labels


def _make(
    op: str,
    capacity: int,
    dtypes: Sequence[DType],
    shapes: Sequence[TensorShape],
    shared_name: str | None,
    name: str,
    more: Mapping[str, Any] | None = None,
) -> Tensor:
    attrs = {
        "component_types": dtypes,
        "shapes": [s.as_tuple() for s in shapes],
        "capacity": capacity,
        "shared_name": shared_name,
        **(more or {}),
    }
    made: Tensor = apply_op(op, [], attrs, name)
    return made


def _check_shape(queue: QueueBase, found: TensorShape, wanted: TensorShape) -> None:
    if not found.is_compatible_with(wanted):
        raise InvalidArgumentError(f"queue '{queue.name}': a component has shape {found}; {wanted} is required")
