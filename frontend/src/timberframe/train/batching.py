"""Batches of what a graph makes one by one, gathered in queues that threads fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timberframe.api.arrays import no_op
from timberframe.api.framework import name_scope
from timberframe.api.indexing import dynamic_partition
from timberframe.api.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from timberframe.api.selection import cast
from timberframe.layers.switch import smart_cond
from timberframe.train import sparse_batches
from timberframe.train.queue_runner import QueueRunner, add_queue_runner, summarize_fullness
from timberframe_core.dtypes import int32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor
from timberframe_core.graph.tensor_shape import TensorShape


@dataclass(frozen=True)
class Settings:
    """Settings of a queue of elements, and of the batches from it.

    least: min_after_dequeue; the queue shuffles if it is given.
    """

    batch_size: Any
    capacity: int
    enqueue_many: bool
    shapes: Any
    allow_smaller_final_batch: bool
    shared_name: str | None
    dynamic_pad: bool = False
    least: int | None = None
    seed: int | None = None


def _batches(
    caller: str, tensors_list: Sequence[Any], threads: int, keep_input: Any, settings: Settings, name: str | None
) -> Any:
    """Batches of what each of tensors_list makes, each with `threads` threads."""
    if not tensors_list:
        raise InvalidArgumentError(f"{caller}: tensors_list is empty; one set of tensors at least is required")
    lists = [components(caller, tensors, tensors_list[0]) for tensors in tensors_list]
    scoped = [t for parts in lists for t in parts if isinstance(t, Tensor)]
    with name_scope(name, caller, scoped) as scope:
        if settings.least is not None and settings.capacity <= settings.least:
            raise InvalidArgumentError(
                f"{caller}: capacity is {settings.capacity} and min_after_dequeue {settings.least}; the capacity must "
                "be larger"
            )
        converted = [[as_component(t) for t in parts] for parts in lists]
        keep = checked_keep_input(caller, keep_input, settings.enqueue_many)
        stored, restore = sparse_batches.store(converted, settings.enqueue_many, keep)
        queue = make_queue(caller, stored, settings, "padding_fifo_queue" if settings.dynamic_pad else "fifo_queue")
        enqueues = [_enqueue(queue, parts, settings.enqueue_many, keep) for parts in stored]
        add_queue_runner(QueueRunner(queue, enqueues * threads))
        _summarize(queue, settings)
        take = queue.dequeue_up_to if settings.allow_smaller_final_batch else queue.dequeue_many
        made = take(settings.batch_size, name=scope)
        taken = restore(made if isinstance(made, list) else [made])
    return in_structure(tensors_list[0], taken)


def in_structure(given: Any, taken: list[Any]) -> Any:
    """Returns the components of a batch as those of an element were given: a dict, a list, or one alone."""
    if isinstance(given, Mapping):
        return dict(zip(sorted(given, key=str), taken, strict=True))
    return taken[0] if len(taken) == 1 else taken


def components(caller: str, tensors: Any, first: Any) -> list[Any]:
    """Returns what an element consists of, dicts in the order of their keys."""
    if isinstance(first, Mapping):
        if not isinstance(tensors, Mapping) or set(tensors) != set(first):
            raise InvalidArgumentError(f"{caller}: a dict has other keys than {sorted(first)}; all must have the same")
        found = [tensors[k] for k in sorted(tensors, key=str)]
    else:
        found = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    if not found:
        raise InvalidArgumentError(f"{caller}: no tensors are given; one at least is required")
    return found


def as_component(value: Any) -> Any:
    """Returns a value as a tensor, sparse ones as they are."""
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value)


def checked_keep_input(caller: str, keep_input: Any, many: bool) -> Tensor:
    """Returns which elements are kept as a tensor: a scalar, or of many elements a vector."""
    keep = convert_to_tensor(keep_input, name="keep_input")
    rank = keep.shape.ndims
    if rank is None or rank > 1 or (rank == 1 and not many):
        raise InvalidArgumentError(
            f"{caller}: keep_input has shape {keep.shape}; a scalar is required, or with enqueue_many a vector"
        )
    return keep


def make_queue(
    caller: str, lists: Sequence[Sequence[Tensor]], settings: Settings, name: str = "fifo_queue"
) -> QueueBase:
    """Returns a queue for the elements of several sets of tensors, which must have the same dtypes."""
    dtypes = [t.dtype.base_dtype for t in lists[0]]
    for parts in lists[1:]:
        given = [t.dtype.base_dtype for t in parts]
        if given != dtypes:
            names = [[d.name for d in one] for one in (given, dtypes)]
            raise InvalidTypeError(f"{caller}: dtypes are {names[0]} and {names[1]}; all sets of tensors need the same")
    shapes = settings.shapes
    if shapes is None:
        shapes = [_shape(caller, [parts[i] for parts in lists], settings.enqueue_many) for i in range(len(dtypes))]
    capacity, shared_name = settings.capacity, settings.shared_name
    if settings.least is not None:
        return RandomShuffleQueue(
            capacity, settings.least, dtypes, shapes=shapes, seed=settings.seed, shared_name=shared_name
        )
    if settings.dynamic_pad:
        return PaddingFIFOQueue(capacity, dtypes, shapes, shared_name=shared_name, name=name)
    return FIFOQueue(capacity, dtypes, shapes, shared_name=shared_name, name=name)


def _shape(caller: str, tensors: Sequence[Tensor], many: bool) -> TensorShape:
    """Returns the shape of a component that several sets of tensors give."""
    found = []
    for t in tensors:
        if t.shape.ndims is None:
            raise InvalidArgumentError(f"{caller}: the rank of '{t.name}' is unknown; give shapes")
        found.append(t.shape.with_rank_at_least(1)[1:] if many else t.shape)
    for shape in found[1:]:
        found[0].assert_is_compatible_with(shape)
    return found[0]


def _enqueue(queue: QueueBase, parts: Sequence[Tensor], many: bool, keep: Tensor) -> Operation | Tensor:
    add: Callable[[Any], Operation] = queue.enqueue_many if many else queue.enqueue
    if keep.shape.ndims == 1:
        chosen = cast(keep, int32)
        return add([dynamic_partition(x, chosen, 2)[1] for x in parts])
    made: Operation | Tensor = smart_cond(keep, lambda: add(list(parts)), no_op)
    return made


def _summarize(queue: QueueBase, settings: Settings) -> None:
    """Adds a summary of how full the queue is."""
    capacity, least = settings.capacity, settings.least
    name = f"fraction_of_{capacity}_full" if least is None else f"fraction_over_{least}_of_{capacity - least}_full"
    summarize_fullness(queue, capacity, name, least)


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of tensors [batch_size, ...] that the graph makes one by one, by a queue that a QueueRunner fills.

    tensors: a tensor, a list, or a dict, of tensors and SparseTensors; the result has the same structure, a list of one
    being that one. num_threads: how many fill the queue; with several the order is not determined. enqueue_many: each
    tensor holds many elements, as rows. shapes: of the elements, where they are not known. dynamic_pad: sizes may be
    unknown; elements are padded with zeros to the largest of a batch. allow_smaller_final_batch: what is left at the
    end comes, too. Running it raises OutOfRangeError when there is nothing more.
    """
    settings = Settings(batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name, dynamic_pad)
    return _batches("batch", [tensors], num_threads, True, settings, name)


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of those elements for which keep_input is true: a bool scalar, or with enqueue_many one for each row."""
    settings = Settings(batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name, dynamic_pad)
    return _batches("batch", [tensors], num_threads, keep_input, settings, name)


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of elements that come from several sets of tensors, each with a thread of its own."""
    settings = Settings(batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name, dynamic_pad)
    return _batches("batch_join", tensors_list, 1, True, settings, name)


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch_join` of those elements for which keep_input is true, as in `maybe_batch`."""
    settings = Settings(batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name, dynamic_pad)
    return _batches("batch_join", tensors_list, 1, keep_input, settings, name)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of elements in random order: each is drawn from more than min_after_dequeue, by `seed`."""
    settings = Settings(
        batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        least=min_after_dequeue, seed=seed,
    )  # fmt: skip
    return _batches("shuffle_batch", [tensors], num_threads, True, settings, name)


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of those elements for which keep_input is true, as in `maybe_batch`."""
    settings = Settings(
        batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        least=min_after_dequeue, seed=seed,
    )  # fmt: skip
    return _batches("shuffle_batch", [tensors], num_threads, keep_input, settings, name)


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of elements that come from several sets of tensors, each with a thread of its own."""
    settings = Settings(
        batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        least=min_after_dequeue, seed=seed,
    )  # fmt: skip
    return _batches("shuffle_batch_join", tensors_list, 1, True, settings, name)


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch_join` of those elements for which keep_input is true, as in `maybe_batch`."""
    settings = Settings(
        batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch, shared_name,
        least=min_after_dequeue, seed=seed,
    )  # fmt: skip
    return _batches("shuffle_batch_join", tensors_list, 1, keep_input, settings, name)
