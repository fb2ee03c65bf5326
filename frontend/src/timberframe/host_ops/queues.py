"""The ops on queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe.host_ops.handles import resource_of
from timberframe.host_ops.queue_state import PaddingQueue, PriorityQueue, Queue, RandomQueue
from timberframe_core.dtypes import DType, int64
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import Shape, format_shape


def _make(
    call: HostCall, kind: type[Queue], dtypes: Sequence[DType], shapes: Sequence[Shape], **more: Any
) -> list[Any]:
    """Makes the queue, or checks that the one with this name is as it would be."""
    capacity = call.attrs["capacity"]
    if shapes and len(shapes) != len(dtypes):
        raise call.error(f"{len(shapes)} shapes for {len(dtypes)} components; each needs one")
    name = call.made.partition(" ")[2]
    queue = call.resources.get_or_make(call.made, lambda: kind(name, dtypes, shapes, capacity, **more))
    for what, is_, wanted in (
        ("is a", queue.kind, kind.kind),
        ("has capacity", queue.capacity, capacity),
        ("has components of dtypes", [d.name for d in queue.dtypes], [d.name for d in dtypes]),
        ("has shapes", [*map(format_shape, queue.shapes)], [*map(format_shape, shapes)]),
    ):
        if is_ != wanted:
            raise call.error(f"{queue} {what} {is_}; {wanted} is asked for under the same name")
    return []


@host_op("FIFOQueueV2", shared=True)
def _make_fifo(call: HostCall) -> list[Any]:
    return _make(call, Queue, call.attrs["component_types"], call.attrs["shapes"])


@host_op("PaddingFIFOQueueV2", shared=True)
def _make_padding(call: HostCall) -> list[Any]:
    if not call.attrs["shapes"]:
        raise call.error("no shapes are given; each component needs one of known rank")
    return _make(call, PaddingQueue, call.attrs["component_types"], call.attrs["shapes"])


@host_op("RandomShuffleQueueV2", shared=True)
def _make_random(call: HostCall) -> list[Any]:
    attrs = call.attrs
    more = {"least": attrs["min_after_dequeue"], "seeds": (attrs["seed"], attrs["seed2"])}
    return _make(call, RandomQueue, attrs["component_types"], attrs["shapes"], **more)


@host_op("PriorityQueueV2", shared=True)
def _make_priority(call: HostCall) -> list[Any]:
    shapes = call.attrs["shapes"]  # none where they are not known
    return _make(call, PriorityQueue, [int64, *call.attrs["component_types"]], [(), *shapes] if shapes else [])


def _on_queue(work: Callable[[HostCall, Queue], list[Any]]) -> Callable[[HostCall], list[Any]]:
    """Returns a host op of what is done with the queue that the handle means."""

    def run(call: HostCall) -> list[Any]:
        queue = resource_of(call, Queue)
        if call.attrs.get("timeout_ms", -1) != -1:
            raise call.error(
                f"timeout_ms is {call.attrs['timeout_ms']}; -1 is required: a run has RunOptions.timeout_in_ms"
            )
        return work(call, queue)

    run.__qualname__ = work.__qualname__
    return run


@host_op("QueueEnqueueV2", shared=True)
@_on_queue
def _enqueue(call: HostCall, queue: Queue) -> list[Any]:
    queue.add([queue.checked(call.inputs)], call.cancel)
    return []


@host_op("QueueEnqueueManyV2", shared=True)
@_on_queue
def _enqueue_many(call: HostCall, queue: Queue) -> list[Any]:
    components = queue.checked(call.inputs, rows=True)
    queue.add([tuple(x[i, ...] for x in components) for i in range(len(components[0]))], call.cancel)
    return []


@host_op("QueueDequeueV2", shared=True)
@_on_queue
def _dequeue(call: HostCall, queue: Queue) -> list[Any]:
    _check_dtypes(call, queue)
    return list(queue.take(1, False, call.cancel)[0])


@host_op("QueueDequeueManyV2", shared=True)
@_on_queue
def _dequeue_many(call: HostCall, queue: Queue) -> list[Any]:
    return _batch(call, queue, False)


@host_op("QueueDequeueUpToV2", shared=True)
@_on_queue
def _dequeue_up_to(call: HostCall, queue: Queue) -> list[Any]:
    return _batch(call, queue, True)


def _batch(call: HostCall, queue: Queue, fewer: bool) -> list[Any]:
    _check_dtypes(call, queue)
    count = int(call.inputs[0])
    if count < 0:
        raise call.error(f"n is {count}; it must not be negative")
    queue.join([])  # raises where the queue's shapes do not allow it, before anything is taken
    return list(queue.join(queue.take(count, fewer, call.cancel)))


def _check_dtypes(call: HostCall, queue: Queue) -> None:
    if call.dtypes != queue.dtypes:
        given, held = ([d.name for d in dtypes] for dtypes in (call.dtypes, queue.dtypes))
        raise call.error(f"{queue} has components of dtypes {held}; {given} are asked for")


@host_op("QueueCloseV2", shared=True)
@_on_queue
def _close(call: HostCall, queue: Queue) -> list[Any]:
    queue.close_for_adding(call.attrs["cancel_pending_enqueues"], call.cancel)
    return []


@host_op("QueueIsClosedV2", shared=True)
@_on_queue
def _is_closed(call: HostCall, queue: Queue) -> list[Any]:
    return [np.array(queue.closed)]


@host_op("QueueSizeV2", shared=True)
@_on_queue
def _size(call: HostCall, queue: Queue) -> list[Any]:
    return [np.array(len(queue), np.int32)]
