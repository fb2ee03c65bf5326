"""`tf.contrib.training.bucket`: batches of elements of one kind, such as of like lengths, by a queue for each kind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from timberframe.api.arrays import no_op
from timberframe.api.comparison import equal, greater_equal
from timberframe.api.control_flow import cond
from timberframe.api.framework import group, name_scope
from timberframe.api.queues import PaddingFIFOQueue, QueueBase
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.boundary import guard
from timberframe.layers.switch import smart_cond
from timberframe.summary.functions import scalar
from timberframe.train import sparse_batches
from timberframe.train.batching import (
    Settings,
    as_component,
    checked_keep_input,
    components,
    in_structure,
    make_queue,
)
from timberframe.train.queue_runner import QueueRunner, add_queue_runner, summarize_fullness
from timberframe_core.dtypes import float32, int32
from timberframe_core.errors import CancelledError, InvalidArgumentError, InvalidTypeError, OutOfRangeError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape

__all__ = ["bucket", "bucket_by_sequence_length"]

_CLOSED = (OutOfRangeError, CancelledError)


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Returns a bucket's number and a batch of the elements that were put into it, by queues that QueueRunners fill.

    tensors: an element, as for `tf.train.batch`. which_bucket: an int32 scalar in [0, num_buckets). batch_size: of all
    buckets, or a list with one for each. capacity: batches that are made ahead, and elements of a bucket where
    bucket_capacities, one for each, is None. keep_input: whether the element is taken at all. The other arguments are
    those of `tf.train.batch`. Running it raises OutOfRangeError when there is nothing more.
    """
    sizes = list(batch_size) if isinstance(batch_size, list | tuple) else [batch_size] * num_buckets
    capacities = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    for setting, listed in (("batch_size", sizes), ("bucket_capacities", capacities)):
        if len(listed) != num_buckets:
            raise InvalidArgumentError(
                f"bucket: {setting} has {len(listed)} entries; {num_buckets} are required, one for each bucket"
            )
    parts = components("bucket", tensors, tensors)
    with name_scope(name, "bucket", [t for t in parts if isinstance(t, Tensor)]):
        keep = checked_keep_input("bucket", keep_input, False)
        (stored,), restore = sparse_batches.store([[as_component(t) for t in parts]], False, keep)
        queues = []
        for i, held in enumerate(capacities):
            shared = None if shared_name is None else f"{shared_name}_{i}"
            settings = Settings(None, held, False, shapes, allow_smaller_final_batch, shared, dynamic_pad)
            queues.append(make_queue("bucket", [stored], settings, f"bucket_queue_{i}"))
        own_sizes = isinstance(batch_size, list | tuple) or allow_smaller_final_batch
        rows = None if own_sizes or isinstance(batch_size, Tensor) else batch_size
        top = PaddingFIFOQueue(
            capacity,
            [int32, *queues[0].dtypes],
            [TensorShape([]), *(TensorShape([rows]).concatenate(s) for s in queues[0].shapes)],
            shared_name=shared_name,
            name="top_queue",
        )
        _fill_buckets(queues, stored, which_bucket, keep, num_threads, top)
        _fill_top(queues, sizes, allow_smaller_final_batch, top)
        for queue in queues:
            scalar(f"bucket/{queue.name}/size", cast(queue.size(), float32))
        summarize_fullness(top, capacity, f"bucket/{top.name}/fraction_of_{capacity}_full")
        number, *taken = top.dequeue(name="dequeue_top")
        return number, in_structure(tensors, restore(taken))


def _fill_buckets(
    queues: Sequence[QueueBase], parts: list[Tensor], which: Any, keep: Tensor, threads: int, top: QueueBase
) -> None:
    """Adds threads that put elements into their buckets, and close these at the end."""
    number = convert_to_tensor(which, int32, "which_bucket")

    def add() -> Operation:
        chosen = [cond(equal(number, i), partial(q.enqueue, parts), no_op) for i, q in enumerate(queues)]
        return group(*chosen, name="group_enqueues")

    close_op = group(*(q.close() for q in queues))
    cancel_op = group(*(q.close(cancel_pending_enqueues=True) for q in queues))
    enqueues = [smart_cond(keep, add, no_op)] * threads
    add_queue_runner(QueueRunner(top, enqueues, close_op, cancel_op, _CLOSED))


def _fill_top(queues: Sequence[QueueBase], sizes: Sequence[Any], smaller: bool, top: QueueBase) -> None:
    """Adds a thread for each bucket that makes batches of its elements, the last of which closes their queue."""
    enqueues = []
    for i, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        made = (queue.dequeue_up_to if smaller else queue.dequeue_many)(size, name=f"read_bucket_{i}")
        batch = made if isinstance(made, list) else [made]
        enqueues.append(top.enqueue([convert_to_tensor(i, int32), *batch], name=f"enqueue_from_bucket_{i}"))
    cancel_op = top.close(cancel_pending_enqueues=True)
    add_queue_runner(QueueRunner(queues[0], enqueues, top.close(), cancel_op, _CLOSED))


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Returns the lengths [batch_size] and a batch of elements whose lengths lie between the same two boundaries.

    input_length: an int32 scalar. bucket_boundaries: increasing; there is a bucket below the first, from each to the
    next, and from the last on. The other arguments are those of `bucket`.
    """
    boundaries = _checked_boundaries(bucket_boundaries)
    parts = components("bucket_by_sequence_length", tensors, tensors)
    scoped = [t for t in [input_length, *parts] if isinstance(t, Tensor)]
    with name_scope(name, "bucket_by_sequence_length", scoped):
        length = convert_to_tensor(input_length, int32, "input_length")
        _, (lengths, *taken) = bucket(
            [length, *parts],
            reduce_sum(cast(greater_equal(length, boundaries), int32)),
            batch_size,
            len(boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [TensorShape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
    return lengths, in_structure(tensors, taken)


def _checked_boundaries(boundaries: Any) -> list[int]:
    if not isinstance(boundaries, list | tuple) or not all(isinstance(b, int) for b in boundaries):
        raise InvalidTypeError(
            f"bucket_by_sequence_length: bucket_boundaries is {boundaries!r}; a list of integers is required"
        )
    if not boundaries or any(a >= b for a, b in pairwise(boundaries)):
        raise InvalidArgumentError(
            f"bucket_by_sequence_length: bucket_boundaries is {boundaries!r}; increasing numbers, one at least, are "
            "required"
        )
    return list(boundaries)


guard([sys.modules[__name__]], "tf.contrib.training")
